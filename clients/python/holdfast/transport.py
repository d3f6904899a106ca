"""One HTTP exchange over http.client: pooled connections, a deadline for the whole exchange, a bounded answer.

Redirects are never followed, so that the API key goes to the configured host only.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import threading
import time
from email.message import Message
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union
from urllib.parse import urlsplit

IDLE_SECONDS = 15.0  # servers and proxies often cut idle connections at 30 s or more
POOL_SIZE = 16  # connections kept; more are opened when more threads ask, and closed again
READ_SIZE = 64 << 10


class NotSent(Exception):
    """No connection could be made: the server has seen nothing of the request."""

    def __init__(self, timed_out: bool) -> None:
        super().__init__()
        self.timed_out = timed_out


class Lost(Exception):
    """The request was sent, as a whole or in part, and no whole answer came."""

    def __init__(self, timed_out: bool) -> None:
        super().__init__()
        self.timed_out = timed_out


class TooLarge(Exception):
    """The answer is larger than allowed."""

    def __init__(self, status: int, headers: Message) -> None:
        super().__init__()
        self.status = status
        self.headers = headers


class Answer:
    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        self.status = status
        self.headers = headers  # looked up in any case
        self.body = body


class _Reader(io.RawIOBase):
    """Reads a socket until a deadline: http.client alone bounds each read, not all of them together."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self.deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("deadline")
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Readable:
    """What http.client.HTTPResponse needs of a socket."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(self._reader, READ_SIZE)


class Transport:
    """Safe for use by several threads, and after a fork."""

    def __init__(self, base_url: str, ssl_context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must be like https://memory.example")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("base_url must have no credentials, query or fragment")
        self.base_url = base_url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._tls: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self._tls = ssl_context or ssl.create_default_context()
        self._lock = threading.Lock()
        self._idle: List[Tuple[http.client.HTTPConnection, float]] = []
        self._pid = os.getpid()

    def close(self) -> None:
        """Closes the idle connections. The transport can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def send(
        self,
        method: str,
        target: str,
        headers: Dict[str, Union[str, bytes]],
        body: Optional[bytes],
        *,
        timeout: float,
        limit: int,
        reuse: bool,
    ) -> Answer:
        """Raises NotSent, Lost or TooLarge. With reuse, a kept connection that turns out to be closed is replaced by a
        new one at once: only for what may arrive twice."""
        deadline = time.monotonic() + timeout
        kept = self._take() if reuse else None
        if kept is not None:
            try:
                return self._exchange(kept, method, target, headers, body, deadline, limit)
            except Lost as lost:
                if lost.timed_out:
                    raise
        try:
            connection = self._connect(deadline)
        except NotSent as problem:
            if kept is not None:  # the first try may have arrived
                raise Lost(problem.timed_out) from problem
            raise
        return self._exchange(connection, method, target, headers, body, deadline, limit)

    def stream(
        self, target: str, headers: Dict[str, Union[str, bytes]], *, timeout: float, limit: int
    ) -> Tuple[Answer, Iterator[bytes]]:
        """GETs without reading a 2xx body, which the iterator reads; timeout is for the head and for each piece.
        Other answers are read and the iterator is empty."""
        connection = self._connect(time.monotonic() + timeout)
        try:
            self._write(connection, "GET", target, headers, None, timeout)
            response, reader = self._head(connection, "GET", time.monotonic() + timeout)
            if not 200 <= response.status < 300:
                answer = self._whole(response, limit)
                connection.close()
                return answer, iter(())
            return Answer(response.status, response.headers, b""), self._pieces(connection, response, reader, timeout)
        except (OSError, http.client.HTTPException) as problem:
            connection.close()
            raise Lost(isinstance(problem, socket.timeout)) from problem
        except BaseException:
            connection.close()
            raise

    def _pieces(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, reader: _Reader, timeout: float
    ) -> Iterator[bytes]:
        # Of a body with a length, read1 does not count what it has read before Python 3.12.
        read = response.read1 if response.chunked else response.read
        try:
            while True:
                reader.deadline = time.monotonic() + timeout
                piece = read(READ_SIZE)
                if not piece:
                    if response.length:  # an early end is not told otherwise
                        raise Lost(False)
                    return
                yield piece
        except (OSError, http.client.HTTPException) as problem:
            raise Lost(isinstance(problem, socket.timeout)) from problem
        finally:
            response.close()
            connection.close()

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Dict[str, Union[str, bytes]],
        body: Optional[bytes],
        deadline: float,
        limit: int,
    ) -> Answer:
        done = False
        try:
            self._write(connection, method, target, headers, body, deadline - time.monotonic())
            response, _ = self._head(connection, method, deadline)
            answer = self._whole(response, limit)
            done = not response.will_close
            return answer
        except (OSError, http.client.HTTPException) as problem:
            raise Lost(isinstance(problem, socket.timeout)) from problem
        finally:
            if done:
                self._keep(connection)
            else:
                connection.close()

    def _write(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Dict[str, Union[str, bytes]],
        body: Optional[bytes],
        timeout: float,
    ) -> None:
        if connection.sock is None or timeout <= 0:
            raise socket.timeout("deadline")
        connection.sock.settimeout(timeout)
        try:
            connection.request(method, self._prefix + target, body=body, headers=headers)  # type: ignore[arg-type]
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server that refuses a large body answers and hangs up before it has read all of it

    def _head(
        self, connection: http.client.HTTPConnection, method: str, deadline: float
    ) -> Tuple[http.client.HTTPResponse, _Reader]:
        reader = _Reader(connection.sock, deadline)
        connection.response_class = lambda _, **options: http.client.HTTPResponse(  # type: ignore[assignment, misc]
            _Readable(reader), **options  # type: ignore[arg-type]
        )
        return connection.getresponse(), reader

    @staticmethod
    def _whole(response: http.client.HTTPResponse, limit: int) -> Answer:
        body = bytearray()
        while True:
            piece = response.read(min(READ_SIZE, limit + 1 - len(body)))
            if not piece:
                break
            body += piece
            if len(body) > limit:
                raise TooLarge(response.status, response.headers)
        if response.length:
            raise http.client.IncompleteRead(b"")
        return Answer(response.status, response.headers, bytes(body))

    def _connect(self, deadline: float) -> http.client.HTTPConnection:
        left = deadline - time.monotonic()
        if left <= 0:
            raise NotSent(True)
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=left, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=left)
        connection.auto_open = 0  # http.client must not connect anew by itself, without the deadline
        try:
            connection.connect()
        except OSError as problem:
            connection.close()
            raise NotSent(isinstance(problem, socket.timeout)) from problem
        return connection

    def _take(self) -> Optional[http.client.HTTPConnection]:
        stale = []
        with self._lock:
            if self._pid != os.getpid():  # the parent's sockets are not ours to speak on
                self._idle, self._pid = [], os.getpid()
            now, taken = time.monotonic(), None
            while self._idle and taken is None:
                connection, since = self._idle.pop()
                if now - since <= IDLE_SECONDS:
                    taken = connection
                else:
                    stale.append(connection)
        for connection in stale:
            connection.close()
        return taken

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if connection.sock is not None and len(self._idle) < POOL_SIZE and self._pid == os.getpid():
                self._idle.append((connection, time.monotonic()))
                return
        connection.close()

"""A server that answers what a test tells it to, and a clock that does not wait."""

from __future__ import annotations

import http.server
import json
import threading
import unittest
from typing import Any, Callable, Dict, List, Optional

import holdfast

API_KEY = "hfk_canary000000_secretsecretsecretsecretsecretsecretsecret"
EVENT = {
    "id": "evt_1", "event_type": "memory_infer", "status": "SUCCEEDED", "scope": {"user_id": "ada"}, "erased": False,
    "outcome": "STORED", "results": [{"id": "mem_1", "event": "ADD", "memory": "Lives in Lisbon"}], "attempts": 1,
    "max_attempts": 5, "generation": 1, "error": None, "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "started_at": None, "committed_at": None, "completed_at": None,
    "next_attempt_at": None, "latency_ms": 5,
    "usage": {"reserved": 2, "settled": 2, "released": 0, "provider_calls": 1, "tokens_in": 1, "tokens_out": 1},
}
RECEIPT = {"message": "Accepted.", "status": "PENDING", "event_id": "evt_1"}


class Seen:
    def __init__(self, method: str, path: str, headers: Any, body: bytes) -> None:
        self.method, self.path, self.headers, self.body = method, path, headers, body

    @property
    def key(self) -> Optional[str]:
        return self.headers.get("Idempotency-Key")


Step = Callable[["Handler"], None]


def answer(status: int, value: Any = None, **headers: str) -> Step:
    """Answers with a JSON value."""

    def step(handler: "Handler") -> None:
        body = b"" if value is None else json.dumps(value).encode()
        handler.send_response(status)
        for name, text in headers.items():
            handler.send_header(name.replace("_", "-"), text)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return step


def problem(status: int, code: str, retryable: bool = False, details: Optional[Dict[str, Any]] = None, **headers: str) -> Step:
    value: Dict[str, Any] = {
        "type": "x", "title": code, "status": status, "detail": "", "code": code, "message": "Words of the catalogue.",
        "request_id": "req-1", "retryable": retryable,
    }
    if details is not None:
        value["details"] = details
    return answer(status, value, **headers)


def cut(handler: "Handler") -> None:
    """Reads the request and hangs up."""
    handler.close_connection = True


def half(handler: "Handler") -> None:
    """Begins an answer and hangs up."""
    handler.send_response(202)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"event_id":')
    handler.close_connection = True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.lock:
            self.server.seen.append(Seen(self.command, self.path, self.headers, body))
            step = self.server.steps.pop(0) if self.server.steps else problem(418, "SCRIPT_IS_OVER")
        step(self)

    do_GET = do_POST = do_PUT = do_DELETE = handle_any

    def log_message(self, *_: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, steps: List[Step]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.steps, self.seen = steps, []  # type: ignore[var-annotated]

    def handle_error(self, *_: Any) -> None:
        pass  # a client that gave up closes its connection

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class StillClock(holdfast.Clock):
    """Moves by its sleeps only; chance is always a half."""

    def __init__(self) -> None:
        self.time, self.slept = 1000.0, []  # type: ignore[var-annotated]

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def chance(self) -> float:
        return 0.5


class ScriptedCase(unittest.TestCase):
    def script(self, *steps: Step, **options: Any) -> holdfast.Client:
        """Starts a server with these steps, one a request, and returns a client of it."""
        self.server = self.serve(*steps)
        self.clock = StillClock()
        client = holdfast.Client(self.server.url, API_KEY, clock=self.clock, **options)
        self.addCleanup(client.close)
        return client

    def serve(self, *steps: Step) -> Server:
        server = Server(list(steps))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    @property
    def keys(self) -> List[Optional[str]]:
        return [seen.key for seen in self.server.seen]

"""A running Holdfast, and a proxy before it that loses answers. Run by clients/test-up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import unittest
import uuid
from typing import Any, List
from urllib.parse import urlsplit

import holdfast

PATIENCE = 60.0  # seconds; far above what is normal, for machines that are shared


class UpCase(unittest.TestCase):
    """Each test has a user of its own; the workspace's credits are shared, so that tests run one after the other."""

    def setUp(self) -> None:
        # A missing server is a failure: clients/test-up sets both.
        self.url, self.api_key = os.environ["HOLDFAST_URL"], os.environ["HOLDFAST_API_KEY"]
        self.client = self.client_of(self.url, self.api_key)
        self.user = "python-" + uuid.uuid4().hex

    def client_of(self, url: str, api_key: str, **options: Any) -> holdfast.Client:
        client = holdfast.Client(url, api_key, **options)
        self.addCleanup(client.close)
        return client

    def new_workspace(self) -> holdfast.Client:
        """A client of a new workspace without credits, with every permission."""
        name = "w-" + uuid.uuid4().hex
        self._holdfast("workspace", "create", name)
        permissions: List[str] = []
        for one in ("memory:read", "memory:write", "operations:read", "operations:retry", "credits:read", "admin"):
            permissions += ["--permission", one]
        return self.client_of(self.url, self._holdfast("key", "create", "--workspace", name, *permissions)["key"])

    @staticmethod
    def _holdfast(*command: str) -> Any:
        done = subprocess.run(
            [os.environ["HOLDFAST_BINARY"], *command, "--json"], check=True, capture_output=True, timeout=PATIENCE
        )
        return json.loads(done.stdout)

    def succeeded(self, receipt: Any) -> holdfast.Event:
        return self.client.events.wait(receipt.event_id, timeout=PATIENCE)


class LosingProxy:
    """Forwards connections; of the first losses it passes the request on, waits for the answer, and cuts both ends."""

    def __init__(self, url: str, losses: int) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname, parts.port)
        self._losses = losses
        self.lost = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                losing = self.lost < self._losses
                self.lost += losing
            far = socket.create_connection(self._to, timeout=PATIENCE)
            near.settimeout(PATIENCE)
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, losing), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, losing: bool) -> None:
        try:
            while True:
                data = source.recv(65536)
                if not data or losing:  # the service has answered, so it has committed
                    break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

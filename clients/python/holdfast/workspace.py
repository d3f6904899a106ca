"""What belongs to the workspace as a whole: entities, credits, exports and imports."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from .calls import Bounds, Caller, Request, segment
from .errors import NetworkError
from .keys import key_or_new
from .memories import erased, receipt
from .paging import iterate
from .values import CreditEntry, Credits, Entity, Erased, Page, Receipt, decode, decode_page

MAX_IMPORT = 64 << 20  # bytes; the service takes no more
UPLOAD_SECONDS = 660.0  # for one attempt; a little longer than the service takes for a snapshot
FOOTER_BYTES = 512  # more than the last line of a snapshot has


class Entities:
    """The users, agents, runs and apps that have live memories."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def list(
        self, *, type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None
    ) -> Page[Entity]:
        """By type, then by id. type is user, agent, run or app."""
        query: Dict[str, Any] = {"type": type, "limit": limit, "cursor": cursor}
        value, _ = self._caller.json(Request("GET", "/v1/entities", query))
        return decode_page(Entity, value)

    def iterate(self, *, type: Optional[str] = None, page_size: int = 100) -> Iterator[Entity]:
        """All of them, page by page."""
        return iterate(lambda cursor: self.list(type=type, limit=page_size, cursor=cursor))

    def get(self, type: str, entity_id: str) -> Entity:
        """NotFoundError if it has no live memories."""
        value, _ = self._caller.json(Request("GET", self._path(type, entity_id)))
        return decode(Entity, value)

    def erase(self, type: str, entity_id: str, *, key: Optional[str] = None) -> Erased:
        """Erases everything of one user, agent, run or app, for good; needs the permission admin."""
        path = self._path(type, entity_id)
        key, made = key_or_new(key)
        return erased(self._caller, Request("DELETE", path, key=key, made=made, writes=True))

    @staticmethod
    def _path(type: str, entity_id: str) -> str:
        return f"/v1/entities/{segment(type, 'type')}/{segment(entity_id, 'entity_id')}"


class CreditBooks:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def balance(self) -> Credits:
        value, _ = self._caller.json(Request("GET", "/v1/credits"))
        return decode(Credits, value)

    def entries(self, *, limit: Optional[int] = None, cursor: Optional[str] = None) -> Page[CreditEntry]:
        """The journal, newest first."""
        value, _ = self._caller.json(Request("GET", "/v1/credits/entries", {"limit": limit, "cursor": cursor}))
        return decode_page(CreditEntry, value)

    def iterate(self, *, page_size: int = 100) -> Iterator[CreditEntry]:
        """The whole journal, page by page."""
        return iterate(lambda cursor: self.entries(limit=page_size, cursor=cursor))


class Exports:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, *, key: Optional[str] = None) -> Receipt:
        """Asks for a snapshot of the workspace; wait for the event, then read it."""
        key, made = key_or_new(key)
        return receipt(self._caller, Request("POST", "/v1/exports", key=key, made=made, writes=True))

    def read(self, event_id: str) -> Iterator[bytes]:
        """Yields the snapshot in pieces, NDJSON in all. NetworkError at its end when it is cut off; read it again.
        Only its beginning is tried again, and each piece has the time of an attempt."""
        return _whole(self._caller.pieces(Request("GET", f"/v1/exports/{segment(event_id, 'event_id')}")))


class Imports:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(self, snapshot: bytes, *, key: Optional[str] = None) -> Receipt:
        """Reads a snapshot of at most 64 MiB into the workspace, which must be empty. The event fails when a line of it
        is wrong, and names the line in `progress`."""
        if not isinstance(snapshot, (bytes, bytearray, memoryview)):
            raise ValueError("snapshot must be bytes")
        body = bytes(snapshot)
        if len(body) > MAX_IMPORT:
            raise ValueError("a snapshot has at most 64 MiB")
        key, made = key_or_new(key)
        bounds = self._caller.bounds
        return receipt(
            self._caller,
            Request(
                "POST", "/v1/imports", body=body, content_type="application/x-ndjson", key=key, made=made, writes=True
            ),
            bounds=Bounds(
                max(bounds.timeout, UPLOAD_SECONDS), max(bounds.total_timeout, 2 * UPLOAD_SECONDS), bounds.max_retries
            ),
        )


def _whole(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Passes the pieces on and looks for the footer that ends a whole snapshot."""
    end = b""
    for piece in pieces:
        end = (end + piece)[-FOOTER_BYTES:]
        yield piece
    if not end.endswith(b"\n") or not end[:-1].rpartition(b"\n")[2].startswith(b'{"type":"footer"'):
        raise NetworkError("The snapshot is cut off: it has no footer.", code="CUT_OFF", retryable=True)

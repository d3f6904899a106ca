"""Events: what became of writes, and waiting for their end."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from .calls import Bounds, Caller, Request, encode, segment
from .errors import EventFailedError, HoldfastError, NetworkError, RateLimitedError, ServerError, UnavailableError
from .errors import WaitTimeoutError
from .keys import checked, key_or_new
from .paging import iterate
from .values import Event, Page, decode, decode_page

POLL_SECONDS = 25  # one long-poll; proxies often cut at 30 s
POLL_GRACE = 10.0  # what the answer may take beyond that
PAUSE = 0.5  # seconds between polls that were answered at once without an end


class Events:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, event_id: str) -> Event:
        """Reads one event, in whatever state it is."""
        value, _ = self._caller.json(Request("GET", self._path(event_id)))
        return decode(Event, value)

    def list(
        self,
        *,
        status: Optional[str] = None,
        type: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[Event]:
        """Lists events, newest first: inferred adds unless a type is given."""
        query: Dict[str, Any] = {"status": status, "type": type, "limit": limit, "cursor": cursor}
        value, _ = self._caller.json(Request("GET", "/v1/events", query))
        return decode_page(Event, value)

    def iterate(
        self, *, status: Optional[str] = None, type: Optional[str] = None, page_size: int = 100
    ) -> Iterator[Event]:
        """All of them, page by page."""
        return iterate(lambda cursor: self.list(status=status, type=type, limit=page_size, cursor=cursor))

    def by_key(self, key: str) -> Optional[Event]:
        """The event of an idempotency key. None proves nothing: send the same request with the same key."""
        value, _ = self._caller.json(Request("GET", "/v1/events", key=checked(key)))
        results = decode_page(Event, value).results
        return results[0] if results else None

    def wait(self, event_id: str, *, timeout: float = 120.0) -> Event:
        """Waits for the end by long-polling and returns the event that succeeded.

        EventFailedError when it failed, WaitTimeoutError when timeout seconds were not enough. While the service can't
        be reached it goes on trying until then.
        """
        path, clock = self._path(event_id), self._caller.clock
        started, seen = clock.now(), None
        while True:
            asked = clock.now()
            left = timeout - (asked - started)
            if left <= 0:
                raise self._too_long(event_id, seen)
            seconds = max(0, min(POLL_SECONDS, int(left)))
            bounds = Bounds(seconds + POLL_GRACE, left, None)
            try:
                value, answer = self._caller.json(Request("GET", path, {"wait": seconds}), bounds)
            except (NetworkError, RateLimitedError, UnavailableError, ServerError) as problem:
                if isinstance(problem, ServerError) and problem.status == 501:
                    raise
                raise self._too_long(event_id, seen) from problem  # send has used up what was left
            seen = decode(Event, value)
            if seen.status == "SUCCEEDED":
                return seen
            if seen.status == "FAILED":
                raise failed(seen)
            if clock.now() - asked < seconds or seconds == 0:  # it was not waited for; don't ask in a circle
                left = timeout - (clock.now() - started)
                clock.sleep(max(0.0, min(left, PAUSE + PAUSE * clock.chance())))

    def retry(self, event_id: str, *, generation: Optional[int] = None, key: Optional[str] = None) -> Event:
        """Authorises a new run of a failed event, at today's price. With the generation that was seen to fail (or a
        key of your own) the call can be repeated without authorising another one."""
        body, made = None, False
        if generation is not None:
            body = encode({"generation": generation})
        if generation is None or key is not None:
            key, made = key_or_new(key)
        request = Request("POST", self._path(event_id) + "/retry", body=body, key=key, made=made, writes=True)
        value, _ = self._caller.json(request)
        return decode(Event, value)

    def cancel(self, event_id: str) -> Event:
        """Ends an event before it commits its memories; again for one that is cancelled already."""
        value, _ = self._caller.json(Request("POST", self._path(event_id) + "/cancel", writes=True))
        return decode(Event, value)

    @staticmethod
    def _path(event_id: str) -> str:
        return f"/v1/events/{segment(event_id, 'event_id')}"

    @staticmethod
    def _too_long(event_id: str, seen: Optional[Event]) -> HoldfastError:
        return WaitTimeoutError(
            "The event had not ended when the time to wait was over. It goes on.",
            code="WAIT_TIMEOUT", retryable=True, event_id=event_id, event=seen,
        )


def failed(event: Event) -> EventFailedError:
    error = event.error
    return EventFailedError(
        error.message if error else "The event failed.",
        code=error.code if error else "FAILED", retryable=bool(error and error.retryable), event=event,
    )

"""The client."""

from __future__ import annotations

import re
import ssl
from typing import Any, Dict, Iterable, Mapping, Optional

from .calls import Bounds, Caller, Clock, Request, encode
from .errors import HoldfastError
from .events import Events
from .fields import Messages, Time, given, moment, scope_of
from .items import Items
from .keys import key_or_new
from .memories import Memories, receipt, replayed
from .transport import Transport
from .values import Event, Health, Receipt, Stored, decode
from .workspace import CreditBooks, Entities, Exports, Imports

_VISIBLE = re.compile(r"[\x21-\x7e]{1,1000}\Z")


class Client:
    """A client of one Holdfast, for one workspace. Safe for use by several threads.

    base_url is the service's address, api_key a key of the workspace. timeout bounds one attempt, total_timeout a call
    with all its attempts and pauses, in seconds; max_retries is how often a request is sent again. Every write has an
    idempotency key, made here unless one is given, and every attempt of it the same one.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 30.0,
        total_timeout: float = 60.0,
        max_retries: int = 4,
        ssl_context: Optional[ssl.SSLContext] = None,
        clock: Optional[Clock] = None,
    ) -> None:
        if not isinstance(api_key, str) or not _VISIBLE.match(api_key):
            raise ValueError("api_key must be a key like hfk_…, without spaces")
        bounds = _bounds(timeout, total_timeout, max_retries)
        self._set(Caller(Transport(base_url, ssl_context), api_key, bounds, clock or Clock()))

    def _set(self, caller: Caller) -> None:
        self._caller = caller
        self.memories = Memories(caller)
        self.events = Events(caller)
        self.items = Items(caller)
        self.entities = Entities(caller)
        self.credits = CreditBooks(caller)
        self.exports = Exports(caller)
        self.imports = Imports(caller)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._caller.transport.base_url!r})"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept for the next call."""
        self._caller.transport.close()

    def with_options(
        self,
        *,
        timeout: Optional[float] = None,
        total_timeout: Optional[float] = None,
        max_retries: Optional[int] = None,
    ) -> "Client":
        """Returns a client with other bounds that shares the connections."""
        now = self._caller.bounds
        bounds = _bounds(
            now.timeout if timeout is None else timeout,
            now.total_timeout if total_timeout is None else total_timeout,
            now.max_retries if max_retries is None else max_retries,
        )
        other = type(self).__new__(type(self))
        other._set(self._caller.within(bounds))
        return other

    def add(
        self,
        messages: Messages,
        *,
        user_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        run_id: Optional[str] = None,
        app_id: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        event_date: Optional[Time] = None,
        expires_at: Optional[Time] = None,
        instructions: Optional[str] = None,
        categories: Optional[Iterable[Mapping[str, str]]] = None,
        ordered: Optional[bool] = None,
        key: Optional[str] = None,
    ) -> Receipt:
        """Remembers a conversation: `[{"role": "user", "content": "…"}, …]`, or a text, which is one user message.

        Returns when the write is accepted; a model extracts memories after that, and the event tells the outcome. At
        least one scope id is required. categories are what the memories may be filed under, `[{"name": "food",
        "description": "…"}, …]`, in place of the workspace's. key is made here unless it is given, and is in the receipt
        and in every error.
        """
        body = self._body(
            messages, scope_of(user_id, agent_id, run_id, app_id), metadata, event_date, expires_at,
            instructions=instructions, ordered=ordered,
            categories=None if categories is None else [dict(c) for c in categories],
        )
        key, made = key_or_new(key)
        return receipt(self._caller, Request("POST", "/v1/memories", body=body, key=key, made=made, writes=True))

    def add_and_wait(self, messages: Messages, *, wait: float = 120.0, key: Optional[str] = None, **more: Any) -> Event:
        """Does as add, with the same arguments, and waits up to wait seconds for the event's success.

        EventFailedError when it failed, WaitTimeoutError when it goes on; both have the key.
        """
        accepted = self.add(messages, key=key, **more)
        try:
            return self.events.wait(accepted.event_id, timeout=wait)
        except HoldfastError as problem:
            problem.key = accepted.key
            raise

    def add_verbatim(
        self,
        messages: Messages,
        *,
        user_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        run_id: Optional[str] = None,
        app_id: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        event_date: Optional[Time] = None,
        expires_at: Optional[Time] = None,
        key: Optional[str] = None,
    ) -> Stored:
        """Stores each message that says something as one memory, byte for byte, at once and without a model."""
        body = self._body(
            messages, scope_of(user_id, agent_id, run_id, app_id), metadata, event_date, expires_at, infer=False
        )
        key, made = key_or_new(key)
        request = Request("POST", "/v1/memories", body=body, key=key, made=made, writes=True)
        value, answer = self._caller.json(request)
        return decode(Stored, value, key=key, replayed=replayed(answer))

    def health(self) -> Health:
        """Tells whether the service keeps up, and why not."""
        value, _ = self._caller.json(Request("GET", "/v1/health"))
        return decode(Health, value)

    @staticmethod
    def _body(
        messages: Messages,
        scope: Dict[str, str],
        metadata: Optional[Mapping[str, Any]],
        event_date: Optional[Time],
        expires_at: Optional[Time],
        **more: Any,
    ) -> bytes:
        return encode(
            given(
                messages=messages if isinstance(messages, str) else [dict(m) for m in messages],
                metadata=metadata, event_date=moment(event_date), expires_at=moment(expires_at), **scope, **more,
            )
        )


def _bounds(timeout: float, total_timeout: float, max_retries: Optional[int]) -> Bounds:
    if not 0 < timeout < 86_400 or not 0 < total_timeout < 86_400:
        raise ValueError("timeout and total_timeout are seconds, more than 0 and less than a day")
    if max_retries is not None and not 0 <= max_retries <= 100:
        raise ValueError("max_retries is 0 to 100")
    return Bounds(timeout, total_timeout, max_retries)

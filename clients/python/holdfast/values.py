"""What the service answers, as frozen dataclasses. Members that this version doesn't know are left out; times are
RFC 3339 strings in UTC, as they came."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, Generic, List, Optional, Type, TypeVar

from .errors import UnreadableAnswerError

T = TypeVar("T")


def _unreadable(what: str) -> UnreadableAnswerError:
    return UnreadableAnswerError(f"The answer is not what the contract says: {what}.", code="UNREADABLE_ANSWER")


def _one(of: Type[Any], name: Optional[str] = None, **more: Any) -> Any:
    return field(metadata={"of": of, "name": name}, **more)


def _many(of: Type[Any], **more: Any) -> Any:
    return field(metadata={"of": of, "many": True}, **more)


def _called(name: str, **more: Any) -> Any:
    return field(metadata={"name": name}, **more)


def decode(cls: Type[T], data: Any, **given: Any) -> T:
    """Makes a cls of a JSON object; given members don't come from the answer. Raises UnreadableAnswerError."""
    if not isinstance(data, dict):
        raise _unreadable(f"{cls.__name__} is not an object")
    members: Dict[str, Any] = dict(given)
    for f in dataclasses.fields(cls):  # type: ignore[arg-type]
        if f.name in members:
            continue
        name = f.metadata.get("name") or f.name
        if name not in data:
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                raise _unreadable(f"{cls.__name__} has no {name}")
            continue
        value = data[name]
        of = f.metadata.get("of")
        if of is not None and f.metadata.get("many"):
            value = decode_list(of, value)
        elif of is not None and value is not None:
            value = decode(of, value)
        members[f.name] = value
    return cls(**members)


def decode_list(cls: Type[T], data: Any) -> List[T]:
    if not isinstance(data, list):
        raise _unreadable(f"there is no list of {cls.__name__}")
    return [decode(cls, one) for one in data]


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page; next_cursor is None on the last one."""

    results: List[T]
    next_cursor: Optional[str]


def decode_page(cls: Type[T], data: Any) -> "Page[T]":
    if not isinstance(data, dict):
        raise _unreadable("a page is not an object")
    return Page(decode_list(cls, data.get("results")), data.get("next_cursor"))


@dataclass(frozen=True)
class Receipt:
    """A write was accepted; the event tells what becomes of it. key is the idempotency key that it was sent with.
    replayed says that the key was known and nothing new was written."""

    event_id: str
    status: str
    message: str
    key: str
    replayed: bool


@dataclass(frozen=True)
class ItemError:
    """Why one item of a batch did nothing."""

    code: str
    message: str


@dataclass(frozen=True)
class EventResult:
    """A memory that a command touched. event is ADD, UPDATE, DELETE, INVALIDATE or NONE; memory is the text as it is
    now, None once it is gone."""

    id: str
    event: str
    memory: Optional[str]
    error: Optional[ItemError] = _one(ItemError, default=None)


@dataclass(frozen=True)
class Stored:
    """What add_verbatim stored."""

    event_id: str
    key: str
    replayed: bool
    results: List[EventResult] = _many(EventResult)


@dataclass(frozen=True)
class Change:
    """What an update or delete made of a memory."""

    id: str
    event: str
    memory: Optional[str]
    version: int
    event_id: str
    key: str
    replayed: bool


@dataclass(frozen=True)
class Erased:
    """An erase. done is False when it takes longer than five seconds and goes on by itself: then deleted and cancelled
    are None, and events.wait(event_id) waits for its end."""

    event_id: str
    done: bool
    key: str
    replayed: bool
    deleted: Optional[int] = None
    cancelled: Optional[int] = None


@dataclass(frozen=True)
class ScorePart:
    score: float
    rank: int


@dataclass(frozen=True)
class Explanation:
    """The parts of a score; None where one way did not find the memory."""

    lexical: Optional[ScorePart] = _one(ScorePart)
    semantic: Optional[ScorePart] = _one(ScorePart)


@dataclass(frozen=True)
class Memory:
    """A memory. score, from 0 to 1, and explain are there in answers to a search only."""

    id: str
    memory: str
    created_at: str
    updated_at: str
    version: int = 1
    metadata: Dict[str, Any] = field(default_factory=dict)
    type: Optional[str] = None
    categories: List[str] = field(default_factory=list)
    role: Optional[str] = None
    user_id: Optional[str] = None
    agent_id: Optional[str] = None
    run_id: Optional[str] = None
    app_id: Optional[str] = None
    item_id: Optional[str] = None
    event_date: Optional[str] = None
    expires_at: Optional[str] = None
    valid_from: Optional[str] = None
    valid_to: Optional[str] = None
    superseded_by: Optional[str] = None
    score: Optional[float] = None
    explain: Optional[Explanation] = _one(Explanation, default=None)


@dataclass(frozen=True)
class HistoryEntry:
    id: str
    memory_id: str
    event: str
    version: int
    old_memory: Optional[str]
    new_memory: Optional[str]
    created_at: str
    valid_to: Optional[str] = None
    superseded_by: Optional[str] = None


@dataclass(frozen=True)
class Entity:
    """A user, agent, run or app that has live memories."""

    type: str
    id: str
    total_memories: int
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class EventScope:
    user_id: Optional[str] = None
    agent_id: Optional[str] = None
    run_id: Optional[str] = None
    app_id: Optional[str] = None


@dataclass(frozen=True)
class EventError:
    """The last failure of an event. failure_class is the contract's `class`."""

    code: str
    message: str
    retryable: bool
    action: str
    failure_class: str = _called("class")


@dataclass(frozen=True)
class Usage:
    """Of the current generation; reserved, settled and released are credits."""

    reserved: int
    settled: int
    released: int
    provider_calls: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Progress:
    """How far work in pieces is; line is the first wrong line of an import, from 1."""

    done: int
    total: int
    line: Optional[int] = None


@dataclass(frozen=True)
class Event:
    """What became of a write. status is PENDING, RUNNING, RETRYING, SUCCEEDED or FAILED."""

    id: str
    event_type: str
    status: str
    attempts: int
    generation: int
    created_at: str
    updated_at: str
    results: List[EventResult] = _many(EventResult)
    usage: Optional[Usage] = _one(Usage, default=None)
    scope: Optional[EventScope] = _one(EventScope, default=None)
    error: Optional[EventError] = _one(EventError, default=None)
    progress: Optional[Progress] = _one(Progress, default=None)
    outcome: Optional[str] = None
    erased: bool = False
    max_attempts: Optional[int] = None
    started_at: Optional[str] = None
    committed_at: Optional[str] = None
    completed_at: Optional[str] = None
    next_attempt_at: Optional[str] = None
    latency_ms: Optional[int] = None

    @property
    def ended(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED")


@dataclass(frozen=True)
class Credits:
    available: int
    held: int
    metered: bool


@dataclass(frozen=True)
class CreditEntry:
    """A line of the journal: grant, hold, settle or release."""

    type: str
    amount: int
    event_id: Optional[str]
    generation: Optional[int]
    reference: Optional[str]
    created_at: str


@dataclass(frozen=True)
class ItemReceipt:
    """landed says that the memories of the item's present content are there."""

    id: str
    event_id: str
    landed: bool


@dataclass(frozen=True)
class ItemsReceipt:
    """queued is how many items this call queued, pending how many of the account wait. key named the items that had no
    id of their own."""

    queued: int
    pending: int
    key: str
    items: List[ItemReceipt] = _many(ItemReceipt)


@dataclass(frozen=True)
class Item:
    id: str
    event_id: str
    text: str
    author: Optional[str]
    session: Optional[str]
    at: str
    revision: int
    landed: bool


@dataclass(frozen=True)
class ItemsPage:
    """next is what to send as `after` for the following items, None at the end."""

    next: Optional[str]
    items: List[Item] = _many(Item)


@dataclass(frozen=True)
class Forgotten:
    """events is how many items this call erased. queue is None when not everything could be cleared: call again."""

    events: int
    queue: Optional[int]


@dataclass(frozen=True)
class Corrected:
    """memory is the id of the correction, None without one."""

    id: str
    event_id: str
    memory: Optional[str]


@dataclass(frozen=True)
class Grepped:
    """truncated says that a bound was met and there may be more."""

    truncated: bool
    items: List[Item] = _many(Item)
    results: List[Memory] = _many(Memory)


@dataclass(frozen=True)
class Health:
    status: str
    reasons: List[str]
    checks: Optional[Dict[str, Any]] = None

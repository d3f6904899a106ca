"""A client for Holdfast: durable memory writes for applications with language models.

    import holdfast

    client = holdfast.Client("http://127.0.0.1:8765", api_key)
    receipt = client.add("I live in Lisbon.", user_id="ada")
    event = client.events.wait(receipt.event_id)
    client.memories.search("Where does Ada live?", user_id="ada")
"""

from __future__ import annotations

from .aio import AsyncClient
from .calls import VERSION as __version__
from .calls import Clock
from .client import Client
from .errors import (
    APIError,
    AuthenticationError,
    ConflictError,
    EventFailedError,
    HoldfastError,
    InputExpiredError,
    InsufficientCreditsError,
    InvalidRequestError,
    KeyConflictError,
    NetworkError,
    NotFoundError,
    OutcomeUnknownError,
    PermissionDeniedError,
    RateLimitedError,
    RequestTimeoutError,
    ServerError,
    UnavailableError,
    UnreadableAnswerError,
    VersionConflictError,
    WaitTimeoutError,
)
from .fields import UNSET
from .keys import new_key
from .values import (
    Change,
    Corrected,
    CreditEntry,
    Credits,
    Entity,
    Erased,
    Event,
    EventError,
    EventResult,
    EventScope,
    Explanation,
    Forgotten,
    Grepped,
    Health,
    HistoryEntry,
    Item,
    ItemError,
    ItemReceipt,
    ItemsPage,
    ItemsReceipt,
    Memory,
    Page,
    Progress,
    Receipt,
    ScorePart,
    Stored,
    Usage,
)

__all__ = [
    "APIError",
    "AsyncClient",
    "AuthenticationError",
    "Change",
    "Client",
    "Clock",
    "ConflictError",
    "Corrected",
    "CreditEntry",
    "Credits",
    "Entity",
    "Erased",
    "Event",
    "EventError",
    "EventFailedError",
    "EventResult",
    "EventScope",
    "Explanation",
    "Forgotten",
    "Grepped",
    "Health",
    "HistoryEntry",
    "HoldfastError",
    "InputExpiredError",
    "InsufficientCreditsError",
    "InvalidRequestError",
    "Item",
    "ItemError",
    "ItemReceipt",
    "ItemsPage",
    "ItemsReceipt",
    "KeyConflictError",
    "Memory",
    "NetworkError",
    "NotFoundError",
    "OutcomeUnknownError",
    "Page",
    "PermissionDeniedError",
    "Progress",
    "RateLimitedError",
    "Receipt",
    "RequestTimeoutError",
    "ScorePart",
    "ServerError",
    "Stored",
    "UNSET",
    "UnavailableError",
    "UnreadableAnswerError",
    "Usage",
    "VersionConflictError",
    "WaitTimeoutError",
    "new_key",
    "__version__",
]

"""What can go wrong, one class for each thing that a caller does about it.

Every error has `code`, `message`, `status`, `request_id`, `retryable`, `details`, `retry_after`, `key` and
`outcome_unknown`. None of them holds the API key or a text that was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    from .values import Event


class HoldfastError(Exception):
    """The base of all errors of this package.

    key is the idempotency key of the call, if it had one. outcome_unknown says that the write may have happened: an
    attempt was sent and its answer was lost. Sending the same request with the same key tells, and never writes twice.
    retry_after is in seconds.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        status: Optional[int] = None,
        request_id: Optional[str] = None,
        retryable: bool = False,
        details: Optional[Dict[str, Any]] = None,
        retry_after: Optional[float] = None,
        key: Optional[str] = None,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retryable = retryable
        self.details: Dict[str, Any] = details or {}
        self.retry_after = retry_after
        self.key = key
        self.outcome_unknown = outcome_unknown

    def __str__(self) -> str:
        facts = [self.code] if self.code else []
        if self.status is not None:
            facts.append(f"HTTP {self.status}")
        if self.request_id:
            facts.append(f"request {self.request_id}")
        return f"{self.message} ({', '.join(facts)})" if facts else self.message


class APIError(HoldfastError):
    """The service answered with a refusal or a failure."""


class InvalidRequestError(APIError):
    """The request breaks a rule (400, 405, 413, 415, 501). Correct it; details names place and rule."""


class AuthenticationError(APIError):
    """The API key is missing, unknown, revoked or expired (401)."""


class InsufficientCreditsError(APIError):
    """The workspace can't pay (402). Top up, then send the same request with the same key."""

    @property
    def required(self) -> Optional[int]:
        return self.details.get("required")

    @property
    def available(self) -> Optional[int]:
        return self.details.get("available")


class PermissionDeniedError(APIError):
    """The API key lacks the permission of the call, or its workspace is suspended (403)."""


class NotFoundError(APIError):
    """There is no such memory, event or route in this workspace (404)."""


class InputExpiredError(APIError):
    """The input of a failed event, or an export, has been removed (410). Send it as a new request."""


class ConflictError(APIError):
    """The present state does not allow the call (409)."""


class KeyConflictError(ConflictError):
    """The idempotency key belongs to a different request, which is unchanged. Find out who reuses the key."""


class VersionConflictError(ConflictError):
    """The memory has another version than the expected one. Read it again."""


class RateLimitedError(APIError):
    """Too many requests, or too many writes that wait (429). The same request and key after retry_after."""


class UnavailableError(APIError):
    """The service can't take the request now (503). The same request and key after retry_after."""


class ServerError(APIError):
    """The service or something before it failed (other 5xx), or answered what this client doesn't know."""


class NetworkError(HoldfastError):
    """No answer came, and nothing was written: the call only reads, or nothing had been sent."""


class RequestTimeoutError(NetworkError, TimeoutError):
    """No answer came in time, and nothing was written."""


class OutcomeUnknownError(HoldfastError):
    """The answer to a write was lost: it may have happened.

    Send the same request with the same key (`error.key`): it answers with the one receipt, or writes if nothing had
    been written. `client.events.by_key(error.key)` tells too, but its None proves nothing. key is None for the calls
    that take none (`items.correct`, `items.forget`, `events.cancel`).
    """


class UnreadableAnswerError(HoldfastError):
    """The answer is larger than allowed or not what the contract says. With outcome_unknown it was a write's."""


class EventFailedError(HoldfastError):
    """The event ended FAILED: nothing was stored and nothing charged.

    retryable says that `client.events.retry(event.id, generation=event.generation)` may help.
    """

    def __init__(self, message: str = "", *, event: Optional["Event"] = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.event = event

    @property
    def failure_class(self) -> str:
        return self.event.error.failure_class if self.event and self.event.error else ""

    @property
    def action(self) -> str:
        return self.event.error.action if self.event and self.event.error else ""


class WaitTimeoutError(HoldfastError, TimeoutError):
    """The event had not ended when the time to wait was over. It goes on; wait again with event_id."""

    def __init__(
        self, message: str = "", *, event_id: str = "", event: Optional["Event"] = None, **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.event_id = event_id
        self.event = event

"""Calls: a request is sent until there is an answer, always with the same key, within bounds of count and time.

What is sent again: a request without an answer, 429, 503, a 409 that says retryable, and other 5xx, unless the call
must not arrive twice and may have arrived. 402 is not: it needs a top-up first.
"""

from __future__ import annotations

import datetime
import email.utils
import json
import random
import time
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Type, Union
from urllib.parse import quote, urlencode

from . import errors
from .transport import Answer, Lost, NotSent, TooLarge, Transport

VERSION = "0.1.0"
MAX_ANSWER = 64 << 20  # a page of a hundred memories with all their metadata stays far below
MAX_PROBLEM = 1 << 20  # a problem is some hundred bytes
FIRST_DELAY = 0.5  # seconds, doubling, with full jitter
LONGEST_DELAY = 8.0

_CLASSES: Dict[int, Type[errors.APIError]] = {
    401: errors.AuthenticationError,
    402: errors.InsufficientCreditsError,
    403: errors.PermissionDeniedError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    410: errors.InputExpiredError,
    429: errors.RateLimitedError,
    501: errors.InvalidRequestError,
    503: errors.UnavailableError,
}
_CODES: Dict[str, Type[errors.APIError]] = {
    "IDEMPOTENCY_CONFLICT": errors.KeyConflictError,
    "VERSION_CONFLICT": errors.VersionConflictError,
}


class Clock:
    """Time and chance, so that tests need none of them."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def chance(self) -> float:
        return random.random()


@dataclass(frozen=True)
class Bounds:
    """timeout bounds one attempt, total_timeout a call with all its attempts and pauses, both in seconds. max_retries
    None leaves the count to total_timeout."""

    timeout: float = 30.0
    total_timeout: float = 60.0
    max_retries: Optional[int] = 4


@dataclass(frozen=True)
class Request:
    """writes: the call changes something. repeatable: arriving twice is the same as once. made says that the key was
    made here."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Union[str, bytes]] = field(default_factory=dict)
    body: Optional[bytes] = None
    content_type: str = "application/json"
    key: Optional[str] = None
    made: bool = False
    writes: bool = False
    repeatable: bool = True

    def target(self) -> str:
        pairs = {name: value for name, value in self.query.items() if value is not None}
        return self.path + ("?" + urlencode(pairs) if pairs else "")


class Caller:
    """Sends requests for all parts of a client."""

    def __init__(self, transport: Transport, api_key: str, bounds: Bounds, clock: Clock) -> None:
        self.transport = transport
        self.bounds = bounds
        self.clock = clock
        self._api_key = api_key

    def __repr__(self) -> str:
        return f"Caller({self.transport.base_url!r})"

    def __getstate__(self) -> Any:
        raise TypeError("a client holds an API key and connections, and cannot be pickled")

    def within(self, bounds: Bounds) -> "Caller":
        return Caller(self.transport, self._api_key, bounds, self.clock)

    def json(self, request: Request, bounds: Optional[Bounds] = None) -> Tuple[Any, Answer]:
        """Returns the answer's value and the answer itself, which is 2xx."""
        answer = self.send(request, bounds)
        try:
            return json.loads(answer.body), answer
        except (ValueError, RecursionError):
            raise self._finish(_unreadable("not JSON", answer.headers), request, request.writes) from None

    def send(self, request: Request, bounds: Optional[Bounds] = None) -> Answer:
        """Returns a 2xx answer, or raises what became of the last attempt."""
        bounds = bounds or self.bounds
        started, retries, unknown = self.clock.now(), 0, False
        while True:
            left = bounds.total_timeout - (self.clock.now() - started)
            answer, failure, maybe = self._attempt(request, min(bounds.timeout, left))
            if answer is not None:
                return answer
            assert failure is not None
            unknown = unknown or maybe
            delay = self._delay(retries, failure.retry_after)
            retries += 1
            spent = self.clock.now() - started
            if (
                not _again(failure, request, maybe)
                or (bounds.max_retries is not None and retries > bounds.max_retries)
                or spent + delay >= bounds.total_timeout
            ):
                raise self._finish(failure, request, unknown)
            self.clock.sleep(delay)

    def pieces(self, request: Request) -> Iterator[bytes]:
        """Reads a large answer piece by piece; only its beginning is tried again."""
        started, retries = self.clock.now(), 0
        while True:
            failure: errors.HoldfastError
            try:
                answer, pieces = self.transport.stream(
                    request.target(), self._headers(request), timeout=self.bounds.timeout, limit=MAX_PROBLEM
                )
                if 200 <= answer.status < 300:
                    yield from self._guarded(pieces)
                    return
                failure = _refusal(answer)
            except (NotSent, Lost) as problem:
                failure = _no_answer(problem)
            except TooLarge as problem:
                failure = _unreadable("too large", problem.headers)
            delay = self._delay(retries, failure.retry_after)
            retries += 1
            limit = self.bounds.max_retries
            if (
                not _again(failure, request, False)
                or (limit is not None and retries > limit)
                or self.clock.now() - started + delay >= self.bounds.total_timeout
            ):
                raise failure
            self.clock.sleep(delay)

    @staticmethod
    def _guarded(pieces: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from pieces
        except Lost as problem:
            raise _no_answer(problem) from None

    def _attempt(
        self, request: Request, timeout: float
    ) -> Tuple[Optional[Answer], Optional[errors.HoldfastError], bool]:
        """Returns an answer or a failure, and whether the write may have happened in spite of the failure."""
        try:
            answer = self.transport.send(
                request.method, request.target(), self._headers(request), request.body,
                timeout=timeout, limit=MAX_ANSWER, reuse=request.repeatable,
            )
        except NotSent as problem:
            return None, _no_answer(problem), False
        except Lost as problem:
            return None, _no_answer(problem), request.writes
        except TooLarge as problem:
            return None, _unreadable("too large", problem.headers), request.writes and problem.status < 300
        if 200 <= answer.status < 300:
            return answer, None, False
        failure = _refusal(answer)
        # UNAVAILABLE promises that nothing was kept; anything else beyond 500 promises nothing.
        maybe = request.writes and answer.status >= 500 and failure.code not in ("UNAVAILABLE", "NOT_IMPLEMENTED")
        return None, failure, maybe

    def _headers(self, request: Request) -> Dict[str, Union[str, bytes]]:
        headers: Dict[str, Union[str, bytes]] = {
            "Authorization": "Bearer " + self._api_key,
            "Accept": "application/json, application/problem+json",
            "User-Agent": "holdfast-memory-python/" + VERSION,
        }
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.key is not None:
            headers["Idempotency-Key"] = request.key
        headers.update(request.headers)
        return headers

    def _delay(self, retries: int, retry_after: Optional[float]) -> float:
        """Retry-After is a floor; the jitter comes on top, so that those who were refused together do not return
        together."""
        jitter = self.clock.chance() * min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(retries, 10))
        return (retry_after or 0.0) + jitter

    @staticmethod
    def _finish(failure: errors.HoldfastError, request: Request, unknown: bool) -> errors.HoldfastError:
        if unknown and _transient(failure):
            named = f"; its key is {request.key}" if request.key and request.made else ""
            lost = errors.OutcomeUnknownError(
                f"The answer to a write was lost, and the write may have happened{named}. "
                "Send the same request with the same key to find out.",
                code=failure.code, status=failure.status, request_id=failure.request_id, retryable=True,
                details=failure.details, retry_after=failure.retry_after,
            )
            lost.__cause__ = failure
            failure = lost
        failure.key = request.key if request.writes else None
        failure.outcome_unknown = unknown
        return failure


def _transient(failure: errors.HoldfastError) -> bool:
    """Whether the same request may get another answer by itself. 501 and 402 are not: someone must act."""
    if isinstance(failure, errors.NetworkError):
        return True
    status = failure.status or 0
    return (status >= 500 and status != 501) or status == 429 or (status == 409 and failure.retryable)


def _again(failure: errors.HoldfastError, request: Request, maybe: bool) -> bool:
    return _transient(failure) and (request.repeatable or not maybe)


def _no_answer(problem: Union[NotSent, Lost]) -> errors.NetworkError:
    where = "The service could not be reached" if isinstance(problem, NotSent) else "No whole answer came"
    if problem.timed_out:
        return errors.RequestTimeoutError(where + " in time.", code="TIMEOUT", retryable=True)
    cause = problem.__cause__
    # The kind of the failure and no text of it: texts of libraries may quote what was sent.
    kind = type(cause).__name__ if cause is not None else "connection cut"
    return errors.NetworkError(f"{where}: {kind}.", code="NETWORK", retryable=True)


def _unreadable(what: str, headers: Message) -> errors.UnreadableAnswerError:
    return errors.UnreadableAnswerError(
        f"The answer can't be used: {what}.", code="UNREADABLE_ANSWER", request_id=headers.get("x-request-id")
    )


def _refusal(answer: Answer) -> errors.APIError:
    problem: Any = None
    if len(answer.body) <= MAX_PROBLEM:
        try:
            problem = json.loads(answer.body)
        except (ValueError, RecursionError):
            problem = None
    if not isinstance(problem, dict):
        problem = {}
    status = answer.status
    code = _text(problem.get("code")) or f"HTTP_{status}"
    if 300 <= status < 400:
        code = "REDIRECTED"
    cls = _CODES.get(code) or _CLASSES.get(status)
    if cls is None:
        cls = errors.InvalidRequestError if 400 <= status < 500 else errors.ServerError
    message = _text(problem.get("message")) or f"The service answered {status}."
    if code == "REDIRECTED":
        message = "The service answered with a redirect, which is not followed: set its own address as base_url."
    detail = _text(problem.get("detail"))
    details = problem.get("details")
    return cls(
        f"{message} {detail}" if detail and detail != message else message,
        code=code, status=status,
        request_id=_text(problem.get("request_id")) or answer.headers.get("x-request-id"),
        retryable=problem.get("retryable") is True if "retryable" in problem else status in (429, 502, 503, 504),
        details=details if isinstance(details, dict) else None,
        retry_after=retry_after(answer.headers.get("Retry-After")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def retry_after(header: Optional[str]) -> Optional[float]:
    """Reads seconds or a date; None for anything else."""
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit() and len(header) <= 9:
        return float(header)
    try:
        then = email.utils.parsedate_to_datetime(header)
    except (TypeError, ValueError, IndexError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.timezone.utc)
    return max(0.0, (then - datetime.datetime.now(datetime.timezone.utc)).total_seconds())


def encode(value: Any) -> bytes:
    """JSON in UTF-8. What JSON can't say is a ValueError that does not show the value."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("the request has a text that is not valid Unicode (a lone surrogate)") from None
    except RecursionError:
        raise ValueError("the request is nested too deeply") from None
    except (TypeError, ValueError):
        raise ValueError("the request has a value that JSON doesn't have") from None


def segment(value: str, what: str) -> str:
    """A path segment. Those that paths give a meaning of their own are refused: `DELETE /v1/memories/.` is another
    call than was meant."""
    if not isinstance(value, str) or value in ("", ".", ".."):
        raise ValueError(f"{what} must be a text other than '', '.' and '..'")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{what} must be valid Unicode") from None

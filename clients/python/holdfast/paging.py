"""Lists that come page by page."""

from __future__ import annotations

from typing import Callable, Iterator, Optional, TypeVar

from .errors import UnreadableAnswerError
from .values import Page

T = TypeVar("T")


def iterate(read: Callable[[Optional[str]], Page[T]]) -> Iterator[T]:
    """Yields all results, reading a page when it is needed. A cursor that leads to itself ends it with an error."""
    cursor: Optional[str] = None
    while True:
        page = read(cursor)
        yield from page.results
        if page.next_cursor is None:
            return
        if page.next_cursor == cursor:
            raise UnreadableAnswerError("The list leads back to the same page.", code="UNREADABLE_ANSWER")
        cursor = page.next_cursor

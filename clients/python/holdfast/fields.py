"""How arguments become members of a request."""

from __future__ import annotations

import datetime
from typing import Any, Dict, Mapping, Optional, Sequence, Union

Messages = Union[str, Sequence[Mapping[str, Any]]]
Time = Union[str, datetime.datetime]


class Unset:
    """The default of an argument for which None means something of its own."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


def given(**members: Any) -> Dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def moment(value: Optional[Time]) -> Optional[str]:
    """RFC 3339 of a datetime that knows its offset; texts stay as they are."""
    if isinstance(value, datetime.datetime):
        if value.utcoffset() is None:
            raise ValueError("a datetime needs an offset: datetime(..., tzinfo=timezone.utc)")
        return value.isoformat()
    return value


def scope_of(
    user_id: Optional[str], agent_id: Optional[str], run_id: Optional[str], app_id: Optional[str]
) -> Dict[str, str]:
    """The scope ids that are not None. An empty one is a ValueError: to leave it out would widen the scope."""
    scope = given(user_id=user_id, agent_id=agent_id, run_id=run_id, app_id=app_id)
    for name, value in scope.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{name} must be a text that is not blank")
        if not _unicode(value):
            raise ValueError(f"{name} must be valid Unicode")
    return scope


def header_text(value: str, what: str) -> bytes:
    """A header's value in UTF-8."""
    if not isinstance(value, str) or not value.strip() or any(c < " " or c == "\x7f" for c in value):
        raise ValueError(f"{what} must be a text that is not blank and has no control characters")
    if not _unicode(value):
        raise ValueError(f"{what} must be valid Unicode")
    return value.encode("utf-8")


def _unicode(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

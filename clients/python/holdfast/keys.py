"""Idempotency keys."""

from __future__ import annotations

import os
import re
import time
import uuid
from typing import Optional, Tuple

_KEY = re.compile(r"[\x21-\x7e]{1,200}\Z")


def new_key() -> str:
    """Returns a UUIDv7: the milliseconds since 1970, then 74 random bits."""
    value = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def key_or_new(key: Optional[str]) -> Tuple[str, bool]:
    """Returns the key, and whether it was made here. A wrong key is a ValueError that doesn't show it."""
    if key is None:
        return new_key(), True
    return checked(key), False


def checked(key: str) -> str:
    if not isinstance(key, str) or not _KEY.match(key):
        raise ValueError("an idempotency key is 1 to 200 visible ASCII characters")
    return key

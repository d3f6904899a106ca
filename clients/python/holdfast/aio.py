"""The client for asyncio: each call runs in a thread of the loop's executor."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any, AsyncIterator, Iterator

from .client import Client

_END = object()


class AsyncClient:
    """Has the methods of Client, each to be awaited; `iterate` and `exports.read` are for `async for`.

    A task that is cancelled stops to wait; the call's thread goes on within its time bounds, and a write may happen.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._client = Client(*arguments, **options)

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._client.close()

    async def close(self) -> None:
        self._client.close()

    def with_options(self, **options: Any) -> "AsyncClient":
        other = AsyncClient.__new__(AsyncClient)
        other._client = self._client.with_options(**options)
        return other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        part = getattr(self._client, name)
        return _awaited(part) if callable(part) else _Part(part)


class _Part:
    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._part, name)
        if name == "iterate" or inspect.isgeneratorfunction(method) or (type(self._part).__name__, name) == ("Exports", "read"):
            return functools.partial(_each, method)
        return _awaited(method)


def _awaited(method: Any) -> Any:
    @functools.wraps(method)
    async def call(*arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *arguments, **options)

    return call


async def _each(method: Any, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
    values: Iterator[Any] = method(*arguments, **options)
    while True:
        value = await asyncio.to_thread(next, values, _END)
        if value is _END:
            return
        yield value

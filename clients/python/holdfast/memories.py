"""Memories: reading, searching, changing, deleting, erasing."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from .calls import Bounds, Caller, Request, encode, segment
from .fields import UNSET, Time, Unset, given, moment, scope_of
from .keys import key_or_new
from .paging import iterate
from .values import Change, Erased, HistoryEntry, Memory, Page, Receipt, decode, decode_list, decode_page


def replayed(answer: Any) -> bool:
    return answer.headers.get("Idempotent-Replayed") == "true"


def receipt(caller: Caller, request: Request, bounds: Optional[Bounds] = None) -> Receipt:
    """Sends a keyed write that is answered with a receipt."""
    value, answer = caller.json(request, bounds)
    return decode(Receipt, value, key=request.key, replayed=replayed(answer))


def erased(caller: Caller, request: Request) -> Erased:
    value, answer = caller.json(request)
    return decode(Erased, value, key=request.key, replayed=replayed(answer), done=answer.status == 200)


class Memories:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, memory_id: str) -> Memory:
        """Reads one live memory."""
        value, _ = self._caller.json(Request("GET", f"/v1/memories/{segment(memory_id, 'memory_id')}"))
        return decode(Memory, value)

    def list(
        self,
        *,
        user_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        run_id: Optional[str] = None,
        app_id: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> Page[Memory]:
        """Lists the live memories of a scope, newest first; at least one scope id is required."""
        query: Dict[str, Any] = {**scope_of(user_id, agent_id, run_id, app_id), "limit": limit, "cursor": cursor}
        value, _ = self._caller.json(Request("GET", "/v1/memories", query))
        return decode_page(Memory, value)

    def iterate(
        self,
        *,
        user_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        run_id: Optional[str] = None,
        app_id: Optional[str] = None,
        page_size: int = 100,
    ) -> Iterator[Memory]:
        """All of them, page by page."""
        scope = scope_of(user_id, agent_id, run_id, app_id)
        return iterate(lambda cursor: self.list(**scope, limit=page_size, cursor=cursor))

    def search(
        self,
        query: str,
        *,
        user_id: Optional[str] = None,
        agent_id: Optional[str] = None,
        run_id: Optional[str] = None,
        app_id: Optional[str] = None,
        limit: Optional[int] = None,
        min_score: Optional[float] = None,
        mode: Optional[str] = None,
        latest_only: Optional[bool] = None,
        filters: Optional[Mapping[str, Any]] = None,
        explain: Optional[bool] = None,
    ) -> List[Memory]:
        """Finds what answers the query best, best first, with its score. mode is hybrid, lexical or semantic."""
        body = given(
            query=query, limit=limit, min_score=min_score, mode=mode, latest_only=latest_only, filters=filters,
            explain=explain,
        )
        body.update(scope_of(user_id, agent_id, run_id, app_id))
        value, _ = self._caller.json(Request("POST", "/v1/memories/search", body=encode(body)))
        return decode_list(Memory, value.get("results") if isinstance(value, dict) else None)

    def update(
        self,
        memory_id: str,
        *,
        content: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        expires_at: Union[Time, None, Unset] = UNSET,
        version: Optional[int] = None,
        key: Optional[str] = None,
    ) -> Change:
        """Changes what is given; metadata is replaced as a whole, expires_at=None is never. With version the change
        happens only if the memory has that version (VersionConflictError)."""
        body = given(content=content, metadata=metadata, version=version)
        if not isinstance(expires_at, Unset):
            body["expires_at"] = moment(expires_at)
        return self._change("PUT", memory_id, encode(body), key)

    def delete(self, memory_id: str, *, key: Optional[str] = None) -> Change:
        """Deletes one memory; its history stays until its scope is erased."""
        return self._change("DELETE", memory_id, None, key)

    def _change(self, method: str, memory_id: str, body: Optional[bytes], key: Optional[str]) -> Change:
        key, made = key_or_new(key)
        request = Request(
            method, f"/v1/memories/{segment(memory_id, 'memory_id')}", body=body, key=key, made=made, writes=True
        )
        value, answer = self._caller.json(request)
        return decode(Change, value, key=key, replayed=replayed(answer))

    def history(
        self, memory_id: str, *, limit: Optional[int] = None, cursor: Optional[str] = None
    ) -> Page[HistoryEntry]:
        """What became of a memory, oldest change first; of a deleted one too."""
        path = f"/v1/memories/{segment(memory_id, 'memory_id')}/history"
        value, _ = self._caller.json(Request("GET", path, {"limit": limit, "cursor": cursor}))
        return decode_page(HistoryEntry, value)

    def update_batch(self, changes: Iterable[Mapping[str, Any]], *, key: Optional[str] = None) -> Receipt:
        """Changes up to 1,000 memories: `{"id", "content"?, "metadata"?, "expires_at"?, "version"?}` each. The event's
        results name each one, with `error` for one that could not be changed."""
        memories = []
        for change in changes:
            one = dict(change)
            if "expires_at" in one:
                one["expires_at"] = moment(one["expires_at"])
            memories.append(one)
        return self._batch("PUT", {"memories": memories}, key)

    def delete_batch(self, memory_ids: Iterable[str], *, key: Optional[str] = None) -> Receipt:
        """Deletes up to 1,000 memories."""
        if isinstance(memory_ids, str):
            raise ValueError("memory_ids must be a list of ids")
        return self._batch("DELETE", {"ids": list(memory_ids)}, key)

    def _batch(self, method: str, body: Mapping[str, Any], key: Optional[str]) -> Receipt:
        key, made = key_or_new(key)
        return receipt(
            self._caller,
            Request(method, "/v1/memories/batch", body=encode(body), key=key, made=made, writes=True),
        )

    def erase_scope(
        self,
        *,
        user_id: Union[str, Unset] = UNSET,
        agent_id: Union[str, Unset] = UNSET,
        run_id: Union[str, Unset] = UNSET,
        app_id: Union[str, Unset] = UNSET,
        key: Optional[str] = None,
    ) -> Erased:
        """Erases everything whose scope matches all the ids given, for good; needs the permission admin. An id that is
        None is a ValueError, so that a missing value can't widen what is erased."""
        named = {
            name: value
            for name, value in dict(user_id=user_id, agent_id=agent_id, run_id=run_id, app_id=app_id).items()
            if not isinstance(value, Unset)
        }
        if not named or None in named.values():
            raise ValueError("name at least one scope id, and none that is None")
        scope = scope_of(**{"user_id": None, "agent_id": None, "run_id": None, "app_id": None, **named})
        key, made = key_or_new(key)
        return erased(
            self._caller, Request("DELETE", "/v1/memories", scope, key=key, made=made, writes=True)
        )

"""Items: memory of what a caller keeps under ids of its own. account is the end user; records have it as user_id."""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional

from .calls import Caller, Request, encode
from .fields import given, header_text, moment
from .keys import key_or_new
from .values import Corrected, Forgotten, Grepped, ItemsPage, ItemsReceipt, Memory, decode, decode_list


class Items:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def add(self, account: str, items: Iterable[Mapping[str, Any]], *, key: Optional[str] = None) -> ItemsReceipt:
        """Keeps 1 to 500 items: `{"id"?, "text", "at"?, "author"?, "session"?}` each.

        The same content again changes nothing, other content is an edit. The key names the items without an id, by
        their place in the call; it does not name the call, and there is no conflict.
        """
        members = []
        for item in items:
            one = dict(item)
            if one.get("at") is not None:
                one["at"] = moment(one["at"])
            members.append(one)
        key, made = key_or_new(key)
        value = self._post("add", account, {"items": members}, key=key, made=made, writes=True)
        return decode(ItemsReceipt, value, key=key)

    def forget(
        self,
        account: str,
        *,
        ids: Optional[Iterable[str]] = None,
        session: Optional[str] = None,
        everything: bool = False,
    ) -> Forgotten:
        """Erases items with all that was made of them: exactly one of ids, session and everything=True. What an
        attempt without an answer has erased is not counted again."""
        if isinstance(ids, str):
            raise ValueError("ids must be a list of ids")
        if (ids is not None) + (session is not None) + bool(everything) != 1:
            raise ValueError("name exactly one of ids, session and everything=True")
        body = given(ids=None if ids is None else list(ids), session=session, all=True if everything else None)
        return decode(Forgotten, self._post("forget", account, body, writes=True))

    def correct(self, account: str, memory_id: str, *, text: Optional[str] = None) -> Corrected:
        """Retracts a memory and, with a text, stores that in its place. Sent twice the second one is NotFoundError, so
        that it is not sent again once it may have arrived: then it is OutcomeUnknownError."""
        body = given(id=memory_id, text=text)
        return decode(Corrected, self._post("correct", account, body, writes=True, repeatable=False))

    def search(
        self, account: str, query: str, *, limit: Optional[int] = None, session: Optional[str] = None
    ) -> List[Memory]:
        """Finds the memories of an account that answer the query best."""
        value = self._post("search", account, given(query=query, limit=limit, session=session))
        return decode_list(Memory, value.get("results") if isinstance(value, dict) else None)

    def grep(
        self,
        account: str,
        pattern: str,
        *,
        regex: Optional[bool] = None,
        limit: Optional[int] = None,
        session: Optional[str] = None,
    ) -> Grepped:
        """Finds items and memories whose text contains the pattern, or matches it (RE2)."""
        body = given(pattern=pattern, regex=regex, limit=limit, session=session)
        return decode(Grepped, self._post("grep", account, body))

    def read(
        self,
        account: str,
        *,
        ids: Optional[Iterable[str]] = None,
        session: Optional[str] = None,
        after: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> ItemsPage:
        """Reads items: ids in that order, or a session by time, page by page with after."""
        if isinstance(ids, str):
            raise ValueError("ids must be a list of ids")
        body = given(ids=None if ids is None else list(ids), session=session, after=after, limit=limit)
        return decode(ItemsPage, self._post("read", account, body))

    def _post(self, name: str, account: str, body: Mapping[str, Any], **facts: Any) -> Any:
        headers = {"X-Twin-Account": header_text(account, "account")}
        value, _ = self._caller.json(
            Request("POST", f"/v1/memory/{name}", headers=headers, body=encode(body), **facts)
        )
        return value

"""What the calls send and what they make of the answers."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
import unittest
import uuid

import holdfast
from holdfast.calls import retry_after

from .scripted import EVENT, RECEIPT, ScriptedCase, answer, cut, problem

MEMORY = {
    "id": "mem_1", "memory": "Lives in Lisbon", "type": "fact", "role": None, "user_id": "ada", "agent_id": None,
    "run_id": None, "app_id": None, "metadata": {"a": [1, 2.5]}, "event_date": None, "version": 1,
    "valid_from": "2026-01-01T00:00:00Z", "valid_to": None, "superseded_by": None, "item_id": None, "expires_at": None,
    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "added_in_a_later_version": 1,
}
PENDING = {**EVENT, "status": "PENDING", "results": [], "outcome": None}
FAILED = {
    **PENDING, "status": "FAILED", "generation": 2,
    "error": {"code": "PROVIDER_TIMEOUT", "class": "provider_timeout", "message": "The model did not answer in time.",
              "retryable": True, "action": "Retry it."},
}


class TestWait(ScriptedCase):
    def test_long_polls_until_the_end(self) -> None:
        event = self.script(answer(200, PENDING), answer(200, EVENT)).events.wait("evt_1")
        self.assertEqual((event.status, event.results[0].memory), ("SUCCEEDED", "Lives in Lisbon"))
        self.assertEqual([seen.path for seen in self.server.seen], ["/v1/events/evt_1?wait=25"] * 2)

    def test_failure_is_not_a_time_out(self) -> None:
        with self.assertRaises(holdfast.EventFailedError) as caught:
            self.script(answer(202, RECEIPT), answer(200, FAILED)).add_and_wait("a", user_id="ada")
        error = caught.exception
        assert error.event is not None
        self.assertEqual((error.code, error.retryable, error.event.generation), ("PROVIDER_TIMEOUT", True, 2))
        self.assertEqual((error.failure_class, error.action, error.key), ("provider_timeout", "Retry it.", self.keys[0]))

    def test_time_out_is_not_a_failure(self) -> None:
        client = self.script(answer(202, RECEIPT), *[answer(200, PENDING)] * 100)
        with self.assertRaises(holdfast.WaitTimeoutError) as caught:
            client.add_and_wait("a", user_id="ada", wait=10)
        self.assertEqual((caught.exception.event_id, caught.exception.key), ("evt_1", self.keys[0]))
        self.assertAlmostEqual(sum(self.clock.slept), 10, places=3)
        self.assertLess(len(self.server.seen), 20, "answers that come at once are not asked for in a circle")

    def test_outage_in_between_is_waited_out(self) -> None:
        steps = [cut] * 6 + [problem(503, "UNAVAILABLE", True)] * 3 + [answer(200, EVENT)]
        self.assertEqual(self.script(*steps).events.wait("evt_1").status, "SUCCEEDED")

    def test_outage_to_the_end_is_a_time_out(self) -> None:
        with self.assertRaises(holdfast.WaitTimeoutError) as caught:
            self.script(*[cut] * 100).events.wait("evt_1", timeout=20)
        self.assertIsInstance(caught.exception.__cause__, holdfast.NetworkError)

    def test_refusal_ends_it(self) -> None:
        with self.assertRaises(holdfast.NotFoundError):
            self.script(problem(404, "EVENT_NOT_FOUND")).events.wait("evt_1")


class TestCalls(ScriptedCase):
    def test_add(self) -> None:
        when = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.timezone.utc)
        self.script(answer(202, RECEIPT)).add(
            [{"role": "user", "content": "ü"}], user_id="ada", metadata={"n": 1}, event_date=when, ordered=False
        )
        self.assertEqual(json.loads(self.server.seen[0].body), {
            "messages": [{"role": "user", "content": "ü"}], "user_id": "ada", "metadata": {"n": 1},
            "event_date": "2026-05-01T12:00:00+00:00", "ordered": False,
        })

    def test_values_that_cannot_be_sent_are_not_shown(self) -> None:
        client = self.script()
        for call in (
            lambda: client.add("secret \ud800", user_id="ada"),
            lambda: client.add("a", user_id="secret \ud800"),
            lambda: client.add("a", user_id="ada", metadata={"secret": float("nan")}),
            lambda: client.add("a", user_id="ada", metadata={"secret": {1, 2}}),
            lambda: client.add("a", user_id="ada", event_date=datetime.datetime(2026, 1, 1)),
            lambda: client.memories.get("secret\ud800"),
        ):
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertNotIn("secret", str(caught.exception))

    def test_update_tells_never_from_not_given(self) -> None:
        change = {"id": "mem_1", "event": "UPDATE", "memory": "x", "version": 2, "event_id": "evt_1"}
        client = self.script(answer(200, change), answer(200, change))
        client.memories.update("mem_1", content="x", version=1)
        client.memories.update("mem_1", expires_at=None)
        self.assertEqual([json.loads(seen.body) for seen in self.server.seen], [{"content": "x", "version": 1}, {"expires_at": None}])

    def test_erase_is_never_wider_than_was_meant(self) -> None:
        client = self.script()
        for scope in ({}, {"user_id": ""}, {"user_id": " ", "agent_id": "a"}, {"user_id": None, "agent_id": "a"}):
            with self.assertRaises(ValueError):
                client.memories.erase_scope(**scope)  # type: ignore[arg-type]
        for wrong in ("", ".", "..", None):
            with self.assertRaises(ValueError):
                client.memories.delete(wrong)  # type: ignore[arg-type]
            with self.assertRaises(ValueError):
                client.entities.erase("user", wrong)  # type: ignore[arg-type]
        for what in ({}, {"ids": ["a"], "everything": True}):
            with self.assertRaises(ValueError):
                client.items.forget("ada", **what)  # type: ignore[arg-type]
        self.assertEqual(self.server.seen, [])

    def test_erase_that_takes_longer(self) -> None:
        client = self.script(answer(202, RECEIPT), answer(200, {"deleted": 3, "cancelled": 1, "event_id": "evt_1"}))
        self.assertEqual((client.memories.erase_scope(user_id="a/b c").done, self.server.seen[0].path), (False, "/v1/memories?user_id=a%2Fb+c"))
        self.assertEqual((client.entities.erase("user", "a/b c").deleted, self.server.seen[1].path), (3, "/v1/entities/user/a%2Fb%20c"))

    def test_iterate_reads_page_by_page(self) -> None:
        client = self.script(answer(200, {"results": [MEMORY], "next_cursor": "c1"}), answer(200, {"results": [MEMORY], "next_cursor": None}))
        memories = list(client.memories.iterate(user_id="ada"))
        self.assertEqual([m.metadata for m in memories], [{"a": [1, 2.5]}] * 2)
        self.assertEqual(self.server.seen[1].path, "/v1/memories?user_id=ada&limit=100&cursor=c1")

    def test_list_that_leads_back_ends(self) -> None:
        with self.assertRaises(holdfast.UnreadableAnswerError):
            list(self.script(*[answer(200, {"results": [], "next_cursor": "c1"})] * 3).memories.iterate(user_id="ada"))

    def test_account_is_sent_in_utf8(self) -> None:
        self.script(answer(200, {"results": []})).items.search("Zoë 北", "q")
        self.assertEqual(self.server.seen[0].headers["X-Twin-Account"].encode("latin-1").decode(), "Zoë 北")

    def test_retry_has_a_generation_or_a_key(self) -> None:
        client = self.script(*[answer(202, EVENT)] * 2)
        client.events.retry("evt_1", generation=2)
        client.events.retry("evt_1")
        self.assertEqual((self.server.seen[0].body, self.keys[0]), (b'{"generation":2}', None))
        self.assertEqual((self.server.seen[1].body, self.keys[1] is None), (b"", False))

    def test_insufficient_credits_tells_the_amounts(self) -> None:
        with self.assertRaises(holdfast.InsufficientCreditsError) as caught:
            self.script(problem(402, "INSUFFICIENT_CREDITS", True, {"required": 2, "available": 1})).add("a", user_id="ada")
        self.assertEqual((caught.exception.required, caught.exception.available), (2, 1))

    def test_options_are_of_the_new_client_only(self) -> None:
        client = self.script(cut, cut, answer(200, EVENT))
        with self.assertRaises(holdfast.NetworkError):
            client.with_options(max_retries=0).events.get("evt_1")
        self.assertEqual(client.events.get("evt_1").id, "evt_1")
        for wrong in ({"timeout": 0}, {"total_timeout": -1}, {"max_retries": 101}):
            with self.assertRaises(ValueError):
                client.with_options(**wrong)

    def test_async(self) -> None:
        self.script(answer(202, RECEIPT), answer(200, EVENT), answer(200, {"results": [MEMORY], "next_cursor": None}))

        async def use() -> list:
            async with holdfast.AsyncClient(self.server.url, "hfk_x", clock=self.clock) as client:
                event = await client.add_and_wait("a", user_id="ada")
                return [event.status] + [m.id async for m in client.memories.iterate(user_id="ada")]

        self.assertEqual(asyncio.run(use()), ["SUCCEEDED", "mem_1"])


class TestKeys(unittest.TestCase):
    def test_new_key_is_a_uuid_of_version_7(self) -> None:
        before = time.time_ns() // 1_000_000
        keys = [uuid.UUID(holdfast.new_key()) for _ in range(1000)]
        after = time.time_ns() // 1_000_000
        self.assertEqual(len(set(keys)), 1000)
        for key in keys:
            self.assertEqual((key.version, key.variant), (7, uuid.RFC_4122))
            self.assertTrue(before <= key.int >> 80 <= after)

    def test_retry_after(self) -> None:
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=100)
        self.assertAlmostEqual(retry_after(soon.strftime("%a, %d %b %Y %H:%M:%S GMT")) or 0, 100, delta=3)
        self.assertEqual(retry_after(" 5 "), 5.0)
        for nothing in (None, "", "soon", "-1", "1e9", "9" * 50, "٣"):
            self.assertIsNone(retry_after(nothing))

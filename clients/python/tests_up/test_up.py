"""The client against a running service."""

from __future__ import annotations

import json
import uuid

import holdfast

from .world import PATIENCE, LosingProxy, UpCase


class TestLostAnswers(UpCase):
    def test_answer_that_was_lost_is_one_event_and_one_charge(self) -> None:
        before = self.client.credits.balance()
        proxy = LosingProxy(self.url, 2)
        self.addCleanup(proxy.close)
        receipt = self.client_of(proxy.url, self.api_key).add("I live in Lisbon.", user_id=self.user)
        self.assertEqual((proxy.lost, receipt.replayed), (2, True), "two requests arrived before the one answered")
        event = self.succeeded(receipt)
        after = self.client.credits.balance()
        self.assertEqual((before.available - after.available, after.held), (2, before.held))
        settled = [e.type for e in self.client.credits.iterate() if e.event_id == event.id]
        self.assertEqual(sorted(settled), ["hold", "settle"])
        self.assertEqual(len(list(self.client.memories.iterate(user_id=self.user))), len(event.results))

    def test_verbatim_add_that_was_lost_is_stored_once(self) -> None:
        before = self.client.credits.balance().available
        proxy = LosingProxy(self.url, 1)
        self.addCleanup(proxy.close)
        stored = self.client_of(proxy.url, self.api_key).add_verbatim("As it is.", user_id=self.user)
        self.assertTrue(stored.replayed)
        self.assertEqual([m.id for m in self.client.memories.iterate(user_id=self.user)], [r.id for r in stored.results])
        self.assertEqual(before - self.client.credits.balance().available, 1)

    def test_unknown_outcome_is_found_by_its_key(self) -> None:
        proxy = LosingProxy(self.url, 1)
        self.addCleanup(proxy.close)
        hasty = self.client_of(proxy.url, self.api_key, max_retries=0)
        with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
            hasty.add("I live in Porto.", user_id=self.user)
        key = caught.exception.key
        assert key is not None
        found = self.client.events.by_key(key)
        again = self.client.add("I live in Porto.", user_id=self.user, key=key)
        assert found is not None
        self.assertEqual((found.id, again.replayed), (again.event_id, True))
        self.assertIsNone(self.client.events.by_key(holdfast.new_key()))


class TestMemories(UpCase):
    def test_add_wait_and_search(self) -> None:
        event = self.client.add_and_wait(
            [{"role": "user", "content": "I am allergic to peanuts."}], user_id=self.user, wait=PATIENCE,
            metadata={"source": "chat"}, categories=[{"name": "health", "description": "allergic"}, {"name": "work"}],
        )
        self.assertEqual((event.outcome, event.ended), ("STORED", True))
        found = self.client.memories.search("What is the user allergic to?", user_id=self.user, limit=3, explain=True)
        self.assertEqual((found[0].id, found[0].metadata), (event.results[0].id, {"source": "chat"}))
        self.assertTrue(found[0].score and found[0].explain)
        self.assertEqual(found[0].categories, ["health"])
        self.assertEqual(self.client.events.get(event.id), self.client.events.wait(event.id))
        self.assertIn(event.id, [e.id for e in self.client.events.list(limit=100).results])

    def test_one_memory_changes_and_ends(self) -> None:
        memories = self.client.memories
        [result] = self.client.add_verbatim("First.", user_id=self.user).results
        self.assertEqual(memories.get(result.id).memory, "First.")
        change = memories.update(result.id, content="Second.", version=1, metadata={"n": 1})
        self.assertEqual((change.memory, change.version), ("Second.", 2))
        with self.assertRaises(holdfast.VersionConflictError):
            memories.update(result.id, content="Third.", version=1)
        repeated = memories.update(result.id, content="Second.", version=1, metadata={"n": 1}, key=change.key)
        self.assertEqual((repeated.version, repeated.replayed), (2, True))
        with self.assertRaises(holdfast.KeyConflictError):
            memories.update(result.id, content="Other.", key=change.key)
        self.assertEqual(memories.delete(result.id).event, "DELETE")
        with self.assertRaises(holdfast.NotFoundError) as caught:
            memories.get(result.id)
        self.assertTrue(caught.exception.request_id)
        self.assertEqual([e.event for e in memories.history(result.id).results], ["ADD", "UPDATE", "DELETE"])

    def test_batches_and_pages(self) -> None:
        memories = self.client.memories
        texts = [{"role": "user", "content": f"Number {n}."} for n in range(7)]
        ids = [r.id for r in self.client.add_verbatim(texts, user_id=self.user).results]
        self.assertEqual({m.id for m in memories.iterate(user_id=self.user, page_size=3)}, set(ids))
        receipt = memories.update_batch([{"id": ids[0], "content": "Zero."}, {"id": "mem_" + str(uuid.uuid4()), "content": "x"}])
        results = self.succeeded(receipt).results
        self.assertEqual((results[0].memory, results[1].error and results[1].error.code), ("Zero.", "MEMORY_NOT_FOUND"))
        self.succeeded(memories.delete_batch(ids[1:]))
        self.assertEqual([m.memory for m in memories.list(user_id=self.user).results], ["Zero."])

    def test_erase_of_a_scope(self) -> None:
        self.client.add_verbatim("To be erased.", user_id=self.user, agent_id="helper")
        self.assertEqual(self.client.entities.get("user", self.user).total_memories, 1)
        self.assertIn(self.user, [e.id for e in self.client.entities.iterate(type="user")])
        erased = self.client.memories.erase_scope(user_id=self.user)
        if not erased.done:
            self.succeeded(erased)
        self.assertEqual(self.client.memories.list(user_id=self.user).results, [])
        with self.assertRaises(holdfast.NotFoundError):
            self.client.entities.get("user", self.user)

    def test_erase_of_an_entity_with_any_name(self) -> None:
        odd = self.user + "/../ü ?&#"
        self.client.add_verbatim("To be erased.", user_id=odd)
        self.assertEqual(self.client.entities.get("user", odd).id, odd)
        self.client.entities.erase("user", odd)
        self.assertEqual(self.client.memories.list(user_id=odd).results, [])


class TestEvents(UpCase):
    def test_event_that_succeeded_is_neither_cancelled_nor_retried(self) -> None:
        event = self.client.add_and_wait("I live in Lisbon.", user_id=self.user, wait=PATIENCE)
        for call in (lambda: self.client.events.cancel(event.id), lambda: self.client.events.retry(event.id, generation=1)):
            with self.assertRaises(holdfast.ConflictError) as caught:
                call()
            self.assertIn(caught.exception.code, ("NOT_CANCELLABLE", "NOT_RETRYABLE"))

    def test_workspace_that_cannot_pay(self) -> None:
        poor, key = self.new_workspace(), holdfast.new_key()
        with self.assertRaises(holdfast.InsufficientCreditsError) as caught:
            poor.add("I live in Lisbon.", user_id=self.user, key=key)
        self.assertEqual((caught.exception.required, caught.exception.available, caught.exception.key), (2, 0, key))
        self.assertIsNone(poor.events.by_key(key), "a refusal consumes no key")

    def test_wrong_key(self) -> None:
        with self.assertRaises(holdfast.AuthenticationError) as caught:
            self.client_of(self.url, "hfk_wrong").credits.balance()
        self.assertNotIn("hfk_wrong", str(caught.exception))

    def test_health(self) -> None:
        self.assertIn(self.client.health().status, ("ok", "degraded"))


class TestItems(UpCase):
    def test_items_from_add_to_forget(self) -> None:
        items, account = self.client.items, self.user + "-Zoë"
        keep = [
            {"id": "a", "text": "I have a cat called Rex.", "session": "s1", "at": "2026-01-01T10:00:00Z"},
            {"text": "I live in Lisbon.", "session": "s1", "author": "Ann", "at": "2026-01-01T11:00:00Z"},
        ]
        kept = items.add(account, keep)
        again = items.add(account, keep, key=kept.key)
        self.assertEqual(([i.id for i in kept.items], kept.queued), (["a", f"{kept.key}:1"], 2))
        self.assertEqual(([i.event_id for i in again.items], again.queued), ([i.event_id for i in kept.items], 0))
        for item in kept.items:
            self.client.events.wait(item.event_id, timeout=PATIENCE)
        page = items.read(account, session="s1")
        self.assertEqual([(i.text, i.landed, i.author) for i in page.items], [(keep[0]["text"], True, None), (keep[1]["text"], True, "Ann")])
        self.assertEqual([i.id for i in items.read(account, ids=["a"]).items], ["a"])
        self.assertEqual([i.id for i in items.grep(account, "(?i)REX", regex=True).items], ["a"])
        [cat] = [m for m in items.search(account, "cat Rex") if m.item_id == "a"]
        corrected = items.correct(account, cat.id, text="The cat is called Max.")
        with self.assertRaises(holdfast.NotFoundError):
            items.correct(account, cat.id, text="The cat is called Max.")
        self.assertEqual(self.client.memories.get(corrected.memory or "").memory, "The cat is called Max.")
        self.assertEqual(items.forget(account, ids=["a"]).events, 1)
        self.assertEqual(items.forget(account, everything=True).events, 1)
        self.assertEqual(items.forget(account, session="s1").events, 0)
        self.assertEqual(items.read(account, session="s1").items, [])

    def test_call_that_is_too_large(self) -> None:
        with self.assertRaises(holdfast.InvalidRequestError) as caught:
            self.client.items.add(self.user, [{"id": str(n), "text": "x" * 99_000} for n in range(90)])
        self.assertEqual((caught.exception.code, caught.exception.status), ("PAYLOAD_TOO_LARGE", 413))


class TestSnapshots(UpCase):
    def test_export_is_read_and_a_wrong_import_fails(self) -> None:
        self.client.add_verbatim("Kept.", user_id=self.user)
        export = self.client.exports.create()
        self.succeeded(export)
        snapshot = b"".join(self.client.exports.read(export.event_id))
        lines = [json.loads(line) for line in snapshot.splitlines()]
        self.assertEqual((lines[0]["type"], lines[-1]["type"]), ("header", "footer"))
        self.assertIn(self.user, [line.get("user_id") for line in lines])
        with self.assertRaises(holdfast.ConflictError) as refused:
            self.client.imports.create(snapshot)
        self.assertEqual(refused.exception.code, "WORKSPACE_NOT_EMPTY")
        empty = self.new_workspace()
        wrong = empty.imports.create(b"\n".join(snapshot.splitlines()[:-1]) + b"\n")  # without its footer
        with self.assertRaises(holdfast.EventFailedError) as caught:
            empty.events.wait(wrong.event_id, timeout=PATIENCE)
        self.assertEqual((caught.exception.code, caught.exception.failure_class), ("INPUT_UNREADABLE", "input_rejected"))
        header, footer = snapshot.splitlines()[0], {"type": "footer", "memories": 0, "history": 0, "items": 0}
        receipt = empty.imports.create(header + b"\n" + json.dumps(footer).encode() + b"\n")
        self.assertEqual(empty.events.wait(receipt.event_id, timeout=PATIENCE).status, "SUCCEEDED")

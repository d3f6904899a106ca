"""Which answers are followed by the same request, and what bounds that."""

from __future__ import annotations

import socket

import holdfast

from .scripted import API_KEY, EVENT, RECEIPT, ScriptedCase, StillClock, answer, cut, half, problem

ACCEPTED = answer(202, RECEIPT)
AGAIN = {
    "a cut connection": cut,
    "half an answer": half,
    "429": problem(429, "RATE_LIMITED", True),
    "429 without a body": answer(429),
    "503 UNAVAILABLE": problem(503, "UNAVAILABLE", True),
    "503 ACCEPTANCE_UNKNOWN": problem(503, "ACCEPTANCE_UNKNOWN", True),
    "409 that is retryable": problem(409, "IDEMPOTENCY_IN_PROGRESS", True),
    "500": problem(500, "INTERNAL", True),
    "502 of a proxy": answer(502),
    "504 of a proxy": answer(504),
}
ONCE = {
    "400": (problem(400, "INVALID_REQUEST"), holdfast.InvalidRequestError),
    "401": (problem(401, "INVALID_API_KEY"), holdfast.AuthenticationError),
    "402, which is retryable after a top-up": (problem(402, "INSUFFICIENT_CREDITS", True), holdfast.InsufficientCreditsError),
    "403": (problem(403, "INSUFFICIENT_PERMISSION"), holdfast.PermissionDeniedError),
    "404": (problem(404, "MEMORY_NOT_FOUND"), holdfast.NotFoundError),
    "409 IDEMPOTENCY_CONFLICT": (problem(409, "IDEMPOTENCY_CONFLICT"), holdfast.KeyConflictError),
    "409 VERSION_CONFLICT": (problem(409, "VERSION_CONFLICT"), holdfast.VersionConflictError),
    "409 NOT_RETRYABLE": (problem(409, "NOT_RETRYABLE"), holdfast.ConflictError),
    "410": (problem(410, "INPUT_EXPIRED"), holdfast.InputExpiredError),
    "413": (problem(413, "PAYLOAD_TOO_LARGE"), holdfast.InvalidRequestError),
    "501": (problem(501, "NOT_IMPLEMENTED"), holdfast.InvalidRequestError),
    "301": (answer(301, Location="/elsewhere"), holdfast.ServerError),
}


class TestRetries(ScriptedCase):
    def test_transient_failure_is_followed_by_the_same_request(self) -> None:
        for name, step in AGAIN.items():
            with self.subTest(name):
                receipt = self.script(step, ACCEPTED).add("Hello", user_id="ada")
                first, second = self.server.seen
                self.assertEqual(receipt.event_id, "evt_1")
                self.assertEqual(first.key, receipt.key)
                self.assertEqual((first.key, first.path, first.body), (second.key, second.path, second.body))
                self.assertEqual(self.clock.slept, [0.25])

    def test_refusal_is_final(self) -> None:
        for name, (step, cls) in ONCE.items():
            with self.subTest(name):
                client = self.script(step, ACCEPTED)
                with self.assertRaises(cls) as caught:
                    client.add("Hello", user_id="ada")
                self.assertEqual(len(self.server.seen), 1)
                self.assertEqual(caught.exception.key, self.keys[0])
                self.assertFalse(caught.exception.outcome_unknown)

    def test_retry_after_is_a_floor_with_jitter_on_top(self) -> None:
        self.script(problem(503, "UNAVAILABLE", True, Retry_After="7"), ACCEPTED).add("Hello", user_id="ada")
        self.assertEqual(self.clock.slept, [7.25])

    def test_delays_double_up_to_a_cap(self) -> None:
        steps = [problem(429, "RATE_LIMITED", True)] * 7
        self.script(*steps, ACCEPTED, max_retries=7).add("Hello", user_id="ada")
        self.assertEqual(self.clock.slept, [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0])

    def test_count_is_bounded(self) -> None:
        client = self.script(*[problem(503, "UNAVAILABLE", True)] * 9)
        with self.assertRaises(holdfast.UnavailableError) as caught:
            client.add("Hello", user_id="ada")
        self.assertEqual(len(self.server.seen), 5)
        self.assertFalse(caught.exception.outcome_unknown, "UNAVAILABLE promises that nothing was kept")
        self.assertEqual((caught.exception.request_id, caught.exception.retryable), ("req-1", True))

    def test_time_is_bounded(self) -> None:
        client = self.script(problem(429, "RATE_LIMITED", True, Retry_After="59"), problem(429, "RATE_LIMITED", True, Retry_After="9"))
        with self.assertRaises(holdfast.RateLimitedError) as caught:
            client.add("Hello", user_id="ada")
        self.assertEqual((self.clock.slept, caught.exception.retry_after), ([59.25], 9.0))

    def test_one_attempt_without_retries(self) -> None:
        with self.assertRaises(holdfast.OutcomeUnknownError):
            self.script(cut, ACCEPTED, max_retries=0).add("Hello", user_id="ada")
        self.assertEqual(len(self.server.seen), 1)

    def test_writes_carry_a_key_of_their_own(self) -> None:
        client = self.script(ACCEPTED, ACCEPTED)
        first, second = client.add("a", user_id="ada"), client.add("a", user_id="ada")
        self.assertNotEqual(first.key, second.key)
        self.assertEqual(self.keys, [first.key, second.key])

    def test_key_of_the_caller_is_sent_as_it_is(self) -> None:
        receipt = self.script(answer(202, RECEIPT, Idempotent_Replayed="true")).add("a", user_id="ada", key="my-key")
        self.assertEqual((receipt.key, self.keys, receipt.replayed), ("my-key", ["my-key"], True))


class TestUnknownOutcome(ScriptedCase):
    def test_lost_answers_are_an_unknown_outcome_with_the_key(self) -> None:
        client = self.script(*[cut] * 5)
        with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
            client.add("Hello", user_id="ada")
        self.assertEqual(set(self.keys), {caught.exception.key})
        self.assertTrue(caught.exception.outcome_unknown)
        self.assertIsInstance(caught.exception.__cause__, holdfast.NetworkError)
        self.assertIn(str(caught.exception.key), str(caught.exception), "a key that was made here is told")

    def test_key_of_the_caller_is_an_attribute_only(self) -> None:
        with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
            self.script(*[cut] * 5).add("Hello", user_id="ada", key="callers-own")
        self.assertEqual(caught.exception.key, "callers-own")
        self.assertNotIn("callers-own", str(caught.exception))

    def test_what_comes_after_a_lost_answer_does_not_hide_it(self) -> None:
        client = self.script(cut, *[problem(429, "RATE_LIMITED", True, Retry_After="3")] * 4)
        with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
            client.add("Hello", user_id="ada")
        self.assertEqual((caught.exception.code, caught.exception.retry_after), ("RATE_LIMITED", 3.0))

    def test_final_refusal_after_a_lost_answer_says_that_the_write_may_have_happened(self) -> None:
        with self.assertRaises(holdfast.AuthenticationError) as caught:
            self.script(cut, problem(401, "INVALID_API_KEY")).add("Hello", user_id="ada")
        self.assertTrue(caught.exception.outcome_unknown)

    def test_acceptance_unknown_to_the_end(self) -> None:
        with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
            self.script(*[problem(503, "ACCEPTANCE_UNKNOWN", True)] * 5).add("Hello", user_id="ada")
        self.assertEqual((caught.exception.code, caught.exception.status), ("ACCEPTANCE_UNKNOWN", 503))

    def test_lost_read_is_a_network_error(self) -> None:
        with self.assertRaises(holdfast.NetworkError) as caught:
            self.script(*[cut] * 5).memories.get("mem_1")
        self.assertEqual((len(self.server.seen), caught.exception.outcome_unknown), (5, False))

    def test_write_that_was_never_sent_is_a_network_error(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # bound and not listening: refused
            clock = StillClock()
            client = holdfast.Client(f"http://127.0.0.1:{closed.getsockname()[1]}", API_KEY, clock=clock)
            with self.assertRaises(holdfast.NetworkError) as caught:
                client.add("Hello", user_id="ada")
        self.assertEqual((len(clock.slept), caught.exception.outcome_unknown), (4, False))

    def test_correct_is_not_sent_again_once_it_may_have_arrived(self) -> None:
        for step in (cut, problem(500, "INTERNAL", True)):
            with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
                self.script(step, answer(200, {})).items.correct("ada", "mem_1")
            self.assertEqual((len(self.server.seen), caught.exception.key), (1, None))

    def test_correct_is_sent_again_after_a_refusal(self) -> None:
        right = {"id": "mem_1", "event_id": "evt_1", "memory": None}
        client = self.script(problem(503, "UNAVAILABLE", True), problem(429, "RATE_LIMITED", True), answer(200, right))
        self.assertEqual(client.items.correct("ada", "mem_1").id, "mem_1")
        self.assertEqual(self.keys, [None] * 3)

    def test_answer_of_a_write_that_cannot_be_read(self) -> None:
        for value in ("no object", {"status": "PENDING"}):
            with self.assertRaises(holdfast.UnreadableAnswerError):
                self.script(answer(202, value)).add("Hello", user_id="ada")

    def test_event_after_a_replay(self) -> None:
        client = self.script(half, answer(202, RECEIPT, Idempotent_Replayed="true"), answer(200, EVENT))
        event = client.add_and_wait("I live in Lisbon", user_id="ada")
        self.assertEqual((event.outcome, len(self.server.seen)), ("STORED", 3))

"""The exchange itself: time, size, redirects, secrets, connections."""

from __future__ import annotations

import copy
import pickle
import socket
import threading
import time
import traceback
import unittest
from unittest import mock

import holdfast
from holdfast import calls

from .scripted import API_KEY, EVENT, RECEIPT, Handler, ScriptedCase, Step, answer, cut, problem


def hang(handler: Handler) -> None:
    handler.rfile.read(1)  # until the client hangs up
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """Sends a byte again and again, each within any time-out for one read."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.02)
    except OSError:
        handler.close_connection = True


def drip_head(handler: Handler) -> None:
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        while True:
            handler.wfile.write(b"x")
            time.sleep(0.02)
    except OSError:
        handler.close_connection = True


class TestTime(ScriptedCase):
    def test_attempt_without_an_answer_ends_in_time(self) -> None:
        for step in (hang, drip, drip_head):
            with self.subTest(step.__name__):
                begun = time.monotonic()
                with self.assertRaises(holdfast.RequestTimeoutError) as caught:
                    self.script(step, timeout=0.3, max_retries=0).memories.get("mem_1")
                self.assertIsInstance(caught.exception, TimeoutError)
                self.assertLess(time.monotonic() - begun, 10)

    def test_write_that_timed_out_has_an_unknown_outcome(self) -> None:
        with self.assertRaises(holdfast.OutcomeUnknownError) as caught:
            self.script(hang, hang, timeout=0.2, max_retries=1).add("a", user_id="ada")
        self.assertEqual((caught.exception.code, len(set(self.keys))), ("TIMEOUT", 1))


class TestSize(ScriptedCase):
    def test_answer_that_is_too_large_is_not_read_to_its_end(self) -> None:
        with mock.patch.object(calls, "MAX_ANSWER", 1000):
            with self.assertRaises(holdfast.UnreadableAnswerError) as caught:
                self.script(answer(200, {"id": "x" * 2000})).memories.get("mem_1")
            self.assertFalse(caught.exception.outcome_unknown)
            with self.assertRaises(holdfast.UnreadableAnswerError) as caught:
                self.script(answer(202, {"event_id": "x" * 2000})).add("a", user_id="ada")
            self.assertTrue(caught.exception.outcome_unknown)
            self.assertEqual(caught.exception.key, self.keys[0])

    def test_refusal_without_a_problem(self) -> None:
        with self.assertRaises(holdfast.InvalidRequestError) as caught:
            self.script(answer(400, ["no problem"])).memories.get("mem_1")
        self.assertEqual((caught.exception.code, caught.exception.retryable), ("HTTP_400", False))


class TestSecrets(ScriptedCase):
    def test_redirect_is_not_followed(self) -> None:
        for status in (301, 302, 303, 307, 308):
            other = self.serve(answer(200, EVENT))
            client = self.script(answer(status, Location=other.url + "/v1/events/evt_1"))
            with self.assertRaises(holdfast.APIError) as caught:
                client.events.get("evt_1")
            self.assertEqual((caught.exception.code, other.seen), ("REDIRECTED", []))

    def test_api_key_is_in_no_text(self) -> None:
        client = self.script(cut, problem(401, "INVALID_API_KEY"), max_retries=1)
        texts = [repr(client), str(client), repr(client._caller), repr(vars(client))]
        try:
            client.add("a", user_id="ada")
        except holdfast.HoldfastError as caught:
            texts += [str(caught), repr(caught), repr(vars(caught)), "".join(traceback.format_exc())]
        with self.assertRaises(ValueError) as wrong:
            holdfast.Client("http://127.0.0.1:1", API_KEY + "\nX-Other: 1")
        texts.append(repr(wrong.exception))
        self.assertEqual([text for text in texts if "secretsecret" in text], [])
        self.assertEqual(self.server.seen[0].headers["Authorization"], "Bearer " + API_KEY)

    def test_client_cannot_be_pickled(self) -> None:
        with self.assertRaisesRegex(TypeError, "API key"):
            pickle.dumps(self.script())

    def test_header_values_of_callers_cannot_add_headers(self) -> None:
        client = self.script()
        for call in (
            lambda: client.add("a", user_id="ada", key="k\r\nX-Other: 1"),
            lambda: client.events.by_key("k 1"),
            lambda: client.items.search("ada\r\nX-Other: 1", "q"),
        ):
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertNotIn("X-Other", str(caught.exception))
        self.assertEqual(self.server.seen, [])

    def test_base_url(self) -> None:
        for url in ("ftp://a", "memory.example", "http://user:pw@a", "http://a?b=1", "http://a#b", ""):
            with self.assertRaises(ValueError) as caught:
                holdfast.Client(url, API_KEY)
            self.assertNotIn("pw", str(caught.exception))


class TestConnections(ScriptedCase):
    def test_connection_is_used_again(self) -> None:
        ports = []

        def remember(handler: Handler) -> None:
            ports.append(handler.client_address)
            answer(200, EVENT)(handler)

        client = self.script(*[remember] * 3)
        for _ in range(3):
            client.events.get("evt_1")
        self.assertEqual(len(set(ports)), 1)

    def test_kept_connection_that_was_closed_is_replaced_without_a_pause(self) -> None:
        def answer_and_hang_up(handler: Handler) -> None:
            answer(200, EVENT)(handler)
            handler.close_connection = True

        client = self.script(answer_and_hang_up, answer(202, RECEIPT))
        client.events.get("evt_1")
        client.add("a", user_id="ada")
        self.assertEqual((len(self.server.seen), self.clock.slept), (2, []))

    def test_kept_connection_without_a_successor_leaves_the_outcome_open(self) -> None:
        def answer_and_stop(handler: Handler) -> None:
            answer(200, EVENT)(handler)
            handler.server.socket.shutdown(socket.SHUT_RDWR)  # nobody is let in any more

        client = self.script(answer_and_stop, cut)
        client.events.get("evt_1")
        with self.assertRaises(holdfast.OutcomeUnknownError):
            client.add("a", user_id="ada")
        self.assertEqual(len(self.server.seen), 2, "the request had arrived on the kept connection")

    def test_threads_share_a_client(self) -> None:
        client = self.script(*[answer(200, EVENT)] * 40)
        found = []
        threads = [threading.Thread(target=lambda: [found.append(client.events.get("evt_1").id) for _ in range(5)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(found, ["evt_1"] * 40)

    def test_download_that_is_cut_is_an_error(self) -> None:
        def cut_off(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b"5\r\nhello\r\n")
            handler.close_connection = True

        def short(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", "10")
            handler.end_headers()
            handler.wfile.write(b"hello")
            handler.close_connection = True

        for step in (cut_off, short):
            pieces = self.script(problem(503, "UNAVAILABLE", True), step).exports.read("evt_1")
            self.assertEqual(next(pieces), b"hello")
            with self.assertRaises(holdfast.NetworkError) as caught:
                next(pieces)
            self.assertEqual(caught.exception.code, "NETWORK", "it is told before the footer is missed")

    def test_snapshot_without_its_footer_is_cut_off(self) -> None:
        def body(text: bytes) -> Step:
            def step(handler: Handler) -> None:
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(text)))
                handler.end_headers()
                handler.wfile.write(text)
            return step

        header, footer = b'{"type":"header"}\n', b'{"type":"footer","memories":0}\n'
        client = self.script(body(header + footer), body(header), body(header + footer[:-1]), body(b""))
        self.assertEqual(b"".join(client.exports.read("evt_1")), header + footer)
        for _ in range(3):
            with self.assertRaises(holdfast.NetworkError) as caught:
                list(client.exports.read("evt_1"))
            self.assertEqual(caught.exception.code, "CUT_OFF")


class TestErrors(unittest.TestCase):
    def test_errors_survive_copies(self) -> None:
        for cls in (holdfast.RateLimitedError, holdfast.WaitTimeoutError, holdfast.EventFailedError, holdfast.RequestTimeoutError):
            error = cls("Words.", code="CODE", status=429, request_id="r", retry_after=2.0, key="k")
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertEqual((str(other), other.retry_after, other.key), ("Words. (CODE, HTTP 429, request r)", 2.0, "k"))

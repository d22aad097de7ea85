"""What needs no broker."""

import json
import unittest
from typing import Any

from concord_agent import Agent, ConcordError, Message, RequestError
from concord_agent.encoding import CONTENT_ENCODING, EXPANDED_BYTES_MAX, compressed, plain
from concord_agent.encoding import _ZSTD as zstd
from concord_agent.errors import result_of
from concord_agent.message import answer_id, envelope, subject

GOOD = {
    "message_id": "m-1",
    "timestamp": "2026-11-21T20:15:00.000Z",
    "from_agent": "ann",
    "to_agent": "ben",
    "message_type": "question",
    "payload": {"x": 1},
    "metadata": {"confidence": 1, "source": "API"},
    "reply_to": None,
    "x_unknown": [1],
}
GOOD_ID = {"message_id": "m-1", "timestamp": "2026-11-21T20:15:00.000Z"}
SUBJECT = "concord.v1.msg._.ann.ben.question"


class Messages(unittest.TestCase):
    def test_an_envelope_is_read_with_what_is_unknown(self) -> None:
        message = Message.decode(json.dumps(GOOD).encode(), SUBJECT)
        self.assertEqual((message.from_agent, message.priority, message.confidence), ("ann", "normal", 1.0))
        self.assertEqual((message.raw["x_unknown"], message.metadata["source"]), ([1], "API"))

    def test_what_is_no_envelope_is_refused(self) -> None:
        for change in ({"payload": []}, {"message_id": None}, {"message_type": None}):
            with self.assertRaises(ValueError):
                Message.decode(json.dumps(GOOD | change).encode(), SUBJECT)
        for data in (b"", b"hello", b"[]", b"\xff"):
            with self.assertRaises(ValueError):
                Message.decode(data, SUBJECT)

    def test_what_says_otherwise_than_its_subject_is_refused(self) -> None:
        inside = SUBJECT.replace("._.", ".c-1.")
        for subject, case_id, read in ((SUBJECT, None, None), (inside, "c-1", "c-1"), (inside, None, "c-1")):
            message = Message.decode(json.dumps(GOOD | {"case_id": case_id}).encode(), subject)
            self.assertEqual(message.case_id, read)
        for subject, name, value in (
            (SUBJECT, "from_agent", "coordinator"),
            (SUBJECT, "from_agent", ["ann"]),
            (SUBJECT, "to_agent", "_all"),
            (SUBJECT, "message_type", "task_assignment"),
            # The dialect `exchange` has four types, which stand for others.
            (SUBJECT, "message_type", "notification"),
            (SUBJECT, "case_id", "c-1"),
            (SUBJECT, "case_id", "_"),
            (inside, "case_id", "c-2"),
        ):
            with self.assertRaisesRegex(ValueError, name):
                Message.decode(json.dumps(GOOD | {name: value}).encode(), subject)
        with self.assertRaises(ValueError):
            Message.decode(json.dumps(GOOD).encode(), "_INBOX.ben.1")

    def test_what_cannot_be_answered_because_of_its_names_is_refused(self) -> None:
        for subject, change in (
            (SUBJECT.replace("._.", "._x."), {}),
            (SUBJECT.replace("ann", "ü"), {"from_agent": "ü"}),
            (SUBJECT.replace("ann", "_all"), {"from_agent": "_all"}),
        ):
            with self.assertRaisesRegex(ValueError, "case_id|from_agent"):
                Message.decode(json.dumps(GOOD | change).encode(), subject)

    def test_nobody_is_another_in_any_dialect(self) -> None:
        for said in (
            {"sender": "coordinator", "recipients": ["ben"], "messageType": "question", "content": "{}"},
            {"sender_id": "coordinator", "receiver_id": "ben", "message_type": "REQUEST", "payload": {}},
            {"from_agent": "coordinator", "to_agent": "ben", "message_type": "challenge", "content": "No."},
            {"source_agent_id": "coordinator", "target_agent_id": "ben", "interaction_type": "QUERY", "content": "?"},
            {"from_agent": "coordinator", "to_agent": "ben", "message_type": "request", "payload": {}},
        ):
            with self.assertRaises(ValueError):
                Message.decode(json.dumps(GOOD_ID | said).encode(), SUBJECT)

    def test_a_message_belongs_on_its_subject(self) -> None:
        said = envelope("ann", "_all", "alert", {}, case_id="c-1", priority="critical", confidence=0.5, reply_to=None)
        self.assertEqual(subject("concord", said), "concord.v1.urgent.c-1.ann._all.alert")
        self.assertEqual(said["metadata"], {"version": "1.0", "confidence": 0.5})
        self.assertNotIn("reply_to", said)

    def test_the_id_of_an_answer_fits(self) -> None:
        self.assertEqual(answer_id("q-1", "ann"), "q-1-ann")
        self.assertEqual(answer_id("q" * 120, "a" * 64), answer_id("q" * 120, "a" * 64))
        self.assertLessEqual(len(answer_id("q" * 120, "a" * 64)), 128)


class Agents(unittest.IsolatedAsyncioTestCase):
    async def test_who_is_not_connected_cannot_speak(self) -> None:
        with self.assertRaises(ConcordError):
            await Agent("ann").send("ben", "status", {})

    async def test_a_status_that_nobody_knows_is_no_heartbeat(self) -> None:
        agent = Agent("ann")
        for status in ("on holiday", "", None):
            with self.assertRaisesRegex(ValueError, "status is one of available, busy, unavailable"):
                await agent.status(status)  # type: ignore[arg-type]
        self.assertEqual(agent._status, "available")
        with self.assertRaises(ConcordError):
            await agent.status("Busy")
        self.assertEqual(agent._status, "busy")

    async def test_a_card_that_is_refused_spoils_none_of_the_next(self) -> None:
        agent, asked = Agent("ann", skills=[{"name": "tax"}]), []

        async def request(_to: str, _action: str, card: dict[str, Any]) -> None:
            asked.append(card)
            if card.get("capacity") == "many":
                raise RequestError("INVALID_REQUEST", "It is no number.")

        agent.request = request  # type: ignore[method-assign, assignment]
        with self.assertRaises(RequestError):
            await agent.update(capacity="many")
        await agent.update(domains=["law"])
        await agent.update(capacity=2)
        whole = {"agent_id": "ann", "skills": [{"name": "tax"}], "encodings": asked[0]["encodings"]}
        self.assertEqual(asked[1:], [whole | {"domains": ["law"]}, whole | {"domains": ["law"], "capacity": 2}])

    def test_an_error_says_how_to_mend_it(self) -> None:
        error = RequestError.of({"error_code": "TIMEOUT", "error_message": "Late.", "recovery_suggestions": ["Wait."]})
        self.assertEqual((error.code, error.recovery_suggestions, str(error)), ("TIMEOUT", ["Wait."], "TIMEOUT: Late. Wait."))
        self.assertEqual(RequestError.of({}).code, "INTERNAL_ERROR")

    def test_an_error_says_where_as_the_command_does(self) -> None:
        report = {"error_code": "INVALID_REQUEST", "error_message": "It is blank."}
        for pointer, advice, expected in (
            ("/payload/evidence/4", ["Say it.", "Or not."], "INVALID_REQUEST at /payload/evidence/4: It is blank. Say it. Or not."),
            ("/payload/evidence/4", [], "INVALID_REQUEST at /payload/evidence/4: It is blank."),
            ("", ["Say it."], "INVALID_REQUEST: It is blank. Say it."),
            (None, "Say it.", "INVALID_REQUEST: It is blank."),
            (7, ["Say it. " * 100], "INVALID_REQUEST: It is blank."),
        ):
            error = RequestError.of(report | {"details": {"pointer": pointer}, "recovery_suggestions": advice})
            self.assertEqual((str(error), error.message), (expected, "It is blank."))


class Encodings(unittest.TestCase):
    def test_a_body_is_read_as_it_was_written(self) -> None:
        gzip = {CONTENT_ENCODING: "gzip"}
        for body, headers in (
            (b"{}", None),
            (b"{}", {}),
            (compressed(b"{}"), gzip),
            (compressed(b"{") + compressed(b"}"), gzip),
        ):
            self.assertEqual(plain(body, headers), b"{}")
        most = b" " * EXPANDED_BYTES_MAX
        self.assertEqual(plain(compressed(most), gzip), most)

    def test_what_is_too_large_unknown_or_cut_short_is_refused(self) -> None:
        most = compressed(b" " * EXPANDED_BYTES_MAX)
        whole = compressed(b"a body that is long enough to be cut")
        for body, encoding, why in (
            (compressed(b" " * 100 * EXPANDED_BYTES_MAX), "gzip", "more than"),
            (most + compressed(b" "), "gzip", "more than"),
            (whole[:-1], "gzip", "not all"),
            (whole[:9], "gzip", "not all"),
            (whole + b"rest", "gzip", "it is not gzip"),
            (b"{}", "gzip", "it is not gzip"),
            (compressed(b"") * 50_000, "gzip", "parts"),
            (b"{}", "br", "not read here"),
        ):
            with self.assertRaisesRegex(ValueError, why):
                plain(body, {CONTENT_ENCODING: encoding})

    @unittest.skipIf(zstd is None, "zstd is not installed, which Python has from 3.14 on")
    def test_zstd_is_read_where_it_is_installed(self) -> None:
        def written(body: bytes) -> bytes:
            return zstd.compress(body)

        most = b" " * EXPANDED_BYTES_MAX
        for body, whole in ((written(b"{}"), b"{}"), (written(b"{") + written(b"}"), b"{}"), (written(most), most)):
            self.assertEqual(plain(body, {CONTENT_ENCODING: "zstd"}), whole)
        whole = written(b"a body that is long enough to be cut")
        for body, why in (
            (written(b" " * 100 * EXPANDED_BYTES_MAX), "more than"),
            (written(most) + written(b" "), "more than"),
            (whole[:-1], "not all"),
            (whole + b"rest", "it is not zstd"),
            (written(b"") * 100_000, "parts"),
            (b"{}", "it is not zstd|not all"),
        ):
            with self.assertRaisesRegex(ValueError, why):
                plain(body, {CONTENT_ENCODING: "zstd"})

    @unittest.skipIf(zstd is not None, "zstd is installed")
    def test_zstd_is_refused_with_what_to_do_where_it_is_not_installed(self) -> None:
        with self.assertRaisesRegex(ValueError, r"not read here; install concord-agent\[zstd\]"):
            plain(b"{}", {CONTENT_ENCODING: "zstd"})


class Answers(unittest.TestCase):
    def test_a_failure_of_any_form_is_one(self) -> None:
        for kind, payload, why in (
            ("error", {"error_code": "NO_GPU", "error_message": "Busy."}, "Busy."),
            ("error", {"content": "In words."}, "In words."),
            ("error", {"what": 1}, '{"what": 1}'),
            ("response", {"status": "failure", "errors": [{"code": "X"}, "No."]}, '{"code": "X"}; No.'),
            ("response", {"status": "failure", "errors": "No."}, "No."),
            ("response", {"status": "failure", "errors": None}, "It failed."),
        ):
            answer = Message.of(GOOD | {"message_type": kind, "payload": payload})
            with self.assertRaises(RequestError) as raised:
                result_of(answer)
            self.assertEqual(raised.exception.message, why)


if __name__ == "__main__":
    unittest.main()

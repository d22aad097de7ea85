"""Questions to the group, without a broker."""

import asyncio
import unittest
from collections.abc import Awaitable, Callable
from typing import Any

from concord_agent import Agent
from concord_agent.errors import RequestError, result_of
from concord_agent.message import Message
from concord_agent.waiting import Waiting
from concord_agent.waking import awake, event_of


def said(message_type: str, to: str, **payload: Any) -> dict[str, Any]:
    """An envelope of the user, or of the adapter where it is a notification."""
    sender = "agent-adapter" if message_type == "notification" else "user"
    names = ("message_id", "timestamp", "from_agent", "to_agent", "message_type", "payload")
    values = ("m-1", "2026-11-21T20:00:00Z", sender, to, message_type, payload)
    return dict(zip(names, values, strict=True))


def woken(message: Any, event: str = "woken") -> Message:
    """The notification that a message woke ann."""
    data = {"reason": "semantic:tax", "score": 0.98, "context": [], "message": message}
    return Message.of(said("notification", "ann", event=event, data=data))


class Waking(unittest.TestCase):
    def heard(self, message: Message, hears_all: tuple[str, ...] = ()) -> Message | None:
        return awake(message, "ann", {"group_query": None}, set(hears_all))

    def test_a_question_is_handled_when_it_has_woken_the_agent(self) -> None:
        question = said("group_query", "_all", content="Who bears the tax?")
        self.assertIsNone(self.heard(Message.of(question)))
        handled = self.heard(woken(question))
        assert handled is not None
        self.assertEqual((handled.message_id, handled.from_agent), ("m-1", "user"))
        self.assertEqual(handled.woken, {"reason": "semantic:tax", "score": 0.98, "context": []})

    def test_a_question_to_the_agent_itself_is_handled_at_once(self) -> None:
        handled = self.heard(Message.of(said("group_query", "ann")))
        assert handled is not None
        self.assertIsNone(handled.woken)

    def test_who_hears_everything_handles_it_once(self) -> None:
        question = said("group_query", "_all")
        self.assertIsNotNone(self.heard(Message.of(question), ("group_query",)))
        self.assertIsNone(self.heard(woken(question), ("group_query",)))
        # What is said to whoever can help is not heard otherwise.
        self.assertIsNotNone(self.heard(woken(said("group_query", "_any")), ("group_query",)))

    def test_other_notifications_are_handled_as_such(self) -> None:
        for other in (
            woken(None),
            woken({"message_id": 7}),
            woken(said("info_update", "_all")),
            woken(said("peer_request", "_any")),
            woken(said("group_query", "_any"), event="lunch"),
        ):
            self.assertIs(self.heard(other), other)
        forged = Message.of(said("notification", "ann") | {"from_agent": "eve", "payload": woken(said("group_query", "_any")).payload})
        self.assertIs(self.heard(forged), forged)


class Answering(unittest.IsolatedAsyncioTestCase):
    """What is published while a question is handled."""

    async def asyncSetUp(self) -> None:
        self.ann, self.ben = Agent("ann"), Agent("ben")
        self.published: list[dict[str, Any]] = []

        async def publish(said: dict[str, Any]) -> None:
            self.published.append(said)

        for agent in (self.ann, self.ben):
            agent._publish = publish  # type: ignore[method-assign]

    async def handled(self, question: dict[str, Any], handler: Callable[[Message], Awaitable[object]]) -> list[Any]:
        """Where what ann's handler publishes about a question goes, and what it answers."""

        async def handle(message: Message) -> None:
            await handler(message)

        self.published.clear()
        await asyncio.create_task(self.ann._handle(handle, Message.of(question)))
        return [(said["to_agent"], said.get("reply_to"), said.get("case_id")) for said in self.published]

    async def test_a_result_answers_the_question_that_is_handled(self) -> None:
        question = said("group_query", "_all") | {"case_id": "c-1"}

        async def publish(_: Message) -> None:
            await self.ann.publish_task_result("Yes.", "c-1")
            # A task of the handler answers as well.
            await asyncio.create_task(self.ann.publish_task_result("Yes.", "c-1", reply_to="m-1"))

        self.assertEqual(await self.handled(question, publish), [("user", "m-1", "c-1")] * 2)

        async def publish_elsewhere(_: Message) -> None:
            await self.ann.publish_task_result("Yes.", "c-2")
            await self.ann.publish_task_result("Yes.", "c-1", to="zoe")
            await self.ann.publish_task_result("Yes.", "c-1", reply_to="m-2")
            await self.ben.publish_task_result("Yes.", "c-1")

        expected = [("_all", None, "c-2"), ("zoe", None, "c-1"), ("_all", "m-2", "c-1"), ("_all", None, "c-1")]
        self.assertEqual(await self.handled(question, publish_elsewhere), expected)

    async def test_help_is_asked_for_where_something_is_handled(self) -> None:
        for case_id in ("c-1", None):
            heard = said("info_update", "ann") | {"case_id": case_id}
            asked = await self.handled(heard, lambda _: self.ann.request_group_help("Who knows?"))
            self.assertEqual(asked, [("_all", None, case_id)])
            elsewhere = await self.handled(heard, lambda _: self.ann.request_group_help("Who knows?", "c-2"))
            self.assertEqual(elsewhere, [("_all", None, "c-2")])
            of_another = await self.handled(heard, lambda _: self.ben.request_group_help("Who knows?"))
            self.assertEqual(of_another, [("_all", None, None)])

    async def test_what_is_no_question_is_not_answered(self) -> None:
        for message_type in ("expertise_offer", "info_update", "task_assignment"):
            offer = said(message_type, "_all")
            self.assertEqual(
                await self.handled(offer, lambda _: self.ann.publish_task_result("Yes.", "c-1")), [("_all", None, "c-1")]
            )


class Ending(unittest.IsolatedAsyncioTestCase):
    async def test_a_question_waits_for_the_coordinator_and_not_for_each_answer(self) -> None:
        waiting = Waiting()
        answer = waiting.begin("m-1", frozenset({"coordinator"}))
        request = waiting.begin("m-2")

        def response(sender: str, asked: str) -> Message:
            return Message.of(said("response", "ann") | {"from_agent": sender, "reply_to": asked})

        self.assertFalse(waiting.hand_over(response("eve", "m-1")))
        self.assertFalse(waiting.waits_for(response("eve", "m-1")))
        self.assertTrue(waiting.hand_over(response("coordinator", "m-1")))
        self.assertTrue(waiting.hand_over(response("eve", "m-2")))
        self.assertEqual(((await answer).from_agent, (await request).from_agent), ("coordinator", "eve"))
        for asked in ("m-1", "m-2"):
            waiting.end(asked)
        self.assertFalse(waiting.hand_over(response("coordinator", "m-1")))

    async def test_a_request_ends_with_whatever_answers_it_for_the_coordinator(self) -> None:
        for sender, kind, payload, ends in (
            ("eve", "response", {}, True),
            ("eve", "error", {}, True),
            ("eve", "task_result", {"content": "Yes."}, True),
            ("eve", "refuse", {"why": "Not my field."}, True),
            ("eve", "notification", {"event": "complete"}, True),
            ("eve", "notification", {"event": "progress"}, False),
            ("coordinator", "notification", {"event": "task_completed"}, False),
            ("eve", "acknowledgement", {}, False),
        ):
            waiting = Waiting()
            waiting.begin("m-1")
            message = Message.of(said(kind, "ann", **payload) | {"from_agent": sender, "reply_to": "m-1"})
            self.assertEqual(waiting.waits_for(message), ends, (sender, kind))
            self.assertEqual(waiting.hand_over(message), ends, (sender, kind))
        refused = Message.of(said("refuse", "ann", why="Not my field."))
        with self.assertRaisesRegex(RequestError, "Not my field"):
            result_of(refused)

    def test_a_notification_of_a_service_has_a_handler_of_its_own(self) -> None:
        told = said("notification", "ann", event="stand_down", data={"question": "m-1"})
        for sender, event, expected in (
            ("coordinator", "stand_down", "stand_down"),
            ("coordinator", "debate_concluded", "debate_concluded"),
            ("debate-facilitator", "credibility_changed", "credibility_changed"),
            ("eve", "stand_down", None),
            ("coordinator", "lunch", None),
            ("debate-facilitator", "memory_sync", None),
        ):
            message = Message.of(told | {"from_agent": sender, "payload": {"event": event}})
            self.assertEqual(event_of(message), expected, (sender, event))


if __name__ == "__main__":
    unittest.main()

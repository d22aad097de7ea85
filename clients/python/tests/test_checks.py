"""What is refused before it is said, without a broker."""

import asyncio
import unittest
from typing import Any

from concord_agent import Agent
from concord_agent.message import Message

#: Longer than anything here takes.
PATIENCE = 10.0
REQUEST = Message("m-1", "2026-11-21T20:15:00.000Z", "ben", "ann", "request", {"action": "help"})


class Checks(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.ann, self.said = Agent("ann"), list[dict[str, Any]]()

        async def publish(said: dict[str, Any], *, awaited: bool = False) -> None:
            self.said.append(said)
            raise ConnectionError("there is no broker")

        self.ann._publish = publish  # type: ignore[method-assign]

    async def test_a_text_is_no_list_of_its_letters(self) -> None:
        for name, call in (
            ("tags", lambda: self.ann.memory.put("margin", 1, 0.5, tags="margins")),
            ("evidence", lambda: self.ann.memory.put("margin", 1, 0.5, evidence="10-K page 45")),
            ("preferred_agents", lambda: self.ann.ask_group("Who knows?", preferred_agents="ben")),
            ("preferred_agents", lambda: self.ann.request_peer_help("Who knows?", "c-1", "ben")),
            ("suggestions", lambda: self.ann.refuse(REQUEST, "INVALID_REQUEST", "No.", "Ask ben.")),
        ):
            with self.assertRaisesRegex(TypeError, rf"{name}=\['"):
                await call()
        self.assertEqual(self.said, [])

    async def test_any_other_sequence_is_one(self) -> None:
        for given in (["tax"], ("tax",), {"tax"}):
            with self.assertRaises(ConnectionError):
                await self.ann.memory.put("margin", 1, 0.5, tags=given)
            self.assertEqual(self.said.pop()["payload"]["parameters"]["tags"], ["tax"])

    async def test_a_number_that_json_does_not_have_is_refused(self) -> None:
        ann = Agent("ann")
        for wrong in (float("nan"), float("inf"), -float("inf")):
            for call in (
                ann.send("ben", "info_update", {"margins": [{"at": wrong}]}),
                ann.request("ben", "price", {"margins": [{"at": wrong}]}, timeout=PATIENCE),
                ann.query_service("coordinator", "memory", {"margins": [{"at": wrong}]}),
            ):
                with self.assertRaisesRegex(ValueError, r"margins/0/at .*(nan|inf)"):
                    await call
        with self.assertRaisesRegex(ValueError, "confidence"):
            await ann.send("ben", "info_update", {}, confidence=float("nan"))
        itself: dict[str, Any] = {}
        itself["itself"] = itself
        with self.assertRaisesRegex(ValueError, "Circular"):
            await ann.send("ben", "info_update", itself)

    async def test_such_an_answer_to_a_request_of_a_batch_is_told_of_and_the_others_are_given(self) -> None:
        parts = [{"action": "price", "parameters": {"is": price}} for price in (1.0, float("nan"))]
        payload = {"action": "batch", "parameters": {"requests": parts}}
        agent, said = Agent("ann"), []

        async def answer(request: Message) -> None:
            await agent.respond(request, {"price": request.payload["parameters"]["is"]})

        whole = agent.reply

        async def reply(message: Message, message_type: str, payload: dict[str, Any], **fields: Any) -> str:
            if message.message_id == "m-1":
                said.append(payload)
                return "m-2"
            return await whole(message, message_type, payload, **fields)

        agent.reply = reply  # type: ignore[method-assign, assignment]
        batch = Message("m-1", REQUEST.timestamp, "ben", "ann", "request", payload, requires_response=True)
        await asyncio.wait_for(agent._work_on(answer, batch), PATIENCE)
        responses = said[0]["result"]["responses"]
        self.assertEqual([one["status"] for one in responses], ["success", "failure"], responses)
        self.assertIn("ValueError", responses[1]["errors"][0])

    async def test_a_name_that_nobody_can_have_is_refused(self) -> None:
        for name, why in (
            ("a.b", "has '.'"),
            ("a b", "has ' '"),
            ("ü", "has 'ü'"),
            ("ann\n", r"has '\\n'"),
            ("*", r"has '\*'"),
            ("", "is empty"),
            ("a" * 65, "has 65 characters"),
            ("_mine", "underscore"),
        ):
            with self.assertRaisesRegex(ValueError, f"agent_id .*{why}"):
                Agent(name)
            with self.assertRaisesRegex(ValueError, f"prefix .*{why}"):
                Agent("ann", prefix=name)
            for field, call in (
                ("to_agent", lambda name=name: self.ann.send(name, "info_update", {})),
                ("message_type", lambda name=name: self.ann.send("ben", name, {})),
                ("case_id", lambda name=name: self.ann.request("ben", "help", case_id=name)),
                ("case_id", lambda name=name: self.ann.offer_expertise("Tax.", name)),
                ("case_id", lambda name=name: self.ann.memory.put("margin", 1, 0.5, case_id=name)),
            ):
                with self.assertRaisesRegex(ValueError, f"{field} .*{why}"):
                    await call()
        self.assertEqual(self.said, [])
        with self.assertRaisesRegex(TypeError, "to_agent"):
            await self.ann.send(REQUEST, "info_update", {})  # type: ignore[arg-type]

    async def test_the_name_of_a_service_is_no_name_of_an_agent(self) -> None:
        for name in ("coordinator", "agent-adapter", "_all", "_any", "_"):
            with self.assertRaises(ValueError):
                Agent(name)

    async def test_any_other_name_is_one(self) -> None:
        for name in ("a", "-", "A_1-b_", "a" * 64):
            for to in (name, "_all", "_any", "coordinator"):
                with self.assertRaises(ConnectionError):
                    await self.ann.send(to, "my_own_type", {}, case_id=name)
            self.assertEqual(Agent(name).agent_id, name)


if __name__ == "__main__":
    unittest.main()

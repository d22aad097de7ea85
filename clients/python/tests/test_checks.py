"""What is refused before it is said, without a broker."""

import unittest
from typing import Any

from concord_agent import Agent
from concord_agent.message import Message

REQUEST = Message("m-1", "2026-11-21T20:15:00.000Z", "ben", "ann", "request", {"action": "help"})


class Checks(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.ann, self.said = Agent("ann"), list[dict[str, Any]]()

        async def publish(said: dict[str, Any]) -> None:
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


if __name__ == "__main__":
    unittest.main()

"""An agent that connects with the credentials of another, with a real nats-server."""

import unittest

import nats
from broker import Broker

from concord_agent import Agent, ConcordError, RequestTimeout

#: Eva may not speak as ann; the deaf one may, and hears no answers.
USERS = """authorization { users: [
  { user: operator, password: o }
  { user: eva, password: e, permissions: { publish: "concord.v1.msg.*.eva.>", subscribe: "_INBOX.>" } }
  { user: deaf, password: d, permissions: { publish: ">", subscribe: "_INBOX.>" } }
] }"""


class Forbidden(unittest.IsolatedAsyncioTestCase):
    async def test_who_is_not_answered_is_told_what_the_broker_has_forbidden(self) -> None:
        with Broker(USERS) as broker, self.assertLogs("concord_agent"):
            operator = await nats.connect(broker.url, user="operator", password="o")
            try:
                await operator.jetstream().add_stream(name="CONCORD_MESSAGES", subjects=["concord.v1.msg.>"])
                async with await Agent("ann").connect(broker.url, user="deaf", password="d") as ann:
                    with self.assertRaises(RequestTimeout) as unanswered:
                        await ann.request("ben", "help", timeout=0.2)
                async with await Agent("ann").connect(broker.url, user="eva", password="e") as ann:
                    with self.assertRaises(ConcordError) as unheard:
                        await ann.send("ben", "info_update", {})
                async with await Agent("ann").connect(broker.url, user="operator", password="o") as ann:
                    with self.assertRaises(RequestTimeout) as nobody:
                        await ann.request("ben", "help", timeout=0.2)
            finally:
                await operator.close()
        for word in ("gave no answer within 0.2 s", "permissions violation for subscription", "concord permissions ann"):
            self.assertIn(word, str(unanswered.exception))
        for word in ("permissions violation for publish", "concord.v1.msg._.ann.ben.info_update", "concord permissions ann"):
            self.assertIn(word, str(unheard.exception))
        self.assertNotIn("permissions", str(nobody.exception))


if __name__ == "__main__":
    unittest.main()

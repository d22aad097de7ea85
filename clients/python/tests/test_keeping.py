"""Durable inboxes, with a real broker: they are made again when they are gone, and asked for many messages at once."""

import asyncio
import json
import unittest
from typing import Any

import nats
from broker import Broker
from nats.aio.msg import Msg
from test_closing import PATIENCE, streams

from concord_agent import Agent, Message
from concord_agent.pulling import CONCURRENT, Pulling


class Keeping(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.broker = self.enterContext(Broker())
        await streams(self.broker.url)
        self.client = await nats.connect(self.broker.url)
        self.addAsyncCleanup(self.client.close)
        self.stored = self.client.jetstream()

    async def say(self, message_id: str) -> None:
        said = {
            "message_id": message_id, "timestamp": "2026-01-01T00:00:00Z", "from_agent": "cat", "to_agent": "ann",
            "message_type": "request", "payload": {"action": "a", "parameters": {}},
        }
        await self.stored.publish("concord.v1.msg._.cat.ann.request", json.dumps(said).encode())

    async def listening(self) -> "asyncio.Queue[str]":
        ann, heard = Agent("ann", durable=True), asyncio.Queue[str]()

        @ann.on("request")
        async def hear(request: Message) -> None:
            heard.put_nowait(request.message_id)

        await ann.connect(self.broker.url)
        self.addAsyncCleanup(ann.close, 0.1)
        return heard

    async def hears(self, heard: "asyncio.Queue[str]", *ids: str) -> None:
        for message_id in ids:
            self.assertEqual(await asyncio.wait_for(heard.get(), PATIENCE), message_id)

    async def test_an_inbox_that_somebody_has_deleted_is_made_again(self) -> None:
        await self.say("m-before")
        heard = await self.listening()
        await self.say("m-0")
        await self.hears(heard, "m-0")
        with self.assertLogs("concord_agent", "WARNING"):
            await self.stored.delete_consumer("CONCORD_MESSAGES", "agent-ann")
            await self.say("m-1")
            await self.hears(heard, "m-1")
        await self.say("m-2")
        await self.hears(heard, "m-2")

    async def test_an_inbox_that_has_heard_nothing_yet_is_made_again(self) -> None:
        await self.say("m-before")
        heard = await self.listening()
        with self.assertLogs("concord_agent", "WARNING"):
            await self.stored.delete_consumer("CONCORD_MESSAGES", "agent-ann")
            await self.say("m-1")
            await self.hears(heard, "m-1")

    async def test_an_inbox_of_a_stream_that_is_made_anew_is_made_again(self) -> None:
        heard = await self.listening()
        await self.say("m-0")
        await self.hears(heard, "m-0")
        with self.assertLogs("concord_agent", "WARNING"):
            await self.stored.delete_stream("CONCORD_MESSAGES")
            await self.stored.add_stream(name="CONCORD_MESSAGES", subjects=["concord.v1.msg.>"])
            for number in range(3):
                await self.say(f"m-{number + 1}")
            await self.hears(heard, "m-1", "m-2", "m-3")

    async def requests(self) -> "asyncio.Queue[int]":
        """For how many messages ann asks, each time."""
        asked = asyncio.Queue[int]()

        async def ask(request: Msg) -> None:
            asked.put_nowait(json.loads(request.data)["batch"])

        await self.client.subscribe("$JS.API.CONSUMER.MSG.NEXT.CONCORD_MESSAGES.agent-ann", cb=ask)
        await self.client.flush()
        return asked

    async def test_many_messages_are_asked_for_at_once(self) -> None:
        asked = await self.requests()
        heard = await self.listening()
        ids = [f"m-{number}" for number in range(CONCURRENT)]
        for message_id in ids:
            await self.say(message_id)
        await self.hears(heard, *ids)
        # The broker has told of what was asked for before this.
        await self.client.flush()
        self.assertLess(asked.qsize(), 5)
        self.assertEqual(asked.get_nowait(), CONCURRENT)

    async def test_what_has_come_and_was_not_begun_is_given_back_when_an_inbox_closes(self) -> None:
        left: list[Any] = []
        back = asyncio.Event()

        def begin(delivery: Msg) -> asyncio.Task[None]:
            raise AssertionError(f"{delivery.subject} is begun")

        async def give_back(delivery: Msg) -> None:
            left.append(delivery)
            await delivery.nak()
            back.set()

        consumer = ("CONCORD_MESSAGES", "agent-ann", "concord.v1.msg.*.*.ann.*")
        pulling = Pulling(self.client, "ann", consumer, begin, give_back)
        asked = await self.requests()
        await pulling.open()
        await asyncio.wait_for(asked.get(), PATIENCE)
        # It comes while the inbox closes.
        pulling._closed = True
        await self.say("m-1")
        await asyncio.wait_for(pulling.close(), PATIENCE)
        self.assertEqual(len(left), 1, "it has come")
        # Long before the broker gives up on who has it.
        await self.hears(await self.listening(), "m-1")


if __name__ == "__main__":
    unittest.main()

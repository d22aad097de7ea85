"""Inboxes: durable ones, without a broker, and what a broker is told of the others."""

import asyncio
import unittest
from typing import Any
from unittest.mock import patch

from broker import Broker
from nats.errors import ConnectionClosedError

from concord_agent import Agent
from concord_agent.inbox import Inbox

#: Longer than anything here takes.
PATIENCE = 10.0


class Delivery:
    """A message that the broker has given out."""

    async def ack(self) -> None:
        """It is done with."""


class Working(unittest.IsolatedAsyncioTestCase):
    async def test_the_broker_is_told_again_that_a_message_is_worked_on_where_that_has_failed(self) -> None:
        told = asyncio.Event()

        class Lost(Delivery):
            """A message of which the broker is told at the second try."""

            failed = False

            async def in_progress(self) -> None:
                if not self.failed:
                    self.failed = True
                    raise ConnectionClosedError
                told.set()

        async def hear(_: Any) -> asyncio.Task[None]:
            async def handle() -> None:
                await asyncio.wait_for(told.wait(), PATIENCE)

            return asyncio.create_task(handle())

        inbox = Inbox(None, "concord", "ann", True, False, hear, hear, hear)  # type: ignore[arg-type]
        with patch("concord_agent.inbox.ACK_WAIT_SECONDS", 0.03), self.assertLogs("concord_agent") as logged:
            await inbox._work(Lost())  # type: ignore[arg-type]
        self.assertEqual(len(logged.output), 1, logged.output)
        self.assertIn("ann: the broker was not told that a message is being worked on", logged.output[0])


class Listening(unittest.IsolatedAsyncioTestCase):
    async def test_the_broker_has_every_subscription_before_an_agent_is_connected(self) -> None:
        said = bytearray()

        async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            from_broker, to_broker = await asyncio.open_connection("127.0.0.1", broker.port)

            async def answers() -> None:
                while answer := await from_broker.read(4096):
                    writer.write(answer)

            answering = asyncio.create_task(answers())
            while told := await reader.read(4096):
                said.extend(told)
                to_broker.write(told)
            answering.cancel()
            writer.close()
            to_broker.close()

        with Broker() as broker:
            async with await asyncio.start_server(between, "127.0.0.1") as server:
                port = server.sockets[0].getsockname()[1]
                async with await Agent("ann").connect(f"nats://127.0.0.1:{port}"):
                    # The broker does what it is told one after the other: it has answered the last, and knows of all before.
                    self.assertGreater(said.rfind(b"PING"), said.rfind(b"SUB "), said)


if __name__ == "__main__":
    unittest.main()

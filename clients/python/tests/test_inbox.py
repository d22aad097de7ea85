"""Durable inboxes, without a broker."""

import asyncio
import unittest
from typing import Any

from concord_agent.inbox import CONCURRENT, Inbox

#: Longer than anything here takes.
PATIENCE = 10.0


class Delivery:
    """A message that the broker has given out."""

    async def ack(self) -> None:
        """It is done with."""


class Coincidence:
    """A subscription that gives a message just when nobody wants one any more: `asyncio.wait_for` returns what has come in
    place of being cancelled. Once, so that the test itself can end."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.given = False

    async def fetch(self, count: int, timeout: float) -> list[Any]:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.given:
                raise
            self.given = True
            return [Delivery()] * count
        raise AssertionError("it waits until it is cancelled")


class Closing(unittest.IsolatedAsyncioTestCase):
    async def test_an_inbox_is_closed_though_a_message_comes_just_then(self) -> None:
        heard: list[Any] = []

        async def hear(delivery: Any, *_: Any) -> None:
            heard.append(delivery)

        inbox, subscription = Inbox(None, "concord", "ann", True, False, hear, hear), Coincidence()  # type: ignore[arg-type]
        inbox._pulls.append(asyncio.create_task(inbox._pull(subscription, asyncio.Semaphore(CONCURRENT))))  # type: ignore[arg-type]
        await asyncio.wait_for(subscription.asked.wait(), PATIENCE)
        await asyncio.wait_for(inbox.close(), PATIENCE)
        self.assertEqual(heard, [], "the broker keeps it")


if __name__ == "__main__":
    unittest.main()

"""Where an agent's messages come from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from .message import ALL

LANES = ("msg", "urgent")
STREAMS = {"msg": "MESSAGES", "urgent": "URGENT"}
#: Messages that are worked on at a time from a durable inbox, of each lane. The broker gives out a thousand; the others wait
#: here, so that an answer among them is found by the handler that waits for it.
CONCURRENT = 32
FETCH_SECONDS = 5.0
RETRY_SECONDS = 1.0
ACK_WAIT_SECONDS = 30.0
MOST_DELIVERIES = 5
log = logging.getLogger("concord_agent")


class Closing(Exception):
    """The agent goes, and has not begun with a message: the broker keeps it."""


class Seats:
    """Room for so many handlers; there is none any more once it is closed."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._closed = False

    def close(self) -> None:
        self._closed = True

    async def __aenter__(self) -> None:
        await self._free.acquire()
        if self._closed:
            self._free.release()
            raise Closing

    async def __aexit__(self, *_: object) -> None:
        self._free.release()


class Inbox:
    """Messages for one agent and for everyone: by plain subscriptions, or also by durable consumers."""

    def __init__(
        self, client: Client, prefix: str, agent_id: str, durable: bool, heard: Callable[..., Awaitable[None]]
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._agent_id = agent_id
        self._durable = durable
        self._heard = heard
        self._subscriptions: list[Subscription] = []
        self._pulls: list[asyncio.Task[None]] = []
        self._working: set[asyncio.Task[None]] = set()
        # Of each lane its own: slow work must not hold up what is urgent.
        self._seats = {lane: Seats(CONCURRENT) for lane in LANES}

    def _subject(self, lane: str, to: str) -> str:
        return f"{self._prefix}.v1.{lane}.*.*.{to}.*"

    async def open(self) -> None:
        """Listens: what is said after this returns is heard."""
        for lane in LANES:
            for to in (self._agent_id, ALL):
                if self._durable and to != ALL:
                    self._pulls.append(asyncio.create_task(self._pull(await self._consumer(lane), self._seats[lane])))
                else:
                    subscription = await self._client.subscribe(self._subject(lane, to), cb=self._heard)
                    self._subscriptions.append(subscription)
        await self._client.flush()

    async def close(self) -> None:
        """Hears nothing more. What is under way goes on; what was not acknowledged is delivered again."""
        for subscription in self._subscriptions:
            await subscription.unsubscribe()
        for seats in self._seats.values():
            seats.close()
        for pull in self._pulls:
            pull.cancel()
        await asyncio.gather(*self._pulls, return_exceptions=True)
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _consumer(self, lane: str) -> JetStreamContext.PullSubscription:
        stream = f"{self._prefix.upper()}_{STREAMS[lane]}"
        name = f"agent-{self._agent_id}"
        config = ConsumerConfig(
            durable_name=name,
            filter_subject=self._subject(lane, self._agent_id),
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy.NEW,
            ack_wait=ACK_WAIT_SECONDS,
            max_deliver=MOST_DELIVERIES,
        )
        context = self._client.jetstream()
        try:
            # One that is there already has its place in the stream, whoever made it.
            await context.consumer_info(stream, name)
        except NatsError:
            await context.add_consumer(stream, config)
        return await context.pull_subscribe_bind(name, stream)

    async def _pull(self, subscription: JetStreamContext.PullSubscription, seats: Seats) -> None:
        while True:
            try:
                [delivery] = await subscription.fetch(1, timeout=FETCH_SECONDS)
            except (NatsTimeoutError, asyncio.TimeoutError):
                continue
            except NatsError as why:
                log.warning("%s: no messages from the broker: %s", self._agent_id, why)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            task = asyncio.create_task(self._work(delivery, seats))
            self._working.add(task)
            task.add_done_callback(self._working.discard)

    async def _work(self, delivery: Msg, seats: Seats) -> None:
        alive = asyncio.create_task(self._keep_alive(delivery))
        try:
            await self._heard(delivery, seats)
            await delivery.ack()
        except Closing:
            log.debug("%s: a message is left to the broker", self._agent_id)
        except NatsError as why:
            log.warning("%s: a message was not acknowledged and will come again: %s", self._agent_id, why)
        finally:
            alive.cancel()

    async def _keep_alive(self, delivery: Msg) -> None:
        while True:
            await asyncio.sleep(ACK_WAIT_SECONDS / 3)
            await delivery.in_progress()

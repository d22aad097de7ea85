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

from .checks import ALL
from .ending import end, settle
from .waiting import ENDS

LANES = ("msg", "urgent")
STREAMS = {"msg": "MESSAGES", "urgent": "URGENT"}
#: Messages that are worked on at a time from a durable inbox, of each lane. The broker keeps the others.
CONCURRENT = 32
FETCH_SECONDS = 5.0
RETRY_SECONDS = 1.0
ACK_WAIT_SECONDS = 30.0
MOST_DELIVERIES = 5
log = logging.getLogger("concord_agent")


class Inbox:
    """Messages for one agent and for everyone: by plain subscriptions, or also by durable consumers.

    The consumers are the agent's own (`durable`), or have been made for it (`registered`): these the broker pushes.

    Beside a durable consumer answers are heard at once (`ahead`): behind messages whose handlers wait for them nobody would.
    """

    def __init__(
        self,
        client: Client,
        prefix: str,
        agent_id: str,
        durable: bool,
        registered: bool,
        heard: Callable[[Msg], Awaitable[asyncio.Task[None] | None]],
        ahead: Callable[[Msg], Awaitable[None]],
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._agent_id = agent_id
        self._durable = durable
        self._registered = registered
        self._heard = heard
        self._ahead = ahead
        self._subscriptions: list[Subscription] = []
        self._pushed: list[Subscription] = []
        self._pulls: list[asyncio.Task[None]] = []
        self._working: set[asyncio.Task[None]] = set()
        self._closed = False

    def _subject(self, lane: str, to: str, message_type: str = "*", sender: str = "*") -> str:
        return f"{self._prefix}.v1.{lane}.*.{sender}.{to}.{message_type}"

    async def open(self) -> None:
        """Listens: what is said after this returns is heard."""
        for lane in LANES:
            if self._durable or self._registered:
                for message_type in ENDS:
                    await self._subscribe(self._subject(lane, self._agent_id, message_type), self._ahead)
            if self._registered:
                pushed = f"_INBOX.{self._agent_id}.{self._prefix}.{lane}"
                for subject in (pushed, f"{pushed}.alerts"):
                    await self._take_pushed(subject)
            elif self._durable:
                # Each with seats of its own: neither a backlog nor slow work holds up what is urgent, or an alert.
                for name, subject in (
                    (f"agent-{self._agent_id}", self._subject(lane, self._agent_id)),
                    (f"alerts-{self._agent_id}", self._subject(lane, ALL, "alert", sender="coordinator")),
                ):
                    pull = self._pull(await self._consumer(lane, name, subject), asyncio.Semaphore(CONCURRENT))
                    self._pulls.append(asyncio.create_task(pull))
            else:
                await self._subscribe(self._subject(lane, self._agent_id), self._heard_plainly)
            await self._subscribe(self._subject(lane, ALL), self._heard_by_all)
        # nats-py writes the PING of a flush before what was to be written until then, so that only the second one comes behind it.
        await self._client.flush()
        await self._client.flush()

    async def pause(self) -> None:
        """Takes nothing more but answers that are waited for. What is under way goes on; what was not acknowledged is delivered again."""
        self._closed = True
        # `close` comes here again, and nats-py takes back no subscription twice.
        pushed, self._pushed = self._pushed, []
        for subscription in pushed:
            await subscription.unsubscribe()
        await end(self._pulls)
        # What was taken just before has begun after this.
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Hears nothing more."""
        await self.pause()
        for subscription in self._subscriptions:
            await subscription.unsubscribe()
        await settle(self._working)

    async def _take_pushed(self, subject: str) -> None:
        """Takes what the broker pushes from a consumer that was made for the agent; it bounds how much is under way."""
        seats = asyncio.Semaphore(CONCURRENT)

        async def begin(delivery: Msg) -> None:
            await seats.acquire()
            if self._closed:
                # The broker gives it out again.
                return
            task = asyncio.create_task(self._work(delivery, seats))
            self._working.add(task)
            task.add_done_callback(self._working.discard)

        subscription = await self._client.subscribe(subject, queue=self._agent_id, cb=begin)
        self._pushed.append(subscription)

    async def _subscribe(self, subject: str, heard: Callable[[Msg], Awaitable[object]]) -> None:
        self._subscriptions.append(await self._client.subscribe(subject, cb=heard))

    async def _heard_plainly(self, delivery: Msg) -> None:
        await (self._ahead if self._closed else self._heard)(delivery)

    async def _heard_by_all(self, delivery: Msg) -> None:
        # An alert that the coordinator tells comes by the durable consumer, where there is one.
        kept = self._durable or self._registered
        if not self._closed and not (kept and delivery.subject.endswith(f".coordinator.{ALL}.alert")):
            await self._heard(delivery)

    async def _consumer(self, lane: str, name: str, subject: str) -> JetStreamContext.PullSubscription:
        stream = f"{self._prefix.upper()}_{STREAMS[lane]}"
        config = ConsumerConfig(
            durable_name=name,
            filter_subject=subject,
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

    async def _pull(self, subscription: JetStreamContext.PullSubscription, seats: asyncio.Semaphore) -> None:
        # Being cancelled is not enough: where a message comes just then, it is returned instead.
        while not self._closed:
            # First a seat: what is not begun stays with the broker, and none of its few deliveries is spent on it.
            await seats.acquire()
            delivery = None
            try:
                delivery = await self._fetch(subscription)
            finally:
                if delivery is None:
                    seats.release()
            if delivery is not None:
                task = asyncio.create_task(self._work(delivery, seats))
                self._working.add(task)
                task.add_done_callback(self._working.discard)

    async def _fetch(self, subscription: JetStreamContext.PullSubscription) -> Msg | None:
        try:
            [delivery] = await subscription.fetch(1, timeout=FETCH_SECONDS)
        except (NatsTimeoutError, asyncio.TimeoutError):
            return None
        except NatsError as why:
            log.warning("%s: no messages from the broker: %s", self._agent_id, why)
            await asyncio.sleep(RETRY_SECONDS)
            return None
        return None if self._closed else delivery

    async def _work(self, delivery: Msg, seats: asyncio.Semaphore) -> None:
        alive = asyncio.create_task(self._keep_alive(delivery))
        try:
            handling = await self._heard(delivery)
            if handling is not None:
                # What is not handled is delivered again.
                await handling
            await delivery.ack()
        except NatsError as why:
            log.warning("%s: a message was not acknowledged and will come again: %s", self._agent_id, why)
        finally:
            alive.cancel()
            seats.release()

    async def _keep_alive(self, delivery: Msg) -> None:
        while True:
            await asyncio.sleep(ACK_WAIT_SECONDS / 3)
            try:
                await delivery.in_progress()
            except Exception as why:  # noqa: BLE001 - whatever it is, the next time may do.
                log.warning("%s: the broker was not told that a message is being worked on: %s", self._agent_id, why)

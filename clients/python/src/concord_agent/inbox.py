"""Where an agent's messages come from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from .checks import ALL
from .ending import settle
from .errors import ConcordError
from .pulling import ACK_WAIT_SECONDS, CONCURRENT, RETRY_SECONDS, Pulling
from .waiting import ENDS

LANES = ("msg", "urgent")
STREAMS = {"msg": "MESSAGES", "urgent": "URGENT"}
#: How often the coordinator is asked to acknowledge a message, while nobody does.
TELLINGS = 3
log = logging.getLogger("concord_agent")


class Inbox:
    """Messages for one agent and for everyone: by plain subscriptions, or also by durable consumers.

    The consumers are the agent's own (`durable`), or have been made for it (`registered`): these the broker pushes, and what comes from
    them is acknowledged by the coordinator (`acknowledge`), because the agent's user may ask JetStream for nothing.

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
        acknowledge: Callable[[Mapping[str, str]], Awaitable[object]],
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._agent_id = agent_id
        self._durable = durable
        self._registered = registered
        self._heard = heard
        self._ahead = ahead
        self._acknowledge = acknowledge
        self._subscriptions: list[Subscription] = []
        self._pushed: list[Subscription] = []
        self._pulled: list[Pulling] = []
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
                    stream = f"{self._prefix.upper()}_{STREAMS[lane]}"
                    consumer = (stream, name, subject)
                    pulling = Pulling(self._client, self._agent_id, consumer, self._begin, self._give_back)
                    self._pulled.append(pulling)
                    await pulling.open()
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
        pulled, self._pulled = self._pulled, []
        await asyncio.gather(*(pulling.close() for pulling in pulled))
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
            self._begin(delivery).add_done_callback(lambda _: seats.release())

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

    def _begin(self, delivery: Msg) -> asyncio.Task[None]:
        task = asyncio.create_task(self._work(delivery))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task

    async def _work(self, delivery: Msg) -> None:
        alive = asyncio.create_task(self._keep_alive(delivery))
        try:
            handling = await self._heard(delivery)
            if handling is not None:
                # What is not handled is delivered again.
                await handling
            await self._tell(delivery, "+ACK", TELLINGS)
        except asyncio.CancelledError:
            # Its handler was ended because the agent closes. Whoever is this agent next has it at once.
            await self._give_back(delivery)
            raise
        except (NatsError, ConcordError) as why:
            log.warning("%s: a message was not acknowledged and will come again: %s", self._agent_id, why)
        finally:
            alive.cancel()

    async def _tell(self, delivery: Msg, told: str, tries: int = 1) -> None:
        """Tells the broker that a message is dealt with (`+ACK`), comes again (`-NAK`), or is being worked on (`+WPI`)."""
        if not self._registered:
            await getattr(delivery, {"+ACK": "ack", "-NAK": "nak", "+WPI": "in_progress"}[told])()
            return
        while True:
            tries -= 1
            try:
                await self._acknowledge({"delivery": delivery.reply, "told": told})
                return
            except ConcordError:
                if not tries:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _give_back(self, delivery: Msg) -> None:
        try:
            await self._tell(delivery, "-NAK")
        except (NatsError, ConcordError) as why:
            log.warning("%s: a message was not given back and will come again later: %s", self._agent_id, why)

    async def _keep_alive(self, delivery: Msg) -> None:
        while True:
            await asyncio.sleep(ACK_WAIT_SECONDS / 3)
            try:
                await self._tell(delivery, "+WPI")
            except Exception as why:  # noqa: BLE001 - whatever it is, the next time may do.
                log.warning("%s: the broker was not told that a message is being worked on: %s", self._agent_id, why)

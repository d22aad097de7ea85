"""What the broker keeps for an agent in a durable consumer of its own, which it asks for."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, Header, StatusCode

from .ending import ENDS_WITHIN, end

#: Messages that are worked on at a time from a durable inbox, of each lane. The broker keeps the others.
CONCURRENT = 32
#: How long the broker keeps a request for messages while it has none.
EXPIRES_SECONDS = 5.0
#: A broker that says nothing for so long has lost the request, for example because it was restarted.
SILENCE_SECONDS = 6.0
RETRY_SECONDS = 1.0
ACK_WAIT_SECONDS = 30.0
MOST_DELIVERIES = 5
#: How a request for messages ends that has lasted as long as it may.
OVER = (StatusCode.REQUEST_TIMEOUT, StatusCode.NO_MESSAGES)
log = logging.getLogger("concord_agent")


class Pulling:
    """Asks one durable consumer for as many messages as can be begun at once, and begins each when it comes."""

    def __init__(
        self,
        client: Client,
        agent_id: str,
        consumer: tuple[str, str, str],
        begin: Callable[[Msg], asyncio.Task[None]],
        give_back: Callable[[Msg], Awaitable[None]],
    ) -> None:
        self._client = client
        self._agent_id = agent_id
        self._stream, self._name, self._subject = consumer
        self._begin = begin
        self._give_back = give_back
        self._worked_on = 0
        #: What the last request still waits for, where it was asked for, and why it has failed.
        self._awaited, self._asked_at, self._failed = 0, "", ""
        self._changed = asyncio.Event()
        self._closed = False
        #: What has come and is not begun any more.
        self._left: list[Msg] = []
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None
        #: Everything until then that is the agent's was given to it, by the clock of the broker.
        self._given_until = datetime.min.replace(tzinfo=UTC)

    async def open(self) -> None:
        """Makes the consumer if it is not there, and begins to ask."""
        self._given_until = given_until(await self._consumer(None))
        inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(f"{inbox}.*", cb=self._take)
        self._task = asyncio.create_task(self._pull(inbox))

    async def close(self) -> None:
        """Asks no more. What has come and was not begun is given back."""
        self._closed = True
        if self._task is not None:
            await end([self._task])
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await self._withdraw(subscription)
        # Only now: what was asked for last would be given out to this connection, also what it gives back.
        left, self._left = self._left, []
        for delivery in left:
            await self._give_back(delivery)

    async def _withdraw(self, subscription: Subscription) -> None:
        with suppress(NatsError, TimeoutError):
            if self._client.is_connected:
                async with asyncio.timeout(ENDS_WITHIN):
                    await subscription.drain()
            else:
                await subscription.unsubscribe()

    async def _consumer(self, since: datetime | None) -> ConsumerInfo:
        config = ConsumerConfig(
            durable_name=self._name,
            filter_subject=self._subject,
            ack_policy=AckPolicy.EXPLICIT,
            deliver_policy=DeliverPolicy.NEW if since is None else DeliverPolicy.BY_START_TIME,
            opt_start_time=since,
            ack_wait=ACK_WAIT_SECONDS,
            max_deliver=MOST_DELIVERIES,
        )
        context = self._client.jetstream()
        try:
            # One that is there already has its place in the stream, whoever made it.
            return await context.consumer_info(self._stream, self._name)
        except NatsError:
            return await context.add_consumer(self._stream, config)

    async def _pull(self, inbox: str) -> None:
        asked = 0
        while not self._closed:
            asked += 1
            try:
                await self._ask(f"{inbox}.{asked}")
            except NatsError as why:
                self._failed = str(why)
            if self._failed:
                log.warning("%s: no messages from the broker: %s", self._agent_id, self._failed)
                await asyncio.sleep(RETRY_SECONDS)
                await self._look_again()

    async def _ask(self, at: str) -> None:
        # What is asked for meanwhile would be sent together when there is a connection again.
        while not self._client.is_connected:
            await asyncio.sleep(RETRY_SECONDS)
        # First room: what is not begun stays with the broker, and none of its few deliveries is spent on it.
        while self._worked_on >= CONCURRENT:
            self._changed.clear()
            await self._changed.wait()
        self._awaited, self._asked_at, self._failed = CONCURRENT - self._worked_on, at, ""
        wanted = {"batch": self._awaited, "expires": int(EXPIRES_SECONDS * 1_000_000_000)}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        await self._client.publish(subject, json.dumps(wanted).encode(), reply=at)
        with suppress(TimeoutError):
            while self._awaited > 0:
                self._changed.clear()
                async with asyncio.timeout(SILENCE_SECONDS):
                    await self._changed.wait()

    async def _take(self, delivery: Msg) -> None:
        status = (delivery.headers or {}).get(Header.STATUS)
        if status is not None:
            # Not the end of an earlier request, which comes late.
            if delivery.subject == self._asked_at:
                self._awaited = 0
                self._failed = "" if status in OVER else f"{status} {(delivery.headers or {}).get(Header.DESCRIPTION, '')}".strip()
                self._changed.set()
            return
        if self._closed:
            self._left.append(delivery)
            return
        self._given_until = max(self._given_until, delivery.metadata.timestamp)
        self._awaited -= 1
        self._worked_on += 1
        self._begin(delivery).add_done_callback(self._worked)
        self._changed.set()

    def _worked(self, _: asyncio.Task[None]) -> None:
        self._worked_on -= 1
        self._changed.set()

    async def _look_again(self) -> None:
        """Makes the consumer again if it is gone, or its stream was made anew: from behind what the agent was given."""
        since = self._given_until + timedelta(microseconds=1)
        try:
            await self._consumer(since)
        except NatsError as why:
            log.warning("%s: its inbox %s was not made again: %s", self._agent_id, self._name, why)


def given_until(found: ConsumerInfo) -> datetime:
    """The time until which everything was given to the agent when the consumer was found, by the clock of the broker."""
    given = found.delivered.last_active if found.delivered else None
    # What waits there may be as old as the consumer.
    return given if given and not found.num_pending and not found.num_ack_pending else found.created

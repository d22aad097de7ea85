"""What an agent hears, and what it does with it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar

from nats.aio.msg import Msg

from .asking import Asker
from .batch import is_batch
from .encoding import plain
from .errors import ConcordError
from .memory import MEMORY_SYNC, Memory
from .message import Message, is_unconfirmed
from .payload import PayloadError, fetch, is_reference
from .types import NOTIFICATIONS
from .waking import awake, begin, event_of

Handler = Callable[[Message], Awaitable[object]]
#: The agent whose handler runs.
HANDLING: ContextVar[Hearer | None] = ContextVar("HANDLING", default=None)
log = logging.getLogger("concord_agent")


class Hearer(Asker):
    """Has what is heard handled."""

    def __init__(self, agent_id: str, prefix: str, compress_over: int | None) -> None:
        super().__init__(agent_id, prefix, compress_over)
        self._handlers: dict[str, Handler] = {}
        self._hears_all: set[str] = set()
        #: What is under way, each with the message that it is about.
        self._tasks: dict[asyncio.Task[None], Message | None] = {}
        #: What this agent knows, for others to read, and what others know.
        self.memory = Memory(self)

    def on(self, message_type: str, *, wake: bool = True) -> Callable[[Handler], Handler]:
        """Registers the decorated coroutine for messages of a type; `"*"` for those that have no handler; the event of a
        notification for that one, for example `"debate_concluded"`, `"credibility_changed"`, or `"stand_down"`, by which a question
        to the group needs no answer any more; `"memory_sync"` to write into memory what is not there yet, before a debate takes its
        snapshot.

        A question to the group (`group_query`, `peer_request`, `expertise_offer`) is handled when it has woken this agent, and
        `message.woken` says why. With `wake=False` every one that this agent hears is handled.
        """

        def register(handler: Handler) -> Handler:
            self._handlers[message_type] = handler
            if not wake:
                self._hears_all.add(message_type)
            return handler

        return register

    async def _heard(self, delivery: Msg) -> asyncio.Task[None] | None:
        """Has a message handled: the answer is the task that does, to be waited for by whoever is to know that it has ended."""
        message = self._read(delivery)
        if message is None or not is_reference(message.payload):
            return self._begin(message)
        # What comes after it on the same subscription does not wait until its payload is there.
        return self._under_way(self._begin_whole(message), message)

    async def _begin_whole(self, message: Message) -> None:
        handling = self._begin(await self._whole(message))
        if handling is not None:
            await handling

    def _begin(self, message: Message | None) -> asyncio.Task[None] | None:
        if message is None or self._waiting.hand_over(message):
            return None
        syncing = self.memory.heard(message, self._sync if MEMORY_SYNC in self._handlers else None)
        if syncing is not None:
            self._keep(syncing, None)
        message = awake(message, self.agent_id, self._handlers, self._hears_all)
        if message is None:
            return None
        told = self._handlers.get(event_of(message) or "")
        # A type that is called like an event is not Concord's: anybody may say it.
        by_type = None if message.message_type in NOTIFICATIONS else self._handlers.get(message.message_type)
        handler = told or by_type or self._handlers.get("*")
        return self._under_way(self._work_on(handler, message), message) if handler is not None else None

    def _under_way(self, work: Coroutine[None, None, None], message: Message) -> asyncio.Task[None]:
        return self._keep(asyncio.create_task(work), message)

    def _keep(self, task: asyncio.Task[None], message: Message | None) -> asyncio.Task[None]:
        self._tasks[task] = message
        task.add_done_callback(self._tasks.pop)
        return task

    async def _heard_ahead(self, delivery: Msg) -> None:
        # It comes by the durable inbox as well, where whatever no request waits for is handled.
        message = self._read(delivery)
        if message is not None and self._waiting.waits_for(message):
            message = await self._whole(message)
            if message is not None:
                self._waiting.hand_over(message, ahead=True)

    def _read(self, delivery: Msg) -> Message | None:
        try:
            message = Message.decode(plain(delivery.data, delivery.headers), delivery.subject)
        except ValueError as why:
            log.warning("%s: a message on %s is not understood: %s", self.agent_id, delivery.subject, why)
            return None
        if message.from_agent == self.agent_id or is_unconfirmed(message):
            return None
        self._learn(message)
        return message

    async def _whole(self, message: Message | None) -> Message | None:
        """A message with its payload, wherever that is; none where it cannot be had, which its sender is told."""
        if message is None or not is_reference(message.payload):
            return message
        try:
            payload = await fetch(self._connected(), self._prefix, self.agent_id, message.payload)
            return dataclasses.replace(message, payload=payload)
        except PayloadError as why:
            log.warning("%s: a payload of %s cannot be had: %s", self.agent_id, message.from_agent, why)
            if message.message_type not in ("response", "error") and not self._waiting.waits_for(message):
                if message.requires_response:
                    await self.refuse(message, why.code, str(why), ["Put the payload again, and refer to it as it is."])
                return None
            # Whoever waits for it is told instead.
            report = {"error_code": why.code, "error_message": str(why), "details": {}, "recovery_suggestions": []}
            return dataclasses.replace(message, message_type="error", payload=report)

    def _learn(self, message: Message) -> None:
        if message.message_type != "agent_joined" or message.from_agent != "coordinator":
            return
        card = message.payload.get("card")
        if not isinstance(card, dict) or not isinstance(card.get("agent_id"), str):
            return
        if "gzip" in (card.get("encodings") or ()):
            self._reads_gzip.add(card["agent_id"])
        else:
            self._reads_gzip.discard(card["agent_id"])

    async def _work_on(self, handler: Handler, message: Message) -> None:
        HANDLING.set(self)
        if not is_batch(message):
            return await self._handle(handler, message)
        try:
            await self._batches.answer(self, message, lambda part: self._handle(handler, part))
        except ConcordError as why:
            log.warning("%s: the answer to a batch could not be given: %s", self.agent_id, why)
            await self.refuse(message, "INTERNAL_ERROR", f"{self.agent_id} failed.", ["Ask each request by itself."])

    async def _sync(self, message: Message) -> None:
        # It has a task of its own. Without this its handler would wait for itself when it closes its agent.
        HANDLING.set(self)
        await self._handlers[MEMORY_SYNC](message)

    async def _handle(self, handler: Handler, message: Message) -> None:
        begin(self.agent_id, message)
        try:
            returned = await handler(message)
            if isinstance(returned, Mapping):
                log.warning(
                    "%s: what the handler of a %s returned goes nowhere: answer with `await agent.respond(message, ...)`, `reply` or the like",
                    self.agent_id,
                    message.message_type,
                )
        except (Exception, asyncio.CancelledError) as why:  # noqa: BLE001 - whatever a handler raises, the others go on.
            task = asyncio.current_task()
            if isinstance(why, asyncio.CancelledError) and task is not None and task.cancelling():
                # The agent closes, and says so to whoever waits. Otherwise it is something within the handler that was cancelled.
                raise
            log.exception("%s: the handler of a %s failed", self.agent_id, message.message_type)
            if message.requires_response:
                await self.refuse(message, "INTERNAL_ERROR", f"{self.agent_id} failed: {type(why).__name__}.")

"""The agent: connecting, registering and closing."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import signal
from contextlib import suppress
from functools import partial
from typing import Any

from nats.errors import Error as NatsError

from .case import CaseMember
from .connecting import CONNECT_WITHIN, connected
from .encoding import READ
from .ending import end
from .errors import ConcordError, RequestError, RequestTimeout
from .group import GroupMember
from .hearing import HANDLING, Hearer
from .inbox import Inbox
from .message import Message
from .waiting import REQUEST_TIMEOUT

#: How long running handlers have when an agent closes, in seconds.
CLOSE_WITHIN = 30.0
#: What an agent may say of itself.
STATUSES = ("available", "busy", "unavailable")
log = logging.getLogger("concord_agent")


def _interval(card: dict[str, Any]) -> float | None:
    """How often a card says that heartbeats are sent, in milliseconds; none where it does not, or says what is refused."""
    every = card.get("heartbeat_ms")
    return every if type(every) in (int, float) and 100 <= every <= 3_600_000 else None


class _RandomIds:
    """The ids of inboxes and requests. Those of nats-py are counted up: whoever has seen one could answer the next request in a service's place."""

    def next(self) -> bytearray:
        return bytearray(secrets.token_hex(11).encode())


class Agent(GroupMember, CaseMember, Hearer):
    """A participant that speaks the canonical envelope.

    Handlers are registered by message type with :meth:`on`; each message is handled in a task of its own. What is said is
    stored by the broker when the call returns.
    """

    def __init__(
        self,
        agent_id: str,
        *,
        prefix: str = "concord",
        durable: bool = False,
        registered_inbox: bool = False,
        compress_over: int | None = None,
        stays_registered: bool = False,
        **card: Any,
    ) -> None:
        """
        Args:
            agent_id: the name it speaks under: letters A to Z, digits, `_` and `-`, 64 at most, and not the name of a service. Anything
                else is a `ValueError`, here and wherever somebody or a case is named.
            prefix: first token of every subject of the installation.
            durable: whether messages wait in the broker while the agent is away. Otherwise it hears what is said
                while it is connected. It needs the right to ask the broker for that.
            registered_inbox: the same with no right beyond those that `concord permissions` prints. The inbox is made when
                the agent connects, if it is on the register by then, or by an operator (`concord agents register --inbox`).
            compress_over: messages with more bytes than this are compressed, where whoever they are for is known to read
                it: a service, or an agent that has joined meanwhile and whose card says so.
            stays_registered: whether it is left on the register when it closes, as where another process takes its place, which may have
                registered it by then. Let the card promise heartbeats (`heartbeat_ms`), so that it is unavailable where none comes.
            card: what it says of itself when it registers: `description`, `skills` (each `{"name": ...}`, with `description`,
                `tags` and `examples` where they help to find it), `actions`, `domains`, `triggers`, `capacity`, `heartbeat_ms`.
                With any of these it registers when it connects.
        """
        super().__init__(agent_id, prefix, compress_over)
        if durable and registered_inbox:
            raise ValueError("an agent has one inbox: durable, or registered_inbox")
        self._durable = durable
        self._registered_inbox = registered_inbox
        self._stays_registered = stays_registered
        # What it reads it says, unless its author does.
        self._card = {"encodings": list(READ)} | card if card else card
        self._inbox: Inbox | None = None
        self._status = "available"
        self._registered = False
        self._beat: asyncio.Task[None] | None = None
        self._every: float | None = None
        self._updating = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def connect(
        self,
        servers: str | list[str] = "nats://127.0.0.1:4222",
        *,
        connect_within: float | None = CONNECT_WITHIN,
        **options: Any,
    ) -> Agent:
        """Connects, listens, and registers. A broker that goes later is waited for without end.

        Args:
            connect_within: how long the broker is waited for, in seconds; None for ever, where an agent may start before it.
            options: those of `nats.connect`.

        Raises:
            ConcordError: nobody has answered within that time, or the broker does not let this agent in, which is said at once.
            RequestError: the coordinator has refused to register it.
        """
        if self._client is not None:
            raise ConcordError(f"{self.agent_id} is connected already")
        options = {"name": self.agent_id, "max_reconnect_attempts": -1} | options
        # Answers come where the broker's permissions let this agent listen, and nobody else.
        options.setdefault("inbox_prefix", f"_INBOX.{self.agent_id}".encode())
        self._client = await connected(self.agent_id, servers, connect_within, options)
        # Before the first inbox has its name.
        self._client._nuid = _RandomIds()  # type: ignore[assignment]
        self._ended.clear()
        kept = (self._durable, self._registered_inbox)
        heard = (self._heard, self._heard_ahead, partial(self.query_service, "coordinator", "acknowledge"))
        self._inbox = Inbox(self._client, self._prefix, self.agent_id, *kept, *heard)
        try:
            await self._inbox.open()
            if self._card:
                await self.register()
            if self._registered_inbox:
                await self._make_inbox()
        except BaseException:
            # Without this it would go on listening beside the next that connects.
            await self._abandon()
            raise
        log.info("%s listens", self.agent_id)
        return self

    async def close(self, within: float = CLOSE_WITHIN) -> None:
        """Takes nothing more, lets running handlers finish, which may go on asking others, says goodbye, and closes the connection.

        A handler may call it: then it returns at once, and the agent closes when that handler has ended, too.

        Args:
            within: how long handlers have, in seconds. What is not done by then is ended: whoever waits for it is told, and what came by
                a durable inbox comes again. A handler that does not let itself be ended is left behind some seconds later.
        """
        if self._client is None:
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(within))
        if HANDLING.get() is not self:
            # Whoever does not wait any more ends nothing for the others.
            await asyncio.shield(self._closing)

    async def _close(self, within: float) -> None:
        assert self._client is not None
        self._stop_beating()
        try:
            if self._inbox is not None:
                await self._inbox.pause()
                await self._finish(within)
                await self._inbox.close()
            # While the broker is away nobody hears a goodbye.
            if self._client.is_connected:
                if self._registered and not self._stays_registered:
                    await self._say_status("unavailable")
                    await self._deregister()
                await self._client.flush()
        except (NatsError, ConcordError, OSError) as why:
            log.warning("%s: not closed in good order: %s", self.agent_id, why)
        finally:
            await self._disconnect()

    async def _finish(self, within: float) -> None:
        """Waits for what is under way, and ends what takes longer."""
        try:
            async with asyncio.timeout(within):
                while self._tasks:
                    await asyncio.wait(list(self._tasks))
        except TimeoutError:
            pass
        late = dict(self._tasks)
        await end(late)
        for message in filter(None, late.values()):
            log.warning("%s: the handler of a %s was ended: it has not finished in %g s", self.agent_id, message.message_type, within)
        if not (self._durable or self._registered_inbox):
            await self._tell_askers([message for message in late.values() if message is not None and message.requires_response])

    async def _tell_askers(self, ended: list[Message]) -> None:
        """Tells all of them at once: one who cannot be told keeps nobody waiting."""
        why = f"{self.agent_id} was closed before it had finished."
        telling = [self.refuse(message, "INTERNAL_ERROR", why, ["Ask again."]) for message in ended]
        for message, told in zip(ended, await asyncio.gather(*telling, return_exceptions=True), strict=True):
            if isinstance(told, BaseException):
                log.warning("%s: %s was not told that its %s was ended: %s", self.agent_id, message.from_agent, message.message_type, told)

    async def _beat_every(self, milliseconds: float | None) -> None:
        """Says that it is there, now and then so often; no more where there is no such time, or while it closes."""
        self._stop_beating()
        self._every = milliseconds
        if milliseconds and self._client is not None and self._closing is None:
            self._beat = asyncio.create_task(self._beats(milliseconds / 1000))
            await self._say_status(self._status)

    def _stop_beating(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    async def _abandon(self) -> None:
        self._stop_beating()
        try:
            if self._inbox is not None:
                await self._inbox.close()
        except (NatsError, OSError) as why:
            log.warning("%s: not closed in good order: %s", self.agent_id, why)
        finally:
            await self._disconnect()

    async def _disconnect(self) -> None:
        client, self._client, self._inbox, self._closing = self._client, None, None, None
        self._registered = False
        try:
            if client is not None:
                await client.close()
        except (NatsError, OSError) as why:
            # The broker is gone, and so is what it was still to get.
            log.warning("%s: not closed in good order: %s", self.agent_id, why)
        self._ended.set()

    async def __aenter__(self) -> Agent:
        return self if self._client is not None else await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def run(self, servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> None:
        """Connects and serves until interrupted (SIGINT, SIGTERM) or closed by a handler, and closes in good order. `options` are those of
        :meth:`connect`, whose errors are raised."""

        async def serve() -> None:
            serving = asyncio.current_task()
            assert serving is not None
            # Where there are no such signals, as on Windows and beside the main thread, the process ends by itself.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
            async with await self.connect(servers, **options):
                await self._ended.wait()

        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(serve())

    async def register(self, timeout: float = REQUEST_TIMEOUT) -> None:
        """Tells the coordinator who this agent is; from then on heartbeats are sent, where `heartbeat_ms` is given."""
        await self.request("coordinator", "register_agent", {"agent_id": self.agent_id, **self._card}, timeout=timeout)
        self._registered = True
        every = _interval(self._card)
        await self._beat_every(every)
        if every is None:
            await self._say_status(self._status)

    async def _make_inbox(self) -> None:
        """Has the coordinator make the inbox; where nobody answers, the agent takes the one that operators have made."""
        try:
            await self.query_service("coordinator", "inbox", {})
        except RequestTimeout as why:
            log.warning("%s: nobody makes an inbox: %s", self.agent_id, why)
        except RequestError:
            raise
        except ConcordError as why:
            log.warning("%s: nobody makes an inbox: %s", self.agent_id, why)

    async def update(self, **card: Any) -> None:
        """Changes what the coordinator knows of this agent. A new `heartbeat_ms` counts from then on."""
        # The next change is one of the card that this one leaves.
        async with self._updating:
            await self._update(card)

    async def _update(self, card: dict[str, Any]) -> None:
        changed = {"encodings": list(READ)} | self._card | card
        before, after = self._every, _interval(changed)
        # The coordinator goes by the new card before its answer is there, and where the answer does not come nobody knows by which.
        await self._beat_every(min(filter(None, (before, after)), default=None))
        try:
            await self.request("coordinator", "update_agent", {"agent_id": self.agent_id, **changed})
        except RequestTimeout:
            raise
        except RequestError:
            # What is refused would be said again with every later change.
            await self._beat_every(before)
            raise
        self._card = changed
        await self._beat_every(after)

    async def status(self, status: str) -> None:
        """Says that this agent is `available`, `busy` or `unavailable`, now and in every heartbeat. That ends what the coordinator has
        concluded from its silence.

        Raises:
            ValueError: it is none of these; nothing is said.
            ConcordError: the broker did not store it; the heartbeats say it all the same.
        """
        said = str(status).lower()
        if said not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, and was given {status!r}")
        self._status = said
        await self._say_status(said)
        # A heartbeat comes by itself, and says nothing of whether the agent answers again.
        await self.send("coordinator", "status", {"status": said})

    async def _say_status(self, status: str) -> None:
        beat = json.dumps({"status": status}).encode()
        await self._connected().publish(f"{self._prefix}.v1.beat.{self.agent_id}", beat)

    async def _deregister(self) -> None:
        self._registered = False
        # Nobody waits for the answer: the inbox is closed.
        await self.send(
            "coordinator", "request", {"action": "deregister_agent", "parameters": {"agent_id": self.agent_id}}
        )

    async def _beats(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self._say_status(self._status)
            except NatsError as why:
                log.warning("%s: no heartbeat: %s", self.agent_id, why)

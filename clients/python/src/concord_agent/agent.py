"""The agent."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from .encoding import CONTENT_ENCODING, READ, compressed, plain
from .errors import ConcordError, RequestError, RequestTimeout
from .inbox import Inbox
from .memory import Memory
from .message import ALL, ANY, Json, Message, answer_id, envelope, later, subject
from .payload import MESSAGE_BYTES_MAX, PayloadError, fetch, is_reference, put
from .types import Answer, Finding
from .waiting import ENDS, REQUEST_TIMEOUT, Waiting
from .waking import STAND_DOWN, awake, is_stand_down

Handler = Callable[[Message], Awaitable[None]]

#: How much longer than a question to the group lasts its asker waits to be told how it ended, in seconds.
GRACE = 15.0
SERVICES = frozenset(
    {"coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter"}
)
log = logging.getLogger("concord_agent")


class Agent:
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
        compress_over: int | None = None,
        **card: Any,
    ) -> None:
        """
        Args:
            agent_id: the name it speaks under: letters, digits, `_` and `-`.
            prefix: first token of every subject of the installation.
            durable: whether messages wait in the broker while the agent is away. Otherwise it hears what is said
                while it is connected.
            compress_over: messages with more bytes than this are compressed, where whoever they are for is known to read
                it: a service, or an agent that has joined meanwhile and whose card says so.
            card: what it says of itself when it registers: `description`, `skills`, `actions`, `domains`,
                `triggers`, `capacity`, `heartbeat_ms`. With any of these it registers when it connects.
        """
        self.agent_id = agent_id
        self._prefix = prefix
        self._durable = durable
        self._compress_over = compress_over
        # Who is known to read what is compressed.
        self._reads_gzip = set(SERVICES)
        # What it reads it says, unless its author does.
        self._card = {"encodings": list(READ)} | card if card else card
        self._handlers: dict[str, Handler] = {}
        self._hears_all: set[str] = set()
        self._waiting = Waiting()
        #: What this agent knows, for others to read, and what others know.
        self.memory = Memory(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._client: Client | None = None
        self._inbox: Inbox | None = None
        self._status = "available"
        self._registered = False
        self._beat: asyncio.Task[None] | None = None

    def on(self, message_type: str, *, wake: bool = True) -> Callable[[Handler], Handler]:
        """Registers the decorated coroutine for messages of a type; `"*"` for those that have no handler, `"stand_down"` for the
        notification that a question to the group, which woke this agent, needs no answer any more.

        A question to the group (`group_query`, `peer_request`, `expertise_offer`) is handled when it has woken this agent, and
        `message.woken` says why. With `wake=False` every one that this agent hears is handled.
        """

        def register(handler: Handler) -> Handler:
            self._handlers[message_type] = handler
            if not wake:
                self._hears_all.add(message_type)
            return handler

        return register

    # === Life ===

    async def connect(self, servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> Agent:
        """Connects, listens, and registers. `options` are those of `nats.connect`."""
        if self._client is not None:
            raise ConcordError(f"{self.agent_id} is connected already")
        options = {"name": self.agent_id, "max_reconnect_attempts": -1} | options
        # Answers come where the broker's permissions let this agent listen, and nobody else.
        options.setdefault("inbox_prefix", f"_INBOX.{self.agent_id}".encode())
        self._client = await nats.connect(servers, **options)
        self._inbox = Inbox(self._client, self._prefix, self.agent_id, self._durable, self._heard, self._heard_ahead)
        try:
            await self._inbox.open()
            if self._card:
                await self.register()
        except BaseException:
            # Without this it would go on listening beside the next that connects.
            await self._abandon()
            raise
        log.info("%s listens", self.agent_id)
        return self

    async def close(self) -> None:
        """Says goodbye, lets running handlers finish, and closes the connection."""
        if self._client is None:
            return
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        try:
            if self._inbox is not None:
                await self._inbox.close()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._registered:
                await self._say_status("unavailable")
                await self._deregister()
            await self._client.flush()
        except (NatsError, ConcordError, TimeoutError) as why:
            log.warning("%s: not closed in good order: %s", self.agent_id, why)
        finally:
            await self._client.close()
            self._client = self._inbox = None

    async def _abandon(self) -> None:
        client, inbox = self._client, self._inbox
        self._client = self._inbox = None
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        try:
            if inbox is not None:
                await inbox.close()
        except NatsError as why:
            log.warning("%s: not closed in good order: %s", self.agent_id, why)
        finally:
            if client is not None:
                await client.close()

    async def __aenter__(self) -> Agent:
        return self if self._client is not None else await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def run(self, servers: str | list[str] = "nats://127.0.0.1:4222", **options: Any) -> None:
        """Connects and serves until interrupted."""

        async def serve() -> None:
            async with await self.connect(servers, **options):
                await asyncio.Event().wait()

        try:
            asyncio.run(serve())
        except KeyboardInterrupt:
            pass

    async def register(self, timeout: float = REQUEST_TIMEOUT) -> None:
        """Tells the coordinator who this agent is; from then on heartbeats are sent, where `heartbeat_ms` is given."""
        await self.request("coordinator", "register_agent", {"agent_id": self.agent_id, **self._card}, timeout=timeout)
        self._registered = True
        every = self._card.get("heartbeat_ms")
        if every and self._beat is None:
            self._beat = asyncio.create_task(self._beats(every / 1000))
        await self.status(self._status)

    async def update(self, **card: Any) -> None:
        """Changes what the coordinator knows of this agent."""
        self._card = {"encodings": list(READ)} | self._card | card
        await self.request("coordinator", "update_agent", {"agent_id": self.agent_id, **self._card})

    async def status(self, status: str) -> None:
        """Says that this agent is `available`, `busy` or `unavailable`, now and in every heartbeat."""
        self._status = status
        await self._say_status(status)

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
                await self.status(self._status)
            except NatsError as why:
                log.warning("%s: no heartbeat: %s", self.agent_id, why)

    # === Saying ===

    async def send(self, to: str, message_type: str, payload: Mapping[str, Any], **fields: Any) -> str:
        """Says something; the answer is its `message_id`.

        Args:
            to: an agent or service, `_all` (everyone in the case) or `_any` (whoever can help).
            fields: any other field of the envelope, and `confidence`.
        """
        said = envelope(self.agent_id, to, message_type, payload, **fields)
        await self._publish(said)
        return str(said["message_id"])

    async def reply(self, message: Message, message_type: str, payload: Mapping[str, Any], **fields: Any) -> str:
        """Answers a message: to its sender, in its case and conversation, with `reply_to`.

        The answer's id follows from the message's, so that an answer given twice is one. What may be said beside an answer
        (an `acknowledgement`, `evidence`) counts once of each type; `message_id` or :meth:`send` is for more.
        """
        fields = {
            "message_id": answer_id(message.message_id, self.agent_id, message_type),
            "case_id": message.case_id,
            "correlation_id": message.correlation_id or message.message_id,
            "reply_to": message.message_id,
            "round": message.round,
        } | fields
        return await self.send(fields.pop("to", message.from_agent), message_type, payload, **fields)

    async def finding(self, task: Message, finding: Finding, confidence: float) -> str:
        """Answers a `task_assignment` with what was found."""
        return await self.reply(task, "finding", finding, confidence=confidence)

    async def agree(self, question: Message, agrees_with: str | None = None, **answer: Any) -> str:
        """Takes a peer's position in a debate."""
        said: Answer = {"agrees_with_peer": True, **answer}  # type: ignore[typeddict-item]
        if agrees_with is not None:
            said["agrees_with"] = agrees_with
        return await self.reply(question, "agreement", said)

    async def disagree(self, question: Message, **answer: Any) -> str:
        """Keeps its position in a debate."""
        return await self.reply(question, "disagreement", {"agrees_with_peer": False, **answer})

    async def revise(self, question: Message, revised_position: str, **answer: Any) -> str:
        """Changes its position in a debate."""
        return await self.reply(question, "revision", {"revised_position": revised_position, **answer})

    async def respond(self, request: Message, result: Mapping[str, Any], **fields: Any) -> str:
        """Answers a `request` with its result."""
        return await self.reply(request, "response", {"status": "success", "result": dict(result)}, **fields)

    async def refuse(self, message: Message, code: str, why: str, suggestions: Sequence[str] = ()) -> str:
        """Answers with an `error`: one of the six codes, and how to mend it."""
        report = {"error_code": code, "error_message": why, "details": {}, "recovery_suggestions": list(suggestions)}
        return await self.reply(message, "error", report)

    async def request(
        self,
        to: str,
        action: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        timeout: float = REQUEST_TIMEOUT,
        **fields: Any,
    ) -> Any:
        """Asks another to do something, and waits for its result: the whole answer, where that does not say how it went.

        Raises:
            RequestError: the answer is an error.
            RequestTimeout: there is no answer within `timeout` seconds.
        """
        payload = {"action": action, "parameters": dict(parameters or {})}
        said = envelope(self.agent_id, to, "request", payload, requires_response=True, **fields)
        return await self._result_of(said, timeout)

    async def _result_of(self, said: Json, timeout: float, only_from: frozenset[str] | None = None) -> Any:
        answer = self._waiting.begin(said["message_id"], only_from)
        try:
            await self._publish(said)
            message = await asyncio.wait_for(answer, timeout)
        except TimeoutError:
            raise RequestTimeout(said["to_agent"], timeout) from None
        finally:
            self._waiting.end(said["message_id"])
        if message.message_type == "error":
            raise RequestError.of(message.payload)
        status = message.payload.get("status")
        if status not in ("success", "failure", "partial"):
            return message.payload
        if status == "failure":
            raise RequestError("INTERNAL_ERROR", "; ".join(map(str, message.payload.get("errors") or ["It failed."])))
        result = message.payload.get("result")
        return {} if result is None else result

    async def ask_service(self, service: str, verb: str, body: bytes) -> Msg:
        """Asks a service for a verb of its API under this agent's name: its answer, or its error in a header."""
        subject = f"{self._prefix}.v1.api.{service}.{verb}.{self.agent_id}"
        return await self._connected().request(subject, body, timeout=REQUEST_TIMEOUT)

    # === The group: names and arguments as in the specification ===

    async def broadcast_query(self, question: str, conversation_id: str) -> str:
        """Asks the group; whoever has the skills may answer."""
        fields = {"case_id": conversation_id, "requires_response": True}
        return await self.send(ALL, "group_query", {"content": question}, **fields)

    async def request_group_help(self, question: str, conversation_id: str) -> str:
        """The same as :meth:`broadcast_query`, for an agent that is stuck."""
        return await self.broadcast_query(question, conversation_id)

    async def request_peer_help(
        self, request: str, conversation_id: str, preferred_agents: Sequence[str] | None = None
    ) -> str:
        """Asks for help: preferred agents are woken, others join when it concerns them."""
        metadata = {"preferred_agents": list(preferred_agents)} if preferred_agents else None
        fields = {"case_id": conversation_id, "requires_response": True, "metadata": metadata}
        return await self.send(ANY, "peer_request", {"content": request}, **fields)

    async def ask_group(
        self,
        question: str,
        conversation_id: str | None = None,
        *,
        mode: str | None = None,
        synthesiser: str | None = None,
        domain: str | None = None,
        preferred_agents: Sequence[str] | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Json:
        """Asks whoever can help, and waits for the one answer that is made of theirs, an object with `primary`, `supplementary`,
        `declined`, `silent` and `asked`. Each agent's own answer comes beside it, to the handlers.

        Args:
            mode: `confidence`, which is usual, `first_responder` or `collaborative`.
            synthesiser: the agent that makes one answer of all, in the mode `collaborative`.
            domain: the domain in which track records count.
            preferred_agents: agents that are asked whatever the words.
            timeout: how long answers count, in seconds.

        Raises:
            RequestError: nobody can answer, or nobody has.
            RequestTimeout: nobody says how it ended; the coordinator or the agent adapter does not run.
        """
        terms = {
            "mode": mode,
            "synthesiser": synthesiser,
            "domain": domain,
            "preferred_agents": list(preferred_agents) if preferred_agents else None,
        }
        payload = {"content": question} | {name: value for name, value in terms.items() if value is not None}
        fields = {"case_id": conversation_id, "requires_response": True, "deadline": later(timeout)}
        kind = "peer_request" if preferred_agents else "group_query"
        said = envelope(self.agent_id, ANY, kind, payload, **fields)
        answer: Json = await self._result_of(said, timeout + GRACE, SERVICES)
        return answer

    async def offer_expertise(self, offer: str, conversation_id: str) -> str:
        """Offers help to the group unasked."""
        return await self.send(ALL, "expertise_offer", {"content": offer}, case_id=conversation_id)

    async def publish_task_result(
        self,
        content: str,
        conversation_id: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        confidence: float | None = None,
        reply_to: str | None = None,
        to: str = ALL,
    ) -> str:
        """Says what came of a task or query; of several answers the most confident is the primary one."""
        fields = {"case_id": conversation_id, "metadata": dict(metadata or {}), "confidence": confidence}
        return await self.send(to, "task_result", {"content": content}, reply_to=reply_to, **fields)

    # === Hearing ===

    def _connected(self) -> Client:
        if self._client is None:
            raise ConcordError(f"{self.agent_id} is not connected")
        return self._client

    async def _publish(self, said: Json) -> None:
        stream = self._connected().jetstream()
        data = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
        if len(data) > MESSAGE_BYTES_MAX:
            referring = await put(self._connected(), self._prefix, said["message_id"], said["payload"])
            data = json.dumps(said | {"payload": referring}, separators=(",", ":")).encode()
        headers = {"Nats-Msg-Id": said["message_id"]}
        is_large = self._compress_over is not None and len(data) > self._compress_over
        if is_large and said["to_agent"] in self._reads_gzip:
            data, headers[CONTENT_ENCODING] = compressed(data), "gzip"
        try:
            await stream.publish(subject(self._prefix, said), data, headers=headers)
        except (NatsError, TimeoutError) as why:
            raise ConcordError(
                f"the broker did not store a {said['message_type']}: {why or type(why).__name__}"
            ) from why

    async def _heard(self, delivery: Msg) -> asyncio.Task[None] | None:
        """Has a message handled: the answer is the task that does, to be waited for by whoever is to know that it has ended."""
        message = await self._whole(self._read(delivery))
        if message is None or self._waiting.hand_over(message):
            return None
        message = awake(message, self.agent_id, self._handlers, self._hears_all)
        if message is None:
            return None
        told = self._handlers.get(STAND_DOWN) if is_stand_down(message) else None
        handler = told or self._handlers.get(message.message_type) or self._handlers.get("*")
        if handler is None:
            return None
        task = asyncio.create_task(self._handle(handler, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
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
            message = Message.decode(plain(delivery.data, delivery.headers))
        except ValueError as why:
            log.warning("%s: a message on %s is not understood: %s", self.agent_id, delivery.subject, why)
            return None
        if message.from_agent == self.agent_id:
            return None
        self._learn(message)
        return message

    async def _whole(self, message: Message | None) -> Message | None:
        """A message with its payload, wherever that is; none where it cannot be had, which its sender is told."""
        if message is None or not is_reference(message.payload):
            return message
        try:
            return dataclasses.replace(message, payload=await fetch(self._connected(), self._prefix, message.payload))
        except PayloadError as why:
            log.warning("%s: a payload of %s cannot be had: %s", self.agent_id, message.from_agent, why)
            if message.message_type not in ENDS:
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

    async def _handle(self, handler: Handler, message: Message) -> None:
        try:
            await handler(message)
        except Exception as why:  # noqa: BLE001 - whatever a handler raises, the others go on.
            log.exception("%s: the handler of a %s failed", self.agent_id, message.message_type)
            if message.requires_response:
                await self.refuse(message, "INTERNAL_ERROR", f"{self.agent_id} failed: {type(why).__name__}.")

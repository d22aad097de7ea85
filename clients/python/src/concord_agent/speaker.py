"""What an agent says: messages, and answers to them."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from .batch import Batches
from .checks import SERVICES, encoded, listed, named, own_name
from .encoding import CONTENT_ENCODING, compressed
from .errors import ConcordError, NotConfirmed
from .message import Json, Message, answer_id, envelope, subject
from .payload import MESSAGE_BYTES_MAX, put
from .types import Answer, Finding

log = logging.getLogger("concord_agent")


class Speaker:
    """Says something under a name, on a connection that is there or not."""

    def __init__(self, agent_id: str, prefix: str, compress_over: int | None) -> None:
        self.agent_id = own_name(agent_id)
        self._prefix = named("prefix", prefix)
        self._compress_over = compress_over
        self._client: Client | None = None
        self._secret = secrets.token_bytes(32)
        # Who is known to read what is compressed.
        self._reads_gzip = set(SERVICES)
        # What is answered to the requests of a batch is not published by itself.
        self._batches = Batches()

    async def send(self, to: str, message_type: str, payload: Mapping[str, Any], **fields: Any) -> str:
        """Says something; the answer is its `message_id`.

        Args:
            to: an agent or service, `_all` (everyone in the case) or `_any` (whoever can help).
            fields: any other field of the envelope, and `confidence`.

        Raises:
            ValueError: a name is none that anybody or anything can have, or a number none that JSON has; nothing is said.
            ConcordError: the broker did not store it, or has not said in time whether it has.
        """
        said = envelope(self.agent_id, to, message_type, payload, **fields)
        await self._publish(said)
        return str(said["message_id"])

    async def reply(self, message: Message, message_type: str, payload: Mapping[str, Any], **fields: Any) -> str:
        """Answers a message: to its sender, in its case and conversation, with `reply_to`.

        The answer's id follows from the message's, so that an answer given twice is one. What may be said beside an answer
        (an `acknowledgement`, `evidence`) counts once of each type; `message_id` or :meth:`send` is for more. A `task_result` with
        the status `partial`, and a `notification` of `progress`, has an id of its own: others come after it.
        """
        is_part = (message_type, payload.get("status")) == ("task_result", "partial")
        is_part |= (message_type, payload.get("event")) == ("notification", "progress")
        fields = {
            "message_id": None if is_part else answer_id(message.message_id, self.agent_id, message_type),
            "case_id": message.case_id,
            "correlation_id": message.correlation_id or message.message_id,
            "reply_to": message.message_id,
            "round": message.round,
        } | fields
        # What is said in a debate refers to the snapshot that the debate refers to.
        if (snapshot := message.metadata.get("memory_snapshot")) is not None:
            fields["metadata"] = {"memory_snapshot": snapshot} | dict(fields.get("metadata") or {})
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
        report = {"error_code": code, "error_message": why, "details": {}, "recovery_suggestions": listed("suggestions", suggestions)}
        return await self.reply(message, "error", report)

    def _connected(self) -> Client:
        if self._client is None:
            raise ConcordError(f"{self.agent_id} is not connected")
        return self._client

    def _forbidden(self) -> str:
        """What the broker has not let this connection do last, as a sentence; empty where nothing is known. It tells the connection
        alone, and whoever waits for an answer hears nothing."""
        why = self._client.last_error if self._client is not None else None
        if why is None or "permissions violation" not in str(why).lower():
            return ""
        broken = str(why).removeprefix("nats: ")
        needed = f"`concord permissions {self.agent_id}` says what {self.agent_id} needs."
        return f"The broker has refused this connection something: {broken}. Are these credentials its own? {needed}"

    def _deduplication_id(self, said: Json) -> str:
        """By what the broker recognises a message that is said again. It keeps the first message with such an id, whoever has published
        it, and the `message_id` of an answer can be foreseen: so a hash is added that only this agent can make. Whoever is answered first
        under that id takes it from nobody else, because the hash is that of whom it is for and of the case, too."""
        whole = encoded([said["to_agent"], said.get("case_id"), said["message_id"]])
        return f"{said['message_id']}-{hashlib.blake2b(whole, key=self._secret, digest_size=8).hexdigest()}"

    async def _publish(self, said: Json, *, awaited: bool = False) -> None:
        # First of all: what cannot be written is an error of who says it, also in a batch and without a broker.
        data = encoded(said)
        if self._batches.take(said):
            return
        stream = self._connected().jetstream()
        if len(data) > MESSAGE_BYTES_MAX:
            referring = await put(
                self._connected(), self._prefix, self.agent_id, said["message_id"], said["payload"]
            )
            data = encoded(said | {"payload": referring})
        # Whoever asks again, because there was no answer, is to be heard again.
        headers = {} if awaited else {"Nats-Msg-Id": self._deduplication_id(said)}
        is_large = self._compress_over is not None and len(data) > self._compress_over
        if is_large and said["to_agent"] in self._reads_gzip:
            data, headers[CONTENT_ENCODING] = compressed(data), "gzip"
        try:
            stored = await stream.publish(subject(self._prefix, said), data, headers=headers)
        except TimeoutError as why:
            told = f"it is not known whether the broker has stored the {said['message_type']}: it has not said so in time. {self._forbidden()}"
            raise NotConfirmed(told.rstrip()) from why
        except NatsError as why:
            told = f"the broker did not store a {said['message_type']}: {why or type(why).__name__}. {self._forbidden()}"
            raise ConcordError(told.rstrip(" .")) from why
        if stored.duplicate:
            log.warning(
                "%s: the broker has stored a message under the message_id %s before, and not this %s: what says something else needs another",
                self.agent_id,
                said["message_id"],
                said["message_type"],
            )

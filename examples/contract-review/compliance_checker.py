"""A compliance checker for Concord, an agent that speaks NATS itself.

It needs the subjects and the envelope of Concord, and no library but nats-py. The review of a
contract is in `compliance_rules.py`. This file receives messages and sends the answers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import signal
import sys
import time
from datetime import UTC, datetime
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig

import compliance_rules as rules

AGENT_ID = rules.AGENT_ID
STREAM = "CONCORD_MESSAGES"
DURABLE = f"agent-{AGENT_ID}"
BATCH = 32
FETCH_SECONDS = 5.0
RETRY_SECONDS = 1.0
FLUSH_SECONDS = 2.0
ACK_WAIT_SECONDS = 30.0
DELIVERIES_MAX = 5
SECRET = secrets.token_bytes(32)

Json = dict[str, Any]
log = logging.getLogger(AGENT_ID)


def read(subject: str, data: bytes) -> Json:
    """The envelope in a message. The broker lets nobody publish under another's name, and looks into no body: who speaks
    is said by the subject, and a body that says otherwise is refused."""
    message: Json = json.loads(data)
    case, sender, recipient, kind = subject.split(".")[-4:]
    if (message["from_agent"], message["to_agent"], message["message_type"]) != (sender, recipient, kind):
        raise ValueError("the body names another sender, recipient or type than the subject")
    if message.get("case_id") is not None and (case == "_" or message["case_id"] != case):
        raise ValueError("the body names another case than the subject")
    message["message_id"].strip()
    return message


def respond(message: Json) -> tuple[str, Json, float] | None:
    """The answer to a message: type, payload and confidence. None if it needs no answer."""
    if message.get("from_agent") == AGENT_ID or not message.get("requires_response"):
        return None
    kind, payload = message.get("message_type"), message.get("payload") or {}
    try:
        if kind == "task_assignment":
            task = payload["task"]
            if task["type"] != rules.TASK_TYPE:
                return invalid(f"unknown task type {task['type']!r}")
            contract = task["input"]
            title = contract.get("title") or task.get("title") or "Contract"
            finding, confidence = rules.finding(title, contract["sentences"])
            return "finding", finding, confidence
        if kind == "question":
            reply_type, reply = rules.answer(payload)
            return reply_type, reply, reply["confidence"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The sender learns of its mistake; the next message is handled as usual.
        return invalid(f"{kind} cannot be read: {type(error).__name__}: {error}")
    return invalid(f"unknown message_type {kind!r}")


def invalid(message: str) -> tuple[str, Json, float]:
    """An `error` message."""
    advice = ["Send a task_assignment of type contract_review, or a question of a debate."]
    details = {"error_code": "INVALID_REQUEST", "error_message": message, "details": {}, "recovery_suggestions": advice}
    return "error", details, 1.0


def envelope(incoming: Json, kind: str, payload: Json, confidence: float, started: float) -> Json:
    """The envelope of the answer. Its id is derived from the question, so a second answer is taken as the same."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    answer: Json = {
        "message_id": f"{incoming['message_id']}-{AGENT_ID}",
        "timestamp": now,
        "from_agent": AGENT_ID,
        "to_agent": incoming["from_agent"],
        "message_type": kind,
        "reply_to": incoming["message_id"],
        "payload": payload,
        "metadata": {
            "confidence": confidence,
            "processing_time_ms": round((time.monotonic() - started) * 1000),
            "version": "1.0",
        },
    }
    copied = {key: incoming[key] for key in ("case_id", "correlation_id", "round") if incoming.get(key) is not None}
    return answer | copied


def deduplication_id(answer: Json) -> str:
    """By what the broker recognises an answer that is published again. It keeps the first message with such an id, whoever
    published it, and an id that is derived can be foreseen: so a hash is added that only this process can make. It is of
    recipient and case, too: others may ask under the id of a question that somebody else will ask."""
    answered = "/".join((answer["to_agent"], answer.get("case_id") or "_", answer["message_id"]))
    return f"{answer['message_id']}-{hashlib.blake2b(answered.encode(), key=SECRET, digest_size=8).hexdigest()}"


class Agent:
    """Fetches messages of one consumer and answers them."""

    def __init__(self, server: str, prefix: str) -> None:
        self.server, self.prefix = server, prefix
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Answer messages until told to stop, and finish those already fetched."""
        connection = await self.connect()
        if connection is None:
            return
        context = connection.jetstream()
        subscription = await self.bind(context)
        if subscription is not None:
            print("ready", flush=True)
        while subscription is not None and not self.stopping.is_set():
            try:
                messages = await self.unless_stopped(subscription.fetch(BATCH, timeout=FETCH_SECONDS))
            except NatsTimeoutError:
                continue
            except NatsError as error:
                # The broker is away, or has forgotten the consumer; the client reconnects by itself.
                log.warning("cannot fetch: %s", error or type(error).__name__)
                await self.pause()
                subscription = await self.bind(context)
                continue
            await asyncio.gather(*(self.handle(context, message) for message in messages or []))
        # A drain would wait until somebody handles what the broker has sent meanwhile. The broker
        # delivers that again. The flush sends the acknowledgements of what was handled.
        with contextlib.suppress(NatsError):
            await connection.flush(timeout=FLUSH_SECONDS)
        await connection.close()

    async def connect(self) -> Client | None:
        """Connect to the server, and try again until it answers. None if told to stop."""
        while not self.stopping.is_set():
            try:
                # The client itself retries without end, so the stop has to interrupt it.
                attempt = nats.connect(
                    self.server,
                    name=AGENT_ID,
                    connect_timeout=2,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RETRY_SECONDS,
                    ping_interval=2,
                    error_cb=_log_error,
                )
                connection: Client | None = await self.unless_stopped(attempt)
                return connection
            except (OSError, NatsError) as error:
                log.info("waiting for %s: %s", self.server, error or type(error).__name__)
                await self.pause()
        return None

    async def bind(self, context: JetStreamContext) -> JetStreamContext.PullSubscription | None:
        """Create or find the durable consumer as soon as the stream exists. None if told to stop."""
        inbox = f"{self.prefix}.v1.msg.*.*"
        config = ConsumerConfig(
            durable_name=DURABLE,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT_SECONDS,
            max_deliver=DELIVERIES_MAX,
            filter_subjects=[f"{inbox}.{AGENT_ID}.*", f"{inbox}._all.*"],
        )
        while not self.stopping.is_set():
            try:
                await context.add_consumer(STREAM, config)
                return await context.pull_subscribe_bind(DURABLE, STREAM)
            except (OSError, NatsError) as error:
                log.info("waiting for stream %s: %s", STREAM, error or type(error).__name__)
                await self.pause()
        return None

    async def handle(self, context: JetStreamContext, message: Msg) -> None:
        """Answer one message, and acknowledge it only after the answer is stored."""
        started = time.monotonic()
        try:
            incoming = read(message.subject, message.data)
            sender, case = incoming["from_agent"], incoming.get("case_id") or "_"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("not an envelope on %s: %s", message.subject, error)
            await message.term()
            return
        try:
            response = respond(incoming)
            if response is not None:
                kind, payload, confidence = response
                answer = envelope(incoming, kind, payload, confidence, started)
                headers = {"Nats-Msg-Id": deduplication_id(answer)}
                if trace := (message.headers or {}).get("traceparent"):
                    headers["traceparent"] = trace
                subject = f"{self.prefix}.v1.msg.{case}.{AGENT_ID}.{sender}.{kind}"
                await context.publish(subject, json.dumps(answer).encode(), headers=headers)
            await message.ack()
        except (OSError, NatsError) as error:
            # The message is not acknowledged and comes again. The same id makes a second answer harmless.
            log.warning("cannot answer %s: %s", incoming["message_id"], error or type(error).__name__)

    async def unless_stopped(self, work: Any) -> Any:
        """The result of `work`, or None if the agent is told to stop first."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self.stopping.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not task.done():
            task.cancel()
            return None
        return task.result()

    async def pause(self) -> None:
        """Wait a little before another try, or not at all when told to stop."""
        try:
            await asyncio.wait_for(self.stopping.wait(), RETRY_SECONDS)
        except TimeoutError:
            pass


async def _log_error(error: Exception) -> None:
    log.info("connection: %s", error or type(error).__name__)


async def serve(server: str, prefix: str) -> None:
    """Run an agent until SIGTERM or SIGINT."""
    agent = Agent(server, prefix)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.stopping.set)
    await agent.run()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = os.environ.get("CONCORD_NATS_URL", "nats://127.0.0.1:4222")
    parser.add_argument("--server", default=default, help="NATS server (default: CONCORD_NATS_URL or %(default)s)")
    parser.add_argument("--prefix", default="concord", help="subject prefix (default: %(default)s)")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s: %(message)s")
    asyncio.run(serve(options.server, options.prefix))
    return 0


if __name__ == "__main__":
    sys.exit(main())

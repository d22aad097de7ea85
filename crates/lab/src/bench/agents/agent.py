"""An agent that answers at once: a plain subscription on NATS, and JSON. It needs no library but nats-py.

It answers each task with the same finding and each question with a disagreement, and prints `ready` when it listens. With
`--stored` it reads a durable consumer and its answers are stored, as an orchestrator written by hand may want it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import nats
from nats.aio.msg import Msg

Json = dict[str, Any]


def answer_to(message: Json, finding: Json) -> tuple[str, Json] | None:
    """Type and payload of the answer; None if the message needs no answer."""
    match message["message_type"]:
        case "task_assignment":
            return "finding", finding
        case "question":
            return "disagreement", {"agrees_with_peer": False, "reasoning": "I keep my position."}
        case _:
            return None


async def run(server: str, prefix: str, name: str, finding: Json, stored: bool) -> None:
    """Answer messages until the connection is closed for good."""
    connection = await nats.connect(server, name=name)
    stream = connection.jetstream()

    async def handle(received: Msg) -> None:
        message = json.loads(received.data)
        answered = answer_to(message, finding)
        if answered is not None:
            await answer(message, *answered)
        if stored:
            await received.ack()

    async def answer(message: Json, kind: str, payload: Json) -> None:
        case, sender = message["case_id"], message["from_agent"]
        said = {
            "message_id": f"{message['message_id']}-{name}",
            "timestamp": message["timestamp"],
            "from_agent": name,
            "to_agent": sender,
            "message_type": kind,
            "case_id": case,
            "correlation_id": message.get("correlation_id"),
            "reply_to": message["message_id"],
            "payload": payload,
            "metadata": {"confidence": 0.8},
        }
        subject, body = f"{prefix}.v1.msg.{case}.{name}.{sender}.{kind}", json.dumps(said).encode()
        await (stream.publish(subject, body) if stored else connection.publish(subject, body))

    inbox = f"{prefix}.v1.msg.*.*.{name}.*"
    if stored:
        await stream.subscribe(inbox, durable=name, cb=handle, manual_ack=True)
    else:
        await connection.subscribe(inbox, cb=handle)
    await connection.flush()
    print("ready", flush=True)
    while not connection.is_closed:
        await asyncio.sleep(1)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--finding", required=True, type=json.loads, help="the payload of its findings, as JSON")
    parser.add_argument("--stored", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.server, arguments.prefix, arguments.name, arguments.finding, arguments.stored))


if __name__ == "__main__":
    main()

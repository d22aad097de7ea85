"""What an engineer writes in an afternoon instead of using Concord: one process that talks to five agents over NATS.

It sends five tasks, waits for five findings, finds on which of two subjects they conflict, asks the parties of each
conflict, waits for their answers, and publishes a decision. Only the decision is stored; with `--stored` all messages are,
and an agent that was away is given what was sent to it. Either way what is under way is lost when the process ends, an answer
that does not come is waited for in vain, and no second process may run beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from datetime import UTC, datetime
from itertools import count
from statistics import median
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

NAME = "by_hand"
RISK_TOLERANCE = 15

Json = dict[str, Any]


class Orchestrator:
    """Cases under way, and the answers that they wait for."""

    def __init__(self, connection: Client, prefix: str, agents: list[str], stored: bool) -> None:
        self.connection, self.prefix, self.agents, self.stored = connection, prefix, agents, stored
        self.stream = connection.jetstream()
        self.waiting: dict[str, asyncio.Future[Json]] = {}
        self.numbers = count()
        self.cases: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen for cases and for answers."""
        await self.stream.add_stream(StreamConfig(name="BY_HAND", subjects=["by_hand.decided.*"]))
        inbox = f"{self.prefix}.v1.msg.*.*.{NAME}.*"
        if self.stored:
            await self.stream.add_stream(StreamConfig(name="MESSAGES", subjects=[f"{self.prefix}.v1.msg.>"]))
            await self.stream.subscribe(inbox, durable=NAME, cb=self.answered, manual_ack=True)
        else:
            await self.connection.subscribe(inbox, cb=self.answered)
        await self.connection.subscribe("by_hand.open.*", cb=self.opened)
        await self.connection.flush()

    async def opened(self, message: Msg) -> None:
        """A new case: all cases run beside each other."""
        case = asyncio.create_task(self.run(message.subject.rsplit(".", 1)[1], json.loads(message.data)))
        self.cases.add(case)
        case.add_done_callback(self.cases.discard)

    async def answered(self, message: Msg) -> None:
        """An answer goes to whoever waits for it."""
        answer = json.loads(message.data)
        waiting = self.waiting.pop(answer["reply_to"], None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        if self.stored:
            await message.ack()

    async def ask(self, case: str, agent: str, kind: str, payload: Json) -> Json:
        """Send a message to an agent; its answer."""
        number = f"{case}-{next(self.numbers)}"
        message = {
            "message_id": number,
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "from_agent": NAME,
            "to_agent": agent,
            "message_type": kind,
            "case_id": case,
            "requires_response": True,
            "payload": payload,
        }
        waiting = self.waiting[number] = asyncio.get_running_loop().create_future()
        subject = f"{self.prefix}.v1.msg.{case}.{NAME}.{agent}.{kind}"
        body = json.dumps(message).encode()
        await (self.stream.publish(subject, body) if self.stored else self.connection.publish(subject, body))
        return await waiting

    async def run(self, case: str, task: Json) -> None:
        """One case from its task to its decision."""
        tasks = (self.ask(case, agent, "task_assignment", {"task": task}) for agent in self.agents)
        findings = {finding["from_agent"]: finding["payload"] for finding in await asyncio.gather(*tasks)}
        conflicts = conflicts_of(findings)
        settled = await asyncio.gather(*(self.settle(case, on, positions) for on, positions in conflicts.items()))
        decision = {
            "case_id": case,
            "findings": findings,
            "conflicts": settled,
        }
        await self.stream.publish(f"by_hand.decided.{case}", json.dumps(decision).encode())

    async def settle(self, case: str, on: str, positions: Json) -> Json:
        """Ask each party of a conflict what it says to the others' positions, and count."""
        questions = (
            self.ask(case, agent, "question", {"subject": on, "own": position, "other_positions": positions})
            for agent, position in positions.items()
        )
        answers = {answer["from_agent"]: answer["payload"] for answer in await asyncio.gather(*questions)}
        kept = {agent: positions[agent] for agent, answer in answers.items() if not answer["agrees_with_peer"]}
        values = list((kept or positions).values())
        result = median(values) if on == "risk_score" else max(sorted(set(values)), key=values.count)
        return {"subject": on, "positions": positions, "answers": answers, "result": result}


def conflicts_of(findings: Json) -> Json:
    """The subjects on which findings conflict, each with the positions of its parties."""
    conflicts: Json = {}
    for subject in ("risk_score", "recommendation"):
        positions = {agent: finding[subject] for agent, finding in findings.items() if subject in finding}
        values = set(positions.values())
        apart = max(values) - min(values) > RISK_TOLERANCE if subject == "risk_score" and values else len(values) > 1
        if apart:
            conflicts[subject] = positions
    return conflicts


async def run(server: str, prefix: str, agents: list[str], stored: bool) -> None:
    """Run cases until the connection is closed for good."""
    connection = await nats.connect(server, name=NAME)
    await Orchestrator(connection, prefix, agents, stored).start()
    print("ready", flush=True)
    while not connection.is_closed:
        await asyncio.sleep(1)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--agents", required=True, nargs="+")
    parser.add_argument("--stored", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.server, arguments.prefix, arguments.agents, arguments.stored))


if __name__ == "__main__":
    main()

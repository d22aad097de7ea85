"""Does what `clients/conformance.json` asks of a client library, as the agent it names, until it is ended.

Run by the tests of the workspace, which play everybody else: `conformance.py SERVER FILE [durable] [card]`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from concord_agent import Agent, Message, RequestError


async def call(agent: Agent, message: Message, name: str, arguments: dict[str, Any]) -> None:
    """One call of a case."""
    match name:
        case "finding" | "agree" | "disagree" | "revise" | "respond":
            await getattr(agent, name)(message, **arguments)
        case "acknowledge_and_respond":
            await agent.reply(message, "acknowledgement", {})
            await agent.respond(message, **arguments)
        case "part_and_result":
            for payload in (arguments["part"], arguments["result"]):
                await agent.reply(message, "task_result", payload)
        case "tell":
            for event in arguments["events"]:
                await agent.reply(message, "notification", {"event": event})
        case "refuse":
            await agent.refuse(message, arguments["code"], arguments["message"], [arguments["suggestion"]])
        case "fail":
            raise RuntimeError("as the case wants it")
        case "request":
            try:
                outcome: dict[str, Any] = {"result": await agent.request(**arguments)}
            except RequestError as error:
                outcome = {"error": error.code}
            await agent.send("observer", "info_update", outcome)
        case "request_batch":
            results = await agent.request_batch(**arguments)
            told = [{"error": one.code} if isinstance(one, RequestError) else {"result": one} for one in results]
            await agent.send("observer", "info_update", {"results": told})
        case "add_participant":
            joined = await agent.add_participant(**arguments)
            await agent.send("observer", "info_update", {"result": joined})
        case _:
            await getattr(agent, name)(**arguments)


def repeated(value: Any) -> Any:
    """With the texts written out that are too long to be in the file: `{"repeat": TEXT, "times": N}`."""
    match value:
        case {"repeat": str(text), "times": int(times)}:
            return text * times
        case dict():
            return {name: repeated(field) for name, field in value.items()}
        case list():
            return [repeated(item) for item in value]
        case _:
            return value


CARD: dict[str, Any] = {"skills": [{"name": "tax", "examples": ["What is VAT?"]}], "heartbeat_ms": 100}


async def main(server: str, path: str, how: list[str]) -> None:
    conformance = repeated(json.loads(Path(path).read_text("utf-8")))
    cases = {case["name"]: case for case in conformance["cases"]}
    card = CARD if "card" in how else {}
    agent = Agent(conformance["agent"], durable="durable" in how, compress_over=1_024, **card)

    @agent.on("*")
    async def heard(message: Message) -> None:
        case = cases[message.metadata["conformance"]]
        await call(agent, message, case["call"], case["arguments"])

    async with await agent.connect(server):
        print("listening", flush=True)
        # Ends with its input.
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

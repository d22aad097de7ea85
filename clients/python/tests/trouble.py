"""An agent in trouble, as the tests of the workspace want it, until it is ended: `trouble.py SERVER waiting|retry`.

`waiting`: it asks `ben` before it answers a request, with a durable inbox. `retry`: its first registration is refused, and it
connects again; it answers a request with how often it has heard it.
"""

from __future__ import annotations

import asyncio
import collections
import sys

from concord_agent import Agent, Message, RequestError


async def main(server: str, how: str) -> None:
    retries = how == "retry"
    card = {"skills": [{"name": "tax", "examples": ["What is VAT?"]}]} if retries else {}
    agent = Agent("ann", durable=not retries, **card)
    heard: collections.Counter[str] = collections.Counter()

    @agent.on("request")
    async def answer(request: Message) -> None:
        heard[request.message_id] += 1
        result = {"heard": heard.total()} if retries else await agent.request("ben", "help")
        await agent.respond(request, result)

    if retries:
        try:
            await agent.connect(server)
        except RequestError:
            pass
    async with await agent.connect(server):
        print("listening", flush=True)
        # Ends with its input.
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""An agent in trouble, as the tests of the workspace want it, until it is ended: `trouble.py SERVER waiting|holding|retry|again`.

`waiting`: it asks `ben` before it answers a request to `think`, with a durable inbox, and tells `zoe` of what is no request.
`holding`: it tells `observer` that it has begun with a request, and never comes to its end, with a durable inbox. `retry`: its
first registration is refused, and it connects again; it answers a request with how often it has heard it. `again`: it
connects, closes, and connects again.
"""

from __future__ import annotations

import asyncio
import collections
import sys

from concord_agent import Agent, Message, RequestError


async def main(server: str, how: str) -> None:
    retries, again = how == "retry", how == "again"
    card = {"skills": [{"name": "tax", "examples": ["What is VAT?"]}], "heartbeat_ms": 100} if retries or again else {}
    agent = Agent("ann", durable=not card, **card)
    heard: collections.Counter[str] = collections.Counter()

    @agent.on("request")
    async def answer(request: Message) -> None:
        heard[request.message_id] += 1
        if request.payload["action"] == "hold":
            await agent.send("observer", "info_update", {"begun": request.message_id})
            await asyncio.Event().wait()
        if how == "waiting" and request.payload["action"] == "think":
            await agent.request("ben", "help")
        await agent.respond(request, {"heard": heard.total()})

    @agent.on("*")
    async def other(message: Message) -> None:
        await agent.send("zoe", "info_update", {"stray": message.message_id})

    if retries:
        try:
            await agent.connect(server)
        except RequestError:
            pass
    if again:
        await (await agent.connect(server)).close()
    async with await agent.connect(server):
        print("listening", flush=True)
        # Ends with its input.
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""Shared memory: what an agent knows, by topic, with its history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .checks import listed
from .message import Json, Message
from .waiting import REQUEST_TIMEOUT

if TYPE_CHECKING:
    from .asking import Asker

#: What a handler is registered for that writes before a debate takes its snapshot.
MEMORY_SYNC = "memory_sync"
#: The longest that a write is held for one debate, whatever a message says, in seconds.
HOLD_MAX = 60.0
log = logging.getLogger("concord_agent")


class Memory:
    """The memory of an agent, which it alone writes, and a look into that of others.

    When a debate begins, its parties are asked to write what they know. The handler for `"memory_sync"` writes first; then
    further writes are held until the snapshot is taken or the time is over, whoever has failed.
    """

    def __init__(self, agent: Asker) -> None:
        self._agent = agent
        self._writing = 0
        # The debates for which writes are held, and until when.
        self._held: dict[str, float] = {}
        self._changed = asyncio.Condition()

    async def put(
        self,
        topic: str,
        value: Any,
        importance: float,
        *,
        confidence: float | None = None,
        evidence: Sequence[str] = (),
        tags: Sequence[str] = (),
        based_on: int | None = None,
        case_id: str | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Json:
        """Writes a topic of this agent's own memory, and waits until it is kept: `{"topic", "version", "since"}`, in a case whose policy
        tells of entries with `"reach"`: `broadcast`, `held` or `kept`.

        Args:
            topic: letters, digits, `-` and `_`.
            value: any JSON; None says that nothing is known any more. What was known before remains in the history.
            importance: how much it matters, 0 to 1.
            confidence: how sure this agent is, 0 to 1.
            evidence: what it rests on.
            tags: words under which it is found.
            based_on: the version that was read; it is refused where another one stands. 0 where there is to be none.
            case_id: the case that it belongs to; only who is in that case reads it. Everybody reads what belongs to none.

        Raises:
            TypeError: `evidence` or `tags` is one text and no list.
            RequestError: it is refused, and its text says what to do.
            RequestTimeout: nobody says whether it is kept. The same again is another version.
        """
        given = {
            "confidence": confidence,
            "evidence": listed("evidence", evidence) or None,
            "tags": listed("tags", tags) or None,
            "based_on": based_on,
        }
        entry = {"topic": topic, "value": value, "importance": importance}
        entry |= {name: field for name, field in given.items() if field is not None}
        fields = {"timeout": timeout, "case_id": case_id}
        await self._begin()
        try:
            kept: Json = await self._agent.request("coordinator", "memory_put", entry, **fields)
            return kept
        finally:
            await self._end()

    async def get(self, agent: str, topic: str, as_of: str | None = None) -> Json | None:
        """A topic of an agent's memory with its value, as it stands or as of a snapshot; None where there is none, or none that this
        agent may read."""
        entries = (await self._ask(agent=agent, topic=topic, as_of=as_of))["entries"]
        return entries[0] if entries else None

    async def list(self, agent: str | None = None, *, case_id: str | None = None, as_of: str | None = None) -> Json:
        """The topics of an agent, or of a case, without their values: `{"as_of": "snap_...", "entries": [...], "more": ...}`. Asked for
        again as of that snapshot, the answer is the same for ever. With neither: `{"agents": [...]}`, who has any memory."""
        return await self._ask(agent=agent, case_id=case_id, as_of=as_of)

    async def insights(self, case_id: str) -> Json:
        """What everybody in a case was told of, as it stands, with its values and whose memory it is in: `{"as_of": "snap_...",
        "entries": [...], "more": ...}`. `@agent.on("insight_shared")` hears of each when it is written."""
        return await self._ask(case_id=case_id, insights=True)

    async def history(self, agent: str, topic: str) -> Sequence[Json]:
        """Every version of a topic, the oldest first."""
        entries: Any = []
        after, as_of = 0, None
        while True:
            page = await self._ask(agent=agent, topic=topic, history=True, after=after, as_of=as_of)
            entries += page["entries"]
            if not page["more"]:
                return tuple(entries)
            after, as_of = entries[-1]["version"], page["as_of"]

    def heard(
        self, message: Message, handler: Callable[[Message], Awaitable[None]] | None
    ) -> asyncio.Task[None] | None:
        """Does what a message says about the snapshot of a debate that begins."""
        if message.message_type != "notification" or message.from_agent != "debate-facilitator":
            return None
        event, data = message.payload.get("event"), message.payload.get("data") or {}
        if event == "memory_synced":
            return asyncio.create_task(self._release(str(data.get("debate_id"))))
        if event == MEMORY_SYNC:
            return asyncio.create_task(self._flush(message, data, handler))
        return None

    async def _flush(
        self, message: Message, data: Json, handler: Callable[[Message], Awaitable[None]] | None
    ) -> None:
        left = datetime.fromisoformat(str(data["until"])) - datetime.now(UTC)
        until = _now() + max(0.0, min(left.total_seconds(), HOLD_MAX))
        try:
            if handler is not None:
                await asyncio.wait_for(asyncio.ensure_future(handler(message)), until - _now())
        except Exception as why:  # noqa: BLE001 - whatever a handler raises, the debate begins.
            log.warning("%s: not everything was written before the snapshot: %s", self._agent.agent_id, why)
        async with self._changed:
            self._held[str(data["debate_id"])] = until
            try:
                await asyncio.wait_for(self._changed.wait_for(lambda: self._writing == 0), until - _now())
            except TimeoutError:
                return
        await self._agent.reply(message, "acknowledgement", {})

    async def _release(self, debate: str) -> None:
        async with self._changed:
            self._held.pop(debate, None)
            self._changed.notify_all()

    async def _begin(self) -> None:
        async with self._changed:
            while (until := max(self._held.values(), default=0.0)) > _now():
                try:
                    await asyncio.wait_for(self._changed.wait(), until - _now())
                except TimeoutError:
                    break
            self._held = {debate: until for debate, until in self._held.items() if until > _now()}
            self._writing += 1

    async def _end(self) -> None:
        async with self._changed:
            self._writing -= 1
            self._changed.notify_all()

    async def _ask(self, **asked: Any) -> Json:
        return await self._agent.query_service("coordinator", "memory", asked)


def _now() -> float:
    return asyncio.get_running_loop().time()

"""Holding what is written into memory while a debate takes its snapshot, without a broker."""

import asyncio
import unittest
from datetime import UTC, datetime, timedelta
from typing import Any

from concord_agent.memory import Memory
from concord_agent.message import Message


class Coordinator:
    """In place of an agent: keeps what is asked for, when it may."""

    agent_id = "ann"

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.acknowledged: list[list[str]] = []
        self.may_keep = asyncio.Event()

    async def request(self, _to: str, _action: str, entry: dict[str, Any], **_: Any) -> dict[str, Any]:
        await self.may_keep.wait()
        self.kept.append(entry["topic"])
        return entry

    async def reply(self, _message: Message, _kind: str, _payload: dict[str, Any]) -> None:
        self.acknowledged.append(list(self.kept))


def told(event: str, within_ms: int = 60_000) -> Message:
    until = datetime.now(UTC) + timedelta(milliseconds=within_ms)
    data = {"debate_id": "d-1", "until": until.isoformat()}
    names = ("message_id", "timestamp", "from_agent", "to_agent", "message_type", "payload")
    payload = {"event": event, "data": data}
    values = ("m-1", "2026-11-21T20:00:00Z", "debate-facilitator", "ann", "notification", payload)
    return Message.of(dict(zip(names, values, strict=True)))


class Holding(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.coordinator = Coordinator()
        self.memory = Memory(self.coordinator)  # type: ignore[arg-type]

    async def test_what_is_under_way_is_kept_first_and_the_rest_waits_for_the_snapshot(self) -> None:
        async def writes(_: Message) -> None:
            await self.memory.put("flushed", 1, 0.5)

        under_way = asyncio.create_task(self.memory.put("under_way", 1, 0.5))
        await asyncio.sleep(0)
        syncing = self.memory.heard(told("memory_sync"), writes)
        assert syncing is not None
        self.coordinator.may_keep.set()
        await asyncio.gather(under_way, syncing)
        self.assertEqual([sorted(kept) for kept in self.coordinator.acknowledged], [["flushed", "under_way"]])
        later = asyncio.create_task(self.memory.put("later", 1, 0.5))
        done, _ = await asyncio.wait([later], timeout=0.05)
        self.assertFalse(done, "it is held")
        released = self.memory.heard(told("memory_synced"), None)
        assert released is not None
        await released
        await later
        self.assertIn("later", self.coordinator.kept)

    async def test_a_hold_whose_holder_is_dead_is_over_in_time(self) -> None:
        self.coordinator.may_keep.set()
        syncing = self.memory.heard(told("memory_sync", within_ms=50), None)
        assert syncing is not None
        await syncing
        await asyncio.wait_for(self.memory.put("later", 1, 0.5), 10)

    async def test_others_hold_nothing(self) -> None:
        forged = told("memory_sync")
        forged = Message.of(forged.raw | {"from_agent": "mallory"})
        self.assertIsNone(self.memory.heard(forged, None))


if __name__ == "__main__":
    unittest.main()

"""What strangers can make an agent do, and what it says again and again, with a real broker."""

import asyncio
import json
import logging
import unittest
from typing import Any

import nats
from broker import Broker
from nats.aio.msg import Msg

from concord_agent import Agent, ConcordError, Message, RequestError, RequestTimeout

#: Longer than anything here takes.
PATIENCE = 20.0


class Said(logging.Handler):
    """Whether anything was logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.something = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.something.set()


class Hearing(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.broker = self.enterContext(Broker())
        self.client = await nats.connect(self.broker.url)
        self.addAsyncCleanup(self.client.close)
        for name, lane in (("CONCORD_MESSAGES", "msg"), ("CONCORD_URGENT", "urgent")):
            await self.client.jetstream().add_stream(name=name, subjects=[f"concord.v1.{lane}.>"])

    async def connected(self, name: str, **card: Any) -> Agent:
        agent = await Agent(name, **card).connect(self.broker.url)
        self.addAsyncCleanup(agent.close, 0.1)
        return agent

    async def stored(self, subject: str, count: int) -> int:
        """How many messages are stored on a subject, when there are so many: whoever subscribes hears them before that."""
        stream = self.client.jetstream()
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await stream.stream_info("CONCORD_MESSAGES", subjects_filter=subject)
                stored = sum((found.state.subjects or {}).values())
                if stored >= count:
                    return stored
                await asyncio.sleep(0.02)

    async def test_whoever_is_answered_first_under_an_id_takes_that_answer_from_nobody_else(self) -> None:
        ann, mallory, zoe = [await self.connected(name) for name in ("ann", "mallory", "zoe")]

        @ann.on("request")
        async def help_out(request: Message) -> None:
            await ann.respond(request, {"for": request.from_agent})

        for asker in (mallory, zoe):
            await asker.request("ann", "help", message_id="r-9")
            subject = f"concord.v1.msg._.ann.{asker.agent_id}.response"
            self.assertEqual(await self.stored(subject, 1), 1)

    async def test_what_comes_after_a_part_of_a_result_is_stored(self) -> None:
        for end, payload in (("task_result", {"status": "success"}), ("error", {"error_code": "INTERNAL_ERROR"})):
            ann, boss = [await self.connected(f"{name}-{end}") for name in ("ann", "boss")]
            said: list[str] = []

            @ann.on("task_assignment")
            async def work(task: Message, ann: Agent = ann, said: list[str] = said, last: Any = (end, payload)) -> None:
                for kind, what in (("task_result", {"status": "partial", "result": 1}),) * 2 + (last,):
                    said.append(await ann.reply(task, kind, what))
                with self.assertLogs("concord_agent", "WARNING") as logged:
                    await ann.reply(task, *last)
                self.assertIn(f"under the message_id t-{last[0]}-ann-{last[0]} before", logged.output[0])
                await ann.reply(task, "acknowledgement", {})

            done = asyncio.Event()

            @boss.on("acknowledgement")
            async def end_it(_: Message, done: asyncio.Event = done) -> None:
                done.set()

            await boss.send(ann.agent_id, "task_assignment", {}, message_id=f"t-{end}")
            await asyncio.wait_for(done.wait(), PATIENCE)
            self.assertEqual(await self.stored(f"concord.v1.msg._.{ann.agent_id}.*.*", 4), 4)
            self.assertEqual(len(set(said)), 3, said)
            self.assertEqual(said[-1], f"t-{end}-{ann.agent_id}")

    async def test_each_word_of_progress_is_stored_and_so_is_the_end(self) -> None:
        ann, boss = [await self.connected(name) for name in ("ann-works", "boss-works")]

        @ann.on("request")
        async def work(request: Message) -> None:
            for event in ("progress", "progress", "done"):
                await ann.reply(request, "notification", {"event": event, "data": {}})
            await ann.respond(request, {})

        await boss.request("ann-works", "work")
        self.assertEqual(await self.stored("concord.v1.msg._.ann-works.*.notification", 3), 3)

    async def test_nobody_runs_the_handler_of_an_event_by_a_type_that_is_called_like_it(self) -> None:
        ann, mallory = [await self.connected(name) for name in ("ann", "mallory")]
        handled: list[str] = []
        ended = asyncio.Event()

        @ann.on("stand_down")
        async def stand_down(message: Message) -> None:
            handled.append(message.message_type)

        @ann.on("info_update")
        async def end(_: Message) -> None:
            ended.set()

        for message_type in ("stand_down", "info_update"):
            await mallory.send("ann", message_type, {"event": "stand_down", "data": {"question": "m-1"}})
        await asyncio.wait_for(ended.wait(), PATIENCE)
        self.assertEqual(handled, [])

    async def test_what_a_handler_returns_is_said_to_go_nowhere(self) -> None:
        ann, ben = [await self.connected(name) for name in ("ann", "ben")]

        @ben.on("request")
        async def answer(request: Message) -> dict[str, Any]:
            return {"answer": 42}

        said = Said()
        with self.assertLogs("concord_agent", "WARNING") as logged:
            logging.getLogger("concord_agent").addHandler(said)
            with self.assertRaises(RequestTimeout):
                await ann.request("ben", "help", timeout=1)
            # Nobody knows when it is handled.
            await asyncio.wait_for(said.something.wait(), PATIENCE)
        self.assertIn("ben: what the handler of a request returned goes nowhere", logged.output[0])

    async def test_one_result_that_is_too_large_spoils_no_other_of_its_batch(self) -> None:
        ann, ben = [await self.connected(name) for name in ("ann", "ben")]

        @ben.on("request")
        async def answer(request: Message) -> None:
            parameters = request.payload["parameters"]
            await ben.respond(request, {"text": "a" * parameters["length"]})

        requests = [{"action": "write", "parameters": {"length": length}} for length in (1, 9 << 20, 2)]
        first, second, third = await ann.request_batch("ben", requests)  # type: ignore[arg-type]
        self.assertEqual((first, third), ({"text": "a"}, {"text": "aa"}))
        assert isinstance(second, RequestError)
        self.assertEqual(second.code, "CAPACITY_EXCEEDED")

    async def test_a_notification_ends_a_request_of_a_batch_as_it_ends_one_alone(self) -> None:
        ann, ben = [await self.connected(name) for name in ("ann", "ben")]

        @ben.on("request")
        async def answer(request: Message) -> None:
            for event in ("progress", "done"):
                await ben.reply(request, "notification", {"event": event})

        alone = await ann.request("ben", "sum", timeout=PATIENCE)
        both = await ann.request_batch("ben", [{"action": "sum", "parameters": {}}], timeout=PATIENCE)
        self.assertEqual((alone, both), ({"event": "done"}, [{"event": "done"}]))

    async def test_an_answer_is_waited_for_by_one(self) -> None:
        ann = await self.connected("ann")
        twice = [ann.alert({}, message_id="a-1", timeout=0.2) for _ in range(2)]  # type: ignore[typeddict-item]
        first, second = await asyncio.gather(*twice, return_exceptions=True)
        self.assertIsInstance(first, RequestTimeout)
        self.assertIsInstance(second, ConcordError)
        self.assertIn("waited for already", str(second))

    async def coordinator(self, *agrees_to: str, refuses: str = "") -> asyncio.Queue[None]:
        """In the coordinator's place: agrees to these actions, refuses one unless it is to be silent, and answers nothing else. What it gives are
        the heartbeats."""
        beats: asyncio.Queue[None] = asyncio.Queue()

        async def heard(_: Msg) -> None:
            beats.put_nowait(None)

        async def agrees(request: Msg) -> None:
            asked = json.loads(request.data)
            action, parameters = asked["payload"]["action"], asked["payload"]["parameters"]
            if action in agrees_to:
                payload: dict[str, Any] = {"status": "success", "result": {}}
            elif action == refuses and parameters.get("description") != "silent":
                payload = {"status": "failure", "errors": ["no"]}
            else:
                return
            answer = asked | {
                "message_id": f"{asked['message_id']}-coordinator",
                "from_agent": "coordinator",
                "to_agent": "ann",
                "message_type": "response",
                "payload": payload,
                "reply_to": asked["message_id"],
            }
            await self.client.publish("concord.v1.msg._.coordinator.ann.response", json.dumps(answer).encode())

        await self.client.subscribe("concord.v1.beat.ann", cb=heard)
        await self.client.subscribe("concord.v1.msg.*.ann.coordinator.request", cb=agrees)
        await self.client.flush()
        return beats

    async def test_an_answer_is_waited_for_though_the_broker_does_not_say_that_it_has_the_request(self) -> None:
        await self.coordinator("sum")
        ann = await self.connected("ann")
        await self.client.jetstream().update_stream(name="CONCORD_MESSAGES", subjects=["concord.v1.msg.>"], no_ack=True)
        self.assertEqual(await ann.request("coordinator", "sum", timeout=PATIENCE), {})
        unanswered = ann.request("coordinator", "other", timeout=0.1)
        unsaid = ann.send("coordinator", "info_update", {})
        nobody, nothing = await asyncio.gather(unanswered, unsaid, return_exceptions=True)
        self.assertIsInstance(nobody, RequestTimeout)
        self.assertIn("It is not known whether the broker has stored the request", str(nobody))
        self.assertIn("it is not known whether the broker has stored the info_update", str(nothing))

    async def test_whoever_asks_again_under_the_same_id_is_heard_again(self) -> None:
        ann, ben = await self.connected("ann"), await Agent("ben", durable=True).connect(self.broker.url)
        self.addAsyncCleanup(ben.close, 0.1)
        heard: list[str] = []

        @ben.on("request")
        async def answer(request: Message) -> None:
            heard.append(request.message_id)
            if len(heard) > 1:
                await ben.respond(request, {"heard": len(heard)})

        with self.assertRaises(RequestTimeout):
            await ann.request("ben", "sum", message_id="r-1", timeout=1)
        self.assertEqual(await ann.request("ben", "sum", message_id="r-1", timeout=PATIENCE), {"heard": 2})

    async def test_heartbeats_follow_a_change_of_their_interval(self) -> None:
        beats = await self.coordinator("register_agent", "update_agent")
        # An operator has registered the second.
        for card in ({"skills": [{"name": "tax"}]}, {}):
            async with await Agent("ann", **card).connect(self.broker.url) as ann:
                for every, count in ((100, 4), (3_600_000, 1), (120, 4)):
                    await ann.update(heartbeat_ms=every)
                    for _ in range(count):
                        await asyncio.wait_for(beats.get(), PATIENCE)
                    while not beats.empty():
                        beats.get_nowait()

    async def test_a_shorter_interval_counts_before_it_is_answered(self) -> None:
        beats = await self.coordinator("register_agent")
        ann = await self.connected("ann", skills=[{"name": "tax"}], heartbeat_ms=3_600_000)
        updating = asyncio.create_task(ann.update(heartbeat_ms=100))
        for _ in range(5):
            await asyncio.wait_for(beats.get(), PATIENCE)
        self.assertFalse(updating.done())
        updating.cancel()

    async def test_what_is_refused_changes_no_heartbeats(self) -> None:
        beats = await self.coordinator("register_agent", refuses="update_agent")
        ann = await self.connected("ann", skills=[{"name": "tax"}], heartbeat_ms=3_600_000)
        # Nobody knows whether this change counts.
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(ann.update(heartbeat_ms=100, description="silent"), 0.2)
        for refused in ({"actions": ["x y"]}, {"heartbeat_ms": 5}, {"heartbeat_ms": True}):
            with self.assertRaises(RequestError):
                await ann.update(**refused)
            while not beats.empty():
                beats.get_nowait()
            # One that was on its way, and then of its own accord.
            for _ in range(3):
                await asyncio.wait_for(beats.get(), PATIENCE)

    async def test_how_an_agent_is_the_coordinator_is_told_by_a_message_too(self) -> None:
        beats = await self.coordinator("register_agent")
        ann = await self.connected("ann", skills=[{"name": "tax"}], heartbeat_ms=100)
        for status in ("busy", "available"):
            await ann.status(status)
            stored = await self.client.jetstream().get_last_msg("CONCORD_MESSAGES", "concord.v1.msg._.ann.coordinator.status")
            assert stored.data is not None
            self.assertEqual(json.loads(stored.data)["payload"], {"status": status})
        while not beats.empty():
            beats.get_nowait()
        for _ in range(3):
            await asyncio.wait_for(beats.get(), PATIENCE)
        stream = self.client.jetstream()
        found = await stream.stream_info("CONCORD_MESSAGES", subjects_filter="concord.v1.msg._.ann.coordinator.status")
        self.assertEqual(sum((found.state.subjects or {}).values()), 2, "a heartbeat is none")

    async def test_nobody_beats_who_is_not_connected(self) -> None:
        ann = Agent("ann", heartbeat_ms=100)
        with self.assertRaises(ConcordError):
            await ann.update(description="Tax")
        self.assertIsNone(ann._beat)

    async def test_of_two_changes_at_once_neither_is_lost(self) -> None:
        await self.coordinator("register_agent", "update_agent")
        ann = await self.connected("ann", skills=[{"name": "tax"}])
        await asyncio.gather(ann.update(description="Tax"), ann.update(heartbeat_ms=3_600_000))
        self.assertEqual(["Tax", 3_600_000], [ann._card.get(each) for each in ("description", "heartbeat_ms")])

    async def test_nothing_beats_on_after_its_agent_has_closed(self) -> None:
        await self.coordinator("register_agent", "update_agent")
        ann = await self.connected("ann", skills=[{"name": "tax"}], heartbeat_ms=3_600_000)
        ben = await self.connected("ben")
        begun, go_on = asyncio.Event(), asyncio.Event()

        @ann.on("info_update")
        async def change(_: Message) -> None:
            begun.set()
            await go_on.wait()
            await ann.update(heartbeat_ms=100)

        await ben.send("ann", "info_update", {})
        await asyncio.wait_for(begun.wait(), PATIENCE)
        closing = asyncio.create_task(ann.close())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(closing, PATIENCE)
        self.assertIsNone(ann._beat)


if __name__ == "__main__":
    unittest.main()

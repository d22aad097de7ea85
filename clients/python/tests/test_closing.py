"""How an agent closes, and what its handlers can still do meanwhile, with a real broker."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import unittest
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import nats
from broker import Broker
from nats.aio.msg import Msg

from concord_agent import Agent, Message, RequestError, ending

#: Longer than anything here takes.
PATIENCE = 20.0

SERVING = """
import signal
# Whoever is started in the background by a shell ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from concord_agent import Agent
class Serving(Agent):
    async def connect(self, *given, **options):
        connected = await super().connect(*given, **options)
        print("listens", flush=True)
        return connected
import sys
Serving("ann").run(sys.argv[1])
print("closed")
"""


async def streams(url: str) -> None:
    client = await nats.connect(url)
    for name, lane in (("CONCORD_MESSAGES", "msg"), ("CONCORD_URGENT", "urgent")):
        await client.jetstream().add_stream(name=name, subjects=[f"concord.v1.{lane}.>"])
    await client.close()


class Closing(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.broker = self.enterContext(Broker())
        await streams(self.broker.url)
        self.ann, self.ben = Agent("ann"), Agent("ben")
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def connect(self) -> None:
        for agent in (self.ann, self.ben):
            await agent.connect(self.broker.url)
            self.addAsyncCleanup(agent.close, 0.1)

    async def test_a_handler_under_way_is_answered_while_its_agent_closes(self) -> None:
        @self.ben.on("request")
        async def help_out(request: Message) -> None:
            await self.ben.respond(request, {"help": "yes"})

        @self.ann.on("request")
        async def think(request: Message) -> None:
            self.begun.set()
            await self.go_on.wait()
            await self.ann.respond(request, await self.ann.request("ben", "help", timeout=PATIENCE))

        await self.connect()
        asked = asyncio.create_task(self.ben.request("ann", "think"))
        await asyncio.wait_for(self.begun.wait(), PATIENCE)
        closing = asyncio.create_task(self.ann.close())
        await asyncio.sleep(0)
        self.go_on.set()
        self.assertEqual(await asyncio.wait_for(asked, PATIENCE), {"help": "yes"})
        await asyncio.wait_for(closing, PATIENCE)

    async def test_nothing_new_is_begun_while_an_agent_closes(self) -> None:
        heard: list[str] = []

        @self.ann.on("request")
        async def think(request: Message) -> None:
            heard.append(request.payload["action"])
            self.begun.set()
            await self.go_on.wait()
            await self.ann.respond(request, {})

        await self.connect()
        first = asyncio.create_task(self.ben.request("ann", "first"))
        await asyncio.wait_for(self.begun.wait(), PATIENCE)
        closing = asyncio.create_task(self.ann.close())
        await asyncio.sleep(0)
        await self.ben.send("ann", "request", {"action": "second", "parameters": {}})
        # It is there, had it been asked for.
        assert self.ann._client is not None
        await self.ann._client.flush()
        self.go_on.set()
        await asyncio.wait_for(first, PATIENCE)
        await asyncio.wait_for(closing, PATIENCE)
        self.assertEqual(heard, ["first"])

    async def test_a_handler_that_hangs_is_ended_and_its_asker_told(self) -> None:
        @self.ann.on("request")
        async def hang(_: Message) -> None:
            self.begun.set()
            await asyncio.Event().wait()

        await self.connect()
        asked = asyncio.create_task(self.ben.request("ann", "hang"))
        await asyncio.wait_for(self.begun.wait(), PATIENCE)
        with self.assertLogs("concord_agent", "WARNING") as log:
            await asyncio.wait_for(self.ann.close(0.1), PATIENCE)
        self.assertIn("request", "".join(log.output))
        with self.assertRaisesRegex(RequestError, "INTERNAL_ERROR: ann was closed before it had finished. Ask again."):
            await asyncio.wait_for(asked, PATIENCE)

    async def test_what_is_cut_off_is_given_back_at_once(self) -> None:
        first, again = Agent("ann", durable=True), Agent("ann", durable=True)
        heard: list[str] = []

        @first.on("request")
        async def hang(_: Message) -> None:
            self.begun.set()
            await asyncio.Event().wait()

        @again.on("request")
        async def hear(request: Message) -> None:
            heard.append(request.message_id)
            self.go_on.set()

        await first.connect(self.broker.url)
        await self.say("cat", "request", {"action": "hang", "parameters": {}})
        await asyncio.wait_for(self.begun.wait(), PATIENCE)
        with self.assertLogs("concord_agent", "WARNING"):
            await asyncio.wait_for(first.close(0.1), PATIENCE)
        async with await again.connect(self.broker.url):
            # Less than the broker waits for an acknowledgement.
            await asyncio.wait_for(self.go_on.wait(), PATIENCE)
        self.assertEqual(heard, ["m-cat"])

    async def test_a_handler_may_close_its_agent(self) -> None:
        @self.ann.on("request")
        async def stop(request: Message) -> None:
            await self.ann.close()
            await self.ann.respond(request, {"last": True})

        await self.connect()
        self.assertEqual(await asyncio.wait_for(self.ben.request("ann", "stop"), PATIENCE), {"last": True})
        await asyncio.wait_for(self.ann._ended.wait(), PATIENCE)
        self.assertIsNone(self.ann._client)

    async def test_a_handler_in_which_something_is_cancelled_has_failed(self) -> None:
        @self.ann.on("request")
        async def cancelled(_: Message) -> None:
            within = asyncio.create_task(asyncio.sleep(PATIENCE))
            within.cancel()
            await within

        await self.connect()
        with self.assertLogs("concord_agent", "ERROR"), self.assertRaisesRegex(RequestError, "ann failed: CancelledError"):
            await self.ben.request("ann", "cancelled", timeout=PATIENCE)

    async def test_a_request_lasts_as_long_as_it_is_waited_for(self) -> None:
        seen: dict[str, Any] = {}

        @self.ben.on("request")
        async def answer(request: Message) -> None:
            seen[request.payload["action"]] = request.deadline
            await self.ben.respond(request, {})

        await self.connect()
        await self.ann.request("ben", "long", timeout=45)
        await self.ann.request("ben", "usual")
        await self.ann.request("ben", "stated", timeout=45, deadline="2030-01-01T00:00:00Z")
        self.assertIsNotNone(seen["long"])
        self.assertEqual((seen["usual"], seen["stated"]), (None, "2030-01-01T00:00:00Z"))

    async def test_a_program_that_is_told_to_end_closes_in_good_order(self) -> None:
        for name in (signal.SIGTERM, signal.SIGINT):
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            program = subprocess.Popen(
                [sys.executable, "-c", SERVING, self.broker.url], stdout=subprocess.PIPE, text=True, env=environment
            )
            self.addCleanup(program.kill)
            assert program.stdout is not None
            self.assertEqual(await asyncio.to_thread(program.stdout.readline), "listens\n")
            program.send_signal(name)
            out, _ = await asyncio.to_thread(program.communicate, timeout=PATIENCE)
            self.assertEqual((out, program.returncode), ("closed\n", 0), name)

    async def outsider(self) -> nats.NATS:
        client = await nats.connect(self.broker.url)
        self.addAsyncCleanup(client.close)
        return client

    async def coordinator(self) -> "asyncio.Queue[str]":
        """Somebody who registers whoever asks for it; the answer is what ann says to it, and of herself."""
        client, said = await self.outsider(), asyncio.Queue[str]()

        async def register(request: Msg) -> None:
            asked = json.loads(request.data)
            said.put_nowait(asked["payload"]["action"])
            named = {"from_agent": "coordinator", "to_agent": "ann", "reply_to": asked["message_id"], "message_type": "response"}
            answer = {"message_id": f"a-{asked['message_id']}", "timestamp": asked["timestamp"], "payload": {"status": "success", "result": {}}}
            await client.publish("concord.v1.msg._.coordinator.ann.response", json.dumps(named | answer).encode())

        async def make_inbox(request: Msg) -> None:
            await request.respond(b"{}")

        async def beat(told: Msg) -> None:
            said.put_nowait(json.loads(told.data)["status"])

        await client.subscribe("concord.v1.msg.*.ann.coordinator.request", cb=register)
        await client.subscribe("concord.v1.api.coordinator.inbox.ann", cb=make_inbox)
        await client.subscribe("concord.v1.beat.ann", cb=beat)
        await client.flush()
        return said

    async def hears(self, said: "asyncio.Queue[str]", *words: str) -> None:
        for word in words:
            self.assertEqual(await asyncio.wait_for(said.get(), PATIENCE), word)

    async def test_an_agent_with_a_registered_inbox_says_goodbye(self) -> None:
        said = await self.coordinator()
        self.ann = Agent("ann", registered_inbox=True, description="Thinks.")
        await self.connect()
        await self.hears(said, "register_agent", "available")
        with self.assertNoLogs("concord_agent", "WARNING"):
            await asyncio.wait_for(self.ann.close(), PATIENCE)
        await self.hears(said, "unavailable", "deregister_agent")

    async def test_an_agent_that_stays_registered_says_no_goodbye(self) -> None:
        said = await self.coordinator()
        self.ann = Agent("ann", stays_registered=True, description="Thinks.")
        await self.connect()
        await self.hears(said, "register_agent", "available")
        await asyncio.wait_for(self.ann.close(), PATIENCE)
        await self.ben.send("coordinator", "info_update", {})
        await (await self.outsider()).flush()
        self.assertTrue(said.empty())

    async def test_an_agent_runs_in_any_thread(self) -> None:
        @self.ann.on("request")
        async def stop(request: Message) -> None:
            await self.ann.respond(request, {"last": True})
            await self.ann.close()

        client, registered = await self.outsider(), asyncio.Event()

        async def beat(_: Msg) -> None:
            registered.set()

        await client.subscribe("concord.v1.beat.ann", cb=beat)
        await client.flush()
        await self.coordinator()
        await self.ben.connect(self.broker.url)
        self.addAsyncCleanup(self.ben.close, 0.1)
        self.ann._card = {"description": "Thinks."}
        running = threading.Thread(target=self.ann.run, args=(self.broker.url,), daemon=True)
        running.start()
        await asyncio.wait_for(registered.wait(), PATIENCE)
        self.assertEqual(await self.ben.request("ann", "stop", timeout=PATIENCE), {"last": True})
        await asyncio.to_thread(running.join, PATIENCE)
        self.assertFalse(running.is_alive())

    async def test_the_requests_of_a_batch_end_with_their_agent(self) -> None:
        ended: list[str] = []

        @self.ann.on("request")
        async def hang(request: Message) -> None:
            try:
                self.begun.set()
                await asyncio.Event().wait()
            finally:
                ended.append(request.payload["action"])

        await self.connect()
        requests: list[Any] = [{"action": action, "parameters": {}} for action in ("first", "second")]
        asked = asyncio.create_task(self.ben.request_batch("ann", requests))
        await asyncio.wait_for(self.begun.wait(), PATIENCE)
        with self.assertLogs("concord_agent", "WARNING"):
            await asyncio.wait_for(self.ann.close(0.1), PATIENCE)
        self.assertEqual(ended, ["first", "second"])
        with self.assertRaisesRegex(RequestError, "ann was closed"):
            await asyncio.wait_for(asked, PATIENCE)

    async def test_an_agent_closes_though_somebody_does_not_wait_for_it_any_more(self) -> None:
        @self.ann.on("request")
        async def think(request: Message) -> None:
            self.begun.set()
            await self.go_on.wait()
            await self.ann.respond(request, {"thought": True})

        await self.connect()
        asked = asyncio.create_task(self.ben.request("ann", "think", timeout=PATIENCE))
        await asyncio.wait_for(self.begun.wait(), PATIENCE)
        hasty = asyncio.create_task(self.ann.close())
        await asyncio.sleep(0)
        patient = asyncio.create_task(self.ann.close())
        await asyncio.sleep(0)
        hasty.cancel()
        await asyncio.wait([hasty])
        self.go_on.set()
        self.assertEqual(await asked, {"thought": True})
        await asyncio.wait_for(patient, PATIENCE)
        self.assertIsNone(self.ann._client)

    async def test_a_handler_that_writes_before_a_debate_may_close_its_agent(self) -> None:
        @self.ann.on("memory_sync")
        async def stop(_: Message) -> None:
            await self.ann.close()

        await self.connect()
        until = datetime.now(UTC) + timedelta(minutes=1)
        await self.say("debate-facilitator", "notification", {"event": "memory_sync", "data": {"debate_id": "d-1", "until": until.isoformat()}})
        await asyncio.wait_for(self.ann._ended.wait(), PATIENCE)
        self.assertIsNone(self.ann._client)

    async def say(self, sender: str, message_type: str, payload: dict[str, Any]) -> None:
        """Somebody says something to ann that wants an answer."""
        said = {
            "message_id": f"m-{sender}", "timestamp": "2026-01-01T00:00:00Z", "from_agent": sender, "to_agent": "ann",
            "message_type": message_type, "payload": payload, "requires_response": True,
        }
        client = await self.outsider()
        await client.publish(f"concord.v1.msg._.{sender}.ann.{message_type}", json.dumps(said).encode())
        await client.flush()

    async def test_a_handler_that_will_not_end_keeps_no_agent_open(self) -> None:
        async def stubborn(_: Message) -> None:
            self.begun.set()
            while True:
                with suppress(asyncio.CancelledError):
                    await self.go_on.wait()
                    return

        self.enterContext(patch.object(ending, "ENDS_WITHIN", 0.1))
        for ann in (self.ann, Agent("ann", durable=True)):
            self.begun.clear()
            ann.on("request")(stubborn)
            await ann.connect(self.broker.url)
            await self.say(f"cat-{ann._durable}", "request", {"action": "go", "parameters": {}})
            await asyncio.wait_for(self.begun.wait(), PATIENCE)
            with self.assertLogs("concord_agent", "WARNING"):
                closed, _ = await asyncio.wait([asyncio.create_task(ann.close(0.1))], timeout=PATIENCE)
            self.go_on.set()
            self.assertTrue(closed, ann._durable)
            self.go_on.clear()

    async def test_one_who_cannot_be_told_keeps_nobody_else_from_being_told(self) -> None:
        @self.ann.on("request")
        async def hang(_: Message) -> None:
            begun.release()
            await asyncio.Event().wait()

        said, begun = await self.coordinator(), asyncio.Semaphore(0)
        self.ann._card = {"description": "Thinks."}
        await self.connect()
        await self.hears(said, "register_agent", "available")
        # Nothing stores what is said to cat.
        kept = [f"concord.v1.msg.*.*.{name}.>" for name in ("ann", "ben", "coordinator")]
        assert self.ben._client is not None
        await self.ben._client.jetstream().update_stream(name="CONCORD_MESSAGES", subjects=kept)
        await self.say("cat", "request", {"action": "hang", "parameters": {}})
        await asyncio.wait_for(begun.acquire(), PATIENCE)
        asked = asyncio.create_task(self.ben.request("ann", "hang", timeout=PATIENCE))
        await asyncio.wait_for(begun.acquire(), PATIENCE)
        with self.assertLogs("concord_agent", "WARNING"):
            await asyncio.wait_for(self.ann.close(0.1), PATIENCE)
        with self.assertRaisesRegex(RequestError, "ann was closed"):
            await asked
        await self.hears(said, "unavailable", "deregister_agent")

    async def test_an_envelope_with_a_field_of_another_kind_is_not_handled(self) -> None:
        heard: list[str] = []

        @self.ann.on("request")
        async def hear(request: Message) -> None:
            heard.append(request.message_id)
            await self.ann.respond(request, {})

        await self.connect()
        client = await nats.connect(self.broker.url)
        self.addAsyncCleanup(client.close)
        whole = {
            "message_id": "m-0", "timestamp": "2026-01-01T00:00:00Z", "from_agent": "cat", "to_agent": "ann",
            "message_type": "request", "payload": {"action": "a", "parameters": {}},
        }
        wrong = [{"metadata": "words"}, {"correlation_id": ["x"]}, {"round": "1"}, {"round": True}, {"requires_response": "no"}]
        for place, fields in enumerate([*wrong, {}]):
            said = whole | {"message_id": f"m-{place}"} | fields
            await client.publish("concord.v1.msg._.cat.ann.request", json.dumps(said).encode())
        await client.flush()
        await self.ben.request("ann", "after")
        self.assertEqual(heard[0], f"m-{len(wrong)}")


if __name__ == "__main__":
    unittest.main()

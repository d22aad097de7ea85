"""A broker that has no room left, and one that gets room again: what services, publishers and operators see."""

import asyncio
import json
import unittest

import nats
from processes import Stage, free_ports, get, until

SERVICES = ("coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter")


class Storage(unittest.TestCase):
    def setUp(self):
        self.stage = self.enterContext(Stage())
        self.port, self.monitoring = free_ports(2)
        self.server = f"nats://127.0.0.1:{self.port}"

    def start(self, name, most):
        broker = self.stage.broker(name, f'listen: "127.0.0.1:{self.port}"\nhttp: "127.0.0.1:{self.monitoring}"\nmax_payload: 8MB\n'
                                         f'jetstream {{ store_dir: "{self.stage.folder}/data", max_file_store: {most} }}\n')
        until("the broker is healthy", lambda: get(f"http://127.0.0.1:{self.monitoring}/healthz")[0] == 200)
        return broker

    def doctor(self):
        done = self.stage.command("doctor", "--json", server=self.server, check=False)
        found = json.loads(done.stdout)
        return [check["found"] for check in found["checks"] if check["verdict"] == "fault"]

    async def fill(self):
        """Publishes until the broker refuses; what it says, and how many messages it has acknowledged."""
        client, acknowledged = await nats.connect(self.server), 0
        try:
            while True:
                await client.jetstream().publish("concord.v1.msg._.filler.nobody.note", b"x" * 200_000)
                acknowledged += 1
        except nats.js.errors.APIError as refusal:
            return str(refusal), acknowledged
        finally:
            await client.drain()

    def test_a_broker_at_its_limit_is_seen_and_goes_on_with_more_room(self):
        broker = self.start("small", "60MB")
        addresses = {}
        for service in SERVICES:
            settings = {"broker.servers": self.server, "storage.payload_store_bytes": "20000000"}
            _, addresses[service] = self.stage.service(service, settings)
        until("the doctor finds nothing", lambda: not self.doctor_without_settings())
        refusal, acknowledged = asyncio.run(self.fill())
        self.assertIn("insufficient resources", refusal)

        done = self.stage.command("person", "register", "eva", "--role", "reviewer", server=self.server, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no room", done.stdout + done.stderr)
        until("who was refused is not ready", lambda: any(
            "does not store in CONCORD_EVENTS" in get(f"{address}/readyz")[1] for address in addresses.values()))
        for fault in ("the broker stores nothing", "does not store in CONCORD_EVENTS"):
            until(f"the doctor says {fault}", lambda: any(fault in one for one in self.doctor_without_settings()))

        broker.terminate()
        broker.wait(30)
        self.start("large", "600MB")
        registered = lambda: self.stage.command(  # noqa: E731
            "person", "register", "eva", "--role", "reviewer", server=self.server, check=False).returncode == 0
        until("it stores again", registered)
        until("everybody is ready", lambda: all(get(f"{address}/readyz")[0] == 200 for address in addresses.values()), 90)
        # On a busy machine a replica may miss an answer of the broker once more.
        until("the doctor finds nothing", lambda: not self.doctor_without_settings(), 90)
        self.assertEqual(self.stage.command("check", server=self.server).returncode, 0)
        self.assertGreaterEqual(asyncio.run(self.stored()), acknowledged)

    def doctor_without_settings(self):
        """The faults, but for what follows from settings that whoever looks does not have."""
        return [found for found in self.doctor() if "OBJ_CONCORD_PAYLOADS: max_bytes" not in found]

    async def stored(self):
        client = await nats.connect(self.server)
        info = await client.jetstream().stream_info("CONCORD_MESSAGES")
        await client.drain()
        return info.state.messages


if __name__ == "__main__":
    unittest.main()

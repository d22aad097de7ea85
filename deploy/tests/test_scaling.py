"""Scaling by backlog: the triggers of the rendered ScaledObjects are asked as KEDA asks them, of three real nodes; then replicas come
and go as the numbers say, and nothing is lost. The operator of KEDA itself, and the autoscaler of Kubernetes, are not tried."""

import asyncio
import datetime
import json
import math
import os
import pathlib
import shutil
import statistics
import time
import unittest
import uuid

import nats
import yaml
from keda import NotFound, lag
from processes import NATS, Stage, free_ports, get, until

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
SERVICES = ("coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter")
HOSTS = ("127.0.1.1", "127.0.1.2", "127.0.1.3")
CASES = 300
# Fewer than the rendered 500, so that a small backlog asks for several replicas.
FOR_EACH_REPLICA = 100


def triggers():
    """The metadata of every trigger of the rendered ScaledObjects."""
    for document in yaml.safe_load_all((DEPLOY / "rendered" / "production.yaml").read_text()):
        if document and document["kind"] == "ScaledObject":
            for trigger in document["spec"]["triggers"]:
                yield trigger["metadata"]


def can_name_hosts():
    return os.geteuid() == 0 and shutil.which("unshare")


class Cluster:
    """Three nodes on addresses of their own, with the same ports on each, as pods have them.

    With `advertise` they tell clients of each other. Without it, as the official chart has it, they know each other by name, and
    each node gets a file of hosts of its own.
    """

    def __init__(self, stage, advertise):
        self.ports = free_ports(3, HOSTS[0])
        client, self.monitoring, route = self.ports
        names = [f"nats-{i}.nats-headless" for i in range(3)]
        hosts = stage.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{host} {name}\n" for host, name in zip(HOSTS, names)))
        routes = ", ".join(f'"nats://{host}:{route}"' for host in (HOSTS if advertise else names))
        for i, host in enumerate(HOSTS):
            config = (f'server_name: nats-{i}\nlisten: "{host}:{client}"\nhttp: "{host}:{self.monitoring}"\nmax_payload: 8MB\n'
                      f'jetstream {{ store_dir: "{stage.folder}/data-{i}" }}\n'
                      f'cluster {{ name: nats, listen: "{host}:{route}", no_advertise: {str(not advertise).lower()}, routes: [{routes}] }}\n'
                      'accounts { CONCORD: { jetstream: enabled, users: [{ user: concord, password: s3cret }] } }\n')
            path = stage.folder / f"nats-{i}.conf"
            path.write_text(config)
            command = [NATS, "--config", path]
            if not advertise:
                command = ["unshare", "--mount", "sh", "-c", f"mount --bind {hosts} /etc/hosts && exec {NATS} --config {path}"]
            stage.run(f"nats-{i}", command)
        for host in HOSTS:
            until("the node is healthy", lambda: get(f"http://{host}:{self.monitoring}/healthz")[0] == 200)
        self.servers = ",".join(f"nats://{host}:{client}" for host in HOSTS)
        self.settings = {"broker.servers": self.servers, "broker.user": "concord", "broker.password": "s3cret", "storage.replicas": "3"}
        self.with_user = f"nats://concord:s3cret@{HOSTS[0]}:{client}"

    def resolve(self, host):
        """The name of the headless service leads to any node, that of a pod to its own."""
        if host.startswith("nats-headless"):
            return HOSTS[0]
        return HOSTS[int(host[5])] if host.startswith("nats-") else host

    def lag(self, metadata):
        rendered = metadata["natsServerMonitoringEndpoint"]
        host, _ = rendered.split(":")
        return lag({**metadata, "natsServerMonitoringEndpoint": f"{host}:{self.monitoring}"}, self.resolve)

    def lag_now(self, metadata):
        """The same, or nothing while the nodes do not know yet who leads the consumer: where it is waited for, that is no failure."""
        try:
            return self.lag(metadata)
        except NotFound:
            return None


def request(sender, number):
    """A request to open a case."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    parameters = {"case_id": f"{sender}-{number}", "policy": "contract-review", "participants": ["ann", "ben"],
                  "task": {"type": "contract_review", "title": "Lease", "input": {}}}
    return {"message_id": str(uuid.uuid4()), "timestamp": now, "from_agent": sender, "to_agent": "coordinator",
            "message_type": "request", "requires_response": True, "payload": {"action": "open_case", "parameters": parameters}}


class Scaling(unittest.TestCase):
    def setUp(self):
        self.stage = self.enterContext(Stage())

    def check_triggers(self, cluster):
        hosted = self.stage.folder / "adapter.toml"
        hosted.write_text('[[service.agents]]\nagent_id = "slow_one"\ncommand = ["sleep", "1000"]\n')
        for service in SERVICES:
            self.stage.service(service, cluster.settings, config=hosted if service == "agent-adapter" else None)
        asked = list(triggers())
        # As the chart has it for a hosted agent.
        asked.append({**next(one for one in asked if one["consumer"] == "agent-adapter-inbox"), "consumer": "agent-slow_one"})
        self.assertGreater(len(asked), 5)
        for metadata in asked:
            until(f"{metadata['consumer']} is empty", lambda: cluster.lag_now(metadata) == 0)
        with self.assertRaises(NotFound):
            cluster.lag({**asked[0], "consumer": "no-such-consumer"})
        with self.assertRaises(NotFound):
            cluster.lag({**asked[0], "account": "$G"})

    def test_every_trigger_finds_its_consumer_where_nodes_are_advertised(self):
        self.check_triggers(Cluster(self.stage, advertise=True))

    @unittest.skipUnless(can_name_hosts(), "needs root and unshare, to give the nodes names")
    def test_every_trigger_finds_its_consumer_where_nodes_are_known_by_name(self):
        self.check_triggers(Cluster(self.stage, advertise=False))

    def test_a_backlog_brings_replicas_and_nothing_is_lost(self):
        cluster = Cluster(self.stage, advertise=True)
        first, _ = self.stage.service("coordinator", cluster.settings, name="coordinator-0")
        self.stage.service("conflict-detector", cluster.settings)
        metadata = next(m for m in triggers() if m["consumer"] == "coordinator-inbox")
        until("the consumer is there", lambda: cluster.lag_now(metadata) == 0)
        first.terminate()
        first.wait(30)
        asyncio.run(self.send(cluster, metadata))

    async def send(self, cluster, metadata):
        client = await nats.connect(cluster.with_user)
        answered, asked = set(), {}

        async def hear(message):
            body = json.loads(message.data)
            if body["message_type"] == "response":
                answered.add(body.get("reply_to") or body.get("in_reply_to"))

        await client.subscribe("concord.v1.msg.*.coordinator.*.*", cb=hear)
        jetstream = client.jetstream()
        for number in range(CASES):
            body = request(f"opener-{number % 3}", number)
            asked[body["message_id"]] = body
            await jetstream.publish(f"concord.v1.msg._.{body['from_agent']}.coordinator.request", json.dumps(body).encode())
        seen = until("the number is the backlog", lambda: cluster.lag_now(metadata) == CASES and CASES)
        others = asyncio.create_task(self.measure_others(client))
        most = await self.scale(cluster, metadata, seen)
        times = await others
        deadline = time.monotonic() + 60
        while not set(asked) <= answered and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        self.assertEqual(set(asked) - answered, set(), "every request has its answer")
        await client.close()
        listed = self.stage.command("case", "list", "--limit", "1000", "--json", server=cluster.with_user).stdout
        opened = {word for word in listed.replace('"', " ").split() if word.startswith("opener-") and word.count("-") == 2}
        self.assertEqual(len(opened), CASES, "every case was opened once")
        self.assertEqual(most, math.ceil(CASES / FOR_EACH_REPLICA))
        print(f"\nscaling: backlog {seen}, replicas 0 -> {most} -> 1, {len(answered)} answers; others meanwhile: {len(times)} requests, "
              f"p50 {statistics.median(times):.0f} ms, p99 {statistics.quantiles(times, n=100)[98]:.0f} ms")

    async def measure_others(self, client):
        """How long another service takes to answer while the coordinators work: milliseconds of each request."""
        times = []
        while not self.over:
            begun = time.monotonic()
            await client.request("concord.v1.api.conflict-detector.status", b"{}", timeout=30)
            times.append((time.monotonic() - begun) * 1000)
            await asyncio.sleep(0.02)
        return times

    async def scale(self, cluster, metadata, number):
        """Replicas as the autoscaler would have them: the backlog over what each is for, at least one. Gives the most."""
        self.over, running, most = False, [], 0
        end = time.monotonic() + 120
        while time.monotonic() < end:
            wanted = min(max(1, math.ceil(number / FOR_EACH_REPLICA)), 5)
            while len(running) < wanted:
                running.append(self.stage.service("coordinator", cluster.settings, name=f"coordinator-{len(running) + 1}", wait=False)[0])
            most = max(most, len(running))
            if number == 0:
                while len(running) > 1:
                    process = running.pop()
                    process.terminate()
                    await asyncio.to_thread(process.wait, 30)
                    self.assertEqual(process.returncode, 0, "it drained")
                self.over = True
                return most
            await asyncio.sleep(0.5)
            found = await asyncio.to_thread(cluster.lag_now, metadata)
            # Without an answer the autoscaler leaves everything as it is.
            number = number if found is None else found
        raise AssertionError(f"{number} messages still wait")


if __name__ == "__main__":
    unittest.main()

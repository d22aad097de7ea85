"""Rules and dashboards: promtool's tests, every query against a real Prometheus that scrapes a real installation, and alerts that are
caused."""

import asyncio
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import urllib.parse

import nats
import yaml
from processes import BINARIES, Stage, Wire, free_ports, get, get_json, until

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
RULES = DEPLOY / "helm" / "concord" / "files" / "rules.yaml"
sys.path.insert(0, str(DEPLOY / "observability"))
import dashboards  # noqa: E402

SERVICES = ("coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter")
PANEL = DEPLOY.parent / "examples" / "contract-review"


class Rules(unittest.TestCase):
    def test_promtool_accepts_and_tests_them(self):
        stage = self.enterContext(Stage())
        for path in (RULES, *(DEPLOY / "observability").glob("rules*-test.yaml")):
            shutil.copy(path, stage.folder)
        made = yaml.safe_load_all((DEPLOY / "rendered" / "production.yaml").read_text())
        rendered = next(document["spec"] for document in made if document and document["kind"] == "PrometheusRule")
        (stage.folder / "rules-rendered.yaml").write_text(yaml.safe_dump(rendered))
        for command in (["check", "rules", "rules.yaml", "rules-rendered.yaml"], ["test", "rules", "rules-test.yaml", "rules-rendered-test.yaml"]):
            done = subprocess.run(["promtool", *command], cwd=stage.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_is_tested_and_explained(self):
        rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
        tested = (DEPLOY / "observability" / "rules-test.yaml").read_text()
        explained = (DEPLOY.parent / "docs" / "operating.md").read_text()
        for rule in rules:
            self.assertIn(f"alertname: {rule['alert']}", tested)
            self.assertIn(f"## {rule['alert']}\n", explained)
            self.assertEqual(rule["annotations"]["runbook"], f"docs/operating.md#{rule['alert'].lower()}")
            metrics = re.findall(r"\b(?:up|concord_\w+)\b.?", rule["expr"])
            self.assertEqual([metric for metric in metrics if not metric.endswith("{")], [], "the chart puts the namespace behind a brace")

    def test_every_query_of_the_dashboards_is_about_the_chosen_namespaces(self):
        for name, title, expression in dashboards.queries():
            selectors = re.findall(r"\b(?:up|concord_\w+)\b(.{0,30})", expression)
            self.assertTrue(selectors, title)
            self.assertEqual([one for one in selectors if not one.startswith('{namespace=~"$namespace"')], [], f"{name}: {title}")

    def test_the_dashboards_are_those_of_the_table(self):
        done = subprocess.run([sys.executable, DEPLOY / "observability" / "dashboards.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Prometheus:
    """A Prometheus that scrapes each service every second, with the rules, whose waits are left out."""

    def __init__(self, stage, targets):
        rules = re.sub(r"for: \w+", "for: 0s", RULES.read_text()).replace("[10m]", "[10s]").replace("[15m:15s]", "[10s:1s]")
        (stage.folder / "rules.yaml").write_text(rules)
        scrape = [{"job_name": job, "static_configs": [{"targets": [address.removeprefix("http://") for address in addresses]}]}
                  for job, addresses in targets.items()]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yaml"], "scrape_configs": scrape}
        (stage.folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        (port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{port}"
        stage.run("prometheus", [shutil.which("prometheus"), "--config.file=prometheus.yaml", f"--web.listen-address=127.0.0.1:{port}",
                                 f"--storage.tsdb.path={stage.folder}/tsdb"])
        until("Prometheus is ready", lambda: get(f"{self.address}/-/ready")[0] == 200)

    def query(self, expression):
        answer = get_json(f"{self.address}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        if answer is None:
            raise AssertionError(f"Prometheus refuses {expression}")
        return answer["data"]["result"]

    def firing(self, alert, **labels):
        more = "".join(f',{key}="{value}"' for key, value in labels.items())
        return self.query(f'ALERTS{{alertname="{alert}",alertstate="firing"{more}}}')


class Installation(unittest.TestCase):
    def setUp(self):
        self.stage = self.enterContext(Stage())
        port, monitoring = free_ports(2)
        self.nats = self.stage.broker("nats", f'listen: "127.0.0.1:{port}"\nhttp: "127.0.0.1:{monitoring}"\nmax_payload: 8MB\n'
                                              f'jetstream {{ store_dir: "{self.stage.folder}/data" }}\n')
        until("the broker is healthy", lambda: get(f"http://127.0.0.1:{monitoring}/healthz")[0] == 200)
        self.server = f"nats://127.0.0.1:{port}"
        # An agent that ends instead of answering, and one that answers nothing for long.
        hosted = self.stage.folder / "adapter.toml"
        hosted.write_text('[[service.agents]]\nagent_id = "broken"\ncommand = ["false"]\nbreaker = { failures_max = 1, open_ms = 60000 }\ntries_max = 1\n'
                          '[[service.agents]]\nagent_id = "slow"\ncommand = ["sleep", "1000"]\ninstances = 1\nqueue_max = 1\ntimeout_ms = 600000\n')
        self.processes, targets = {}, {}
        for service in SERVICES:
            settings = {"broker.servers": self.server, "work.agent_rate_max": "50", "work.agent_burst_max": "200",
                        "storage.bytes_max": "100000000"}
            config = hosted if service == "agent-adapter" else None
            self.processes[service], address = self.stage.service(service, settings, config=config)
            targets[service] = [address]
        # A second timer, whose wire to the broker can be cut.
        self.wire = Wire(port)
        self.addCleanup(self.wire.cut)
        _, address = self.stage.service("escalation-timer", {"broker.servers": f"nats://127.0.0.1:{self.wire.port}"}, name="second-timer")
        targets["escalation-timer"].append(address)
        self.prometheus = Prometheus(self.stage, targets)

    def review_a_contract(self):
        contract = self.stage.folder / "contract.jsonl"
        contract.write_text(json.dumps(json.loads((PANEL / "sample-contract.json").read_text())) + "\n")
        subprocess.run([BINARIES / "concord-lab", "--server", self.server, "panel", "run", "--contracts", contract, "--panel", PANEL],
                       check=True, capture_output=True, timeout=120)

    async def send(self, *messages):
        client = await nats.connect(self.server)
        for subject, body in messages:
            await client.publish(subject, body)
        await client.drain()

    async def ask_broker(self, verb, request):
        client = await nats.connect(self.server)
        answer = json.loads((await client.request(f"$JS.API.{verb}", json.dumps(request).encode(), timeout=10)).data)
        await client.drain()
        self.assertNotIn("error", answer)
        return answer

    def broker(self, verb, request=None):
        return asyncio.run(self.ask_broker(verb, request or {}))

    def request(self, sender, to, number):
        body = {"message_id": f"019b0c6e-7f00-7000-8000-{number:012d}", "timestamp": "2026-11-21T20:15:18.000Z", "from_agent": sender, "to_agent": to,
                "message_type": "request", "requires_response": True, "payload": {"action": "help", "parameters": {}}}
        return f"concord.v1.msg._.{sender}.{to}.request", json.dumps(body).encode()

    def test_every_query_answers_and_alerts_come_when_they_are_caused(self):
        self.review_a_contract()
        asyncio.run(self.send(*[self.request("asker", "broken", number) for number in range(3)]))

        def empty():
            found = []
            for name, title, expression in dashboards.queries():
                asked = expression.replace("$__rate_interval", "1m").replace("$__range", "1h").replace("$namespace", ".*")
                if not self.prometheus.query(asked):
                    found.append(f"{name}: {title}: {asked}")
            return found

        try:
            until("every query answers", lambda: not empty(), 90)
        except AssertionError:
            self.assertEqual(empty(), [])
        self.caused()

    def caused(self):
        firing = self.prometheus.firing
        until("no replica lacks the broker", lambda: not firing("ConcordBrokerUnreachable"))
        # Without the waits of the rules one scrape that comes late is a service that is away: what rests on a scrape is waited for.
        until("no service is away", lambda: not firing("ConcordServiceDown"))
        self.assertEqual(firing("ConcordSenderLimited"), [])

        until("the hosted agent is not asked any more", lambda: firing("ConcordHostedAgentDown", agent="broken"))

        # One is worked on, one waits, and for one there is no place.
        self.assertEqual(firing("ConcordHostedAgentBehind"), [])
        asyncio.run(self.send(*[self.request("asker", "slow", number) for number in range(3, 6)]))
        until("the hosted agent is behind", lambda: firing("ConcordHostedAgentBehind", agent="slow"))

        # Nothing is read while the flood comes, and then all of it.
        pause = "CONSUMER.PAUSE.CONCORD_MESSAGES.coordinator-inbox"
        self.broker(pause, {"pause_until": "2100-01-01T00:00:00Z"})
        asyncio.run(self.send(*[self.request("flooder", "coordinator", number) for number in range(2000)]))
        until("messages wait", lambda: firing("ConcordBacklog", consumer="coordinator-inbox"))
        self.assertEqual(firing("ConcordSenderLimited", consumer="coordinator-inbox"), [])
        self.broker(pause)
        until("the sender is over its limit", lambda: firing("ConcordSenderLimited", consumer="coordinator-inbox"))
        until("nothing waits any more", lambda: not firing("ConcordBacklog"))

        self.lose_a_deadline()
        until("the watchdog fires", lambda: firing("ConcordWatchdogFires"))
        until("a deadline was late", lambda: firing("ConcordDeadlinesLate"))

        asyncio.run(self.send(("concord.v1.msg._.clerk.coordinator.request", b"no JSON")))
        until("a message is refused", lambda: firing("ConcordMessagesRefused"))
        self.assertEqual(firing("ConcordDeadLetters"), [])

        self.fill_messages()

        def away():
            return [alert["metric"]["job"] for alert in firing("ConcordServiceDown")]

        self.processes["conflict-detector"].terminate()
        until("one service is away and no other", lambda: away() == ["conflict-detector"])

        self.wire.cut()
        until("one replica is without the broker, and its service is not",
              lambda: firing("ConcordReplicaWithoutBroker", job="escalation-timer") and not firing("ConcordBrokerUnreachable"))

        self.nats.terminate()
        until("the broker is away", lambda: firing("ConcordBrokerUnreachable", job="coordinator"))
        self.assertIsNone(self.processes["coordinator"].poll(), "it waits for the broker")

    def fill_messages(self):
        """Takes four fifths of the room of messages, then all of it while a case is opened, and gives it back."""
        firing, filling = self.prometheus.firing, "concord.v1.msg._.filler.nobody.note"
        self.assertEqual(firing("ConcordStreamFills"), [])
        self.assertEqual(firing("ConcordNoRoom"), [])

        async def publish(bytes_most):
            client = await nats.connect(self.server)
            stream, sent = client.jetstream(), 0
            try:
                while sent < bytes_most:
                    await stream.publish(filling, b"x" * 500_000)
                    sent += 500_000
            except nats.js.errors.APIError as refusal:
                self.assertIn("maximum bytes exceeded", str(refusal))
            finally:
                await client.drain()

        asyncio.run(publish(42_000_000))
        until("a stream fills", lambda: firing("ConcordStreamFills", stream="CONCORD_MESSAGES"))
        self.assertEqual(firing("ConcordNoRoom"), [])
        asyncio.run(publish(100_000_000))
        # What it asks of its participants is larger than what is left.
        case = {"case_id": "without-room", "participants": ["a", "b"], "task": {"type": "test", "title": "x" * 600_000}}
        body = json.dumps(case).encode()

        async def open_case():
            client = await nats.connect(self.server)
            answer = await client.request("concord.v1.api.coordinator.open_case", body, timeout=10)
            await client.drain()
            return answer

        self.assertNotIn("Nats-Service-Error", asyncio.run(open_case()).headers or {})
        until("a service was refused", lambda: firing("ConcordNoRoom", stream="CONCORD_MESSAGES"))
        self.broker("STREAM.PURGE.CONCORD_MESSAGES", {"filter": filling})
        until("there is room again", lambda: not firing("ConcordNoRoom"))
        until("the stream is not full any more", lambda: not firing("ConcordStreamFills"))

    def lose_a_deadline(self):
        """Opens a case that nobody answers, and takes its deadlines out of the broker."""
        case = self.stage.folder / "case.json"
        case.write_text(json.dumps({"case_id": "lost", "policy": {"preset": "contract-review", "finding_timeout_ms": 6000}, "participants": ["nobody", "none"],
                                    "task": {"type": "contract_review", "title": "Lease", "input": {}}}))
        self.stage.command("case", "open", case, server=self.server)
        armed = {"subjects_filter": "concord.v1.timer.armed.case.lost.findings"}
        until("its deadline is armed", lambda: self.broker("STREAM.INFO.CONCORD_TIMERS", armed)["state"].get("subjects"))
        self.broker("STREAM.PURGE.CONCORD_TIMERS")


if __name__ == "__main__":
    unittest.main()

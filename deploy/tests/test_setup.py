"""The commands of the Job that stores policies and people, and of the test pod, do what they are for, and doing it again changes nothing."""

import json
import pathlib
import subprocess
import unittest

import yaml
from meaning import containers, pod_of
from processes import BINARIES, Stage, free_ports, get, until

RENDERED = pathlib.Path(__file__).resolve().parent.parent / "rendered" / "hosted.yaml"
SERVICES = ("coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter")


class Setup(unittest.TestCase):
    def test_policies_and_people_are_stored_once(self):
        stage = self.enterContext(Stage())
        port, monitoring = free_ports(2)
        stage.broker("nats", f'listen: "127.0.0.1:{port}"\nhttp: "127.0.0.1:{monitoring}"\nmax_payload: 8MB\n'
                             f'jetstream {{ store_dir: "{stage.folder}/data" }}\n')
        until("the broker is healthy", lambda: get(f"http://127.0.0.1:{monitoring}/healthz")[0] == 200)
        server = f"nats://127.0.0.1:{port}"
        for service in SERVICES:
            stage.service(service, {"broker.servers": server})
        documents = [document for document in yaml.safe_load_all(RENDERED.read_text()) if document]
        job = next(document for document in documents if document["kind"] == "Job")
        test = next(document for document in documents if document["kind"] == "Pod")
        policies = next(d for d in documents if d["kind"] == "ConfigMap" and d["metadata"]["name"] == "concord-policies")
        (stage.folder / "concord.toml").write_text(f'[broker]\nservers = "{server}"\n')
        for name, text in policies["data"].items():
            (stage.folder / name).write_text(text)

        def run(container):
            arguments = [argument.replace("/etc/concord/concord.toml", f"{stage.folder}/concord.toml")
                         .replace("/etc/concord/policies", str(stage.folder)) for argument in container["args"]]
            done = subprocess.run([BINARIES / "concord", *container["command"][1:], *arguments], capture_output=True, text=True, env={}, check=False)
            self.assertEqual(done.returncode, 0, f"{container['name']}: {done.stdout}{done.stderr}")
            return done.stdout

        shown = []
        for _ in range(2):
            for container in containers(pod_of(job)[1]):
                output = run(container)
            shown.append((output, stage.command("policy", "list", "--json", server=server).stdout))
        self.assertIn("olga", shown[0][0])
        self.assertIn("valuation", stage.command("person", "show", "eva", server=server).stdout)
        self.assertIn("house rules", shown[0][1])
        self.assertEqual(shown[0], shown[1])
        self.people_stay_as_they_are(stage, server, lambda: [run(container) for container in containers(pod_of(job)[1])])
        run(pod_of(test)[1]["containers"][0])

    def people_stay_as_they_are(self, stage, server, run_job):
        """What the values do not say of somebody stays; somebody who is suspended disturbs nobody."""
        particulars = ["--webhook", "https://example.org/olga", "--name", "Olga P.", "--public-key", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]
        stage.command("person", "register", "olga", "--role", "operator", *particulars, server=server)
        stage.command("person", "register", "eva", "--role", "auditor", server=server)

        def show(name):
            shown = json.loads(stage.command("person", "show", name, "--json", server=server).stdout)
            return {what: value for what, value in shown.items() if what not in ("by", "since", "history")}

        before = show("olga")
        run_job()
        self.assertEqual(show("olga"), before)
        self.assertEqual([grant["role"] for grant in show("eva")["roles"]], ["arbiter", "reviewer"])
        stage.command("person", "suspend", "olga", "--why", "on leave", server=server)
        stage.command("person", "register", "eva", "--role", "auditor", server=server)
        before = show("olga")
        run_job()
        self.assertEqual(show("olga"), before)
        self.assertEqual([grant["role"] for grant in show("eva")["roles"]], ["arbiter", "reviewer"])


if __name__ == "__main__":
    unittest.main()

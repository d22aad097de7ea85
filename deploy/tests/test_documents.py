"""What the documents tell an operator of a cluster to do: the commands that can be tried without one, and that they fit the examples."""

import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from meaning import faults

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
DOCS = DEPLOY.parent / "docs"
# Keeps Secrets by their namespace in files of its folder, and shows one key of one, as kubectl does.
KUBECTL = """#!/usr/bin/env python3
import base64, json, pathlib, sys
arguments, folder = sys.argv[1:], pathlib.Path(__file__).parent
namespace = "default"
if arguments[0] == "-n":
    namespace, arguments = arguments[1], arguments[2:]
if arguments[0] == "apply":
    for item in json.load(sys.stdin)["items"]:
        (folder / f"{namespace}.{item['metadata']['name']}").write_text(json.dumps(item))
else:
    assert arguments[:2] == ["get", "secret"] and arguments[4] == r"jsonpath={.data.nats\\.creds}", arguments
    sys.stdout.write(json.loads((folder / f"{namespace}.{arguments[2]}").read_text())["data"]["nats.creds"])
"""


def blocks(name, word):
    """The blocks of commands in a document that have this word."""
    return [block for block in re.findall(r"^```\w*\n(.*?)^```\n", (DOCS / name).read_text(), re.DOTALL | re.MULTILINE) if word in block]


class Documents(unittest.TestCase):
    def test_what_is_applied_from_a_pipe_names_its_namespace(self):
        applied = [line for path in (*DOCS.glob("*.md"), DEPLOY / "README.md") for line in path.read_text().splitlines() if re.search(r"kubectl .*apply -f -", line)]
        self.assertGreater(len(applied), 1)
        self.assertEqual([line for line in applied if re.search(r"kubectl (?!-n )[^|`]*apply -f -", line)], [], "they go to another namespace than the pods")

    @unittest.skipUnless(os.environ.get("CONCORD_BINARIES"), "needs the programs: CONCORD_BINARIES")
    def test_credentials_are_rotated_where_the_pods_are(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "kubectl").write_text(KUBECTL)
        (folder / "kubectl").chmod(0o755)
        (rotation,) = blocks("credentials.md", "rotate credentials service:coordinator --keep-old")
        told = rotation.replace("sleep 120", "true").replace("--server nats://nats-0:4222", "--offline")

        def run(script):
            path = f"{folder}:{os.environ['CONCORD_BINARIES']}:{os.environ['PATH']}"
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        run("concord credentials init credentials; concord credentials issue credentials service:coordinator --format secret | kubectl -n concord apply -f -")
        file = folder / "credentials" / "creds" / "CONCORD" / "service-coordinator.creds"
        before = file.read_text()
        run(told)
        mounted = json.loads((folder / "concord.concord-service-coordinator").read_text())["data"]["nats.creds"]
        self.assertNotEqual(file.read_text(), before)
        self.assertEqual(base64.b64decode(mounted).decode(), file.read_text())

    def test_a_new_password_restarts_the_broker_that_reads_it_when_it_starts(self):
        chart = yaml.safe_load((DEPLOY / "examples" / "nats-chart.yaml").read_text())
        self.assertIn("secretKeyRef", chart["container"]["env"]["PASSWORD_concord"]["valueFrom"])
        told = [text for text in re.split(r"\n(?=\n|\|)", (DOCS / "operating.md").read_text()) if re.search(r"(?i)a new\s+password", text)]
        self.assertEqual(len(told), 2)
        for text in told:
            self.assertIn("kubectl -n nats rollout restart statefulset/nats", text)

    def test_the_broker_of_the_example_becomes_one_in_operator_mode_as_told(self):
        chart = yaml.safe_load((DEPLOY / "examples" / "nats-chart.yaml").read_text())
        told = (DOCS / "credentials.md").read_text()
        self.assertTrue("leave out `config.merge.accounts` and `container.env.PASSWORD_concord`" in told)
        del chart["config"]["merge"]["accounts"], chart["container"]["env"]["PASSWORD_concord"]
        self.assertNotIn("concord", json.dumps(chart).lower(), "something of the account with a password is left")
        self.assertEqual(len(blocks("credentials.md", r"configMap.merge.data.nats-server\.conf=credentials/nats-server.conf")), 1)

    def test_the_command_gets_a_pod_as_restricted_as_the_others(self):
        (told,) = blocks("operating.md", "deploy/examples/command.json")
        pod = json.loads((DEPLOY / "examples" / "command.json").read_text())
        (container,) = pod["spec"]["containers"]
        # kubectl finds the container by its name, which is that of the pod.
        self.assertIn(f"run {container['name']} ", told)
        container |= {"image": "concord", "command": ["/bin/concord", "doctor"]}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": container["name"]}, "spec": pod["spec"]}
        self.assertEqual(faults([made]), [])
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        files = [one["value"] for one in container["env"] if one["value"].startswith("/")]
        self.assertEqual([file for file in files if str(pathlib.PurePath(file).parent) not in mounted], [])


if __name__ == "__main__":
    unittest.main()

"""The image as it is meant to run, and the compose file: podman with containers that can write nothing."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import uuid

from processes import BINARIES, NATS, free_ports, get, until

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
# Where a machine lacks the right to raise limits, podman must not try, and runc knows cgroups of the first kind.
CONF = """[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024","nproc=1024:1024"]
log_driver = "k8s-file"
"""


def podman(*arguments, check=True, timeout=120):
    done = subprocess.run(["podman", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=timeout)
    if check and done.returncode != 0:
        raise AssertionError(f"podman {' '.join(map(str, arguments))}: {done.stderr[-2000:]}")
    return done


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        if "CONTAINERS_CONF" not in os.environ:
            pathlib.Path(folder, "containers.conf").write_text(CONF)
            os.environ["CONTAINERS_CONF"] = f"{folder}/containers.conf"
        tag = uuid.uuid4().hex[:8]
        cls.image, cls.nats = f"concord:test-{tag}", f"nats:test-{tag}"
        # Programs with symbols are ten times as large.
        stripped = pathlib.Path(folder, "bin")
        stripped.mkdir()
        for program in BINARIES.glob("concord*"):
            if os.access(program, os.X_OK) and program.is_file() and "." not in program.name:
                subprocess.run(["strip", "-o", stripped / program.name, program], check=True)
        subprocess.run([DEPLOY / "images" / "build", cls.image], check=True, env={**os.environ, "CONCORD_BINARIES": str(stripped)},
                       capture_output=True)
        cls.addClassCleanup(podman, "rmi", "--force", cls.image, check=False)
        # No registry is asked: the broker of the tests becomes an image.
        pathlib.Path(folder, "Containerfile").write_text("FROM scratch\nCOPY nats-server /nats-server\nENTRYPOINT [\"/nats-server\"]\n")
        subprocess.run(["cp", "-L", NATS, f"{folder}/nats-server"], check=True)
        podman("build", "--quiet", "--tag", cls.nats, folder)
        cls.addClassCleanup(podman, "rmi", "--force", cls.nats, check=False)

    def test_the_image_has_programs_and_nothing_to_run_commands_with(self):
        for program in ("coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter"):
            done = podman("run", "--rm", "--read-only", "--cap-drop", "ALL", self.image, f"/bin/concord-{program}", "--check-config")
            self.assertIn("the settings are good", done.stdout)
        self.assertNotEqual(podman("run", "--rm", self.image, "/bin/sh", "-c", "true", check=False).returncode, 0)
        inspected = json.loads(podman("inspect", self.image).stdout)[0]["Config"]
        self.assertEqual(inspected["User"], "65532:65532")

    def test_a_container_lives_without_a_broker_and_ends_when_it_is_asked(self):
        (port,) = free_ports(1)
        name = f"concord-{uuid.uuid4().hex[:8]}"
        podman("run", "--detach", "--name", name, "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--memory", "256m",
               "--publish", f"127.0.0.1:{port}:8080", self.image, "/bin/concord-coordinator", "--set", "http.address=0.0.0.0:8080")
        self.addCleanup(podman, "rm", "--force", name, check=False)
        until("the process lives", lambda: get(f"http://127.0.0.1:{port}/healthz")[0] == 200)
        self.assertEqual(get(f"http://127.0.0.1:{port}/readyz")[0], 503)
        podman("stop", "--time", "20", name)
        state = json.loads(podman("inspect", name).stdout)[0]["State"]
        self.assertEqual(state["ExitCode"], 0, "it was not killed")

    def test_the_whole_system_runs_by_compose(self):
        (port,) = free_ports(1)
        project = f"concord{uuid.uuid4().hex[:8]}"
        environment = {**os.environ, "CONCORD_IMAGE": f"localhost/{self.image}", "NATS_IMAGE": f"localhost/{self.nats}", "CONCORD_PORT": str(port)}

        def compose(*arguments, check=True):
            command = [sys.executable, "-m", "podman_compose", "--project-name", project, "--file", DEPLOY / "compose.yaml", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
            if check and done.returncode != 0:
                raise AssertionError(f"compose {arguments}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
            return done

        self.addCleanup(compose, "down", "--volumes", check=False)
        compose("up", "--detach")

        def command(*arguments):
            return subprocess.run([BINARIES / "concord", "--server", f"nats://127.0.0.1:{port}", *arguments], capture_output=True, text=True,
                                  env={}, check=False)

        until("the broker answers", lambda: command("case", "list").returncode == 0, 120)
        until(f"the doctor finds no fault: {command('doctor').stdout}", lambda: command("doctor").returncode == 0, 60)
        # Inside the containers names are looked up, and the command works, too.
        inside = compose("exec", "-T", "coordinator", "/bin/concord", "--server", "nats://nats:4222", "doctor")
        self.assertEqual(inside.returncode, 0, inside.stderr)
        # A killed service comes back by itself.
        name = podman("ps", "--filter", f"name={project}_coordinator", "--format", "{{.Names}}").stdout.strip()
        before = podman("inspect", "--format", "{{.State.Pid}}", name).stdout
        os.kill(int(before), 9)
        until("another process runs", lambda: podman("inspect", "--format", "{{.State.Pid}}", name).stdout not in (before, "0\n"))
        until("the doctor finds no fault", lambda: command("doctor").returncode == 0, 60)


if __name__ == "__main__":
    unittest.main()

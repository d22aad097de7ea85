"""The broker's settings of deploy/nats with a real nats-server, and what the services do with TLS, users and a broker that is away."""

import pathlib
import unittest

from processes import Authority, Stage, copy, free_ports, get, get_json, until

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
HOSTS = "IP:127.0.0.1,DNS:localhost,DNS:nats-0,DNS:nats-1,DNS:nats-2"


class Broker(unittest.TestCase):
    def setUp(self):
        self.stage = self.enterContext(Stage())
        self.authority = Authority(self.stage.folder / "authority")
        certificate, key = self.authority.sign("server", HOSTS)
        self.client = self.authority.sign("client", "DNS:concord")
        for source, name in ((certificate, "tls.crt"), (key, "tls.key"), (self.authority.ca, "ca.crt")):
            copy(source, self.stage.folder / "nats" / "tls" / name)
        copy(DEPLOY / "nats" / "accounts.conf", self.stage.folder / "accounts.conf")
        (self.stage.folder / "password").write_text("s3cret\n")

    def config(self, file, node, changes):
        text = (DEPLOY / "nats" / file).read_text()
        data = self.stage.folder / node
        for old, new in {"/etc/nats/": f"{self.stage.folder}/nats/", '"/data"': f'"{data}"', **changes}.items():
            self.assertIn(old, text)
            text = text.replace(old, new)
        return text

    def single(self, *more):
        """The one node; gives its ports. Each pair of `more` is a further change of the configuration."""
        port, monitoring = free_ports(2)
        self.monitoring = monitoring
        changes = {"0.0.0.0:4222": f"127.0.0.1:{port}", "0.0.0.0:8222": f"127.0.0.1:{monitoring}", **dict(more)}
        self.stage.broker("nats", self.config("single.conf", "nats-data", changes), {"NATS_NAME": "nats", "PASSWORD_concord": "s3cret"})
        until("the broker is healthy", lambda: get(f"http://127.0.0.1:{monitoring}/healthz")[0] == 200)
        return port

    def settings(self, port, **changed):
        settings = {"broker.servers": f"tls://127.0.0.1:{port}", "broker.user": "concord",
                    "broker.password_file": self.stage.folder / "password", "broker.tls_ca": self.authority.ca,
                    "broker.tls_certificate": self.client[0], "broker.tls_key": self.client[1], "broker.tls_required": "true"}
        settings.update({f"broker.{key}": value for key, value in changed.items()})
        return {key: value for key, value in settings.items() if value is not None}

    def assert_understood(self, name, monitoring):
        """The broker has warned of no setting, and takes the time between syncs as it is meant."""
        self.assertNotIn("invalid use of field", self.stage.log(name))
        settings = get_json(f"http://127.0.0.1:{monitoring}/varz")
        self.assertEqual(settings["jetstream"]["config"]["sync_interval"], 120_000_000_000)

    def test_a_service_works_with_one_node(self):
        port = self.single()
        self.assert_understood("nats", self.monitoring)
        self.stage.service("coordinator", self.settings(port))
        # The command takes the same settings from the environment.
        config = self.stage.folder / "concord.toml"
        config.write_text("[broker]\n" + "".join(f'{key.removeprefix("broker.")} = {value if value == "true" else chr(34) + str(value) + chr(34)}\n'
                                                 for key, value in self.settings(port).items()))
        done = self.stage.command("--config", config, "case", "list", server=f"tls://127.0.0.1:{port}")
        self.assertEqual(done.returncode, 0)

    def test_who_lacks_something_lives_and_is_not_ready(self):
        port = self.single()
        other = Authority(self.stage.folder / "other")
        (self.stage.folder / "wrong").write_text("wrong\n")
        cases = [
            ("no-certificate", {"tls_certificate": None, "tls_key": None}),
            ("other-authority", {"tls_ca": other.ca}),
            ("wrong-password", {"password_file": self.stage.folder / "wrong"}),
        ]
        for name, changed in cases:
            process, address = self.stage.service("conflict-detector", self.settings(port, **changed), name=name, wait=False)
            until(f"{name}: the connection is refused", lambda: "No connection to NATS yet" in self.stage.log(name))
            self.assertEqual(get(f"{address}/healthz")[0], 200, name)
            status, body = get(f"{address}/readyz")
            self.assertEqual(status, 503, name)
            self.assertIn("no connection to the broker yet", body)
            process.terminate()
            self.assertEqual(process.wait(20), 0, name)
            self.assertNotIn("s3cret", self.stage.log(name))

    def test_a_broker_without_tls_is_refused_where_tls_is_required(self):
        port, monitoring = free_ports(2)
        self.stage.broker("plain", f'listen: "127.0.0.1:{port}"\nhttp: "127.0.0.1:{monitoring}"\njetstream {{ store_dir: "{self.stage.folder}/plain" }}\n')
        until("the broker is healthy", lambda: get(f"http://127.0.0.1:{monitoring}/healthz")[0] == 200)
        settings = self.settings(port, servers=f"nats://127.0.0.1:{port}", user=None, password_file=None, tls_certificate=None, tls_key=None)
        self.stage.service("conflict-detector", settings, name="required", wait=False)
        until("the connection is refused", lambda: "No connection to NATS yet" in self.stage.log("required"))
        self.stage.service("conflict-detector", {**settings, "broker.tls_required": "false"}, name="not-required")

    def test_tls_can_begin_before_the_broker_speaks(self):
        port = self.single(("  verify: true", "  verify: true\n  handshake_first: true"))
        self.stage.service("conflict-detector", self.settings(port, tls_first="true"))
        self.stage.service("conflict-detector", self.settings(port), name="late", wait=False)
        until("the connection is refused", lambda: "No connection to NATS yet" in self.stage.log("late"))

    def test_certificates_are_read_at_each_connection(self):
        port, monitoring = free_ports(2)
        config = self.config("single.conf", "nats-data", {"0.0.0.0:4222": f"127.0.0.1:{port}", "0.0.0.0:8222": f"127.0.0.1:{monitoring}"})
        environment = {"NATS_NAME": "nats", "PASSWORD_concord": "s3cret"}
        broker = self.stage.broker("nats", config, environment)
        until("the broker is healthy", lambda: get(f"http://127.0.0.1:{monitoring}/healthz")[0] == 200)
        _, address = self.stage.service("conflict-detector", self.settings(port))
        good = [path.read_bytes() for path in self.client]
        other = Authority(self.stage.folder / "other").sign("client", "DNS:concord")
        for path, renewed in zip(self.client, other):
            path.write_bytes(renewed.read_bytes())
        broker.terminate()
        broker.wait(30)
        self.stage.broker("nats", config, environment)
        until("the broker refuses it", lambda: "certificate" in self.stage.log("nats") and "TLS handshake error" in self.stage.log("nats"))
        self.assertEqual(get(f"{address}/readyz")[0], 503)
        for path, content in zip(self.client, good):
            path.write_bytes(content)
        until("the service is ready again", lambda: get(f"{address}/readyz")[0] == 200)

    def test_what_is_on_the_disk_can_be_encrypted(self):
        secret = "what-nobody-may-read-on-the-disk"
        for encrypted in (False, True):
            with self.subTest(encrypted=encrypted):
                port, monitoring = free_ports(2)
                name = f"encrypted-{encrypted}"
                changes = {"0.0.0.0:4222": f"127.0.0.1:{port}", "0.0.0.0:8222": f"127.0.0.1:{monitoring}"}
                if encrypted:
                    changes |= {'# cipher: "aes"': 'cipher: "aes"', "# key: $JETSTREAM_KEY": "key: $JETSTREAM_KEY"}
                config = self.config("single.conf", name, changes)
                environment = {"NATS_NAME": "nats", "PASSWORD_concord": "s3cret", "JETSTREAM_KEY": "a-long-key-of-the-operator"}
                broker = self.stage.broker(name, config, environment)
                until("the broker is healthy", lambda: get(f"http://127.0.0.1:{monitoring}/healthz")[0] == 200)
                self.stage.service("coordinator", self.settings(port), name=f"coordinator-{encrypted}")
                settings = self.stage.folder / f"{name}.toml"
                settings.write_text("[broker]\n" + "".join(
                    f'{key.removeprefix("broker.")} = {value if value == "true" else chr(34) + str(value) + chr(34)}\n'
                    for key, value in self.settings(port).items()))
                server = f"tls://127.0.0.1:{port}"
                self.stage.command("--config", settings, "person", "register", secret, "--role", "reviewer", server=server)
                blocks = lambda: b"".join(path.read_bytes() for path in (self.stage.folder / name).rglob("*.blk"))  # noqa: E731
                until("something is on the disk", blocks)
                if encrypted:
                    self.assertNotIn(secret.encode(), blocks())
                else:
                    until("the name is on the disk", lambda: secret.encode() in blocks())
                if encrypted:
                    broker.terminate()
                    broker.wait(30)
                    self.stage.broker("again", config, environment)
                    until("the person is still there", lambda: secret in self.stage.command(
                        "--config", settings, "person", "list", server=server, check=False).stdout)

    def test_settings_that_need_each_other_are_refused_at_once(self):
        process, _ = self.stage.service("coordinator", {"broker.user": "concord"}, name="alone", wait=False)
        self.assertEqual(process.wait(20), 64)
        self.assertIn("broker.password_file", self.stage.log("alone"))

    def test_three_nodes_keep_three_copies_and_one_may_be_lost(self):
        ports, monitoring, routes = free_ports(3), free_ports(3), free_ports(3)
        nodes = []
        for i in range(3):
            changes = {"0.0.0.0:4222": f"127.0.0.1:{ports[i]}", "0.0.0.0:8222": f"127.0.0.1:{monitoring[i]}",
                       "0.0.0.0:6222": f"127.0.0.1:{routes[i]}", **{f"nats-{j}:6222": f"127.0.0.1:{routes[j]}" for j in range(3)}}
            nodes.append(self.stage.broker(f"nats-{i}", self.config("cluster.conf", f"data-{i}", changes),
                                           {"NATS_NAME": f"nats-{i}", "PASSWORD_concord": "s3cret"}))
        for port in monitoring:
            until("the node is healthy", lambda: get(f"http://127.0.0.1:{port}/healthz")[0] == 200)
        for i, port in enumerate(monitoring):
            self.assert_understood(f"nats-{i}", port)
        servers = ",".join(f"tls://127.0.0.1:{port}" for port in ports)
        settings = {**self.settings(ports[0], servers=servers), "storage.replicas": "3"}
        _, address = self.stage.service("coordinator", settings)
        found = get_json(f"http://127.0.0.1:{monitoring[0]}/jsz?acc=CONCORD&streams=true&config=true")
        streams = {stream["name"]: stream for account in found["account_details"] for stream in account["stream_detail"]}
        self.assertEqual(streams["CONCORD_EVENTS"]["config"]["num_replicas"], 3)
        leader = streams["CONCORD_EVENTS"]["cluster"]["leader"]
        nodes[int(leader[-1])].kill()
        until("another node leads", lambda: self.leader(monitoring, leader) not in (None, leader))
        until("the service is ready again", lambda: get(f"{address}/readyz")[0] == 200)

    @staticmethod
    def leader(monitoring, lost):
        for i, port in enumerate(monitoring):
            found = get_json(f"http://127.0.0.1:{port}/jsz?acc=CONCORD&streams=true") if f"nats-{i}" != lost else None
            for account in (found or {}).get("account_details", []):
                for stream in account["stream_detail"]:
                    if stream["name"] == "CONCORD_EVENTS" and stream["cluster"].get("leader"):
                        return stream["cluster"]["leader"]
        return None


if __name__ == "__main__":
    unittest.main()

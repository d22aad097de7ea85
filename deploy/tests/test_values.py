"""Values that are easily written and easily misread: the chart does what they say, or says that it cannot."""

import json
import pathlib
import re
import unittest

import yaml
from helm_engine import Engine
from meaning import faults, pod_of
from test_chart import CHART, SERVICES, settings_of


class Values(unittest.TestCase):
    """Needs Helm's engine."""

    def setUp(self):
        self.engine = self.enterContext(Engine())

    def made(self, values, **more):
        """The documents that these values make."""
        manifest, _ = self.engine.render(CHART, values, **more)
        return [document for document in yaml.safe_load_all(manifest) if document]

    def test_a_section_with_nothing_in_it_is_that_of_the_chart(self):
        """Helm takes a key without a value, as one whose content is commented out, away from the chart's own values."""
        for empty in ({"services": {"coordinator": None}}, {"services": None}):
            made = self.made(empty | {"metrics": {"prometheusRule": {"enabled": True}}})
            for kind in ("Deployment", "Service"):
                names = {one["metadata"]["name"] for one in made if one["kind"] == kind}
                self.assertEqual(names, {f"concord-{name}" for name in SERVICES}, empty)
            rule = next(one["spec"]["groups"][0]["rules"][0] for one in made if one["kind"] == "PrometheusRule")
            self.assertEqual(rule["expr"].count("absent("), len(SERVICES))
            self.assertEqual(faults(made), [])
            # The names of what it is scaled by are gone with the section.
            with self.assertRaisesRegex(Exception, "services.coordinator.scaling.triggers|services.agent-adapter.scaling.triggers"):
                self.made(empty | {"scaling": {"mode": "keda"}})

    def test_the_doctor_is_told_what_the_installation_does_without(self):
        for off in ([], ["agent-adapter"], ["conflict-detector", "agent-adapter"]):
            made = self.made({"services": {name: {"enabled": False} for name in off}})
            (container,) = next(one for one in made if one["kind"] == "Pod")["spec"]["containers"]
            without = [argument for name in off for argument in ("--without", name)]
            self.assertEqual(container["args"], ["--config", "/etc/concord/concord.toml", *without])

    def test_policies_whose_names_are_alike_are_all_stored(self):
        names = ["house rules", "house-rules", "Regeln für 2027"]
        made = self.made({"setup": {"policies": {name: {"policy": {"preset": "contract-review"}} for name in names}}})
        files = next(one["data"] for one in made if one["kind"] == "ConfigMap")
        stored = [container["args"][-1] for container in pod_of(next(one for one in made if one["kind"] == "Job"))[1]["initContainers"]]
        self.assertEqual(sorted(json.loads(files[pathlib.Path(path).name])["name"] for path in stored), sorted(names))
        self.assertEqual([key for key in files if not re.fullmatch(r"[-._a-zA-Z0-9]+", key)], [], "what Kubernetes allows")

    def test_secrets_among_the_settings_are_refused(self):
        def adapter(service):
            return {"services": {"agent-adapter": {"settings": {"service": service}}}}

        def agent(**http):
            return {"agents": [{"agent_id": "clauses", "http": {"url": "https://a.example.org/x"} | http}]}

        cases = [
            (adapter({"notify": {"email": {"password": "s3cret"}}}), "notify.email.password is a secret"),
            (adapter({"notify": {"webhook": {"secret": "whsec_s3cret"}}}), "notify.webhook.secret is a secret"),
            (adapter({"callback": {"secret": "s3cret"}}), "callback.secret is a secret"),
            (agent(headers={"X-Key": "s3cret"}), "http.headers of clauses is a secret"),
            (adapter(agent(headers={"X-Key": "s3cret"})), "http.headers of clauses is a secret"),
            (agent(url="https://eva:s3cret@a.example.org/x"), "in service.agents is an address with a user name"),
            ({"settings": {"telemetry": {"otlp_endpoint": "https://eva:s3cret@a.example.org"}}}, "in telemetry.otlp_endpoint is an address with"),
            ({"settings": {"storage": {"s3": {"endpoint": "https://s3cret@a.example.org"}}}}, "in storage.s3 is an address with a user name"),
        ]
        for values, expected in cases:
            with self.assertRaises(Exception, msg=str(values)) as raised:
                self.made(values)
            self.assertIn(expected, str(raised.exception))
            self.assertNotIn("s3cret", str(raised.exception))
        allowed = agent(url="https://a.example.org/@clauses?to=eva@b", header_files={"X-Key": "/etc/concord/secrets/clauses/key"})
        self.assertIn("/etc/concord/secrets/clauses/key", settings_of(self.made(allowed))["concord-agent-adapter"])

    def test_pods_with_addresses_of_ipv6_alone_listen_at_theirs(self):
        made = settings_of(self.made({"settings": {"http": {"address": "[::]:8080"}}}))
        self.assertEqual([name for name, text in made.items() if 'address = "[::]:8080"' not in text], [])
        with self.assertRaisesRegex(Exception, "address"):
            self.made({"settings": {"http": {"address": "[::]:9090"}}})

    def test_the_dashboards_of_two_installations_stand_beside_each_other(self):
        def boards(namespace):
            made = self.made({"metrics": {"dashboards": {"enabled": True}}}, namespace=namespace)
            files = [item for one in made if one["kind"] == "ConfigMap" for item in one["data"].items()]
            self.assertEqual(len(files), 5)
            return [(key, json.loads(text)) for key, text in files]

        seen = {"key": set(), "uid": set(), "title": set()}
        for namespace in ("tenant-a", "tenant-b"):
            for key, board in boards(namespace):
                for what, value in (("key", key), ("uid", board["uid"]), ("title", board["title"])):
                    self.assertNotIn(value, seen[what])
                    seen[what].add(value)
                self.assertLessEqual(len(board["uid"]), 40, "Grafana takes no longer one")
                variable = next(one for one in board["templating"]["list"] if one["name"] == "namespace")
                self.assertEqual(variable["current"], {"text": namespace, "value": namespace})


if __name__ == "__main__":
    unittest.main()

"""The chart: its output is the committed one, its values are checked, and the manifests make sense."""

import copy
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml
from helm_engine import Engine
from meaning import containers, faults, pod_of

DEPLOY = pathlib.Path(__file__).resolve().parent.parent
CHART = DEPLOY / "helm" / "concord"
SETS = sorted(path.stem.removeprefix("values-") for path in (DEPLOY / "examples").glob("values-*.yaml"))
# The kinds that kubernetes-validate has no schema of.
CUSTOM = {"ScaledObject", "ServiceMonitor", "PrometheusRule"}
VERSIONS = ("1.30", "1.37")
SERVICES = ("coordinator", "conflict-detector", "debate-facilitator", "escalation-timer", "agent-adapter")


def values(name):
    return yaml.safe_load((DEPLOY / "examples" / f"values-{name}.yaml").read_text())


def rendered(name):
    return (DEPLOY / "rendered" / f"{name}.yaml").read_text()


def documents(name):
    return [document for document in yaml.safe_load_all(rendered(name)) if document]


def nightly_backup():
    """The CronJob that docs/recovery.md shows."""
    shown = re.search(r"```yaml\n(apiVersion: batch/v1\n.*?)```", (DEPLOY.parent / "docs" / "recovery.md").read_text(), re.DOTALL)
    return yaml.safe_load(shown[1])


def settings_of(made):
    """The settings file of each workload by its name: the annotation that the volume shows."""
    templates = {one["metadata"]["name"]: one if one["kind"] == "Pod" else one["spec"]["template"] for one in made if one and pod_of(one)}
    return {name: template["metadata"]["annotations"]["concord/settings"] + "\n" for name, template in templates.items()}


class Rendering(unittest.TestCase):
    """Needs Helm's engine."""

    def setUp(self):
        self.engine = self.enterContext(Engine())

    def test_the_render_is_the_committed_one(self):
        for name in SETS:
            manifest, _ = self.engine.render(CHART, values(name))
            path = DEPLOY / "rendered" / f"{name}.yaml"
            if os.environ.get("CONCORD_BLESS"):
                path.write_text(manifest)
            self.assertEqual(manifest, path.read_text(), f"{path}: bless it with CONCORD_BLESS=1 scripts/test-deploy")

    def test_values_that_do_not_exist_or_contradict_each_other_are_refused(self):
        cases = [
            ({"replicaz": 1}, "replicaz"),
            ({"services": {"coordinator": {"replicas": "two"}}}, "replicas"),
            ({"services": {"coordinater": {}}}, "coordinater"),
            ({"services": {"coordinator": {"scaling": {"triggers": [{"stream": "EVENT", "consumer": "x", "lag": 1}]}}}}, "stream"),
            ({"nats": {"servers": "nats://eva:secret@nats:4222"}}, "servers"),
            ({"nats": {"auth": {"existingSecret": "x"}}}, "needs nats.auth.credentialsKey or nats.auth.user"),
            ({"image": {"digest": "sha256:12"}}, "digest"),
            ({"scaling": {"mode": "both"}}, "mode"),
            ({"scaling": {"mode": "keda"}, "services": {"coordinator": {"scaling": {"triggers": []}}}}, "coordinator.scaling.triggers"),
            ({"scaling": {"mode": "hpa"}, "services": {"coordinator": {"scaling": {"minReplicas": 2, "maxReplicas": 1}}}},
             "services.coordinator.scaling: minReplicas is 2 and maxReplicas 1"),
            ({"settings": {"broker": {"password": "x"}}}, "password"),
            ({"setup": {"people": [{"name": "eva", "roles": ["king"]}]}}, "roles"),
            ({"setup": {"people": [{"name": "eva", "roles": ["arbiter"], "public_key": "eva.key.pub"}]}}, "public_key"),
            ({"services": {"coordinator": {"settings": {"broker": {"credentials": "/a/b"}}}}, "setup": {"people": [{"name": "eva", "roles": ["arbiter"]}]}},
             "setup: the services have credentials of their own and the command has none"),
            ({"settings": {"telemetry": {"log": "x" * 200001}}}, "larger than an annotation"),
            ({"callback": {"publicUrl": "https://x.example.org"}}, "callback.existingSecret"),
        ]
        for change, expected in cases:
            with self.assertRaises(Exception, msg=str(change)) as raised:
                self.engine.render(CHART, change)
            self.assertIn(expected, str(raised.exception))

    def test_the_job_says_of_people_what_the_command_can_state_and_keeps_the_rest(self):
        particulars = {"display_name": "Eva S.", "email": "eva@example.org", "webhook": "https://example.org/eva", "user": "eva",
                       "account": "MAIN", "public_key": "0" * 64}
        manifest, _ = self.engine.render(CHART, {"setup": {"people": [{"name": "eva", "roles": ["alerter"], "agent": True} | particulars]}})
        job = next(one for one in yaml.safe_load_all(manifest) if one and one["kind"] == "Job")
        said = pod_of(job)[1]["initContainers"][0]["args"]
        self.assertLessEqual({"--keep", "--agent", *particulars.values()}, set(said))
        self.assertEqual((said[said.index("--name") + 1], said[-1]), ("Eva S.", "eva"))

    def test_a_service_has_credentials_of_its_own(self):
        file = "/etc/concord/secrets/concord-service-coordinator/nats.creds"
        own = {"secrets": ["concord-service-coordinator"], "settings": {"broker": {"credentials": file}}}
        manifest, _ = self.engine.render(CHART, {"services": {"coordinator": own}})
        settings = settings_of(yaml.safe_load_all(manifest))
        having = [name for name, text in settings.items() if f'credentials = "{file}"' in text]
        self.assertEqual(having, ["concord-coordinator"])

    def test_the_command_has_credentials_beside_those_of_the_services(self):
        def own(name):
            return {"settings": {"broker": {"credentials": f"/etc/concord/secrets/{name}/nats.creds"}}}

        change = {"services": {name: own(name) for name in SERVICES}}
        _, notes = self.engine.render(CHART, change)
        self.assertNotIn("without a user", notes)
        self.assertIn("helm test will fail", notes)
        del change["services"]["coordinator"]
        self.assertIn("without a user of the broker: coordinator (", self.engine.render(CHART, change)[1])
        change |= {"command": {"credentialsSecret": "concord-operator-setup"}, "nats": {"auth": {"existingSecret": "broker", "user": "concord"}},
                   "setup": {"people": [{"name": "eva", "roles": ["arbiter"]}]}}
        manifest, notes = self.engine.render(CHART, change)
        self.assertNotIn("helm test will fail", notes)
        made = [one for one in yaml.safe_load_all(manifest) if one]
        settings = settings_of(made)
        for name in ("concord-setup", "concord-test-doctor"):
            self.assertIn('credentials = "/etc/concord/command/nats.creds"', settings[name])
            self.assertNotIn("password_file", settings[name])
        self.assertIn("password_file", settings["concord-coordinator"])
        self.assertNotIn("password_file", settings["concord-agent-adapter"])
        self.assertEqual(faults(made), [])

    def test_the_pods_of_the_command_run_where_the_others_do(self):
        where = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "pool"}], "priorityClassName": "high", "affinity": {"nodeAffinity": {}}}
        change = {"defaults": where | {"env": [{"name": "A", "value": "b"}], "podLabels": {"team": "x"}, "podAnnotations": {"linkerd.io/inject": "enabled", "kept": "1"}},
                  "command": {"podAnnotations": {"linkerd.io/inject": "disabled"}}, "setup": {"people": [{"name": "eva", "roles": ["arbiter"]}]}}
        manifest, _ = self.engine.render(CHART, change)
        made = [one for one in yaml.safe_load_all(manifest) if one and pod_of(one)]
        self.assertEqual({one["kind"] for one in made}, {"Deployment", "Job", "Pod"})
        for one in made:
            labels, pod = pod_of(one)
            annotations = (one if one["kind"] == "Pod" else one["spec"]["template"])["metadata"]["annotations"]
            self.assertEqual({key: pod.get(key) for key in where}, where, one["kind"])
            self.assertEqual([container["env"][0]["name"] for container in containers(pod)], ["A"] * len(containers(pod)))
            self.assertEqual((labels["team"], annotations["kept"]), ("x", "1"))
            self.assertEqual(annotations["linkerd.io/inject"], "enabled" if one["kind"] == "Deployment" else "disabled")

    def test_what_doctor_says_can_be_read_after_the_test(self):
        """Helm 3 deletes a test's pod that succeeded before `helm test --logs` reads what it printed, and then fails."""
        manifest, _ = self.engine.render(CHART, {})
        tests = [one["metadata"]["annotations"] for one in yaml.safe_load_all(manifest) if one and one["kind"] == "Pod"]
        self.assertEqual([one["helm.sh/hook-delete-policy"] for one in tests], ["before-hook-creation"])

    def test_a_revision_keeps_its_settings(self):
        """No object outside a pod's template holds settings, so what one revision reads no other can change."""
        settings = []
        for drain in (10000, 20000):
            manifest, _ = self.engine.render(CHART, {"settings": {"work": {"drain_ms": drain}}})
            made = [one for one in yaml.safe_load_all(manifest) if one]
            self.assertEqual([one for one in made if one["kind"] == "ConfigMap"], [])
            settings.append(settings_of(made)["concord-coordinator"])
        self.assertEqual(settings[0].replace("drain_ms = 10000", "drain_ms = 20000"), settings[1])
        self.assertNotEqual(*settings)

    def test_the_notes_say_what_is_not_safe_yet(self):
        _, minimal = self.engine.render(CHART, values("minimal"))
        _, production = self.engine.render(CHART, values("production"))
        self.assertEqual(minimal.count("WARNING"), 3)
        self.assertEqual(production.count("WARNING"), 0)
        self.assertIn("helm -n concord test concord", production)

    def test_every_way_of_scaling_makes_sense(self):
        for mode, kind in (("none", None), ("keda", "ScaledObject"), ("hpa", "HorizontalPodAutoscaler")):
            manifest, _ = self.engine.render(CHART, {"scaling": {"mode": mode}})
            made = [one for one in yaml.safe_load_all(manifest) if one]
            scalers = [one["kind"] for one in made if "scaleTargetRef" in one.get("spec", {})]
            self.assertEqual(scalers, [kind] * len(SERVICES) if kind else [])
            self.assertEqual(faults(made), [])

    def test_replicas_of_the_adapter_come_with_the_backlog_of_each_hosted_agent(self):
        # Their names differ in nothing that a name of a trigger may have.
        agents = [{"agent_id": name, "command": ["/opt/agents/convert"]} for name in ("a-b", "a_b")]

        def triggers(lag):
            keda = {} if lag is None else {"hostedAgentLag": lag}
            manifest, _ = self.engine.render(CHART, {"scaling": {"mode": "keda", "keda": keda}, "agents": agents})
            made = [one for one in yaml.safe_load_all(manifest) if one]
            self.assertEqual(faults(made), [])
            return {one["metadata"]["name"].removeprefix("concord-"): one["spec"]["triggers"] for one in made if one["kind"] == "ScaledObject"}

        made = triggers(None)
        inbox, *hosted = made.pop("agent-adapter")
        self.assertEqual(inbox["metadata"]["consumer"], "agent-adapter-inbox")
        expected = [{"type": "nats-jetstream", "metadata": inbox["metadata"] | {"consumer": f"agent-{name}", "lagThreshold": "50"}} for name in ("a-b", "a_b")]
        self.assertEqual(hosted, expected)
        self.assertNotIn("agent-a-b", str(made), "nobody else hosts it")
        self.assertEqual([one["metadata"]["lagThreshold"] for one in triggers(7)["agent-adapter"]], ["500", "7", "7"])
        self.assertEqual([one["metadata"]["consumer"] for one in triggers(0)["agent-adapter"]], ["agent-adapter-inbox"])

    def test_who_asks_and_who_is_asked_is_let_through(self):
        def policy(change):
            manifest, notes = self.engine.render(CHART, change)
            return next(one["spec"] for one in yaml.safe_load_all(manifest) if one and one["kind"] == "NetworkPolicy"), notes

        alone, notes = policy({"metrics": {"serviceMonitor": {"enabled": True}}})
        self.assertEqual(alone["ingress"], [])
        self.assertIn("WARNING: Prometheus is asked to read /metrics", notes)
        namespace = alone["egress"][1]["to"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        self.assertIn(f"with the broker at nats://nats.{namespace}.svc.cluster.local:4222.", notes)
        rule = {"from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}], "ports": [{"protocol": "TCP", "port": "http"}]}
        more, notes = policy({"metrics": {"serviceMonitor": {"enabled": True}}, "networkPolicy": {"extraIngress": [rule]}})
        self.assertEqual(more["ingress"], [rule])
        self.assertNotIn("Prometheus is asked", notes)
        both, _ = policy({"networkPolicy": {"extraIngress": [rule], "metricsNamespaceLabels": {"a": "b"}}})
        self.assertEqual(len(both["ingress"]), 2)

    def test_a_service_can_be_left_out_and_has_values_of_its_own(self):
        change = {"services": {"agent-adapter": {"enabled": False}, "coordinator": {"replicas": 3, "settings": {"work": {"drain_ms": 40000}}}},
                  "metrics": {"prometheusRule": {"enabled": True}}}
        manifest, _ = self.engine.render(CHART, change, namespace="tenant-a")
        made = [document for document in yaml.safe_load_all(manifest) if document]
        deployments = {d["metadata"]["name"]: d["spec"] for d in made if d["kind"] == "Deployment"}
        self.assertNotIn("concord-agent-adapter", deployments)
        self.assertEqual(deployments["concord-coordinator"]["replicas"], 3)
        self.assertEqual(deployments["concord-coordinator"]["template"]["spec"]["terminationGracePeriodSeconds"], 50)
        budgets = [d["metadata"]["name"] for d in made if d["kind"] == "PodDisruptionBudget"]
        self.assertEqual(budgets, ["concord-coordinator"])
        rules = next(d["spec"]["groups"][0]["rules"] for d in made if d["kind"] == "PrometheusRule")
        missed = re.findall(r"absent\((.+?)\)", rules[0]["expr"])
        self.assertEqual(missed, [f'up{{namespace="tenant-a", job="{name}"}}' for name in SERVICES if name != "agent-adapter"])
        self.assertEqual(faults(made), [])


class Schemas(unittest.TestCase):
    """Needs kubernetes-validate."""

    def test_every_kind_keeps_to_the_schema_of_its_version(self):
        import kubernetes_validate

        for name in SETS:
            for version in VERSIONS:
                checked = 0
                for document in documents(name):
                    if document["kind"] in CUSTOM:
                        continue
                    kubernetes_validate.validate(document, version, strict=True)
                    checked += 1
                self.assertGreater(checked, 10)

    def test_the_policy_of_the_broker_keeps_to_its_schema(self):
        import kubernetes_validate

        policy = yaml.safe_load((DEPLOY / "examples" / "networkpolicy-nats.yaml").read_text())
        for version in VERSIONS:
            kubernetes_validate.validate(policy, version, strict=True)

    def test_the_nightly_backup_keeps_to_its_schema(self):
        import kubernetes_validate

        for version in VERSIONS:
            kubernetes_validate.validate(nightly_backup(), version, strict=True)

    def test_a_field_that_does_not_exist_is_found(self):
        import kubernetes_validate

        budget = next(d for d in documents("production") if d["kind"] == "PodDisruptionBudget")
        budget["spec"]["maxUnavailible"] = 1
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(budget, VERSIONS[0], strict=True)


class Meaning(unittest.TestCase):
    """Needs nothing but the committed manifests."""

    def test_the_parts_fit_each_other(self):
        for name in SETS:
            self.assertEqual(faults(documents(name)), [], name)

    def test_the_nightly_backup_may_run_beside_the_services(self):
        spec = nightly_backup()["spec"]["jobTemplate"]["spec"]
        spec["template"].setdefault("metadata", {})
        self.assertEqual(faults([{"kind": "Job", "metadata": {"name": "backup"}, "spec": spec}]), [])
        pod = spec["template"]["spec"]["securityContext"]
        self.assertEqual(pod.get("fsGroup"), pod["runAsUser"], "it writes to its volume")

    def test_injected_faults_are_found(self):
        def pod(kind, change):
            def apply(made):
                change(pod_of(next(d for d in made if d["kind"] == kind))[1])
            return apply

        def spec(kind, change):
            return lambda made: change(next(d for d in made if d["kind"] == kind)["spec"])

        cases = [
            (pod("Deployment", lambda s: s["securityContext"].update(runAsUser=0)), "root"),
            (pod("Deployment", lambda s: s["containers"][0]["securityContext"].update(readOnlyRootFilesystem=False)), "write to its image"),
            (pod("Deployment", lambda s: s["containers"][0]["securityContext"]["capabilities"].update(add=["NET_ADMIN"])), "capabilities"),
            (pod("Pod", lambda s: s.update(automountServiceAccountToken=True)), "token"),
            (pod("Deployment", lambda s: s["containers"][0]["livenessProbe"]["httpGet"].update(path="/readyz")), "liveness"),
            (pod("Deployment", lambda s: s["containers"][0]["readinessProbe"]["httpGet"].update(port="web")), "web"),
            (pod("Deployment", lambda s: s["containers"][0]["resources"]["limits"].update(memory="50x")), "no quantity"),
            (pod("Deployment", lambda s: s["volumes"].pop(0)), "mounts"),
            (spec("Deployment", lambda s: s["template"]["metadata"]["annotations"].clear()), "no annotation"),
            (spec("Deployment", lambda s: s["selector"]["matchLabels"].update(a="b")), "own pods"),
            (spec("Deployment", lambda s: s.update(replicas=1)), "says itself"),
            (spec("Service", lambda s: s["selector"].update(a="b")), "selects no pod"),
            (spec("NetworkPolicy", lambda s: s["egress"][0]["ports"][0].update(protocol="TPC")), "TPC"),
            (spec("NetworkPolicy", lambda s: s["ingress"][0]["ports"][0].update(port="web")), "web"),
            (spec("PodDisruptionBudget", lambda s: s["selector"]["matchLabels"].update(a="b")), "no deployment"),
            (spec("ScaledObject", lambda s: s["scaleTargetRef"].update(name="x")), "which there is not"),
            (spec("ScaledObject", lambda s: s["triggers"][0]["metadata"].update(lagThreshold=5)), "no text"),
            (spec("ServiceMonitor", lambda s: s["endpoints"][0].update(port="web")), "no service has"),
        ]
        for change, expected in cases:
            made = copy.deepcopy(documents("production"))
            change(made)
            self.assertTrue(any(expected in fault for fault in faults(made)), expected)

    def test_the_secrets_of_the_production_values_are_explained(self):
        wanted = set()
        for document in documents("production"):
            if pod_of(document):
                spec = pod_of(document)[1]
                wanted |= {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
                wanted |= {secret["name"] for secret in spec["imagePullSecrets"]}
                self.assertNotIn("priorityClassName", spec, "a class that is nowhere")
        explained = (DEPLOY / "README.md").read_text()
        self.assertEqual([name for name in sorted(wanted) if f"\n| `{name}` (" not in explained], [])

    def test_the_streams_fit_into_the_store_of_the_broker(self):
        broker = yaml.safe_load((DEPLOY / "examples" / "nats-chart.yaml").read_text())
        store = int(broker["config"]["jetstream"]["fileStore"]["maxSize"].removesuffix("Gi")) * 2**30
        storage = values("production")["settings"]["storage"]
        self.assertLess(storage["bytes_max"] + 2**30, store)
        self.assertGreater(storage["bytes_max"], store // 2)
        memory = int(broker["container"]["env"]["GOMEMLIMIT"].removesuffix("MiB")) * 2**20
        limit = int(broker["container"]["merge"]["resources"]["limits"]["memory"].removesuffix("Gi")) * 2**30
        self.assertLess(memory, limit)

    def test_pods_outlive_their_drain(self):
        for name in SETS:
            for document in documents(name):
                if document["kind"] != "Deployment":
                    continue
                _, spec = pod_of(document)
                pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
                self.assertGreater(spec["terminationGracePeriodSeconds"], pause + 10 + 2)

    def test_consumers_that_are_scaled_by_are_in_the_reference(self):
        known = dict(re.findall(r"^\| `([\w-]+)` \| `([A-Z_]+)` \|", (DEPLOY.parent / "docs" / "subjects.md").read_text(), re.M))
        asked = 0
        for document in documents("production"):
            if document["kind"] == "ScaledObject":
                for trigger in document["spec"]["triggers"]:
                    self.assertEqual(known.get(trigger["metadata"]["consumer"]), trigger["metadata"]["stream"])
                    asked += 1
        self.assertGreater(asked, 5)


@unittest.skipUnless(os.environ.get("CONCORD_BINARIES"), "needs the programs: CONCORD_BINARIES")
class Settings(unittest.TestCase):
    """The services take the settings files that the chart writes."""

    def check(self, program, text, folder):
        path = pathlib.Path(folder, "concord.toml")
        path.write_text(text)
        return subprocess.run([pathlib.Path(os.environ["CONCORD_BINARIES"], program), "--config", path, "--check-config"],
                              capture_output=True, text=True, env={}, check=False)

    def made(self, folder):
        """Files of each kind that is looked at, by the ends of their names."""
        made = pathlib.Path(folder, "made")
        made.mkdir()
        openssl = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", "tls.key", "-out", "tls.crt"]
        concord = pathlib.Path(os.environ["CONCORD_BINARIES"], "concord")
        for command in (["openssl", *openssl], [concord, "keys", "generate", "head.key"], [concord, "credentials", "init", "all"],
                        [concord, "credentials", "issue", "all", "service:coordinator"]):
            subprocess.run(command, cwd=made, check=True, capture_output=True)
        authority, (credentials,) = made / "tls.crt", (made / "all" / "creds").rglob("*.creds")
        (made / "s3").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
        return {"tls.key": made / "tls.key", "/credentials": made / "s3", "tls.crt": authority, "ca.crt": authority, "head.key": made / "head.key", ".creds": credentials}

    def settings(self, name, folder):
        """The settings of each service; files that they name are put into `folder`."""
        made = self.made(folder)
        found = settings_of(documents(name))
        for path in set(re.findall(r'"(/etc/concord/[^"]+)"', "".join(found.values()))):
            stand_in = pathlib.Path(folder, path.lstrip("/"))
            stand_in.parent.mkdir(parents=True, exist_ok=True)
            same = next((file for end, file in made.items() if path.endswith(end)), None)
            stand_in.write_text(same.read_text() if same else "0123456789abcdef0123456789abcdef\n")
            stand_in.chmod(0o600)
            found = {key: text.replace(f'"{path}"', f'"{stand_in}"') for key, text in found.items()}
        # A model of 90 MB is not at hand.
        return {key: re.sub(r'model_dir = "[^"]+"', "", text) for key, text in found.items()}

    def test_the_services_take_them(self):
        for name in SETS:
            with tempfile.TemporaryDirectory() as folder:
                settings = self.settings(name, folder)
                for document in documents(name):
                    if document["kind"] != "Deployment":
                        continue
                    container = containers(pod_of(document)[1])[0]
                    program = container["command"][0].removeprefix("/bin/")
                    done = self.check(program, settings[document["metadata"]["name"]], folder)
                    self.assertEqual(done.returncode, 0, f"{name} {program}: {done.stderr}")

    def test_a_setting_that_does_not_exist_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.check("concord-coordinator", "[work]\ndrain_mz = 1\n", folder)
            self.assertEqual(done.returncode, 64)
            self.assertIn("drain_ms", done.stderr)


if __name__ == "__main__":
    unittest.main()

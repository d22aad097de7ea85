"""Renders the chart with Helm's own engine, without a cluster.

The engine (package helm-sdkpy) knows no `template`: it installs into a cluster. So a stand-in of the API server runs on loopback, which
knows which kinds there are and keeps what it is given. It judges nothing: what is shown is that the chart renders, not
that Kubernetes takes it. That is what the schemas in `test_chart.py` and `meaning.py` are for.
"""

import json
import os
import pathlib
import shutil
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The kinds that Kubernetes, KEDA and the operator of Prometheus know: (group, version) to (plural, kind).
KINDS = {
    ("", "v1"): [("configmaps", "ConfigMap"), ("pods", "Pod"), ("secrets", "Secret"), ("services", "Service"),
                 ("serviceaccounts", "ServiceAccount"), ("namespaces", "Namespace"), ("persistentvolumeclaims", "PersistentVolumeClaim")],
    ("apps", "v1"): [("deployments", "Deployment"), ("statefulsets", "StatefulSet")],
    ("batch", "v1"): [("jobs", "Job")],
    ("policy", "v1"): [("poddisruptionbudgets", "PodDisruptionBudget")],
    ("networking.k8s.io", "v1"): [("networkpolicies", "NetworkPolicy"), ("ingresses", "Ingress")],
    ("autoscaling", "v2"): [("horizontalpodautoscalers", "HorizontalPodAutoscaler")],
    ("keda.sh", "v1alpha1"): [("scaledobjects", "ScaledObject")],
    ("monitoring.coreos.com", "v1"): [("servicemonitors", "ServiceMonitor"), ("prometheusrules", "PrometheusRule"),
                                      ("podmonitors", "PodMonitor")],
}


def _resources(group, version):
    rows = KINDS[(group, version)]
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}" if group else version,
            "resources": [{"name": plural, "singularName": kind.lower(), "namespaced": kind != "Namespace", "kind": kind,
                           "verbs": verbs} for plural, kind in rows]}


def _groups():
    entries = [({"groupVersion": f"{group}/{version}", "version": version}, group) for group, version in KINDS if group]
    return {"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [{"name": group, "versions": [entry], "preferredVersion": entry} for entry, group in entries]}


# Hooks that an installation runs would be waited for. For the time of the rendering they are hooks of another moment.
HOOKS_RUN = "helm.sh/hook: post-install,post-upgrade"
HOOKS_NOT_RUN = "helm.sh/hook: pre-rollback"


class _StandIn(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stored = {}

    def log_message(self, *_):
        pass

    def _answer(self, code, body):
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _absent(self):
        self._answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                           "message": "not found"})

    def _body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def do_GET(self):
        path = self.path.split("?")[0].rstrip("/")
        if path == "/version":
            return self._answer(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
        if path == "/api":
            return self._answer(200, {"kind": "APIVersions", "versions": ["v1"]})
        if path == "/apis":
            return self._answer(200, _groups())
        parts = path.strip("/").split("/")
        if parts[0] == "api" and len(parts) == 2 and ("", parts[1]) in KINDS:
            return self._answer(200, _resources("", parts[1]))
        if parts[0] == "apis" and len(parts) == 3 and (parts[1], parts[2]) in KINDS:
            return self._answer(200, _resources(parts[1], parts[2]))
        found = self.stored.get(path)
        return self._answer(200, found) if found else self._absent()

    def do_POST(self):
        body = self._body()
        name = body.get("metadata", {}).get("name", "")
        self.stored[self.path.split("?")[0].rstrip("/") + "/" + name] = body
        self._answer(201, body)

    def do_PUT(self):
        body = self._body()
        self.stored[self.path.split("?")[0]] = body
        self._answer(200, body)

    do_PATCH = do_PUT

    def do_DELETE(self):
        self._body()
        self.stored.pop(self.path.split("?")[0], None)
        self._answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})


class Engine:
    """Helm's engine before the stand-in; to be used in a `with`."""

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _StandIn)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._folder = tempfile.TemporaryDirectory()
        self._kubeconfig = os.path.join(self._folder.name, "kubeconfig")
        with open(self._kubeconfig, "w") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "x",
                       "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{self._server.server_port}"}}],
                       "users": [{"name": "x", "user": {}}],
                       "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": "concord"}}]}, file)
        # Releases as Secrets would be sent in a form that the stand-in cannot read. The engine sees only the variables that
        # the process was started with.
        if os.environ.get("HELM_DRIVER") != "memory":
            raise RuntimeError("start this with HELM_DRIVER=memory, as scripts/test-deploy does")
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def render(self, chart, values, release="concord", namespace="concord"):
        """The manifest with the hooks, and the notes, of an installation with these values."""
        import asyncio

        import helm_sdkpy

        _StandIn.stored = {}
        copy = pathlib.Path(self._folder.name, "chart")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(chart, copy)
        for template in copy.glob("templates/**/*.yaml"):
            template.write_text(template.read_text().replace(HOOKS_RUN, HOOKS_NOT_RUN))
        configuration = helm_sdkpy.Configuration(namespace=namespace, kubeconfig=self._kubeconfig)

        async def install():
            install = helm_sdkpy.Install(configuration)
            return await install.run(release, str(copy), values, wait=False)

        released = asyncio.run(install())
        documents = [released["manifest"].strip()]
        for hook in released.get("hooks") or []:
            documents.append(f"---\n# Source: {hook['path']}\n{hook['manifest'].strip()}")
        manifest = "\n".join(documents).replace(HOOKS_NOT_RUN, HOOKS_RUN)
        return manifest + "\n", (released.get("info") or {}).get("notes", "")

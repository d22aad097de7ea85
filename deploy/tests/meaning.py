"""What no schema sees of a set of manifests: whether the parts fit each other, and whether pods are as restricted as they shall be."""

import re

QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?|Ki)?$")
WORKLOADS = ("Deployment", "Job", "Pod", "StatefulSet")


def pod_of(document):
    """The pod that a document makes, as (labels, spec); none for other kinds."""
    if document["kind"] == "Pod":
        return document["metadata"].get("labels", {}), document["spec"]
    if document["kind"] in WORKLOADS:
        template = document["spec"]["template"]
        return template["metadata"].get("labels", {}), template["spec"]
    return None


def containers(spec):
    return spec.get("initContainers", []) + spec["containers"]


def _selects(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def _restricted(name, spec):
    """Pod Security Standards, "restricted", and what this project asks for besides."""
    pod = spec.get("securityContext", {})
    if not pod.get("runAsNonRoot") or pod.get("runAsUser", 0) == 0:
        yield f"{name}: may run as root"
    if pod.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield f"{name}: no seccomp profile"
    if spec.get("automountServiceAccountToken") is not False:
        yield f"{name}: is given a token of its service account"
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield f"{name}: {key}"
    for volume in spec.get("volumes", []):
        if "hostPath" in volume:
            yield f"{name}: the volume {volume['name']} is of the host"
    for container in containers(spec):
        security = container.get("securityContext", {})
        if security.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: {container['name']} may escalate privileges"
        if security.get("capabilities", {}).get("drop") != ["ALL"] or security["capabilities"].get("add"):
            yield f"{name}: {container['name']} has capabilities"
        if security.get("readOnlyRootFilesystem") is not True:
            yield f"{name}: {container['name']} may write to its image"


def _container(name, spec, container):
    for kind in ("requests", "limits"):
        for what, value in container.get("resources", {}).get(kind, {}).items():
            if not QUANTITY.match(str(value)):
                yield f"{name}: {kind}.{what} {value!r} is no quantity"
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        port = container.get(probe, {}).get("httpGet", {}).get("port")
        if isinstance(port, str) and port not in ports:
            yield f"{name}: {probe} asks for the port {port}, which there is not"
    if container.get("livenessProbe", {}).get("httpGet", {}).get("path") == "/readyz":
        yield f"{name}: the liveness depends on the broker"
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
    for volume in mounted - volumes:
        yield f"{name}: mounts {volume}, which there is not"


def _network_policy(name, document, workloads):
    hit = [spec for labels, spec in workloads if _selects(document["spec"]["podSelector"].get("matchLabels", {}), labels)]
    if not hit:
        yield f"{name}: selects no pod"
    ports = {port["name"] for spec in hit for container in containers(spec) for port in container.get("ports", [])}
    for rule in document["spec"].get("ingress") or []:
        for port in rule.get("ports", []):
            if isinstance(port["port"], str) and port["port"] not in ports:
                yield f"{name}: lets in at the port {port['port']}, which there is not"
    for rule in (document["spec"].get("ingress") or []) + (document["spec"].get("egress") or []):
        for port in rule.get("ports", []):
            if port.get("protocol", "TCP") not in ("TCP", "UDP", "SCTP"):
                yield f"{name}: {port['protocol']} is no protocol"


def _one(document, documents, workloads, deployments):
    kind, name = document["kind"], f"{document['kind']} {document['metadata']['name']}"
    spec = document.get("spec", {})
    if kind in ("Deployment", "StatefulSet"):
        labels, pod = pod_of(document)
        if not _selects(spec["selector"]["matchLabels"], labels):
            yield f"{name}: does not select its own pods"
        for constraint in pod.get("topologySpreadConstraints", []):
            if not _selects(constraint["labelSelector"]["matchLabels"], labels):
                yield f"{name}: spreads other pods than its own"
    if pod_of(document):
        _, pod = pod_of(document)
        yield from _restricted(name, pod)
        for container in containers(pod):
            yield from _container(name, pod, container)
        annotations = (document if kind == "Pod" else spec["template"])["metadata"].get("annotations", {})
        for volume in pod.get("volumes", []):
            for item in volume.get("downwardAPI", {}).get("items", []):
                shown = re.fullmatch(r"metadata\.annotations\['(.+)'\]", item["fieldRef"]["fieldPath"])
                if not shown or shown[1] not in annotations:
                    yield f"{name}: {volume['name']} shows {item['fieldRef']['fieldPath']}, and there is no annotation of this name"
            wanted = volume.get("configMap", {}).get("name")
            external = any(mount["mountPath"].startswith("/etc/concord/files/") for container in containers(pod)
                           for mount in container.get("volumeMounts", []) if mount["name"] == volume["name"])
            if wanted and not external and not any(d["kind"] == "ConfigMap" and d["metadata"]["name"] == wanted for d in documents):
                yield f"{name}: the ConfigMap {wanted} is nowhere"
    if kind == "Service":
        hit = [pod for labels, pod in workloads if _selects(spec["selector"], labels)]
        ports = {port["name"] for pod in hit for container in containers(pod) for port in container.get("ports", [])}
        if not hit:
            yield f"{name}: selects no pod"
        for port in spec["ports"]:
            if isinstance(port["targetPort"], str) and port["targetPort"] not in ports:
                yield f"{name}: leads to the port {port['targetPort']}, which there is not"
    if kind == "NetworkPolicy":
        yield from _network_policy(name, document, workloads)
    if kind == "PodDisruptionBudget":
        own = [d for d in deployments if _selects(spec["selector"]["matchLabels"], pod_of(d)[0])]
        if not own:
            yield f"{name}: selects no deployment"
        if any(d["spec"].get("replicas") == 1 for d in own):
            yield f"{name}: with one replica it stops the maintenance of a node"
    if kind == "ServiceMonitor":
        services = [d for d in documents if d["kind"] == "Service" and _selects(spec["selector"]["matchLabels"], d["metadata"]["labels"])]
        ports = {port["name"] for service in services for port in service["spec"]["ports"]}
        for endpoint in spec["endpoints"]:
            if endpoint["port"] not in ports:
                yield f"{name}: asks at the port {endpoint['port']}, which no service has"


def _scaling(documents, deployments):
    """Each deployment is scaled by one thing at most, and has no replicas of its own then."""
    by_name = {d["metadata"]["name"]: d for d in deployments}
    scaled = {}
    for document in documents:
        if document["kind"] not in ("ScaledObject", "HorizontalPodAutoscaler"):
            continue
        name, spec = f"{document['kind']} {document['metadata']['name']}", document["spec"]
        target = spec["scaleTargetRef"]["name"]
        if target not in by_name:
            yield f"{name}: scales {target}, which there is not"
        elif "replicas" in by_name[target]["spec"]:
            yield f"{name}: {target} says itself how many replicas it has"
        if target in scaled:
            yield f"{name}: {target} is scaled by {scaled[target]}, too"
        scaled[target] = name
        least, most = spec.get("minReplicaCount", spec.get("minReplicas")), spec.get("maxReplicaCount", spec.get("maxReplicas"))
        if not 1 <= least <= most:
            yield f"{name}: from {least} to {most} replicas"
        for trigger in spec.get("triggers", []):
            for key, value in trigger["metadata"].items():
                if not isinstance(value, str):
                    yield f"{name}: {key} is no text"
    for name, document in by_name.items():
        if name not in scaled and "replicas" not in document["spec"]:
            yield f"Deployment {name}: nobody says how many replicas it has"


def faults(documents):
    """Everything that is wrong with these manifests, one line each."""
    workloads = [pod_of(document) for document in documents if pod_of(document)]
    deployments = [document for document in documents if document["kind"] == "Deployment"]
    found = []
    for document in documents:
        found.extend(_one(document, documents, workloads, deployments))
    found.extend(_scaling(documents, deployments))
    return found

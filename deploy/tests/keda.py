"""What KEDA's scaler `nats-jetstream` asks the broker, and what it makes of the answers: the same requests in the same order.

Written after `pkg/scalers/nats_jetstream_scaler.go` of KEDA 2.20. `resolve` gives for a host the address to ask: the names of pods
exist only in a cluster.
"""

import urllib.parse

from processes import get_json


class NotFound(Exception):
    """KEDA would report an error, and after some of them fall back."""


def _consumer(answer, metadata):
    for account in answer.get("account_details") or []:
        if account["name"] != metadata["account"]:
            continue
        for stream in account.get("stream_detail") or []:
            if stream["name"] == metadata["stream"]:
                for consumer in stream.get("consumer_detail") or []:
                    if consumer["name"] == metadata["consumer"]:
                        return consumer
    return None


def lag(metadata, resolve=lambda host: host):
    """The backlog that a trigger with this metadata sees: what waits, and what is delivered and not acknowledged."""
    host, port = metadata["natsServerMonitoringEndpoint"].split(":")
    scheme = "https" if metadata["useHttps"] == "true" else "http"

    def ask(node, path):
        answer = get_json(f"{scheme}://{resolve(node)}:{port}{path}")
        if answer is None:
            raise NotFound(f"{node}:{port}{path} does not answer")
        return answer

    query = urllib.parse.urlencode({"acc": metadata["account"], "config": "true", "consumers": "true"})
    jetstream = f"/jsz?{query}"
    answer = ask(host, jetstream)
    found = _consumer(answer, metadata)
    if (answer.get("meta_cluster") or {}).get("cluster_size", 0) > 1:
        found = None
        server = ask(host, "/varz")
        advertised = server.get("connect_urls") or []
        for url in advertised or server["cluster"]["urls"]:
            if advertised:
                node = url.split(":")[0]
                name = ask(node, "/varz")["server_name"]
            else:
                name = url.split(".")[0]
                node = f"{name}.{host}"
            consumer = _consumer(ask(node, jetstream), metadata)
            if consumer and consumer["cluster"]["leader"] == name:
                found = consumer
                break
    if not found:
        raise NotFound(f"the leader of {metadata['consumer']} was not found")
    return found["num_pending"] + found["num_ack_pending"]

"""Records what one version of Concord stores, as test data for the versions after it; README.md says when and how."""

import argparse
import asyncio
import base64
import gzip
import json
import os
import pathlib
import re
import subprocess
import tempfile

import nats

STREAMS = [f"CONCORD_{kind}" for kind in ("MESSAGES", "URGENT", "EVENTS", "TIMERS", "MEMORY", "DEAD")]
HOSTED = pathlib.Path(__file__).with_name("hosted.py").resolve()
PATIENCE_SECONDS = 60

# In place of nats-server: each start goes on with the streams that the one before has left, so that all runs are one installation.
KEEPER = """#!/usr/bin/env bash
streams=$(dirname "$2")/jetstream
if [ -d {kept} ]; then cp -a {kept} "$streams"; fi
{server} "$@" & child=$!
trap 'kill -TERM $child' TERM
wait $child; wait $child
rm -rf {kept}; cp -a "$streams" {kept}
"""

ADAPTER = """[[service.agents]]
agent_id = "hosted"
command = ["python3", "{program}"]
skills = [{{ name = "tax", examples = ["Who bears the value added tax?", "Is VAT included in the price?"] }}]
"""


async def take_part(client, concord):
    """A request, a question to the group and a case. `ann` speaks NATS, `hosted` is hosted. And one message that is none."""

    async def say(to, kind, payload, case="_", number="1", **more):
        message = {"message_id": f"ann-{kind}-{number}", "timestamp": "2026-01-01T00:00:00Z", "message_type": kind}
        message |= {"from_agent": "ann", "to_agent": to, "payload": payload, "metadata": {"version": "1.0", "confidence": 0.9}}
        message |= more | ({} if case == "_" else {"case_id": case})
        await client.publish(f"concord.v1.msg.{case}.ann.{to}.{kind}", json.dumps(message).encode())

    heard = await client.subscribe("concord.v1.*.*.*.ann.*")
    await client.flush()
    await say("hosted", "request", {"action": "look_up", "parameters": {"what": "terms"}}, requires_response=True)
    await say("_any", "group_query", {"content": "Is the value added tax included in the price?"})
    await client.publish("concord.v1.msg._.ann.coordinator.finding", b"no message")
    task = {"type": "contract_review", "title": "Lease", "input": {}}
    case = {"case_id": "lease", "policy": "contract-review", "participants": ["ann", "hosted"], "task": task}
    concord("case", "open", "-", text=json.dumps(case))
    kinds = set()
    finding = {"summary": "Risky.", "risk_score": 90, "recommendation": "reject"}
    while json.loads(concord("case", "show", "lease", "--json"))["phase"] != "decided":
        try:
            body = json.loads((await heard.next_msg(timeout=1)).data)
        except nats.errors.TimeoutError:
            continue
        kind, asked = body["message_type"], body["message_id"]
        kinds.add(kind)
        if kind == "task_assignment":
            await say("coordinator", "finding", finding, "lease", reply_to=asked)
        elif kind == "question":
            await say("debate-facilitator", "disagreement", {"reasoning": "It is."}, "lease", asked, reply_to=asked)
    assert kinds >= {"response", "info_update", "task_assignment", "question", "error"}, kinds


async def api(client, what, **request):
    answer = json.loads((await client.request(f"$JS.API.{what}", json.dumps(request).encode())).data)
    return None if answer.get("error", {}).get("code") == 404 else answer


async def consumers(client):
    """Streams and consumers as they are on the broker; of consumers also how many messages are left for them."""
    found = []
    for stream in STREAMS:
        found.append({"stream": (await api(client, f"STREAM.INFO.{stream}"))["config"]})
        for one in (await api(client, f"CONSUMER.LIST.{stream}"))["consumers"]:
            if "durable_name" in one["config"]:
                found.append({"consumer": one["config"], "of": stream, "left": one["num_pending"] + one["num_ack_pending"]})
    return found


async def settled(client):
    """Waits until no service has anything to do, now or later."""
    quiet = 0
    for _ in range(PATIENCE_SECONDS * 5):
        armed = await api(client, "STREAM.INFO.CONCORD_TIMERS", subjects_filter="concord.v1.timer.armed.>")
        left = {one["consumer"]["name"]: one["left"] for one in await consumers(client) if one.get("left")}
        busy = [name for name in left if not re.match("agent-(?!adapter)", name)] or armed["state"].get("subjects")
        quiet = 0 if busy else quiet + 1
        if quiet > 15:
            return
        await asyncio.sleep(0.2)
    raise TimeoutError(busy)


async def messages(client):
    """One line for each stored message."""
    for stream in STREAMS:
        last = (await api(client, f"STREAM.INFO.{stream}"))["state"]["last_seq"]
        for sequence in range(1, last + 1):
            if (answer := await api(client, f"STREAM.MSG.GET.{stream}", seq=sequence)) is None:
                continue
            stored = answer["message"]
            lines = base64.b64decode(stored.get("hdrs", "")).decode().split("\r\n")[1:]
            headers = dict(line.split(": ", 1) for line in lines if line)
            place = {"stream": stream, "sequence": sequence, "time": stored["time"], "subject": stored["subject"]}
            yield place | {"headers": headers, "body": base64.b64decode(stored.get("data", "")).decode()}


async def record(given, folder):
    keeper = folder / "keeper"
    keeper.write_text(KEEPER.format(kept=folder / "kept", server=given.nats_server))
    keeper.chmod(0o755)
    program = given.programs / "concord"
    around = os.environ | {"CONCORD_NATS_SERVER": str(keeper), "TMPDIR": str(folder)}
    for demonstration in ([], ["--ladder"]):
        subprocess.run([given.programs / "concord-lab", "demo", *demonstration, "--panel", given.panel], env=around, check=True)
    (folder / "adapter.toml").write_text(ADAPTER.format(program=HOSTED))
    up = [program, "up", "--json", "--port", "0", "--directory", folder / "data", "--adapter-config", folder / "adapter.toml"]
    installation = subprocess.Popen(up, env=around, stdout=subprocess.PIPE, text=True)
    try:
        server = json.loads(installation.stdout.readline())["server"]
        client = await nats.connect(server)

        def concord(*verb, text=None):
            command = [program, *verb, "--server", server]
            return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout

        await take_part(client, concord)
        await settled(client)
        given.out.mkdir(parents=True, exist_ok=True)
        for verb in (["check"], ["replay", "--all"]):
            (given.out / f"{verb[0]}.json").write_text(concord(*verb, "--json"))
        for name, lines in (("streams", await consumers(client)), ("messages", [one async for one in messages(client)])):
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            assert not any(str(path) in text for path in (folder, given.programs, HOSTED)), "a path of this machine"
            (given.out / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    finally:
        installation.terminate()
        installation.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--programs", "--panel", "--nats-server", "--out"):
        parser.add_argument(name, type=lambda path: pathlib.Path(path).resolve(), required=True)
    with tempfile.TemporaryDirectory(prefix="concord-recording-") as temporary:
        asyncio.run(record(parser.parse_args(), pathlib.Path(temporary)))

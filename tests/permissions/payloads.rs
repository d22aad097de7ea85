//! Payloads over 1 MB between agents whose users have nothing but the permissions that `concord permissions` prints: the coordinator puts
//! and gives them. Nobody can change, remove or find out what is another's.

use std::path::Path;
use std::process::Stdio;

use async_nats::jetstream::{self, object_store::ObjectStore};
use async_nats::{Client, ConnectOptions};
use concord_agent::Agent;
use concord_encoding::PayloadReference;
use concord_encoding::parts::{AskedPart, PAYLOAD, PUT_PAYLOAD, PutPart, object_subject};
use concord_events::topology::StreamKind;
use concord_testkit::{Plan, TestInstallation, messages, stored, unique, wait_for};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageType};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use crate::clients::stage::is_heard;
use crate::permissions::PATIENCE;
use crate::permissions::inbox::wait_until_empty;
use crate::permissions::user::{User, agents, start, users};

/// An agent by the Python library, whose arguments are its name and the server.
const BACKWARDS: &str = r#"
import asyncio, logging, sys
from concord_agent import Agent

async def main(name: str, server: str) -> None:
    agent = Agent(name, registered_inbox=True, description="Says everything backwards.")

    @agent.on("request")
    async def asked(message):
        await agent.respond(message, {"text": message.payload["parameters"]["text"][::-1]})

    await agent.connect(server, user=name, password="x")
    print("listens", flush=True)
    await asyncio.Event().wait()

logging.basicConfig(level=logging.WARNING)
asyncio.run(main(*sys.argv[1:]))
"#;

const BUCKET: &str = "CONCORD_PAYLOADS";

fn options(agent: &AgentId) -> ConnectOptions {
    ConnectOptions::with_user_and_password(agent.to_string(), "x".into())
}

/// Starts the agent in Python; it listens when this returns.
async fn start_backwards(installation: &TestInstallation, name: &AgentId) -> Child {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tools = Command::new(root.join("scripts/python-tools"))
        .status()
        .await;
    assert!(tools.expect("scripts/python-tools runs").success());
    let paths = [root.join("clients/python/src"), root.join(".tools")];
    let mut process = Command::new("python3")
        .env("PYTHONPATH", std::env::join_paths(paths).expect("paths"))
        .args(["-c", BACKWARDS, name.as_str(), installation.server_url()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python3 runs");
    let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
    let line = timeout(PATIENCE, lines.next_line())
        .await
        .expect("it listens");
    assert_eq!(line.expect("it can be read").as_deref(), Some("listens"));
    process
}

/// What the coordinator answers to a verb, or its fault.
pub(crate) async fn ask(
    client: &Client,
    verb: &str,
    who: &AgentId,
    asked: &impl Serialize,
) -> Result<Value, String> {
    let subject = format!("concord.v1.api.coordinator.{verb}.{who}");
    let asked = serde_json::to_vec(asked).expect("JSON");
    let answer = client
        .request(subject, asked.into())
        .await
        .expect("an answer");
    let failed = answer.headers.as_ref();
    match failed.and_then(|headers| headers.get("Nats-Service-Error")) {
        Some(fault) => Err(fault.to_string()),
        None => Ok(serde_json::from_slice(&answer.payload).expect("JSON")),
    }
}

/// The bytes of an object, as any client of the object store reads it.
async fn read(store: &ObjectStore, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut object = store.get(name).await.expect("the object is there");
    object.read_to_end(&mut bytes).await.expect("it is whole");
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_over_a_megabyte_goes_from_one_agent_to_another_and_nobody_else_has_a_say_in_it()
{
    let [eva, ben, pia, mallory] = agents(["eva", "ben", "pia", "mallory"]);
    let installation = start(users(&[&eva, &ben, &pia, &mallory])).await;
    let (sender, mut heard) = unbounded_channel();
    let his = Agent::builder(ben.as_str())
        .options(options(&ben))
        .on(MessageType::Request, move |agent, message| {
            let request: Value = serde_json::from_str(message.payload.get()).expect("JSON");
            let _ = sender.send(request["parameters"]["text"].clone());
            async move {
                agent
                    .respond(&message, &json!({ "text": "y".repeat(2 << 20) }))
                    .await
            }
        })
        .connect(installation.server_url())
        .await
        .expect("he may connect");
    is_heard(&his).await;
    let hers = Agent::builder(eva.as_str()).options(options(&eva));
    let hers = hers.connect(installation.server_url()).await;
    let hers = hers.expect("she may connect");
    let text = "The liability is not capped. ".repeat(100_000);
    let answer = hers
        .request(ben.clone(), "read", &json!({ "text": text }))
        .await;
    let answer = answer.expect("he answers");
    assert_eq!(answer["text"].as_str().map(str::len), Some(2 << 20));
    let read_by_him = timeout(PATIENCE, heard.recv()).await.expect("it is heard");
    assert_eq!(read_by_him, Some(json!(text)));

    let hers_in_python = start_backwards(&installation, &pia).await;
    let answer = hers
        .request(pia.clone(), "read", &json!({ "text": text }))
        .await;
    let backwards: String = text.chars().rev().collect();
    assert!(answer.expect("she answers")["text"] == json!(backwards));
    wait_until_empty(&installation, &pia).await;
    drop(hers_in_python);

    let sent = format!("concord.v1.msg.*.{eva}.{ben}.request");
    let asked = messages(installation.client(), &sent);
    let asked = asked.await.expect("the stream can be read");
    let reference = asked[0].json()["payload"]["payload_reference"].clone();
    let reference: PayloadReference = serde_json::from_value(reference).expect("a reference");
    assert!(
        reference.object.starts_with(&format!("{eva}/")),
        "{reference:?}"
    );
    let store = jetstream::new(installation.client().clone())
        .get_object_store(BUCKET)
        .await;
    let store = store.expect("the services have made it");
    let whole = read(&store, &reference.object).await;
    meddle(&installation, &mallory, &eva, &reference).await;
    assert_eq!(
        read(&store, &reference.object).await,
        whole,
        "it is as it was"
    );
    hers.close().await.expect("it ends");
    his.close().await.expect("it ends");
    installation.holds(PATIENCE).await;
}

/// Mallory tries to find out, to change, and to remove what is hers, and to have an answer stored as an event.
async fn meddle(
    installation: &TestInstallation,
    mallory: &AgentId,
    eva: &AgentId,
    reference: &PayloadReference,
) {
    let mut his = User::connect(installation, mallory).await;
    // He knows the name, and not what is in it.
    let guessed = PayloadReference {
        digest: "SHA-256=".into(),
        ..reference.clone()
    };
    let asked = AskedPart {
        reference: guessed,
        after: 0,
    };
    let refused = ask(&his.client, PAYLOAD, mallory, &asked).await;
    let why = refused.expect_err("it is hers");
    assert!(why.contains("no such object"), "{why}");
    let upload = reference.object.strip_prefix(&format!("{eva}/"));
    put_of_mallory(installation, &his.client, mallory, upload.expect("hers")).await;
    his.check_nothing_refused();
    let put_as_hers = format!("concord.v1.api.coordinator.{PUT_PAYLOAD}.{eva}");
    his.may_not_publish(put_as_hers, b"{}", "a payload in her name")
        .await;
    for what in ["C", "M"] {
        let subject = format!("$O.{BUCKET}.{what}.x");
        his.may_not_publish(subject, b"{}", "a part of an object")
            .await;
    }
    for request in [
        "STREAM.MSG.GET",
        "DIRECT.GET",
        "CONSUMER.CREATE",
        "STREAM.PURGE",
        "STREAM.MSG.DELETE",
    ] {
        let subject = format!("$JS.API.{request}.OBJ_{BUCKET}");
        his.may_not_publish(subject, b"{}", request).await;
    }
    his.may_not_subscribe(format!("$O.{BUCKET}.>")).await;
}

/// He puts a payload under the name that she has used: it is his own. Nothing takes its place, and no answer goes among the events.
async fn put_of_mallory(
    installation: &TestInstallation,
    client: &Client,
    mallory: &AgentId,
    upload: &str,
) {
    let payload = format!("{{\"x\":\"{}\"}}", unique("x")).into_bytes();
    let own = PayloadReference::new(BUCKET, "m", &payload);
    let put = PutPart::of(upload, &own, &payload, 0, 0).expect("a part");
    // Once more is the same.
    for _ in 0..2 {
        let stored = ask(client, PUT_PAYLOAD, mallory, &put).await;
        let stored = stored.expect("it is his own");
        let object = format!("{mallory}/{upload}");
        assert_eq!(stored["reference"]["object"], json!(object));
    }
    let other = PayloadReference::new(BUCKET, "m", b"{}");
    let again = PutPart::of(upload, &other, b"{}", 0, 0).expect("a part");
    let refused = ask(client, PUT_PAYLOAD, mallory, &again).await;
    let why = refused.expect_err("something else stands there");
    assert!(why.contains("another name"), "{why}");
    // What is stored of a payload beside its parts counts towards nobody's share, so it has to be small.
    let long = PutPart {
        upload: unique("u"),
        digest: "x".repeat(1 << 20),
        ..put.clone()
    };
    let refused = ask(client, PUT_PAYLOAD, mallory, &long).await;
    let why = refused.expect_err("it is no digest");
    assert!(why.contains("SHA-256="), "{why}");
    let named = object_subject(BUCKET, &long.object(mallory));
    let jetstream = jetstream::new(installation.client().clone());
    let bucket = jetstream.get_stream(format!("OBJ_{BUCKET}")).await;
    let described = bucket.expect("it is there");
    let described = described.get_last_raw_message_by_subject(&named).await;
    described.expect_err("nothing is stored");

    let event = format!("concord.v1.event.case.{}.opened", unique("case"));
    let body = serde_json::to_vec(&put).expect("JSON");
    let subject = format!("concord.v1.api.coordinator.{PUT_PAYLOAD}.{mallory}");
    let sent = client.publish_with_reply(subject, event.clone(), body.into());
    sent.await.expect("it is sent");
    let log = installation.log(Service::Coordinator, 0);
    let log = log.expect("a process of the plan");
    wait_for("no answer", PATIENCE, async || {
        let log = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
        log.contains(&event).then_some(()).ok_or(log)
    })
    .await;
    let found = stored(installation.client(), StreamKind::Events, &event).await;
    assert!(found.expect("the stream can be read").is_empty());
}

/// What an agent may have stored in the test of shares, and the largest payload.
const SHARE: usize = 4 << 20;
const LARGEST: usize = 2 << 20;

/// Puts a payload as the agent: the answer to its last part, or why one was refused.
pub(crate) async fn put(client: &Client, who: &AgentId, bytes: usize) -> Result<Value, String> {
    let payload = format!("\"{}\"", "x".repeat(bytes - 2)).into_bytes();
    let reference = PayloadReference::new(BUCKET, "m", &payload);
    let upload = unique("upload");
    let (mut part, mut after, mut answer) = (0, 0, Value::Null);
    while let Some(put) = PutPart::of(&upload, &reference, &payload, part, after) {
        answer = ask(client, PUT_PAYLOAD, who, &put).await?;
        after = answer["after"].as_u64().expect("where it stands");
        part += 1;
    }
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_fills_its_share_of_the_store_and_no_more_and_what_expires_makes_room() {
    let [eva, mallory] = agents(["eva", "mallory"]);
    let users = users(&[&eva, &mallory]);
    let installation = TestInstallation::start_with(|mut plan: Plan| {
        plan.nats_config = users;
        plan.with_setting(format!("storage.payload_agent_bytes_max={SHARE}"))
            .with_setting(format!("storage.payload_bytes_max={LARGEST}"))
    })
    .await;
    let his = User::connect(&installation, &mallory).await.client;
    let hers = User::connect(&installation, &eva).await.client;
    // He begins as much as he likes; each beginning counts, and needs room for its end.
    let payload = vec![b'x'; LARGEST];
    let mut begun = Vec::new();
    let refused = loop {
        let reference = PayloadReference::new(BUCKET, "m", &payload);
        let first = PutPart::of(&unique("u"), &reference, &payload, 0, 0).expect("a part");
        match ask(&his, PUT_PAYLOAD, &mallory, &first).await {
            Ok(_) => begun.push(first),
            Err(why) => break why,
        }
    };
    let parts = SHARE / (512 << 10);
    assert_eq!(begun.len(), parts - LARGEST / (512 << 10) + 1);
    for said in [
        "CAPACITY_EXCEEDED",
        mallory.as_str(),
        "storage.payload_agent_bytes_max",
        "kept for 90 days",
    ] {
        assert!(refused.contains(said), "{said}: {refused}");
    }
    // He goes on with what he has begun until nothing is left; what is stored is answered as before.
    let (mut stored, mut number) = (begun.len(), 0);
    while let Some(first) = begun.get(number) {
        let after = ask(&his, PUT_PAYLOAD, &mallory, first).await;
        let after = after.expect("it is stored already")["after"].clone();
        let reference = PayloadReference::new(BUCKET, "m", &payload);
        let after = after.as_u64().expect("where it stands");
        let second = PutPart::of(&first.upload, &reference, &payload, 1, after).expect("a part");
        if ask(&his, PUT_PAYLOAD, &mallory, &second).await.is_ok() {
            stored += 1;
        }
        number += 1;
    }
    assert_eq!(stored, parts, "not a byte more than his share");
    put(&his, &mallory, 9)
        .await
        .expect_err("not even a small one");
    for _ in 0..2 {
        put(&hers, &eva, LARGEST).await.expect("her share is hers");
    }
    put(&hers, &eva, 9).await.expect_err("it is used up");

    // What is as old as messages may be goes, whether it was ended or not, and makes room.
    everything_expires(&installation).await;
    wait_for("room for him", PATIENCE, async || {
        put(&his, &mallory, LARGEST).await
    })
    .await;
}

/// Has all that is in the store expire, and nothing that comes later: a payload must not be gone before its last part is there.
async fn everything_expires(installation: &TestInstallation) {
    let jetstream = jetstream::new(installation.client().clone());
    let store = jetstream.get_stream(format!("OBJ_{BUCKET}")).await;
    let mut store = store.expect("it is there");
    let before = store.cached_info().config.clone();
    let mut short = before.clone();
    short.max_age = std::time::Duration::from_secs(1);
    short.duplicate_window = short.max_age;
    let changed = jetstream.update_stream(short).await;
    changed.expect("it is changed");
    wait_for("an empty store", PATIENCE, async || {
        let left = store.info().await.map_err(|error| error.to_string())?;
        match left.state.messages {
            0 => Ok(()),
            left => Err(format!("{left} messages are left")),
        }
    })
    .await;
    let restored = jetstream.update_stream(before).await;
    restored.expect("it is changed back");
}

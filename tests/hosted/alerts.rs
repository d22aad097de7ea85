//! An alert reaches everybody ahead of whatever waits: an agent with a durable inbox and a backlog, and hosted ones that are busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use concord_agent::payload::{Alert, REGIME_CHANGE};
use concord_agent::{Agent, Error, MessageType};
use concord_testkit::{Message, concord, settled, unique, wait_for};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::hosted::stage::{PATIENCE, Received, Server, Stage};

/// So many messages wait for the agent that is to be alerted.
const BACKLOG: usize = 3_000;

/// A server that takes every message, and answers nothing but alerts until it is released.
async fn busy_server(released: watch::Receiver<bool>) -> Server {
    Server::start(move |received| {
        let mut released = released.clone();
        async move {
            if received.body["message_type"] != "alert" {
                let _ = released.wait_for(|released| *released).await;
            }
            (
                200,
                r#"{"message_type":"response","payload":{}}"#.to_owned(),
            )
        }
    })
    .await
}

fn alerts(received: Vec<Received>) -> Vec<Value> {
    let bodies = received.into_iter().map(|one| one.body);
    bodies
        .filter(|body| body["message_type"] == "alert")
        .collect()
}

/// What the command prints as JSON, or says is wrong.
fn command(stage: &Stage, arguments: &[&str]) -> Result<Value, String> {
    let server = ["--server", stage.installation.server_url(), "--json"];
    let arguments: Vec<&str> = arguments.iter().copied().chain(server).collect();
    let output = concord(&arguments);
    let out = String::from_utf8_lossy(&output.stdout);
    match output.status.success() {
        true => serde_json::from_str(&out).map_err(|error| format!("{error}: {out}")),
        false => Err(format!("{out}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// A durable agent that hears how many notes, and which alerts, and handles no note before it is released.
async fn listener(
    stage: &Stage,
    name: &str,
    released: watch::Receiver<bool>,
) -> (
    Agent,
    Arc<AtomicUsize>,
    tokio::sync::mpsc::UnboundedReceiver<Alert>,
) {
    let handled = Arc::new(AtomicUsize::new(0));
    let (sender, heard) = unbounded_channel();
    let counted = Arc::clone(&handled);
    let agent = Agent::builder(name)
        .durable()
        .on(MessageType::InfoUpdate, move |_, _| {
            let (mut released, counted) = (released.clone(), Arc::clone(&counted));
            async move {
                let _ = released.wait_for(|released| *released).await;
                counted.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        })
        .on(MessageType::Alert, move |_, message| {
            let alert: Result<Alert, _> = message.payload();
            if let Ok(alert) = alert {
                let _ = sender.send(alert);
            }
            async { Ok(()) }
        })
        .connect(stage.installation.server_url())
        .await
        .expect("it connects");
    (agent, handled, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_comes_before_every_backlog_and_once() {
    let (release, released) = watch::channel(false);
    let server = busy_server(released.clone()).await;
    let [hosted, name, analyst] = ["hosted", "ann", "macro"].map(unique);
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{hosted}\"\ninstances = 1\ntimeout_ms = 120000\nwait_max_ms = 120000\n\
         http = {{ url = \"{}/x\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let client = stage.installation.client();
    let (agent, handled, mut heard) = listener(&stage, &name, released).await;
    wait_behind(&stage, &name, &hosted, &server).await;

    refuses(&stage, &analyst).await;
    let id = raise(&stage, &analyst);
    let told = timeout(PATIENCE, heard.recv()).await.expect("it is heard");
    let told = told.expect("an alert");
    assert_eq!(told.new_regime.as_deref(), Some("BEAR_HIGH_RATES"));
    assert_eq!(
        told.raised_by.map(|by| by.to_string()),
        Some(analyst.clone())
    );
    assert_eq!(told.alert.map(|id| id.to_string()), Some(id.clone()));
    wait_for("the server to hear of it", PATIENCE, async || {
        let heard = alerts(server.received());
        (heard.len() == 1)
            .then_some(())
            .ok_or_else(|| format!("{heard:?}"))
    })
    .await;
    assert_eq!(handled.load(Ordering::Relaxed), 0, "the backlog was first");
    assert_eq!(stage.answers().await.unwrap().len(), 0, "it was not busy");

    let shown = command(&stage, &["alert", "show", &id]).unwrap();
    assert_eq!(shown["alert"]["confidence"], 0.85);
    assert!(
        shown["told"].as_array().unwrap().contains(&json!(hosted)),
        "{shown}"
    );
    let listed = command(&stage, &["alert", "list"]).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    // The same again, and what somebody pretends to tell everybody, is heard of by nobody.
    assert_eq!(raise(&stage, &analyst), id);
    let forged = alert_of("mallory", "_all");
    forged.store(client).await;
    release.send_replace(true);
    wait_for("the backlog to be handled", PATIENCE, async || {
        let count = handled.load(Ordering::Relaxed);
        (count == BACKLOG)
            .then_some(())
            .ok_or_else(|| format!("{count}"))
    })
    .await;
    settled(client, PATIENCE).await.unwrap();
    assert!(heard.try_recv().is_err(), "it was told again");
    assert_eq!(alerts(server.received()).len(), 1);
    agent.close().await.expect("it ends");
    stage.installation.holds(PATIENCE).await;
}

/// Sends the agents a backlog: notes to one, and requests to the hosted one, until its server is busy with the first.
async fn wait_behind(stage: &Stage, name: &str, hosted: &str, server: &Server) {
    let client = stage.installation.client();
    for number in 0..BACKLOG {
        let payload = json!({ "summary": number });
        let note = Message::new("_", &stage.asker, name, "info_update", payload);
        let sent = client.publish(note.subject(), note.bytes().into()).await;
        sent.expect("it is sent");
    }
    for _ in 0..5 {
        stage.ask(hosted, Some(120_000), "normal").await;
    }
    wait_for("the server to be busy", PATIENCE, async || {
        let busy = !server.received().is_empty();
        busy.then_some(()).ok_or_else(|| "not called".to_owned())
    })
    .await;
}

/// Alerts as the analyst, under an id of its own: the id of the alert.
fn raise(stage: &Stage, analyst: &str) -> String {
    let registered = [
        "person", "register", analyst, "--agent", "--role", "alerter",
    ];
    command(stage, &registered).unwrap();
    let arguments = [
        "alert",
        "raise",
        "regime_change",
        "--by",
        analyst,
        "--old",
        "BULL_LOW_RATES",
        "--new",
        "BEAR_HIGH_RATES",
        "--confidence",
        "0.85",
        "--action",
        "Recalculate DCF models",
        "--message-id",
        "fed-1",
    ];
    command(stage, &arguments).unwrap();
    let listed = command(stage, &["alert", "list"]).unwrap();
    listed[0]["id"].as_str().expect("an id").to_owned()
}

fn alert_of(from: &str, to: &str) -> Message {
    let payload = json!({ "event_type": "regime_change", "new_regime": "BEAR" });
    Message::new("_", from, to, "alert", payload).with("/priority", "system_critical")
}

/// What is refused, and says why: no right, and bad input.
async fn refuses(stage: &Stage, analyst: &str) {
    let client = stage.installation.client();
    let raise = |arguments: &[&str]| {
        let by = ["alert", "raise", "--by", analyst];
        command(stage, &[&by, arguments].concat()).unwrap_err()
    };
    for (arguments, expected) in [
        (&["rate_move"][..], "--role alerter"),
        (&["rate_move", "--confidence", "3"], "confidence"),
        (&["rate_move", "--priority", "at_once"], "system_critical"),
        (&["regime_change"], "new_regime"),
    ] {
        let error = raise(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let by_library = Agent::builder(&unique("eve"));
    let eve = by_library
        .connect(stage.installation.server_url())
        .await
        .unwrap();
    let alert = Alert {
        new_regime: Some("BEAR".into()),
        ..Alert::of(REGIME_CHANGE)
    };
    let Err(Error::Refused(report)) = eve.alert(&alert, None).await else {
        panic!("an agent without the role has alerted");
    };
    assert!(report.error_message.contains("may not alert"), "{report:?}");
    let large = json!({ "event_type": "rate_move", "new_state": "x".repeat(70_000) });
    for (message, code, pointer) in [
        (
            alert_of("mallory", "coordinator"),
            "UNAUTHORIZED",
            "/from_agent",
        ),
        (alert_of("mallory", "_all"), "UNAUTHORIZED", "/from_agent"),
        (alert_of("mallory", analyst), "INVALID_REQUEST", "/to_agent"),
        (
            alert_of("mallory", "coordinator").with("/payload", large),
            "CAPACITY_EXCEEDED",
            "/payload",
        ),
        (
            alert_of("mallory", "coordinator").with("/payload/confidence", 3),
            "INVALID_REQUEST",
            "/payload/confidence",
        ),
    ] {
        message.store(client).await;
        let error = answer_to(stage, &message).await;
        let report = &error["payload"];
        assert_eq!(report["error_code"], code, "{report}");
        assert_eq!(report["details"]["pointer"], pointer, "{report}");
    }
}

/// The error that answers a message of mallory.
async fn answer_to(stage: &Stage, message: &Message) -> Value {
    wait_for("the refusal", PATIENCE, async || {
        let client = stage.installation.client();
        let errors = concord_testkit::message_bodies(client, "concord.v1.msg.*.*.mallory.error");
        let errors = errors.await?.into_iter();
        let mut errors = errors.filter(|error| error["reply_to"] == message.id());
        errors.next().ok_or_else(|| "none yet".to_owned())
    })
    .await
}

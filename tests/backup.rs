//! A system at work is copied, and the copy goes on in another broker: by the user's own commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use concord_testkit::{
    Agent, TestBroker, TestInstallation, command, concord_at, concord_program, event_data,
    message_bodies, wait_for,
};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use futures::TryStreamExt;
use serde_json::{Value, json};

mod at_once;
mod ended;
mod left;
mod repeated;
mod tried_again;

const PATIENCE: Duration = Duration::from_secs(90);
/// So many cases are under way during a backup.
const UNDER_WAY: usize = 8;

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

async fn analysts(client: &async_nats::Client) -> Vec<Agent> {
    let mut agents = Vec::new();
    for (name, score) in [("ann", 20), ("ben", 80)] {
        let finding = json!({ "summary": "Seen.", "risk_score": score });
        agents.push(Agent::steadfast(client, name, finding, 0.8).await);
    }
    agents
}

/// A case whose third participant never answers where `waits`, so that its deadline decides.
async fn open(installation: &TestInstallation, case: &str, waits: bool) {
    let participants = if waits {
        vec!["ann", "zoe"]
    } else {
        vec!["ann", "ben"]
    };
    let opening = json!({
        "case_id": case, "participants": participants, "task": { "type": "test" },
        "policy": { "answer_timeout_ms": 500, "finding_timeout_ms": 8_000 },
    });
    installation.open_case(&opening).await;
}

/// The decisions of cases, by case.
async fn decisions(client: &async_nats::Client) -> BTreeMap<String, Value> {
    let decided = message_bodies(client, "concord.v1.msg.*.coordinator._all.notification");
    let decided = decided.await.unwrap().into_iter();
    let decided = decided.filter(|body| body["payload"]["event"] == "case_decided");
    let mut by_case = BTreeMap::new();
    for body in decided {
        let case = body["case_id"].as_str().unwrap().to_owned();
        let decision = body["payload"]["data"]["decision"].clone();
        assert!(
            by_case.insert(case, decision).is_none(),
            "announced twice: {body}"
        );
    }
    by_case
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_at_work_is_copied_and_goes_on_in_an_empty_broker() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let in_the_first = copied_at_work(&copy).await;

    let broker = TestBroker::start().await;
    refuses_what_was_changed(&broker.url(), &copy).await;
    let restored = concord_at(&broker.url(), &["restore", &text(&copy)]).await;
    assert!(restored.good().contains("Then start the services"));
    assert!(!events(&broker.client().await).await.deny_delete);
    let head = text(&copy.join("head.json"));
    let checked = concord_at(&broker.url(), &["check", "--against", &head]).await;
    checked.good();
    let twice = concord_at(&broker.url(), &["restore", &text(&copy)]).await;
    assert!(twice.refused(2).contains("exist already"));

    let known = std::fs::read(copy.with_extension("memory")).unwrap();
    let in_the_second = gone_on(&broker, serde_json::from_slice(&known).unwrap()).await;
    let expected: BTreeSet<&String> = in_the_first.keys().collect();
    let mut found: BTreeSet<&String> = in_the_second.keys().collect();
    assert!(found.remove(&"new".to_owned()));
    assert_eq!(found, expected, "every case is decided, and announced once");
    for case in ["done-0", "done-3"] {
        assert_eq!(in_the_second[case], in_the_first[case]);
    }
}

/// How many consumers hand nothing over at present.
async fn paused(client: &async_nats::Client) -> usize {
    let context = async_nats::jetstream::new(client.clone());
    let mut paused = 0;
    for stream in ["CONCORD_EVENTS", "CONCORD_MESSAGES"] {
        let stream = context.get_stream(stream).await.unwrap();
        let all: Vec<_> = stream.consumers().try_collect().await.unwrap();
        paused += all.iter().filter(|info| info.paused).count();
    }
    paused
}

/// The services go on at once, however a backup is ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_ended_leaves_nothing_paused() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let folder = tempfile::tempdir().unwrap();
    let program = concord_program();
    // It is soon over, so that it may have to be tried again.
    for attempt in 0..50 {
        let copy = text(&folder.path().join(attempt.to_string()));
        let mut backup = command(&program);
        backup.args(["--server", installation.server_url(), "backup", &copy]);
        let mut backup = backup.spawn().unwrap();
        let pid = backup.id().expect("it runs").to_string();
        let mut is_ended = false;
        while backup.try_wait().unwrap().is_none() && !is_ended {
            if paused(client).await > 0 {
                let killed = command("kill").args(["-TERM", &pid]).status().await;
                is_ended = killed.unwrap().success();
            }
        }
        let ended = backup.wait().await.unwrap();
        assert_eq!(paused(client).await, 0);
        if is_ended && !ended.success() {
            assert_eq!(ended.code(), Some(1));
            return;
        }
    }
    panic!("it was never ended while anything was paused");
}

/// The configuration of the stream of events.
async fn events(client: &async_nats::Client) -> Config {
    let context = async_nats::jetstream::new(client.clone());
    let stream = context.get_stream("CONCORD_EVENTS").await.unwrap();
    stream.cached_info().config.clone()
}

async fn is_decided(installation: &TestInstallation, case: &str) {
    let case = CaseId::new(case).unwrap();
    installation.decision(&case, PATIENCE).await;
}

/// Copies a system with cases that are done, cases that are under way, and a deadline that will pass while nothing runs. It goes on: its
/// decisions in the end.
async fn copied_at_work(copy: &Path) -> BTreeMap<String, Value> {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_service_setting(Service::EscalationTimer, "service.head_interval_ms=300")
    })
    .await;
    let client = installation.client();
    // As versions before this one have made it.
    let as_before = Config {
        deny_delete: true,
        ..events(client).await
    };
    let context = async_nats::jetstream::new(client.clone());
    context.update_stream(as_before).await.unwrap();
    let _agents = analysts(client).await;
    for number in 0..4 {
        open(&installation, &format!("done-{number}"), false).await;
    }
    for number in 0..4 {
        is_decided(&installation, &format!("done-{number}")).await;
    }
    wait_for("a head", PATIENCE, async || {
        let heads = event_data(client, "head.*.advanced").await?;
        heads.first().cloned().ok_or_else(|| "none".to_owned())
    })
    .await;
    open(&installation, "late", true).await;
    for number in 0..UNDER_WAY {
        open(&installation, &format!("under-way-{number}"), false).await;
    }
    let remembers = [
        "memory",
        "put",
        "margin",
        "0.25",
        "--by",
        "ann",
        "--importance",
        "0.5",
        "--case",
        "late",
    ];
    let server = installation.server_url();
    concord_at(server, &remembers).await.good();
    let remembered = concord_at(server, &["memory", "list", "ann", "--json"]).await;
    std::fs::write(copy.with_extension("memory"), remembered.json().to_string()).unwrap();
    let backup = ["backup", &text(copy), "--json"];
    let made = concord_at(installation.server_url(), &backup).await.json();
    assert_eq!(made["has_head"], true, "{made}");
    let again = concord_at(installation.server_url(), &backup[..2]).await;
    assert!(again.refused(2).contains("is not empty"));

    all_are_decided(&installation).await;
    installation.holds(PATIENCE).await;
    decisions(client).await
}

/// Waits until each case is decided that was under way during the backup.
async fn all_are_decided(installation: &TestInstallation) {
    is_decided(installation, "late").await;
    for number in 0..UNDER_WAY {
        is_decided(installation, &format!("under-way-{number}")).await;
    }
}

/// Starts services on a broker that was restored, and waits until all is done: the decisions.
async fn gone_on(broker: &TestBroker, known: Value) -> BTreeMap<String, Value> {
    let (url, client) = (broker.url(), broker.client().await);
    let _agents = analysts(&client).await;
    let installation = TestInstallation::start_with(|mut plan| {
        plan.server_url = Some(url);
        plan.with_replicas(Service::AgentAdapter, 0)
    })
    .await;
    let snapshot = known["as_of"].as_str().unwrap();
    let as_of = ["memory", "as-of", snapshot, "ann", "--json"];
    let remembered = concord_at(installation.server_url(), &as_of).await;
    assert_eq!(remembered.json(), known, "a snapshot is the same for ever");
    all_are_decided(&installation).await;
    open(&installation, "new", false).await;
    is_decided(&installation, "new").await;
    installation.holds(PATIENCE).await;
    decisions(&client).await
}

/// A wrong directory, and a copy that somebody has changed: nothing is written.
async fn refuses_what_was_changed(server: &str, copy: &Path) {
    let missing = concord_at(server, &["restore", "/nowhere"]).await;
    assert!(missing.refused(2).contains("manifest"));
    let other = concord_at(server, &["--prefix", "other", "restore", &text(copy)]).await;
    assert!(other.refused(2).contains("--prefix concord"));
    for name in ["stream.tar.s2", "backup.json"] {
        let contents = copy.join("CONCORD_EVENTS").join(name);
        let good = std::fs::read(&contents).unwrap();
        let mut changed = good.clone();
        changed[100] ^= 1;
        std::fs::write(&contents, changed).unwrap();
        let refused = concord_at(server, &["restore", &text(copy)]).await;
        let said = refused.refused(65);
        assert!(
            said.contains("is not what was copied") && said.contains(name),
            "{said}"
        );
        std::fs::write(&contents, good).unwrap();
    }
}

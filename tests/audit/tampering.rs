//! The eight ways to tamper, and what is said of each.

use concord_events::topology::StreamKind;
use serde_json::{Value, json};

use crate::audit::stage::{CopiedBroker, Stage, concord, decide, installation};
use crate::audit::tamper::{Entry, purge, rewrite};

/// The kinds of differences that `check --against` names: kind and stream, each once.
async fn named(broker: &CopiedBroker, kept: &str) -> Vec<(String, String)> {
    differences(broker, kept)
        .await
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or("-").to_owned();
            (text("kind"), text("stream"))
        })
        .collect()
}

/// The differences that `check --against` names.
async fn differences(broker: &CopiedBroker, kept: &str) -> Vec<Value> {
    let (code, said) = concord(&broker.url(), &["check", "--against", kept]).await;
    let differences = said["against"]["differences"].as_array();
    let differences = differences.expect("a list").clone();
    assert_eq!(code == 0, differences.is_empty(), "{said:#}");
    assert_eq!(said["holds"], json!(differences.is_empty()), "{said:#}");
    differences
}

/// What is done to a broker.
#[derive(Debug, Clone, Copy)]
enum Deed {
    CaseErased,
    MessagesPurged,
    FindingPurged,
    DecisionChanged,
    TailRemoved,
    LogEntryChanged,
    DeadLettersPurged,
}

impl Deed {
    async fn doing(self, broker: &CopiedBroker, stage: &Stage) {
        let client = &broker.client().await;
        let (case, other) = (&stage.case, &stage.other);
        let changes = |case: &str, pointer: &'static str, value: Value| {
            let subject = format!("concord.v1.event.case.{case}.decided");
            move |entries: &mut Vec<Entry>| {
                let mut decided = entries.iter_mut().filter(|entry| entry.subject == subject);
                decided.next().expect("the decision").set(pointer, value);
            }
        };
        match self {
            Self::CaseErased => {
                for aggregate in ["case", "detection"] {
                    let filter = format!("concord.v1.event.{aggregate}.{case}.>");
                    purge(client, StreamKind::Events, &filter).await;
                }
                let filter = format!("concord.v1.msg.{case}.>");
                purge(client, StreamKind::Messages, &filter).await;
            }
            Self::MessagesPurged => purge(client, StreamKind::Messages, ">").await,
            Self::FindingPurged => {
                let filter = format!("concord.v1.msg.{other}.*.coordinator.finding");
                purge(client, StreamKind::Messages, &filter).await;
            }
            Self::DecisionChanged => {
                let change = changes(case, "/data/decision/reason", json!("Another one."));
                rewrite(client, StreamKind::Events, change).await;
            }
            Self::TailRemoved => {
                let change = |entries: &mut Vec<Entry>| {
                    let mut places = entries.iter();
                    let head = places.position(|entry| entry.subject.contains(".event.head."));
                    entries.truncate(head.expect("a head") + 1);
                };
                rewrite(client, StreamKind::Events, change).await;
            }
            Self::LogEntryChanged => {
                let change = changes(other, "/data/entry/topic", json!("Something else."));
                rewrite(client, StreamKind::Events, change).await;
            }
            Self::DeadLettersPurged => purge(client, StreamKind::Dead, ">").await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_tamper_is_named() {
    let stage = Stage::played().await;
    let (head, bundle) = (stage.kept("head.json"), stage.kept("bundle"));
    let untouched = stage.copy().await;
    for kept in [&head, &bundle] {
        assert_eq!(named(&untouched, kept).await, [], "{kept}");
    }
    // What is done; what is said of it, and of which stream, with the head alone; the message that the bundle names.
    let (case, other) = (&stage.case, &stage.other);
    for (deed, expected, message) in [
        (
            Deed::CaseErased,
            vec![("missing", "events"), ("missing", "messages")],
            format!("event.case.{case}.decided"),
        ),
        (
            Deed::MessagesPurged,
            vec![("cut", "messages")],
            format!("msg.{case}."),
        ),
        (
            Deed::FindingPurged,
            vec![("missing", "messages")],
            format!("msg.{other}."),
        ),
        (
            Deed::DecisionChanged,
            vec![("changed", "events")],
            format!("event.case.{case}.decided"),
        ),
        (
            Deed::TailRemoved,
            vec![("other_history", "-"), ("cut", "events")],
            format!("event.case.{other}.decided"),
        ),
        (
            Deed::LogEntryChanged,
            vec![("changed", "events")],
            format!("event.case.{other}.decided"),
        ),
        (
            Deed::DeadLettersPurged,
            vec![("cut", "dead")],
            "concord.v1.dead.coordinator".to_owned(),
        ),
    ] {
        let broker = stage.copy().await;
        deed.doing(&broker, &stage).await;
        let found = named(&broker, &head).await;
        for (kind, stream) in expected {
            let expected = (kind.to_owned(), stream.to_owned());
            assert!(found.contains(&expected), "{deed:?}: {found:?}");
        }
        let found = differences(&broker, &bundle).await;
        let names = |one: &Value| {
            one["what"]
                .as_str()
                .is_some_and(|what| what.contains(&message))
        };
        assert!(found.iter().any(names), "{deed:?}: {found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_installation_is_no_substitute() {
    let stage = Stage::played().await;
    let key = stage.kept("head.key");
    // Even with the key of the installation.
    let shadow = installation(key.as_ref()).await;
    decide(&shadow, &stage.case).await;
    crate::audit::stage::covering_head(&shadow).await;
    let head = stage.kept("head.json");
    let arguments = ["check", "--against", &head];
    let (code, said) = concord(shadow.server_url(), &arguments).await;
    assert_eq!(code, 1, "{said:#}");
    let differences = said["against"]["differences"].to_string();
    for kind in ["other_history", "events", "messages"] {
        assert!(differences.contains(kind), "{said:#}");
    }
}

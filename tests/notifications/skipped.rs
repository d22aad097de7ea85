//! Nobody is notified when the channels are off, or when an event is out of date.

use concord_testkit::events;
use concord_wire::subject::Service;
use serde_json::json;

use crate::notifications::server::{Server, free_port};
use crate::notifications::stage::{Channels, Stage};

/// The time of the person: each reminder is given before the next one is due, or the time is over.
const PERSON_MS: u64 = 5_000;

/// How many of these events there are. A reminder that the next one or the end of the time has overtaken is left out.
async fn happened(stage: &Stage, names: &[&str]) -> u64 {
    let mut number = 0;
    for name in names {
        let filter = format!("debate.*.{name}");
        let all = events(stage.installation.client(), &filter).await;
        number += all.expect("they are read").len() as u64;
    }
    assert!(number >= names.len() as u64 - 1, "{number} of {names:?}");
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn off_by_default_and_what_happened_while_nobody_looked_is_not_told_late() {
    let stage = Stage::start(&Channels::default()).await;
    stage.register_eve("http://127.0.0.1:9/").await;
    stage.challenge("Margin", PERSON_MS, 500).await;
    stage.event("debate", "awaits_gate").await;
    stage.wait_until_all_are_told().await;
    let told = ["assigned", "reminded", "fell_back", "awaits_gate"];
    let told = happened(&stage, &told).await;
    for channel in ["email", "webhook"] {
        assert!(stage.counted(channel, "off").await >= told, "{channel}");
    }
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_when_the_adapter_comes_back_is_skipped() {
    let smtp_port = free_port();
    let smtp = Server::smtp(smtp_port, &[]).await;
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        ..Channels::default()
    })
    .await;
    stage.register(json!({ "email": "eve@example.org" })).await;
    stage
        .installation
        .kill(Service::AgentAdapter, 0)
        .expect("it is killed");
    stage.challenge("Margin", PERSON_MS, 500).await;
    stage.event("debate", "awaits_gate").await;
    stage
        .installation
        .restart(Service::AgentAdapter, 0)
        .await
        .expect("it starts again");
    smtp.mail("[Concord] The gate valuation must review: Margin")
        .await;
    stage.wait_until_all_are_told().await;
    let mails = smtp.received_at_least(2).await;
    assert_eq!(
        mails.len(),
        2,
        "the gate's two mailboxes, and neither a ruling nor a window that is over: {mails:#?}"
    );
    let over = happened(&stage, &["assigned", "reminded", "fell_back"]).await;
    assert!(stage.counted("email", "stale").await >= over);
    stage.holds().await;
}

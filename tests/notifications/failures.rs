//! Servers that are down or that refuse: the adapter tries again, or keeps a dead letter.

use concord_testkit::{concord, wait_for};
use serde_json::{Value, json};

use crate::notifications::server::{Server, free_port};
use crate::notifications::stage::{Channels, Stage, webhook_url};
use crate::notifications::{HOUR, PATIENCE};

const EMAIL_ASSIGNED: &str = "agent-adapter-email-debate-assigned";
const WEBHOOK_ASSIGNED: &str = "agent-adapter-webhook-debate-assigned";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_tried_until_it_is_up_and_the_other_channel_waits_for_nothing() {
    let smtp_port = free_port();
    let webhook_port = free_port();
    let webhook = Server::webhook(webhook_port, "500,429,204").await;
    let stage = Stage::start(&Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        // As long as the server needs to start.
        notify: "tries_max = 1000",
        ..Channels::default()
    })
    .await;
    stage.register_eve(&webhook_url(webhook_port)).await;
    stage.challenge("Margin", HOUR, HOUR).await;
    // The webhook is called while no mail can be sent: three times under one id, because the first two answers are errors
    // that pass.
    let ids: Vec<Value> = [
        webhook.call("debate.assigned", 500).await,
        webhook.call("debate.assigned", 429).await,
        webhook.call("debate.assigned", 204).await,
    ]
    .map(|call| call["id"].clone())
    .into();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
    wait_for("two tries to send a mail", PATIENCE, async || {
        let failed = stage.counted("email", "failed").await;
        if failed >= 2 {
            Ok(())
        } else {
            Err(format!("{failed} tries"))
        }
    })
    .await;
    // The server is up and refuses once because it is busy; then it takes the mail.
    let smtp = Server::smtp(smtp_port, &["--busy", "1"]).await;
    smtp.printed("busy", |line| line["busy"] == json!(["eve@example.org"]))
        .await;
    smtp.mail("[Concord] A ruling is awaited: Margin").await;
    stage.wait_until_all_are_told().await;
    assert_eq!(
        (
            smtp.received_at_least(2).await.len(),
            webhook.received().len()
        ),
        (2, 3),
        "one mail, and no call because of it"
    );
    assert_eq!(
        (
            stage.counted("email", "delivered").await,
            stage.counted("webhook", "delivered").await
        ),
        (1, 1)
    );
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_good_is_kept_and_can_be_sent_again_and_the_ladder_goes_on() {
    let smtp_port = free_port();
    let webhook_port = free_port();
    let smtp = Server::smtp(smtp_port, &["--refuse", "eve@example.org"]).await;
    let channels = Channels {
        smtp: Some(smtp_port),
        webhook: Some(webhook_port),
        ..Channels::default()
    };
    let stage = Stage::start(&channels).await;
    // The webhook is an address inside the network that the settings do not list.
    stage
        .register_eve("http://169.254.169.254/latest/meta-data?t0ken")
        .await;
    stage.challenge("Margin", 10_000, HOUR).await;
    let letter = stage.dead("undeliverable", EMAIL_ASSIGNED).await;
    let error = letter.header("Concord-Dead-Error");
    assert!(
        error.contains("eve@example.org") && error.contains("550"),
        "{error}"
    );
    let other = stage.dead("undeliverable", WEBHOOK_ASSIGNED).await;
    let error = other.header("Concord-Dead-Error");
    assert!(
        error.contains("169.254.169.254")
            && error.contains("webhook.hosts")
            && !error.contains("t0ken"),
        "{error}"
    );
    assert_eq!(
        stage.counted("email", "failed").await,
        0,
        "what lasts is not tried again"
    );
    stage.event("debate", "fell_back").await;
    stage.event("case", "decision_changed").await;
    // When the mailbox is corrected, an operator sends the mail again; the other letter is refused again.
    let correct = ["person", "register", &stage.expert, "--keep", "--email"];
    let (good, output) = command(&stage, &[&correct[..], &["eva@example.org"]].concat());
    assert!(good, "{output}");
    let (good, output) = command(&stage, &["dead", "retry", &letter.sequence.to_string()]);
    assert!(good, "{output}");
    let mail = smtp.mail("[Concord] A ruling is awaited: Margin").await;
    assert_eq!(mail["recipients"], json!(["eva@example.org"]));
    let (good, output) = command(&stage, &["dead", "retry", &other.sequence.to_string()]);
    assert!(!good && output.contains("webhook.hosts"), "{output}");
    let (_, output) = command(&stage, &["dead", "list", "--json"]);
    let open: Vec<Value> = serde_json::from_str(&output).expect("the list is JSON");
    let is_open = |sequence: u64| open.iter().any(|letter| letter["sequence"] == sequence);
    assert_eq!(
        (is_open(letter.sequence), is_open(other.sequence)),
        (false, true),
        "{output}"
    );
    let (_, output) = command(&stage, &["doctor"]);
    assert!(!output.contains("missing"), "{output}");
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_not_be_told_by_any_try_is_counted() {
    // Nobody listens there.
    let stage = Stage::start(&Channels {
        smtp: Some(free_port()),
        notify: "tries_max = 2",
        ..Channels::default()
    })
    .await;
    stage.register(json!({ "email": "eve@example.org" })).await;
    stage.challenge("Margin", HOUR, HOUR).await;
    stage.dead("exhausted", EMAIL_ASSIGNED).await;
    wait_for("a notice counted as lost", PATIENCE, async || {
        match stage.counted("email", "undeliverable").await {
            1 => Ok(()),
            other => Err(format!("{other} are counted")),
        }
    })
    .await;
}

/// Runs `concord`: whether it succeeds, and its output.
fn command(stage: &Stage, arguments: &[&str]) -> (bool, String) {
    let output = concord(&[&["--server", stage.installation.server_url()], arguments].concat());
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

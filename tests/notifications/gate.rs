//! The reviewers of a gate are told of a provisional decision, and when the gate is awaited.

use serde_json::{Value, json};

use crate::notifications::server::header;
use crate::notifications::stage::Servers;

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_is_told_of_what_stands_provisionally_and_when_it_is_awaited() {
    let (stage, servers) = Servers::start("200").await;
    // There is no expert, so the time passes without a notification.
    stage.challenge("Margin", 100, 10_000).await;
    let before = servers
        .smtp
        .mail("[Concord] Provisional before the gate valuation: Margin")
        .await;
    let text = before["text"].as_str().expect("a text");
    assert!(
        text.contains("Provisionally: Margin (25)")
            && text.contains(&format!("concord gate show {}", stage.case)),
        "{text}"
    );
    servers
        .smtp
        .mail("[Concord] The gate valuation must review: Margin")
        .await;
    for (kind, beginning) in [
        ("debate.fell_back", "[Concord] Prov"),
        ("debate.awaits_gate", "[Concord] The gate"),
    ] {
        let call = servers.webhook.call(kind, 200).await;
        assert_eq!(
            (&call["path"], &call["body"]["data"]["gate"]),
            (&json!("/gates"), &json!("valuation"))
        );
        for mailbox in ["board@example.org", "gail@example.org"] {
            let is_it = |mail: &Value| {
                mail["recipients"] == json!([mailbox])
                    && header(mail, "subject").starts_with(beginning)
            };
            servers.smtp.printed(mailbox, is_it).await;
        }
    }
    stage.wait_until_all_are_told().await;
    assert_eq!(
        (
            servers.smtp.received_at_least(4).await.len(),
            servers.webhook.received_at_least(2).await.len()
        ),
        (4, 2)
    );
    stage.holds().await;
}

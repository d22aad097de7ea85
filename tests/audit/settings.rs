//! Logs without heads, heads without a key, and letters that are sent again.

use concord_testkit::{TestInstallation, command, concord_program, finish};
use concord_wire::subject::Service;
use serde_json::json;

use crate::audit::stage::{Stage, concord, covering_head, decide};

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_heads_is_said_to_have_none() {
    let stage = Stage::played().await;
    let without = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_service_setting(Service::EscalationTimer, "service.head_interval_ms=0")
    })
    .await;
    decide(&without, "c-1").await;
    let mut head = command(concord_program());
    head.args(["--server", without.server_url(), "audit", "head"]);
    let refused = finish(&mut head).await.refused(1);
    assert!(refused.contains("there is no head yet"), "{refused}");
    let kept = stage.kept("head.json");
    let (code, said) = concord(without.server_url(), &["check", "--against", &kept]).await;
    assert_eq!(code, 1);
    let first = &said["against"]["differences"][0];
    assert_eq!(first["kind"], "no_heads", "{said:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsigned_head_is_said_to_be_unsigned_and_a_letter_sent_again_is_no_difference() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_service_setting(Service::EscalationTimer, "service.head_interval_ms=300")
    })
    .await;
    decide(&installation, "c-1").await;
    let client = installation.client();
    client
        .publish(
            "concord.v1.msg.c-1.ann.coordinator.finding",
            "no JSON".into(),
        )
        .await
        .expect("it is sent");
    concord_testkit::wait_for("the dead letter", crate::audit::PATIENCE, async || {
        let letters = concord_testkit::dead_letters(client).await?;
        letters.first().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
    let head = covering_head(&installation).await;
    assert_eq!(head["head"]["signature"], json!(null));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("head.json");
    std::fs::write(&path, head.to_string()).expect("it is written");
    let kept = path.display().to_string();
    let url = installation.server_url();
    let (code, said) = concord(url, &["dead", "retry", "1"]).await;
    assert_eq!(code, 0, "{said:#}");
    let (code, said) = concord(url, &["check", "--against", &kept]).await;
    assert_eq!(code, 0, "{said:#}");
    assert_eq!(said["against"]["signed_by"], json!(null));

    let mut check = command(concord_program());
    check.args(["--server", url, "check", "--against", &kept]);
    let text = finish(&mut check).await.good();
    assert!(text.contains("unsigned"), "{text}");
    assert!(
        text.contains("Everything that heads cover is as it was."),
        "{text}"
    );
}

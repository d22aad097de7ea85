//! The Rust library asks the group.

use std::time::Duration;

use concord_agent::payload::{GroupQuestion, ResponseStatus};
use concord_agent::{Agent, Error, MessageType};
use concord_testkit::TestInstallation;
use serde_json::json;

use crate::PATIENCE;
use crate::stage::{answers, register, says};

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_library_waits_for_the_one_answer() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben", "coder"]).await;
    let _ann = answers(&installation, "ann", |_| says("Ann says so.", 0.7)).await;
    let _ben = answers(&installation, "ben", |_| says("Ben says so.", 0.9)).await;
    let builder = Agent::builder("coder").on(MessageType::Notification, |_, _| async { Ok(()) });
    let coder = builder.connect(installation.server_url()).await.unwrap();
    let asked = |content: &str| GroupQuestion {
        content: Some(content.to_owned()),
        ..GroupQuestion::default()
    };
    let within = Duration::from_secs(20);
    let answer = coder
        .ask_group(&asked("@ann @ben who knows?"), None, within)
        .await
        .unwrap();
    assert_eq!(answer.primary.by.as_str(), "ben");
    assert_eq!(answer.supplementary.len(), 1);
    let status = json!(ResponseStatus::Success);
    assert_eq!(answer.primary.payload["status"], status);
    let nobody = coder
        .ask_group(&asked("Nice weather today, isn't it?"), None, within)
        .await;
    let Err(Error::Refused(report)) = nobody else {
        panic!("{nobody:?}")
    };
    assert!(report.error_message.contains("wakes nobody"), "{report:?}");
    coder.close().await.unwrap();
    installation.holds(PATIENCE).await;
}

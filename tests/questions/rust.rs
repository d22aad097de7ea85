//! The Rust library asks the group.

use std::time::Duration;

use concord_agent::payload::{GroupQuestion, ResponseStatus};
use concord_agent::{Agent, CaseId, Error, MessageType};
use concord_testkit::TestInstallation;
use serde_json::json;

use crate::clients::stage::is_heard;
use crate::questions::PATIENCE;
use crate::questions::stage::{answers, register, says};

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

#[tokio::test(flavor = "multi_thread")]
async fn what_the_rust_library_publishes_while_it_handles_a_question_is_its_answer() {
    let installation = TestInstallation::start().await;
    register(&installation, &["dan", "coder"]).await;
    let conversation = CaseId::new("conv-1").unwrap();
    let asked_in = conversation.clone();
    let builder = Agent::builder("dan").on(MessageType::GroupQuery, move |agent, _| {
        let conversation = asked_in.clone();
        async move {
            let answer = "Dan says so.";
            agent
                .publish_task_result(answer, &conversation, Some(0.9))
                .await
        }
    });
    let dan = builder.connect(installation.server_url()).await.unwrap();
    is_heard(&dan).await;
    let builder = Agent::builder("coder").on(MessageType::Notification, |_, _| async { Ok(()) });
    let coder = builder.connect(installation.server_url()).await.unwrap();
    let question = GroupQuestion {
        content: Some("@dan who knows?".to_owned()),
        ..GroupQuestion::default()
    };
    let within = Duration::from_secs(20);
    let answered = coder
        .ask_group(&question, Some(&conversation), within)
        .await;
    let primary = answered.unwrap().primary;
    assert_eq!(primary.by.as_str(), "dan");
    assert_eq!(primary.payload["content"], "Dan says so.");
    assert_eq!(primary.confidence, Some(0.9));
    for agent in [dan, coder] {
        agent.close().await.unwrap();
    }
    installation.holds(PATIENCE).await;
}

//! The coordinator is killed while questions are open: each ends once, with every answer that was given.

use concord_testkit::{Message, TestInstallation, event_data, wait_for};
use concord_wire::subject::Service;
use serde_json::json;

use crate::questions::PATIENCE;
use crate::questions::stage::{end_of, register, reply, response};

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_once_although_the_coordinator_is_killed_between_opening_and_end() {
    const QUESTIONS: usize = 6;
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben"]).await;
    let client = installation.client();
    let asked: Vec<Message> = (0..QUESTIONS)
        .map(|number| {
            let payload = json!({ "content": format!("@ann @ben what is {number}?") });
            Message::new("_", "eva", "_any", "group_query", payload)
        })
        .collect();
    for question in &asked {
        question.publish(client).await;
    }
    wait_for("the questions to be open", PATIENCE, async || {
        let opened = event_data(client, "question.*.opened").await?;
        match opened.len() == QUESTIONS {
            true => Ok(()),
            false => Err(format!("{} are", opened.len())),
        }
    })
    .await;
    installation.kill(Service::Coordinator, 0).unwrap();
    for (number, question) in asked.iter().enumerate() {
        let body = json!({ "from_agent": "eva", "message_id": question.id() });
        let first = reply("ann", &body, "response", response("One."), 0.7);
        first.publish(client).await;
        if number == QUESTIONS / 2 {
            installation.restart(Service::Coordinator, 0).await.unwrap();
        }
        let second = reply("ben", &body, "response", response("Two."), 0.9);
        second.publish(client).await;
        // Whoever is not sure that it was heard says it again.
        second.publish(client).await;
    }
    for question in &asked {
        let end = end_of(client, "eva", question.id()).await;
        let answer = &end["payload"]["result"];
        assert_eq!(answer["primary"]["by"], "ben", "{end}");
        assert_eq!(answer["supplementary"][0]["by"], "ann", "{end}");
    }
    installation.holds(PATIENCE).await;
    for question in &asked {
        end_of(client, "eva", question.id()).await;
    }
}

//! A person asks the group: those whom the question wakes answer, and one answer comes back, with the most confident one as primary.

use concord_testkit::{
    COMMAND_MAX, Message, TestInstallation, knows_agents, message_bodies, settled, until,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::command::run;

/// An agent on plain NATS that knows only the types of before: it answers by a `task_result` what wakes it.
async fn answers(installation: &TestInstallation, agent: &str, text: &str, confidence: f64) {
    let filter = format!("concord.v1.msg.*.agent-adapter.{agent}.notification");
    let woken = until(format!("{agent} to be woken"), COMMAND_MAX, async || {
        let told = message_bodies(installation.client(), &filter).await?;
        told.into_iter()
            .next()
            .ok_or_else(|| "it is not".to_owned())
    });
    let told = woken.await.unwrap_or_else(|error| panic!("{error}"));
    let asked = &told["payload"]["data"]["message"];
    Message::new(
        "_",
        agent,
        asked["from_agent"].as_str().unwrap(),
        "task_result",
        json!({ "content": text }),
    )
    .with("/reply_to", asked["message_id"].clone())
    .with("/metadata/confidence", json!(confidence))
    .publish(installation.client())
    .await;
}

async fn register(installation: &TestInstallation, skills: [(&str, [&str; 3]); 2]) {
    for (agent, examples) in skills {
        let card =
            json!({ "agent_id": agent, "skills": [{ "name": agent, "examples": examples }] });
        let request = json!({ "action": "register_agent", "parameters": card });
        Message::new("_", agent, "coordinator", "request", request)
            .publish(installation.client())
            .await;
    }
    let registered = until("two agents on the register", COMMAND_MAX, async || {
        let listed = installation
            .ask(Service::Coordinator, "agents", &Value::Null)
            .await?;
        if listed.as_array().unwrap().len() == 2 {
            Ok(())
        } else {
            Err(listed.to_string())
        }
    });
    registered.await.unwrap_or_else(|error| panic!("{error}"));
    settled(installation.client(), COMMAND_MAX).await.unwrap();
    // Their cards reach the adapter by themselves.
    knows_agents(installation, COMMAND_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_person_has_a_primary_answer_and_supplementary_ones() {
    let installation = TestInstallation::start().await;
    let tax = [
        "Who bears the value added tax?",
        "Is VAT included in the price?",
        "Does reverse charge apply here?",
    ];
    let base = [
        "Which indexes does this query need?",
        "How large should the connection pool be?",
        "Normalise this schema.",
    ];
    register(&installation, [("tax", tax), ("base", base)]).await;
    let server = installation.server_url();
    let question = "Is VAT included in the price, and which indexes does this query need?";
    let ask = ["ask", question, "--by", "eva", "--json", "--server", server];
    let (asked, (), ()) = tokio::join!(
        run(&ask),
        answers(&installation, "tax", "It is.", 0.6),
        answers(&installation, "base", "One on the date.", 0.9),
    );
    let found = asked.json();
    let answer = &found["answer"];
    assert_eq!(
        (&answer["primary"]["by"], &answer["timed_out"]),
        (&json!("base"), &json!(false)),
        "{found}"
    );
    assert_eq!(answer["supplementary"][0]["by"], "tax", "{found}");
    let asked: Vec<(&Value, &Value)> = answer["asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["agent"], &one["reason"]))
        .collect();
    assert_eq!(
        asked,
        [
            (&json!("base"), &json!("semantic:base")),
            (&json!("tax"), &json!("semantic:tax"))
        ],
        "{found}"
    );

    // Nobody is concerned: it ends at once, and says so.
    let nobody = run(&[
        "ask",
        "Nice weather today, isn't it?",
        "--by",
        "eva",
        "--server",
        server,
    ])
    .await;
    assert!(nobody.refused(1).contains("wakes nobody"));
    let unnamed = run(&["ask", "Who asks?", "--server", server]).await;
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    installation.holds(COMMAND_MAX).await;
}

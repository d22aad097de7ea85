//! What somebody says in a case who is neither in it nor may read it is given to nobody as context.

use concord_testkit::{Message, TestInstallation, unique};
use concord_wire::Token;
use serde_json::{Value, json};

use crate::exchange::stage::{names, register};
use crate::exchange::wake::decision;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_wakes_in_a_case_is_given_what_those_in_it_and_its_readers_have_said() {
    let [ann, ben, clerk, audrey] = names(["ann", "ben", "clerk", "audrey"]);
    let installation = TestInstallation::start().await;
    register(&installation, &ben, &json!({})).await;
    installation.register(&audrey, &["auditor"]).await;
    let case = unique("case");
    let opening =
        json!({ "case_id": case, "participants": [ann, ben], "task": { "type": "test" } });
    let opens = json!({ "action": "open_case", "parameters": opening });
    let opens = Message::new("_", &clerk, "coordinator", "request", opens);
    opens.store(installation.client()).await;
    crate::exchange::stage::answer_to(installation.client(), &opens).await;

    let says = |from: &str, to: &str, kind: &str, text: &str| {
        Message::new(&case, from, to, kind, json!({ "content": text }))
    };
    for from in [&*ann, "mallory", &*clerk, "mallory", &*audrey] {
        let said = says(from, "_any", "info_update", &format!("Says {from}."));
        let decided = decision(&installation, &said).await;
        let is_outside = decided["from_outside"] == true;
        assert_eq!(is_outside, from == "mallory", "{decided}");
    }
    // It wakes whom it names all the same.
    let named = says("mallory", "_any", "group_query", &format!("@{ben} well?"));
    let decided = decision(&installation, &named).await;
    assert_eq!(decided["woken"][0]["agent_id"], json!(ben), "{decided}");

    let asks = says(&ann, "_any", "group_query", &format!("@{ben} well?"));
    let decided = decision(&installation, &asks).await;
    let context = decided["context"].as_array().into_iter().flatten();
    let said_by: Vec<&Value> = context.map(|one| &one["from"]).collect();
    assert_eq!(said_by, [&ann, &clerk, &audrey], "{decided}");
}

/// Cases and threads have one space of ids, and whoever opens a case chooses its id.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_with_the_id_of_a_thread_shows_nobody_what_was_asked_in_that() {
    let [eva, ben, mal] = names(["eva", "ben", "mal"]);
    let installation = TestInstallation::start().await;
    let client = installation.client();
    register(&installation, &ben, &json!({})).await;
    let asked = json!({ "content": format!("@{ben} which index?") });
    let asked = Message::new("_", &eva, "_any", "group_query", asked);
    decision(&installation, &asked).await;

    let case = Token::derived(&format!("thread/{}", asked.id())).to_string();
    let opening = json!({ "case_id": case, "participants": [mal], "task": { "type": "test" } });
    let opens = json!({ "action": "open_case", "parameters": opening });
    let opens = Message::new("_", &mal, "coordinator", "request", opens);
    opens.store(client).await;
    crate::exchange::stage::answer_to(client, &opens).await;
    let said = json!({ "content": "Is anything known?" });
    let said = Message::new(&case, &mal, "_any", "info_update", said);
    decision(&installation, &said).await;

    let subject = format!("concord.v1.api.agent-adapter.context.{mal}");
    let request = json!({ "case_id": case }).to_string();
    let window = client.request(subject, request.into()).await;
    let window: Value = serde_json::from_slice(&window.expect("an answer").payload).expect("JSON");
    let messages = window["messages"].as_array().into_iter().flatten();
    let seen: Vec<&Value> = messages.map(|one| &one["message_id"]).collect();
    assert_eq!(seen, [&json!(said.id())], "{window}");
}

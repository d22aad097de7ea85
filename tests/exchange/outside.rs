//! What somebody says in a case who is neither in it nor may read it is given to nobody as context.

use concord_testkit::{Message, TestInstallation, unique};
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

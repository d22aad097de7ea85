//! Tasks that a strategy hands out are done by hosted agents: by a model, and by a program in each dialect.

use concord_testkit::{Message, event_data, knows_agents, message_bodies, unique, wait_for};
use serde_json::{Value, json};

use crate::hosted::dialects::{DIALECTS, program};
use crate::hosted::stage::{PATIENCE, Server, Stage, completion, prompt};

/// A program that answers everything in the dialect of its argument with the word for an answer: a call for proposals with the terms of
/// a bid, and a task with its title.
const EACH: &str = r#"
import json, sys
dialect = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    content = message["payload"] if dialect == "exchange" else message["content"]
    asked = json.loads(content) if isinstance(content, str) else content
    if "bids_due" in asked or "bidsDue" in asked:
        said = {"price": 5, "time_ms": 100, "confidence": 0.9}
    else:
        said = {"answer": asked["task"]["title"]}
    if dialect == "panel":
        reply = {"sender": message["recipients"][0], "recipients": [message["sender"]], "messageType": "response",
                "content": json.dumps(said)}
    elif dialect == "collaboration":
        reply = {"id": "own", "sender_id": message["receiver_id"], "receiver_id": message["sender_id"],
                "message_type": "RESPONSE", "content": said, "metadata": {}, "reply_to": message["id"]}
    elif dialect == "analyst":
        reply = {"from_agent": message["to_agent"], "to_agent": message["from_agent"], "message_type": "response",
                "priority": "normal", "content": said, "requires_response": False}
    elif dialect == "session":
        reply = {"interaction_type": "RESPONSE", "source_agent_id": message["target_agent_id"],
                "target_agent_id": message["source_agent_id"], "content": json.dumps(said), "metadata": {}}
    else:
        reply = {"from_agent": message["to_agent"], "to_agent": message["from_agent"], "message_type": "response",
                "correlation_id": message["message_id"], "payload": said}
    print(json.dumps(reply), flush=True)
"#;

/// A model that answers in the form that its prompt asks for. It bids the lowest price of all.
async fn start_model() -> Server {
    Server::start(|received| async move {
        let asked = prompt(&received, "user");
        let words = if asked.contains("\"price\": ") {
            r#"{"price": 1, "time_ms": 10, "confidence": 0.9, "proposal": "At once."}"#
        } else if asked.contains("\"strategy\":\"poll\"") {
            r#"{"status": "success", "result": "yes", "confidence": 0.8}"#
        } else {
            r#"{"status": "success", "result": {"answer": "Add."}, "confidence": 0.8}"#
        };
        (200, completion(words))
    })
    .await
}

/// How a task of these agents has ended.
async fn ended(stage: &Stage, strategy: &str, agents: &[&str]) -> Value {
    let task = json!({ "type": "sum", "title": "Add.", "input": [1, 2] });
    let parameters = json!({
        "strategy": strategy, "task": task, "criteria": { "agents": agents }, "deadline_ms": 30_000,
    });
    let payload = json!({ "action": "open_task", "parameters": parameters });
    let opening = Message::new("_", &stage.asker, "coordinator", "request", payload);
    opening.publish(stage.installation.client()).await;
    wait_for(format!("{strategy} by {agents:?}"), PATIENCE, async || {
        let answers = stage.answers().await?;
        let of_it = |answer: &&Value| answer["correlation_id"] == opening.id();
        let mut of_it = answers.iter().filter(of_it);
        let end = of_it.find(|answer| answer["message_type"] != "response");
        end.cloned().ok_or_else(|| "not yet".to_owned())
    })
    .await
}

/// The result of a task of these agents, and who has given it.
async fn completed(stage: &Stage, strategy: &str, agents: &[&str]) -> (Value, Value) {
    let end = ended(stage, strategy, agents).await;
    let payload = &end["payload"];
    assert_eq!(payload["event"], "task_completed", "{strategy}: {end}");
    let data = &payload["data"];
    (data["result"].clone(), data["by"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn models_and_programs_of_every_dialect_do_tasks_and_bid_for_them() {
    let server = start_model().await;
    let model = unique("model");
    let programs = DIALECTS.map(unique);
    let mut settings = format!(
        "[[service.agents]]\nagent_id = \"{model}\"\nopenai = {{ base_url = \"{}/v1\", model = \"m\" }}\n",
        server.url
    );
    for (name, dialect) in programs.iter().zip(DIALECTS) {
        settings.push_str(&program(name, dialect, EACH));
    }
    let stage = Stage::start(1, &settings).await;
    let all: Vec<&str> = [&model]
        .into_iter()
        .chain(&programs)
        .map(String::as_str)
        .collect();
    wait_for("all to be registered", PATIENCE, async || {
        let registered = event_data(stage.installation.client(), "agent.*.registered").await?;
        let count = registered.len();
        (count >= all.len())
            .then_some(())
            .ok_or_else(|| format!("{count}"))
    })
    .await;
    // The coordinator looks for them in what it has read of them.
    knows_agents(&stage.installation, PATIENCE).await;
    for agent in &all {
        for strategy in ["round_robin", "contract_net"] {
            let (result, by) = completed(&stage, strategy, &[agent]).await;
            assert_eq!(result, json!({ "answer": "Add." }), "{strategy}");
            assert_eq!(by, json!([agent]), "{strategy}");
        }
    }
    let (_, by) = completed(&stage, "contract_net", &all).await;
    assert_eq!(by, json!([model]), "the lowest price is awarded");
    let (result, _) = completed(&stage, "poll", &[&model]).await;
    assert_eq!(result["accepted"], true, "{result}");
    check_confidence(&stage, &model).await;
    stage.installation.holds(PATIENCE).await;
}

/// How sure the model is stands where it does in every message.
async fn check_confidence(stage: &Stage, model: &str) {
    let filter = format!("concord.v1.msg.*.{model}.coordinator.task_result");
    let results = message_bodies(stage.installation.client(), &filter).await;
    let results = results.expect("the stream can be read");
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(result["metadata"]["confidence"], 0.8, "{result}");
    }
}

//! Hosted agents that know nothing but a dialect: the adapter translates what they are sent and what they answer.

use concord_testkit::{Message, http_post, message_bodies, unique, until, wait_for};
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Received, Server, Stage, callback_settings};

/// A program that takes part in a case in the dialect `panel`.
const PANEL: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    content = json.loads(message["content"])
    if message["messageType"] == "taskAssignment":
        kind, reply = "finding", {"summary": "Usual.", "riskScore": 20, "recommendation": "sign", "confidence": 0.6}
    else:
        assert content["task"]["title"] == "Lease", content
        kind, reply = "disagreement", {"agrees_with_peer": False, "reasoning": "It is usual."}
    print(json.dumps({
        "id": "own-" + message["id"], "round": message["round"], "sender": message["recipients"][0],
        "recipients": [message["sender"]], "messageType": kind, "content": json.dumps(reply), "replyTo": message["id"],
    }), flush=True)
"#;

/// A program that takes part in a case in the dialect `exchange`, and puts what it says into the result of a response.
const EXCHANGE: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    asked = message["payload"]
    if "conflict" in asked:
        result = {"revised_position": 30, "agrees_with_peer": False, "confidence": 0.7, "reasoning": None}
    else:
        result = {"summary": "Risky.", "risk_score": 90, "evidence": None}
    payload = {"status": "success", "result": result, "errors": [], "warnings": []}
    print(json.dumps({"message_type": "response", "correlation_id": message["message_id"], "payload": payload}), flush=True)
"#;

/// A program that answers every request in the dialect of its argument, after it has checked the request in it.
const EACH: &str = r#"
import json, sys
dialect = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    if dialect == "panel":
        assert message["messageType"] == "request" and json.loads(message["content"])["action"] == "say", message
        reply = {"sender": message["recipients"][0], "recipients": [message["sender"]], "messageType": "response",
                "content": json.dumps({"said": dialect})}
    elif dialect == "collaboration":
        assert message["message_type"] == "REQUEST" and message["content"]["action"] == "say", message
        reply = {"id": "own", "sender_id": message["receiver_id"], "receiver_id": message["sender_id"],
                "message_type": "RESPONSE", "content": {"said": dialect}, "metadata": {}, "reply_to": message["id"]}
    elif dialect == "analyst":
        assert message["message_type"] == "request" and message["content"]["action"] == "say", message
        reply = {"from_agent": message["to_agent"], "to_agent": message["from_agent"], "message_type": "response",
                "priority": "normal", "content": {"said": dialect}, "requires_response": False}
    elif dialect == "session":
        assert message["interaction_type"] == "REQUEST" and json.loads(message["content"])["action"] == "say", message
        reply = {"interaction_type": "RESPONSE", "source_agent_id": message["target_agent_id"],
                "target_agent_id": message["source_agent_id"], "content": json.dumps({"said": dialect}),
                "reply_to_message_id": message["message_id"], "metadata": {}}
    else:
        assert message["message_type"] == "request" and message["payload"]["action"] == "say", message
        reply = {"from_agent": message["to_agent"], "to_agent": message["from_agent"], "message_type": "response",
                "correlation_id": message["message_id"], "payload": {"said": dialect}}
    print(json.dumps(reply), flush=True)
"#;

pub(crate) const DIALECTS: [&str; 5] = ["panel", "collaboration", "analyst", "session", "exchange"];

/// The settings of an agent that is a program in Python.
pub(crate) fn program(name: &str, dialect: &str, code: &str) -> String {
    format!(
        "[[service.agents]]\nagent_id = \"{name}\"\ndialect = \"{dialect}\"\n\
         command = [\"python3\", \"-c\", '''{code}''', \"{dialect}\"]\n"
    )
}

/// The settings of an agent that is a server.
fn server(name: &str, dialect: &str, url: &str) -> String {
    format!(
        "[[service.agents]]\nagent_id = \"{name}\"\ndialect = \"{dialect}\"\nhttp = {{ url = \"{url}/x\" }}\n"
    )
}

/// An answer as `create_reply` of specification 2 makes it.
fn reply(received: &Received, content: &Value) -> String {
    let request = &received.body;
    assert_eq!(received.headers["concord-dialect"], "collaboration");
    assert_eq!(request["message_type"], "REQUEST", "{request}");
    json!({
        "id": unique("own"), "sender_id": request["receiver_id"], "receiver_id": request["sender_id"],
        "message_type": "RESPONSE", "content": content, "metadata": {}, "reply_to": request["id"],
    })
    .to_string()
}

/// Starts a server that answers a task at once, and everything else later.
async fn start_collaborator() -> Server {
    Server::start(|received| async move {
        let content = &received.body["content"];
        if content.get("conflict").is_none() && content.get("action").is_none() {
            let finding =
                json!({ "summary": "Risky.", "risk_score": 70, "recommendation": "reject" });
            return (200, reply(&received, &finding));
        }
        let content = json!({ "agrees_with_peer": false, "reasoning": "I stay." });
        let answer = reply(&received, &content);
        let url = received.headers["concord-callback-url"]
            .to_str()
            .expect("an address")
            .to_owned();
        tokio::spawn(async move {
            let status = http_post(&url, r#"{"foo":1}"#).await;
            assert_eq!(
                status.expect("the adapter answers"),
                400,
                "that is no answer"
            );
            let status = http_post(&url, &answer).await;
            assert_eq!(status.expect("the adapter answers"), 200);
        });
        (202, String::new())
    })
    .await
}

#[tokio::test]
async fn a_program_and_a_server_decide_a_case_each_in_its_own_dialect() {
    let collaborator = start_collaborator().await;
    let (careful, quick) = (unique("careful"), unique("quick"));
    let settings = [
        callback_settings(),
        program(&quick, "panel", PANEL),
        server(&careful, "collaboration", &collaborator.url),
    ];
    let stage = Stage::start(1, &settings.concat()).await;
    let opening = json!({
        "participants": [careful, quick], "task": { "type": "contract_review", "title": "Lease", "input": {} },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let case = stage.installation.open_case(&opening).await;
    let decision = stage
        .installation
        .decision(&case, PATIENCE)
        .await
        .to_string();
    assert!(
        decision.contains("risk_score_disagreement")
            || decision.contains("recommendation_conflict"),
        "{decision}"
    );
    check_part_in_case(&stage, &careful, "Risky.", 70.0).await;
    check_part_in_case(&stage, &quick, "Usual.", 20.0).await;
    let confidence = &messages_of(&stage, &quick).await[0]["metadata"]["confidence"];
    assert_eq!(confidence, 0.6);
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test]
async fn what_stands_in_the_result_of_a_response_is_the_finding_and_the_answer() {
    let (first, second) = (unique("first"), unique("second"));
    let quick = PANEL.replace("Lease", "Rent");
    let settings = [
        program(&first, "exchange", EXCHANGE),
        program(&second, "panel", &quick),
    ];
    let stage = Stage::start(1, &settings.concat()).await;
    let opening = json!({
        "participants": [first, second], "task": { "type": "contract_review", "title": "Rent", "input": {} },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let case = stage.installation.open_case(&opening).await;
    let decided = stage.installation.decision(&case, PATIENCE).await;
    assert_eq!(
        decided["decision"]["outcome"]["risk_score"], 30.0,
        "{decided:#}"
    );
    let said = messages_of(&stage, &first).await;
    let of = |kind: &str| said.iter().find(|message| message["message_type"] == kind);
    assert_eq!(
        of("finding").expect("a finding")["payload"]["risk_score"],
        90,
        "{said:#?}"
    );
    let answer = of("disagreement").expect("an answer");
    assert_eq!(answer["payload"]["revised_position"], 30, "{answer:#}");
    stage.installation.holds(PATIENCE).await;
}

/// An agent has given this finding, and has disagreed whenever it was asked.
async fn check_part_in_case(stage: &Stage, agent: &str, summary: &str, score: f64) {
    let messages = messages_of(stage, agent).await;
    let finding = messages
        .iter()
        .find(|message| message["message_type"] == "finding")
        .expect("a finding");
    let payload = &finding["payload"];
    assert_eq!(
        (&payload["summary"], payload["risk_score"].as_f64()),
        (&json!(summary), Some(score)),
        "{finding}"
    );
    let answers: Vec<_> = messages
        .iter()
        .filter(|message| message["to_agent"] == "debate-facilitator")
        .collect();
    assert!(!answers.is_empty());
    assert!(
        answers
            .iter()
            .all(|message| message["message_type"] == "disagreement"),
        "{messages:#?}"
    );
}

/// The messages of an agent, without its registration.
async fn messages_of(stage: &Stage, agent: &str) -> Vec<Value> {
    let filter = format!("concord.v1.msg.*.{agent}.*.*");
    let mut messages = message_bodies(stage.installation.client(), &filter)
        .await
        .expect("the stream can be read");
    messages.retain(|message| message["payload"]["action"] != "register_agent");
    messages
}

/// The message of an error that has this code.
fn error_message<'a>(error: &'a Value, code: &str) -> &'a str {
    assert_eq!(error["payload"]["error_code"], code, "{error}");
    error["payload"]["error_message"].as_str().unwrap()
}

/// A request is answered in each dialect.
async fn check_every_dialect(stage: &Stage, names: &[String; 5]) {
    for (name, dialect) in names.iter().zip(DIALECTS) {
        let asked = stage.ask(name, None, "normal").await;
        let answer = stage.answer(&asked).await;
        assert_eq!(answer["message_type"], "response", "{dialect}: {answer}");
        assert_eq!(answer["payload"], json!({ "said": dialect }), "{answer}");
        assert_eq!(answer["correlation_id"], asked.as_str(), "{answer}");
    }
}

/// An answer that is none in any dialect is an error of the agent.
async fn check_no_dialect(stage: &Stage, agent: &str) {
    let asked = stage.ask(agent, None, "normal").await;
    let error = stage.answer(&asked).await;
    let why = error_message(&error, "INTERNAL_ERROR");
    assert!(
        why.contains("none of the dialects") || why.contains("cannot be used"),
        "{why}"
    );
}

/// Sends an agent a request that cannot be translated into its dialect: the error that answers it.
async fn untranslatable(stage: &Stage, agent: &str, request: Value) -> Value {
    let message =
        Message::new("_", &stage.asker, agent, "request", request).with("/requires_response", true);
    message.publish(stage.installation.client()).await;
    stage.answer(message.id()).await
}

/// A request that the dialect panel has no place for, and one that outgrows a message in it, being JSON in JSON.
async fn check_untranslatable_requests(stage: &Stage, panel: &str) {
    let request = json!({ "action": "say", "parameters": {}, "concord": { "round": 7 } });
    let error = untranslatable(stage, panel, request).await;
    let why = error_message(&error, "INVALID_REQUEST");
    assert!(
        why.contains("cannot be said in its dialect panel, at /payload/concord"),
        "{why}"
    );

    let request = json!({ "action": "say", "parameters": { "text": "\"".repeat(300_000) } });
    let error = untranslatable(stage, panel, request).await;
    let why = error_message(&error, "CAPACITY_EXCEEDED");
    assert!(
        why.contains("cannot be said in its dialect panel: The message has 1"),
        "{why}"
    );
    assert!(
        why.contains(" bytes; at most 1048576 are accepted"),
        "{why}"
    );
    let advice = &error["payload"]["recovery_suggestions"][0];
    assert!(advice.as_str().unwrap().starts_with("Send less"), "{error}");
}

/// A task that outgrows a message in the dialect panel: the coordinator is told, and need not wait.
async fn check_untranslatable_task(stage: &Stage, panel: &str) {
    let task = json!({ "type": "test", "input": { "text": "\"".repeat(300_000) } });
    let opening = json!({ "participants": [panel], "task": task });
    let case = stage.installation.open_case(&opening).await;
    let filter = format!("concord.v1.msg.{case}.{panel}.coordinator.error");
    let error = wait_for("the coordinator to be told", PATIENCE, async || {
        let errors = message_bodies(stage.installation.client(), &filter).await?;
        errors
            .into_iter()
            .next()
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
    let why = error_message(&error, "CAPACITY_EXCEEDED");
    assert!(why.contains("cannot be said in the dialect panel"), "{why}");
}

#[tokio::test]
async fn every_dialect_is_spoken_and_what_is_none_or_cannot_be_said_ends_in_an_error() {
    let names = DIALECTS.map(unique);
    let strange = Server::start(|_| async { (200, r#"{"foo":1,"bar":[2]}"#.to_owned()) }).await;
    let [odd, odd_program] = ["odd", "oddprogram"].map(unique);
    let mut settings: Vec<_> = names
        .iter()
        .zip(DIALECTS)
        .map(|(name, dialect)| program(name, dialect, EACH))
        .collect();
    settings.push(server(&odd, "session", &strange.url));
    let foo = "\nimport sys\nfor line in sys.stdin:\n    print('{\"foo\":1}', flush=True)\n";
    settings.push(program(&odd_program, "panel", foo));
    let stage = Stage::start(1, &settings.concat()).await;
    check_every_dialect(&stage, &names).await;
    for agent in [&odd, &odd_program] {
        check_no_dialect(&stage, agent).await;
    }
    check_untranslatable_requests(&stage, &names[0]).await;
    check_untranslatable_task(&stage, &names[0]).await;
}

#[tokio::test]
async fn an_answer_that_comes_later_is_heard_in_whatever_dialect_its_asker_speaks() {
    let collaborator = start_collaborator().await;
    let agent = unique("later");
    let settings = [
        callback_settings(),
        server(&agent, "collaboration", &collaborator.url),
    ];
    let stage = Stage::start(1, &settings.concat()).await;
    let card = json!({ "agent_id": stage.asker, "dialect": "session" });
    let request = json!({ "action": "register_agent", "parameters": card });
    Message::new("_", &stage.asker, "coordinator", "request", request)
        .publish(stage.installation.client())
        .await;
    wait_for("the asker is known to speak it", PATIENCE, async || {
        let asked = stage.ask(&agent, None, "normal").await;
        until("an answer", PATIENCE, async || {
            let answers = stage.answers().await?;
            let of = |answer: &&Value| {
                answer["reply_to"] == asked.as_str()
                    || answer["reply_to_message_id"] == asked.as_str()
            };
            let answer = answers.iter().find(of).ok_or("none")?;
            Ok(answer.get("interaction_type").is_some())
        })
        .await
        .map_err(|error| error.to_string())?
        .then_some(())
        .ok_or_else(|| "it was answered in the canonical form".to_owned())
    })
    .await;
    // The adapter has heard it, and waits for nothing more.
    stage.wait_until_done(&agent).await;
}

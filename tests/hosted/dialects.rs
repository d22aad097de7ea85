//! Hosted agents that know nothing but a dialect: they are spoken to in it, and understood in it.

use concord_events::topology::StreamKind;
use concord_testkit::{Message, stored, unique, until};
use serde_json::{Value, json};

use crate::journey::post;
use crate::stage::{PATIENCE, Received, Server, Stage, callback};

/// A program that speaks as a panel of reviewers does.
const PANEL: &str = r#"
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    content = json.loads(heard["content"])
    if heard["messageType"] == "taskAssignment":
        kind, said = "finding", {"summary": "Usual.", "riskScore": 20, "recommendation": "sign", "confidence": 0.6}
    else:
        assert content["task"]["title"] == "Lease", content
        kind, said = "disagreement", {"agrees_with_peer": False, "reasoning": "It is usual."}
    print(json.dumps({
        "id": "own-" + heard["id"], "round": heard["round"], "sender": heard["recipients"][0],
        "recipients": [heard["sender"]], "messageType": kind, "content": json.dumps(said), "replyTo": heard["id"],
    }), flush=True)
"#;

/// A program that answers every request in the dialect that it is told, after it has found the request in it.
const EACH: &str = r#"
import json, sys
dialect = sys.argv[1]
for line in sys.stdin:
    heard = json.loads(line)
    if dialect == "panel":
        assert heard["messageType"] == "request" and json.loads(heard["content"])["action"] == "say", heard
        said = {"sender": heard["recipients"][0], "recipients": [heard["sender"]], "messageType": "response",
                "content": json.dumps({"said": dialect})}
    elif dialect == "collaboration":
        assert heard["message_type"] == "REQUEST" and heard["content"]["action"] == "say", heard
        said = {"id": "own", "sender_id": heard["receiver_id"], "receiver_id": heard["sender_id"],
                "message_type": "RESPONSE", "content": {"said": dialect}, "metadata": {}, "reply_to": heard["id"]}
    elif dialect == "analyst":
        assert heard["message_type"] == "request" and heard["content"]["action"] == "say", heard
        said = {"from_agent": heard["to_agent"], "to_agent": heard["from_agent"], "message_type": "response",
                "priority": "normal", "content": {"said": dialect}, "requires_response": False}
    elif dialect == "session":
        assert heard["interaction_type"] == "REQUEST" and json.loads(heard["content"])["action"] == "say", heard
        said = {"interaction_type": "RESPONSE", "source_agent_id": heard["target_agent_id"],
                "target_agent_id": heard["source_agent_id"], "content": json.dumps({"said": dialect}),
                "reply_to_message_id": heard["message_id"], "metadata": {}}
    else:
        assert heard["message_type"] == "request" and heard["payload"]["action"] == "say", heard
        said = {"from_agent": heard["to_agent"], "to_agent": heard["from_agent"], "message_type": "response",
                "correlation_id": heard["message_id"], "payload": {"said": dialect}}
    print(json.dumps(said), flush=True)
"#;

const DIALECTS: [&str; 5] = ["panel", "collaboration", "analyst", "session", "exchange"];

/// The settings of a program in Python.
fn program(name: &str, dialect: &str, code: &str) -> String {
    format!(
        "[[service.agents]]\nagent_id = \"{name}\"\ndialect = \"{dialect}\"\n\
         command = [\"python3\", \"-c\", '''{code}''', \"{dialect}\"]\n"
    )
}

/// Those of a server.
fn server(name: &str, dialect: &str, url: &str) -> String {
    format!(
        "[[service.agents]]\nagent_id = \"{name}\"\ndialect = \"{dialect}\"\nhttp = {{ url = \"{url}/x\" }}\n"
    )
}

/// An answer as `create_reply` of specification 2 makes it.
fn reply(received: &Received, content: &Value) -> String {
    let heard = &received.body;
    assert_eq!(received.headers["concord-dialect"], "collaboration");
    assert_eq!(heard["message_type"], "REQUEST", "{heard}");
    json!({
        "id": unique("own"), "sender_id": heard["receiver_id"], "receiver_id": heard["sender_id"],
        "message_type": "RESPONSE", "content": content, "metadata": {}, "reply_to": heard["id"],
    })
    .to_string()
}

/// A server that has a finding at once, and answers all else later.
async fn collaborator() -> Server {
    Server::start(|received| async move {
        if received.body["content"].get("conflict").is_none()
            && received.body["content"].get("action").is_none()
        {
            let finding =
                json!({ "summary": "Risky.", "risk_score": 70, "recommendation": "reject" });
            return (200, reply(&received, &finding));
        }
        let said = reply(
            &received,
            &json!({ "agrees_with_peer": false, "reasoning": "I stay." }),
        );
        let url = received.headers["concord-callback-url"]
            .to_str()
            .expect("an address")
            .to_owned();
        tokio::spawn(async move {
            assert_eq!(post(&url, r#"{"foo":1}"#).await, 400, "that is no answer");
            assert_eq!(post(&url, &said).await, 200);
        });
        (202, String::new())
    })
    .await
}

#[tokio::test]
async fn a_program_and_a_server_decide_a_case_each_in_its_own_dialect() {
    let collaborator = collaborator().await;
    let (careful, quick) = (unique("careful"), unique("quick"));
    let settings = [
        callback(),
        program(&quick, "panel", PANEL),
        server(&careful, "collaboration", &collaborator.url),
    ];
    let stage = Stage::start(1, &settings.concat()).await;
    let opening = json!({
        "participants": [careful, quick], "task": { "type": "contract_review", "title": "Lease", "input": {} },
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
    for (agent, words, score) in [(&careful, "Risky.", 70.0), (&quick, "Usual.", 20.0)] {
        let said = said_by(&stage, agent).await;
        let finding = said
            .iter()
            .find(|said| said["message_type"] == "finding")
            .expect("a finding");
        let payload = &finding["payload"];
        assert_eq!(
            (&payload["summary"], payload["risk_score"].as_f64()),
            (&json!(words), Some(score)),
            "{finding}"
        );
        let answers: Vec<_> = said
            .iter()
            .filter(|said| said["to_agent"] == "debate-facilitator")
            .collect();
        assert!(
            !answers.is_empty()
                && answers
                    .iter()
                    .all(|said| said["message_type"] == "disagreement"),
            "{said:#?}"
        );
    }
    let confidence = &said_by(&stage, &quick).await[0]["metadata"]["confidence"];
    assert_eq!(confidence, 0.6);
    stage.installation.holds(PATIENCE).await;
}

async fn said_by(stage: &Stage, agent: &str) -> Vec<Value> {
    let subject = format!("concord.v1.msg.*.{agent}.*.*");
    let said = stored(stage.installation.client(), StreamKind::Messages, &subject)
        .await
        .expect("the stream can be read");
    let said = said.iter().map(|stored| stored.json());
    said.filter(|said| said["payload"]["action"] != "register_agent")
        .collect()
}

#[tokio::test]
async fn every_dialect_is_spoken_and_what_is_none_or_cannot_be_said_ends_in_an_error() {
    let names = DIALECTS.map(unique);
    let strange = Server::start(|_| async { (200, r#"{"foo":1,"bar":[2]}"#.to_owned()) }).await;
    // Declares what its answer is in, whatever its card says.
    let (odd, odd_program) = (unique("odd"), unique("oddprogram"));
    let mut settings: Vec<_> = names
        .iter()
        .zip(DIALECTS)
        .map(|(name, dialect)| program(name, dialect, EACH))
        .collect();
    settings.push(server(&odd, "session", &strange.url));
    let foo = "\nimport sys\nfor line in sys.stdin:\n    print('{\"foo\":1}', flush=True)\n";
    settings.push(program(&odd_program, "panel", foo));
    let stage = Stage::start(1, &settings.concat()).await;
    for (name, dialect) in names.iter().zip(DIALECTS) {
        let asked = stage.ask(name, None, "normal").await;
        let answer = stage.answer(&asked).await;
        assert_eq!(answer["message_type"], "response", "{dialect}: {answer}");
        assert_eq!(answer["payload"], json!({ "said": dialect }), "{answer}");
        assert_eq!(answer["correlation_id"], asked.as_str(), "{answer}");
    }
    for agent in [&odd, &odd_program] {
        let asked = stage.ask(agent, None, "normal").await;
        let answer = stage.answer(&asked).await;
        assert_eq!(
            answer["payload"]["error_code"], "INTERNAL_ERROR",
            "{answer}"
        );
        let why = answer["payload"]["error_message"].as_str().unwrap();
        assert!(
            why.contains("none of the dialects") || why.contains("cannot be used"),
            "{why}"
        );
    }

    // Said by an agent: what the dialect has no place for.
    let request = json!({ "action": "say", "parameters": {}, "concord": { "round": 7 } });
    let message = Message::new("_", &stage.asker, &names[0], "request", request)
        .with("/requires_response", true);
    message.publish(stage.installation.client()).await;
    let answer = stage.answer(message.id()).await;
    assert_eq!(
        answer["payload"]["error_code"], "INVALID_REQUEST",
        "{answer}"
    );
    let why = answer["payload"]["error_message"].as_str().unwrap();
    assert!(
        why.contains("cannot be said in its dialect panel, at /payload/concord"),
        "{why}"
    );

    // And what outgrows a message in it, being JSON in JSON.
    let request = json!({ "action": "say", "parameters": { "text": "\"".repeat(300_000) } });
    let message = Message::new("_", &stage.asker, &names[0], "request", request)
        .with("/requires_response", true);
    message.publish(stage.installation.client()).await;
    let answer = stage.answer(message.id()).await;
    assert_eq!(
        answer["payload"]["error_code"], "CAPACITY_EXCEEDED",
        "{answer}"
    );
    let why = answer["payload"]["error_message"].as_str().unwrap();
    assert!(
        why.contains("cannot be said in its dialect panel: The message has 1"),
        "{why}"
    );
    assert!(
        why.contains(" bytes; at most 1048576 are accepted"),
        "{why}"
    );
    let advice = answer["payload"]["recovery_suggestions"][0]
        .as_str()
        .unwrap();
    assert!(advice.starts_with("Send less"), "{answer}");

    // Said by a service: JSON in JSON that outgrows a message. The service is told, and need not wait.
    let task = json!({ "type": "test", "input": { "text": "\"".repeat(300_000) } });
    let case = stage
        .installation
        .open_case(&json!({ "participants": [names[0]], "task": task }))
        .await;
    let subject = format!("concord.v1.msg.{case}.{}.coordinator.error", names[0]);
    let told = until("the coordinator is told", PATIENCE, async || {
        let told = stored(stage.installation.client(), StreamKind::Messages, &subject).await?;
        told.first()
            .map(|stored| stored.json())
            .ok_or_else(|| "not yet".to_owned())
    });
    let told = told
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", stage.installation.log_tails()));
    let why = told["payload"]["error_message"].as_str().unwrap();
    assert!(why.contains("cannot be said in the dialect panel"), "{why}");
    assert_eq!(told["payload"]["error_code"], "CAPACITY_EXCEEDED", "{told}");
}

#[tokio::test]
async fn an_answer_that_comes_later_is_heard_in_whatever_dialect_its_asker_speaks() {
    let collaborator = collaborator().await;
    let agent = unique("later");
    let settings = [
        callback(),
        server(&agent, "collaboration", &collaborator.url),
    ];
    let stage = Stage::start(1, &settings.concat()).await;
    let card = json!({ "agent_id": stage.asker, "dialect": "session" });
    let request = json!({ "action": "register_agent", "parameters": card });
    Message::new("_", &stage.asker, "coordinator", "request", request)
        .publish(stage.installation.client())
        .await;
    let speaks = until("the asker is known to speak it", PATIENCE, async || {
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
    });
    speaks
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", stage.installation.log_tails()));
    // The adapter has heard it, and waits for nothing more.
    stage.is_done_with(&agent).await;
}

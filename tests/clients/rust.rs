//! The Rust library conforms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use concord_agent::payload::{Answer, ErrorReport, Finding};
use concord_agent::protocol::Fault;
use concord_agent::{Agent, AgentId, CaseId, Error, ErrorCode, Message, MessageType, Recipient};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::clients::conformance::{self, Case};
use crate::clients::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_library_conforms() {
    conforms(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_library_conforms_with_a_durable_inbox() {
    conforms(true).await;
}

async fn conforms(durable: bool) {
    let mut stage = Stage::start().await;
    let conformance = conformance::read();
    let cases: BTreeMap<String, Case> = conformance
        .cases
        .into_iter()
        .map(|case| (case.name.clone(), case))
        .collect();
    let cases = Arc::new(cases);
    let builder = Agent::builder(&conformance.agent)
        .compress_over(1_024)
        .on_other(move |agent, message| {
            let cases = Arc::clone(&cases);
            async move {
                let name = message
                    .metadata
                    .extensions
                    .get("conformance")
                    .expect("the name of a case");
                let name: String = serde_json::from_str(name.get()).expect("a text");
                call(&agent, &message, &cases[&name]).await
            }
        });
    let builder = if durable { builder.durable() } else { builder };
    let agent = builder
        .connect(&stage.broker.url())
        .await
        .expect("it connects");
    // The broker has read the subscriptions of an agent once it has stored what the agent published after them.
    let greeting = json!({ "result": "connected" });
    observe(&agent, &greeting).await.expect("it is stored");
    stage.next("greeting").await;
    conformance::play(&mut stage).await;
    agent.close().await.expect("it is closed");
}

/// Makes the call of a case, in the handler of the message that the agent was sent.
async fn call(agent: &Agent, message: &Message, case: &Case) -> Result<(), Error> {
    let arguments = &case.arguments;
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    match case.call.as_str() {
        "finding" => {
            let confidence = arguments["confidence"].as_f64().expect("a number");
            let finding: Finding = read(&arguments["finding"]);
            agent.finding(message, &finding, confidence).await
        }
        "agree" => agent.agree(message, read::<Answer>(arguments)).await,
        "disagree" => agent.disagree(message, read::<Answer>(arguments)).await,
        "revise" => agent.revise(message, read::<Answer>(arguments)).await,
        "acknowledge_and_respond" => {
            let acknowledgement = MessageType::Acknowledgement;
            agent.reply(message, acknowledgement, &json!({})).await?;
            agent.respond(message, &arguments["result"]).await
        }
        "part_and_result" => {
            let kind = MessageType::TaskResult;
            agent
                .reply(message, kind.clone(), &arguments["part"])
                .await?;
            agent.reply(message, kind, &arguments["result"]).await
        }
        "tell" => {
            for event in arguments["events"].as_array().into_iter().flatten() {
                let told = json!({ "event": event });
                agent
                    .reply(message, MessageType::Notification, &told)
                    .await?;
            }
            Ok(())
        }
        "respond" => agent.respond(message, &arguments["result"]).await,
        "refuse" => {
            let code: ErrorCode = read(&arguments["code"]);
            let fault = Fault::new(code, "", text("message"), text("suggestion"));
            agent.refuse(message, &fault).await
        }
        "fail" => Err(Error::handler("as the case wants it")),
        "request" => request(agent, case).await,
        "request_batch" => request_batch(agent, case).await,
        "add_participant" => {
            let case_id = CaseId::new(text("case_id")).expect("a case");
            let joined = AgentId::new(text("agent_id")).expect("a name");
            let joined = agent.add_participant(&case_id, &joined).await?;
            observe(agent, &json!({ "result": { "agent_id": joined } })).await
        }
        _ => call_to_group(agent, case).await,
    }
}

/// Makes the call of a case that belongs to a conversation of agents.
async fn call_to_group(agent: &Agent, case: &Case) -> Result<(), Error> {
    let arguments = &case.arguments;
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    let named = arguments["conversation_id"].as_str();
    let named = named.map(|id| CaseId::new(id).expect("a conversation"));
    if case.call == "request_group_help" {
        let question = text("question");
        return agent.request_group_help(question, named.as_ref()).await;
    }
    let conversation = named.expect("a conversation");
    match case.call.as_str() {
        "broadcast_query" => {
            let question = text("question");
            agent.broadcast_query(question, &conversation).await
        }
        "request_peer_help" => {
            let preferred = arguments["preferred_agents"].as_array();
            let preferred = preferred.into_iter().flatten();
            let preferred: Vec<&str> = preferred.filter_map(Value::as_str).collect();
            let request = text("request");
            agent
                .request_peer_help(request, &conversation, &preferred)
                .await
        }
        "offer_expertise" => agent.offer_expertise(text("offer"), &conversation).await,
        "publish_task_result" => {
            let confidence = arguments["confidence"].as_f64();
            agent
                .publish_task_result(text("content"), &conversation, confidence)
                .await
        }
        other => panic!("no call {other}"),
    }
}

/// Makes the request of a case, and publishes how it ended.
async fn request(agent: &Agent, case: &Case) -> Result<(), Error> {
    let to = Recipient::new(case.arguments["to"].as_str().expect("a name")).expect("a recipient");
    let action = case.arguments["action"].as_str().expect("a text");
    let parameters = &case.arguments["parameters"];
    let answered = match case.arguments["timeout"].as_f64() {
        None => agent.request(to, action, parameters).await,
        Some(seconds) => {
            let payload = json!({ "action": action, "parameters": parameters });
            let message = agent.message(to, MessageType::Request, &payload)?;
            agent.ask(message, Duration::from_secs_f64(seconds)).await
        }
    };
    let outcome = match answered {
        Err(Error::Timeout { .. }) => json!({ "error": "TIMEOUT" }),
        answered => told(answered)?,
    };
    observe(agent, &outcome).await
}

fn told(answered: Result<Value, Error>) -> Result<Value, Error> {
    match answered {
        Ok(result) => Ok(json!({ "result": result })),
        Err(Error::Refused(report)) => {
            Ok(json!({ "error": ErrorReport::clone(&report).error_code }))
        }
        Err(error) => Err(error),
    }
}

/// Makes the requests of a case in one batch, and publishes how each ended.
async fn request_batch(agent: &Agent, case: &Case) -> Result<(), Error> {
    let to = Recipient::new(case.arguments["to"].as_str().expect("a name")).expect("a recipient");
    let requests = read(&case.arguments["requests"]);
    let answered = agent.request_batch(to, requests, None).await?;
    let results: Result<Vec<_>, _> = answered.into_iter().map(told).collect();
    observe(agent, &json!({ "results": results? })).await
}

async fn observe(agent: &Agent, outcome: &Value) -> Result<(), Error> {
    let observer = Recipient::new("observer").expect("a recipient");
    agent
        .publish(&agent.message(observer, MessageType::InfoUpdate, outcome)?)
        .await
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).expect("arguments")
}

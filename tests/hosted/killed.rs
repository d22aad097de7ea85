//! Replicas of the adapter are killed while their agents crash, hang and are asked for more than their budget allows.

use std::time::{Duration, Instant};

use concord_testkit::{consumer_is_done, http_post, layout, settled, unique, wait_for};
use concord_wire::subject::{Lane, Service};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::hosted::stage::{PATIENCE, Received, Server, Stage, callback_settings};

const ADAPTERS: usize = 3;
const REQUESTS: usize = 120;
/// A process is killed after each so many requests.
const KILLED_EVERY: usize = 12;
/// Requests of the model in a minute.
const BUDGET: usize = 15;
/// A minute, without the time by which a call may be received later than it was granted on a slow machine.
const MINUTE: Duration = Duration::from_secs(50);

/// A program that ends at every fourth message, before it answers.
const CRASHES: &str = r#"import json, sys
for number, line in enumerate(sys.stdin, 1):
    if number % 4 == 0:
        sys.exit(1)
    print(json.dumps({"message_type": "response", "payload": {"status": "success", "result": {}}}), flush=True)
"#;

/// The settings of three agents: a model with a budget, a program that crashes, and a server that never answers.
fn settings(names: &[String; 3], model: &Server, silent: &Server) -> String {
    let [paid, crashing, hanging] = names;
    format!(
        "[service.budgets.free]\nrequests_per_minute = {BUDGET}\n\
         [[service.agents]]\nagent_id = \"{paid}\"\nprovider = \"free\"\ninstances = 4\n\
         openai = {{ base_url = \"{}/v1\", model = \"m\", max_tokens = 100 }}\n\
         [[service.agents]]\nagent_id = \"{crashing}\"\ncommand = [\"python3\", \"-c\", {CRASHES:?}]\n\
         [[service.agents]]\nagent_id = \"{hanging}\"\ntimeout_ms = 300\nhttp = {{ url = \"{}/x\" }}\n",
        model.url, silent.url
    )
}

/// Asks the agents by turns while adapters are killed: the ids of the requests.
async fn ask_under_kills(stage: &Stage, names: &[String]) -> Vec<String> {
    let mut asked = Vec::new();
    for number in 0..REQUESTS {
        let agent = &names[number % names.len()];
        // Longer than any of it takes, and shorter than until the budget has room for all.
        asked.push(stage.ask(agent, Some(30_000), "normal").await);
        if number % KILLED_EVERY == KILLED_EVERY / 2 {
            let replica = number / KILLED_EVERY % ADAPTERS;
            let adapter = Service::AgentAdapter;
            stage.installation.kill(adapter, replica).unwrap();
            stage.installation.launch(adapter, replica).unwrap();
        }
    }
    asked
}

/// Each request has one response or one error with advice, and there are responses.
fn check_answers(answers: &[Value], asked: &[String]) {
    let mut responses = 0;
    for id in asked {
        let ends: Vec<_> = answers
            .iter()
            .filter(|answer| answer["reply_to"] == **id)
            .collect();
        let [end] = &ends[..] else {
            panic!("{id} has {} ends: {ends:#?}", ends.len())
        };
        match end["message_type"].as_str() {
            Some("response") => responses += 1,
            Some("error") => {
                let suggestions = &end["payload"]["recovery_suggestions"];
                assert!(!suggestions.as_array().unwrap().is_empty(), "{end}");
            }
            _ => panic!("{end}"),
        }
    }
    assert!(responses > 0, "{answers:#?}");
}

/// In whichever minute one looks, all replicas together have kept to the budget.
fn check_budget(calls: &[Received]) {
    for (first, call) in calls.iter().enumerate() {
        let within = calls[first..]
            .iter()
            .filter(|later| later.at.duration_since(call.at) < MINUTE)
            .count();
        assert!(within <= BUDGET, "{within} calls within a minute");
    }
    assert!(!calls.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_answered_once_while_adapters_are_killed_and_no_budget_is_exceeded() {
    let model = Server::model(r#"{"status":"success","result":{}}"#).await;
    let silent = Server::silent().await;
    let names = ["paid", "crashing", "hanging"].map(unique);
    let stage = Stage::start(ADAPTERS, &settings(&names, &model, &silent)).await;
    let asked = ask_under_kills(&stage, &names).await;
    let what = "every request to be answered";
    wait_for(what, 2 * PATIENCE, async || {
        let answers = stage.answers().await?;
        let is_answered = |id: &String| answers.iter().any(|answer| answer["reply_to"] == **id);
        let missing = asked.iter().filter(|id| !is_answered(id)).count();
        if missing == 0 {
            Ok(())
        } else {
            Err(format!("{missing} of {REQUESTS} are not"))
        }
    })
    .await;
    settled(stage.installation.client(), PATIENCE)
        .await
        .unwrap();
    check_answers(&stage.answers().await.unwrap(), &asked);
    check_budget(&model.received());
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_while_its_replica_was_gone_is_not_asked_again() {
    // A slow machine needs longer to start the replica than the broker waits for an acknowledgement, which is then right to hand it out
    // again.
    for ack_wait in [5, 60].map(Duration::from_secs) {
        if answered_while_gone(ack_wait).await {
            return;
        }
    }
    panic!("the replica was never back in time")
}

/// Has an agent answer while its replica is gone; false where the answer was not taken before the broker missed the acknowledgement.
async fn answered_while_gone(ack_wait: Duration) -> bool {
    let (promised, mut addresses) = mpsc::unbounded_channel();
    let server = Server::start(move |received| {
        let address = received.headers["concord-callback-url"]
            .to_str()
            .expect("an address")
            .to_owned();
        promised.send(address).expect("the test waits for it");
        async { (202, String::new()) }
    })
    .await;
    let agent = unique("later");
    let settings = format!(
        "[work]\nack_wait_ms = {}\n{}[[service.agents]]\nagent_id = \"{agent}\"\nhttp = {{ url = \"{}/x\" }}\n",
        ack_wait.as_millis(),
        callback_settings(),
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let asked = Instant::now();
    let id = stage.ask(&agent, Some(180_000), "normal").await;
    let address = timeout(PATIENCE, addresses.recv())
        .await
        .expect("it is asked")
        .expect("an address");
    stage.installation.kill(Service::AgentAdapter, 0).unwrap();
    stage.installation.launch(Service::AgentAdapter, 0).unwrap();
    // Before the broker misses the acknowledgement, and as soon as the replica listens.
    wait_for("the answer to be taken", PATIENCE, async || {
        let answer = r#"{"message_type":"response","payload":{"status":"success","result":{}}}"#;
        match http_post(&address, answer)
            .await
            .map_err(|error| error.to_string())?
        {
            200 => Ok(()),
            status => Err(status.to_string()),
        }
    })
    .await;
    if asked.elapsed() >= ack_wait {
        return false;
    }
    let (stream, name, _) = layout().agent_inbox(Lane::Normal, &agent.parse().expect("a name"));
    wait_for(
        "the message to be done with",
        ack_wait + PATIENCE,
        async || consumer_is_done(stage.installation.client(), stream, &name).await,
    )
    .await;
    assert_eq!(server.received().len(), 1, "it was asked again");
    let [answer] = &stage.answers().await.unwrap()[..] else {
        panic!("{:#?}", stage.answers().await)
    };
    assert_eq!(
        (&answer["reply_to"], &answer["message_type"]),
        (&json!(id), &json!("response")),
        "{answer}"
    );
    true
}

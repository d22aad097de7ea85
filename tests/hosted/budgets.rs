//! All replicas together keep to the budget of a provider, and the budget outlives the broker.

use std::time::Duration;

use concord_testkit::{unique, wait_for};
use concord_wire::subject::Service;

use crate::hosted::stage::{PATIENCE, Server, Stage};

const REPLY: &str = r#"{"status":"success","result":{}}"#;

/// The settings of agents that are one model, which together have this budget.
fn settings(agents: &[&str], url: &str, budget: &str) -> String {
    let mut settings = format!("[service.budgets.free]\n{budget}\n");
    for agent in agents {
        settings.push_str(&format!(
            "[[service.agents]]\nagent_id = \"{agent}\"\nprovider = \"free\"\ninstances = 4\n\
             openai = {{ base_url = \"{url}/v1\", model = \"m\", max_tokens = 100 }}\n"
        ));
    }
    settings
}

#[tokio::test]
async fn three_replicas_and_two_agents_share_one_budget() {
    const LIMIT: usize = 10;
    let model = Server::model(REPLY).await;
    let names = [unique("a"), unique("b")];
    let agents = [names[0].as_str(), names[1].as_str()];
    let budget = format!("requests_per_minute = {LIMIT}");
    let stage = Stage::start(3, &settings(&agents, &model.url, &budget)).await;
    for place in 0..30 {
        stage.ask(agents[place % 2], Some(25_000), "normal").await;
    }
    let answers = stage.all_answers(30).await;
    let answered = answers
        .iter()
        .filter(|answer| answer["message_type"] == "response")
        .count();
    let refused = answers
        .iter()
        .filter(|answer| answer["payload"]["error_code"] == "CAPACITY_EXCEEDED")
        .count();
    assert_eq!((answered, refused), (LIMIT, 20), "{answers:#?}");
    // The refusals came at once, for the minute is longer than the deadline; so all calls fell into one minute.
    let calls = model.received();
    assert_eq!(calls.len(), LIMIT);
    assert!(calls[LIMIT - 1].at.duration_since(calls[0].at) < Duration::from_secs(60));
    let error = answers
        .iter()
        .find(|answer| answer["message_type"] == "error")
        .unwrap();
    assert!(
        error["payload"]["error_message"]
            .as_str()
            .unwrap()
            .contains("the budget free is used up"),
        "{error}"
    );
}

#[tokio::test]
async fn tokens_are_counted_and_what_cannot_fit_is_refused() {
    let model = Server::model(REPLY).await;
    let agent = unique("a");
    let stage = Stage::start(
        1,
        &settings(&[&agent], &model.url, "tokens_per_minute = 90"),
    )
    .await;
    let asked = stage.ask(&agent, Some(20_000), "normal").await;
    let answer = stage.answer(&asked).await;
    assert_eq!(
        answer["payload"]["error_code"], "CAPACITY_EXCEEDED",
        "{answer}"
    );
    assert!(
        answer["payload"]["error_message"]
            .as_str()
            .unwrap()
            .contains("allows in a minute"),
        "{answer}"
    );
    assert!(model.received().is_empty());
}

#[tokio::test]
async fn a_budget_goes_on_after_the_broker_was_killed() {
    let model = Server::model(REPLY).await;
    let agent = unique("a");
    let stage = Stage::start(
        1,
        &settings(&[&agent], &model.url, "requests_per_minute = 100"),
    )
    .await;
    let asked = stage.ask(&agent, None, "normal").await;
    stage.answer(&asked).await;
    assert_eq!(model.received().len(), 1);
    stage.installation.kill_broker().unwrap();
    stage.installation.start_broker().await.unwrap();
    wait_for("the adapter to be ready again", PATIENCE, async || {
        let answer = stage
            .installation
            .ask(Service::AgentAdapter, "status", &serde_json::Value::Null)
            .await?;
        if answer["ready"] == true {
            Ok(())
        } else {
            Err(answer.to_string())
        }
    })
    .await;
    // The stream remembers what was granted before, and the budget goes on from there.
    let asked = stage.ask(&agent, Some(20_000), "normal").await;
    let answer = stage.answer(&asked).await;
    assert_eq!(answer["message_type"], "response", "{answer}");
    // The first message may come once more: the broker may have been killed before it stored the acknowledgement.
    let calls = model.received().len();
    assert!((2..=3).contains(&calls), "{calls} calls");
}

//! What an agent sends with its own credentials in the form of what services tell each other: nothing comes of it.

use concord_testkit::{
    TestInstallation, event_data, message_bodies, wait_for, with_adapter_settings,
};
use concord_wire::subject::{Service, Subject, SubjectSpace};
use concord_wire::{AgentId, Token};
use serde_json::{Value, json};

use crate::hosted::stage::Server;
use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents, users};

/// Waits until an agent was sent so many messages of a type.
async fn told(installation: &TestInstallation, agent: &AgentId, kind: &str, count: usize) {
    let filter = format!("concord.v1.msg.*.*.{agent}.{kind}");
    wait_for(format!("{count} of {kind}"), PATIENCE, async || {
        let told = message_bodies(installation.client(), &filter).await?;
        match told.len() >= count {
            true => Ok(()),
            false => Err(format!("{}", told.len())),
        }
    })
    .await;
}

/// A replica asks another for a step with a header. Replicas hand deliveries to each other, too, with the headers of the message, and whoever
/// has sent it names those as it likes.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_the_header_of_a_question_between_replicas_is_a_message() {
    const MESSAGES: usize = 24;
    let [eva, victim] = agents(["eva", "victim"]);
    let config = users(&[&eva]);
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan.with_replicas(Service::Coordinator, 2)
            .with_replicas(Service::AgentAdapter, 0)
            .with_setting("work.standby=false")
    })
    .await;
    let user = User::connect(&installation, &eva).await;
    let opener = victim.token();
    let admitted = json!({ "opener": victim, "task_id": "forged", "quota": 0 });
    let asked = json!({
        "id": opener, "input": { "admit_task": admitted },
        "context": { "now": "2026-01-01T00:00:00Z", "cause": "forged-1", "origin": "message" },
    });
    // Each is of a case of its own, so that about half of them are handed over.
    for number in 0..MESSAGES {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Concord-Asked-Aggregate", "opener");
        let subject = format!("concord.v1.msg.forged-{number}.{eva}.coordinator.finding");
        let sent = user
            .client
            .publish_with_headers(subject, headers, asked.to_string().into());
        sent.await.expect("sent");
    }
    told(&installation, &eva, "error", MESSAGES).await;
    wait_for(
        "what was handed over",
        PATIENCE,
        async || match installation.counter("concord_handed_off_total").await {
            Ok(0) => Err("nothing".to_owned()),
            handed => handed.map_err(|error| error.to_string()),
        },
    )
    .await;
    let events = event_data(installation.client(), "opener.*.*").await;
    assert_eq!(events.expect("readable"), Vec::<Value>::new());
    installation.holds(PATIENCE).await;
}

/// The record of a budget is the last message on a subject of the adapter's memory, and the broker's answers go where an agent has them go.
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_for_a_budget_and_is_none_neither_stops_calls_nor_frees_them() {
    const LIMIT: usize = 4;
    let model = Server::model(r#"{"status":"success","result":{}}"#).await;
    let [eva, bot] = agents(["eva", "bot"]);
    let config = users(&[&eva]);
    let settings = format!(
        "[service.budgets.free]\nrequests_per_minute = {LIMIT}\n\
         [[service.agents]]\nagent_id = \"{bot}\"\nprovider = \"free\"\ninstances = 2\n\
         openai = {{ base_url = \"{}/v1\", model = \"m\", max_tokens = 100 }}\n",
        model.url
    );
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        with_adapter_settings(plan, &settings)
    })
    .await;
    let mut user = User::connect(&installation, &eva).await;
    let space = SubjectSpace::default();
    let record = space.build(&Subject::Memory {
        agent: Service::AgentAdapter.agent_id(),
        topic: Token::new("budget-free").expect("a token"),
    });
    // Itself it may write nothing there; what the broker answers it may have stored.
    user.may_not_publish(record.clone(), b"{}", "a budget")
        .await;
    let note = format!("concord.v1.msg._.{eva}.{eva}.note");
    let sent = user
        .client
        .publish_with_reply(note, record.clone(), "{}".into());
    sent.await.expect("sent");
    user.wait_for_subscriptions(&eva).await;
    wait_for("the answer to be stored", PATIENCE, async || {
        let kept = concord_testkit::stored(
            installation.client(),
            concord_events::topology::StreamKind::Memory,
            &record,
        );
        let kept = kept.await?;
        (!kept.is_empty()).then_some(()).ok_or_else(String::new)
    })
    .await;
    for number in 0..3 * LIMIT {
        let now = concord_runtime::service::clock::now().plus_millis(15_000);
        let request = json!({
            "message_id": format!("{eva}-{number}"), "timestamp": now, "from_agent": eva, "to_agent": bot,
            "message_type": "request", "requires_response": true, "deadline": now,
            "payload": { "action": "say", "parameters": {} },
        });
        let subject = format!("concord.v1.msg._.{eva}.{bot}.request");
        let sent = user.client.publish(subject, request.to_string().into());
        sent.await.expect("sent");
    }
    told(&installation, &eva, "response", LIMIT).await;
    told(&installation, &eva, "error", 2 * LIMIT).await;
    assert_eq!(model.received().len(), LIMIT);
    installation.holds(PATIENCE).await;
}

//! The broker does not check the reply subject that a user names, and stores its acknowledgement there. Whoever does that in the
//! place of facts, deadlines and messages hinders nobody.

use concord_events::Aggregate;
use concord_events::non_event::is_acknowledgement;
use concord_testkit::concord;
use concord_wire::subject::Service;

use super::*;

/// A user that names whatever it likes as the subject of its replies.
struct Mallory<'a> {
    installation: &'a TestInstallation,
    client: Client,
    own: String,
}

impl Mallory<'_> {
    /// Has the broker's acknowledgement sent to each of these subjects, and waits until the broker has stored the last of them.
    async fn names(&self, kind: StreamKind, subjects: &[String]) {
        for subject in subjects {
            let sent = self
                .client
                .publish_with_reply(self.own.clone(), subject.clone(), "{}".into())
                .await;
            sent.expect("it is sent");
        }
        let Some(last) = subjects.last() else { return };
        let stored = until(
            format!("an acknowledgement on {last}"),
            PATIENCE,
            async || {
                let stored = stored(self.installation.client(), kind, last).await?;
                let found = stored
                    .iter()
                    .any(|stored| is_acknowledgement(&stored.payload));
                found
                    .then_some(())
                    .ok_or_else(|| format!("{} others", stored.len()))
            },
        );
        stored.await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// The same on every fact of an aggregate, known or not.
    async fn names_facts(&self, aggregate: Aggregate, id: &str) -> u64 {
        let facts = aggregate
            .events()
            .iter()
            .map(|info| info.name)
            .chain(["unheard_of"]);
        let subjects: Vec<String> = facts
            .map(|fact| format!("concord.v1.event.{aggregate}.{id}.{fact}"))
            .collect();
        self.names(StreamKind::Events, &subjects).await;
        subjects.len() as u64
    }
}

/// What a verb of the command prints as JSON; it must succeed.
fn printed(installation: &TestInstallation, arguments: &[&str]) -> Value {
    let output = concord(
        &[
            arguments,
            &["--json", "--server", installation.server_url()],
        ]
        .concat(),
    );
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
}

/// Waits for the first message of this kind to `agent`.
async fn told(installation: &TestInstallation, case: &str, agent: &AgentId, kind: &str) -> Value {
    let filter = format!("concord.v1.msg.{case}.*.{agent}.{kind}");
    let found = until(&filter, PATIENCE, async || {
        let messages = stored(installation.client(), StreamKind::Messages, &filter).await?;
        messages
            .first()
            .map(Stored::json)
            .ok_or_else(|| "none".to_owned())
    });
    found.await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_in_the_place_of_facts_are_passed_over() {
    let [eva, mallory, sam] =
        ["eva", "mallory", "sam"].map(|name| AgentId::new(unique(name)).expect("an id"));
    let config = users(&[&eva, &mallory]);
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan.with_service_setting(Service::EscalationTimer, "service.watchdog_interval_ms=200")
            .with_service_setting(Service::EscalationTimer, "service.watchdog_grace_ms=500")
    })
    .await;
    let case = unique("case");
    let (client, _refused) = client(&installation, &mallory).await;
    let own = format!("concord.v1.msg.{case}.{mallory}.{mallory}.note");
    let his = Mallory {
        installation: &installation,
        client,
        own,
    };

    // Before the case is there, and while its findings come in.
    let mut foreign = his.names_facts(Aggregate::Case, &case).await;
    let opening = json!({
        "case_id": case, "participants": [eva, mallory, sam], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 10_000, "answer_timeout_ms": 600_000, "rounds_max": 1 },
    });
    installation.open_case(&opening).await;
    foreign += his.names_facts(Aggregate::Case, &case).await;
    foreign += his.names_facts(Aggregate::Detection, &case).await;
    let said = |agent: &AgentId, score: u32| {
        let finding = json!({ "summary": "Seen.", "risk_score": score, "severity": "high", "recommendation": "negotiate" });
        Message::finding(&case, agent.as_str(), finding, 0.8)
    };
    said(&eva, 20).publish(installation.client()).await;
    foreign += his.names_facts(Aggregate::Case, &case).await;
    said(&mallory, 90).publish(installation.client()).await;

    findings_close(&his, &case, &eva).await;
    let (debate, more) = debated(&his, &case, [&eva, &mallory]).await;
    foreign += more;
    let decided = until("the decision", PATIENCE, async || {
        let filter = format!("concord.v1.event.case.{case}.decided");
        let facts = stored(installation.client(), StreamKind::Events, &filter).await?;
        let fact = facts.iter().find(|fact| !is_acknowledgement(&fact.payload));
        fact.map(Stored::json).ok_or_else(|| "not yet".to_owned())
    });
    let decided = decided
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", installation.log_tails()));
    assert_eq!(
        decided["data"]["decision"]["missing"],
        json!([sam]),
        "{decided:#}"
    );
    foreign += his.names_facts(Aggregate::Case, &case).await;
    installation.holds(PATIENCE).await;
    reads(&installation, &case, &debate, foreign);
}

/// The findings close by their deadline, since one participant says nothing; and the broker no longer holds it.
async fn findings_close(his: &Mallory<'_>, case: &str, eva: &AgentId) {
    let armed = format!("concord.v1.timer.armed.case.{case}.findings");
    let is_armed = until(&armed, PATIENCE, async || {
        let armed = stored(his.installation.client(), StreamKind::Timers, &armed).await?;
        armed
            .first()
            .map(|_| ())
            .ok_or_else(|| "not yet".to_owned())
    });
    is_armed.await.unwrap_or_else(|error| panic!("{error}"));
    his.names(
        StreamKind::Timers,
        &[format!("concord.v1.timer.due.case.{case}.findings"), armed],
    )
    .await;
    printed(his.installation, &["deadlines"]);
    for subject in [
        format!("concord.v1.msg.{case}.{eva}.coordinator.finding"),
        format!("concord.v1.msg.{case}.coordinator.debate-facilitator.request"),
        format!("concord.v1.urgent.{case}.{eva}.{eva}.alert"),
    ] {
        let kind = if subject.contains("urgent") {
            StreamKind::Urgent
        } else {
            StreamKind::Messages
        };
        his.names(kind, &[subject]).await;
    }
    his.names(
        StreamKind::Dead,
        &["concord.v1.dead.coordinator.refused".to_owned()],
    )
    .await;
}

/// A debate in which both keep their positions: which one, and how many acknowledgements stand in it.
async fn debated(his: &Mallory<'_>, case: &str, agents: [&AgentId; 2]) -> (String, u64) {
    let (installation, [eva, mallory]) = (his.installation, agents);
    let question = told(installation, case, eva, "question").await;
    let debates = stored(
        installation.client(),
        StreamKind::Events,
        "concord.v1.event.debate.*.opened",
    )
    .await;
    let debates = debates.expect("the facts can be read");
    let debate = debates.first().expect("a debate").json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let mut foreign = his.names_facts(Aggregate::Debate, &debate).await;
    foreign += his.names_facts(Aggregate::Case, case).await;
    let keeps = json!({ "reasoning": "I keep my position." });
    let answer = |agent: &AgentId, question: &Value| {
        let question = question["message_id"].as_str().expect("an id");
        Message::answer(
            case,
            agent.as_str(),
            "disagreement",
            question,
            keeps.clone(),
        )
    };
    answer(eva, &question).publish(installation.client()).await;
    foreign += his.names_facts(Aggregate::Debate, &debate).await;
    let asked = told(installation, case, mallory, "question").await;
    answer(mallory, &asked).publish(installation.client()).await;
    (debate, foreign)
}

/// Every reader passes over what is no fact, and whoever checks is told.
fn reads(installation: &TestInstallation, case: &str, debate: &str, foreign: u64) {
    let check = printed(installation, &["check"]);
    assert_eq!(check["holds"], true, "{check:#}");
    assert!(
        check["foreign"]["number"]
            .as_u64()
            .is_some_and(|number| number >= foreign),
        "{foreign}: {check:#}"
    );
    assert!(
        check["foreign"]["first"]["what"]
            .as_str()
            .is_some_and(|what| what.contains("acknowledgement")),
        "{check:#}"
    );
    for what in [case, "--all"] {
        let replay = printed(installation, &["replay", what]);
        assert_eq!(replay["identical"], true, "{replay:#}");
        assert!(
            replay["passed_over"]
                .as_u64()
                .is_some_and(|number| number > 0),
            "{replay:#}"
        );
    }
    let shown = printed(installation, &["case", "show", case]);
    assert!(
        shown["debates"][0]["outcome"]["status"].is_string(),
        "{shown:#}"
    );
    assert_eq!(
        printed(installation, &["debate", "show", debate])["debate_id"],
        debate
    );
    assert!(
        !printed(installation, &["decisions", "list", case])
            .as_array()
            .expect("entries")
            .is_empty()
    );
    let cases = printed(installation, &["case", "list", "--limit", "0"]);
    assert_eq!(cases.as_array().expect("cases").len(), 1, "{cases:#}");
    assert!(
        !printed(installation, &["case", "transcript", case])
            .as_array()
            .expect("lines")
            .is_empty()
    );
    printed(installation, &["dead", "list"]);
    printed(installation, &["deadlines"]);
    printed(installation, &["metrics"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_is_hidden_is_found_and_a_copy_is_no_fact_whatever_it_says() {
    let eva = AgentId::new(unique("eva")).expect("an id");
    let installation = TestInstallation::start().await;
    let (case, client) = (unique("case"), installation.client().clone());
    let register = json!({ "action": "register_agent", "parameters": { "agent_id": eva } });
    Message::new("_", eva.as_str(), "coordinator", "request", register)
        .publish(&client)
        .await;
    told(&installation, "_", &eva, "response").await;
    let own = format!("concord.v1.msg.{case}.{eva}.{eva}.note");
    let hers = Mallory {
        installation: &installation,
        client: client.clone(),
        own: own.clone(),
    };
    hers.names(
        StreamKind::Events,
        &[format!("concord.v1.event.agent.{eva}.registered")],
    )
    .await;
    let opening = json!({
        "case_id": case, "participants": [eva], "task": { "type": "test" }, "policy": { "finding_timeout_ms": 600_000 },
    });
    installation.open_case(&opening).await;

    // Whoever may ask for a message directly can have any body stored: here, that of a fact.
    let filter = format!("concord.v1.event.case.{case}.*");
    let opened = stored(&client, StreamKind::Events, &filter)
        .await
        .expect("the facts can be read");
    let fact = opened.first().expect("the case is open").payload.clone();
    let jetstream = async_nats::jetstream::new(client.clone());
    let sequence = jetstream
        .publish(own, fact)
        .await
        .expect("sent")
        .await
        .expect("stored")
        .sequence;
    let decided = format!("concord.v1.event.case.{case}.decided");
    let ask = json!({ "seq": sequence }).to_string();
    let asked = client.publish_with_reply(
        "$JS.API.DIRECT.GET.CONCORD_MESSAGES",
        decided.clone(),
        ask.into(),
    );
    asked.await.expect("sent");
    let facts = async |number: usize| {
        let all = until(
            format!("{number} messages on {decided}"),
            PATIENCE,
            async || {
                let all = stored(&client, StreamKind::Events, &decided).await?;
                if all.len() == number {
                    Ok(all)
                } else {
                    Err(format!("{}", all.len()))
                }
            },
        );
        all.await
            .unwrap_or_else(|error| panic!("{error}\n{}", installation.log_tails()))
    };
    facts(1).await;

    // A coordinator that remembers nothing.
    installation
        .restart(Service::Coordinator, 0)
        .await
        .expect("it starts");
    installation.ready().await.expect("it is ready");
    let agents = installation
        .ask(Service::Coordinator, "agents", &Value::Null)
        .await
        .expect("an answer");
    assert!(agents.to_string().contains(eva.as_str()), "{agents:#}");
    Message::finding(&case, eva.as_str(), json!({ "summary": "Seen." }), 0.8)
        .publish(&client)
        .await;
    let facts = facts(2).await;
    assert_eq!(
        facts[1].json()["data"]["decision"]["findings"][0]["agent_id"],
        eva.as_str(),
        "{:#}",
        facts[1].json()
    );
    installation.holds(PATIENCE).await;
    let check = printed(&installation, &["check"]);
    assert_eq!(
        (&check["holds"], &check["foreign"]["number"]),
        (&json!(true), &json!(2)),
        "{check:#}"
    );
    assert_eq!(
        printed(&installation, &["replay", &case])["identical"],
        true
    );
}

//! The broker does not check the reply subject that a user names, and stores its acknowledgement there. An agent that names
//! subjects of events, deadlines and messages hinders nobody.

use async_nats::Client;
use concord_events::Aggregate;
use concord_events::non_event::is_acknowledgement;
use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, Stored, TestInstallation, events, message_bodies, stored, unique, wait_for,
};
use concord_wire::AgentId;
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::command::printed;
use crate::permissions::user::{User, agents, users};

/// A user that names subjects of others for the replies to its messages.
pub(crate) struct Mallory<'a> {
    pub(crate) installation: &'a TestInstallation,
    pub(crate) client: Client,
    /// The subject of its messages.
    pub(crate) own: String,
}

impl Mallory<'_> {
    /// Makes the broker send an acknowledgement to each of these subjects, and waits until the last is stored in this stream.
    pub(crate) async fn names(&self, kind: StreamKind, subjects: &[String]) {
        for subject in subjects {
            let sent = self
                .client
                .publish_with_reply(self.own.clone(), subject.clone(), "{}".into())
                .await;
            sent.expect("it is sent");
        }
        let Some(last) = subjects.last() else { return };
        let what = format!("an acknowledgement on {last}");
        wait_for(what, PATIENCE, async || {
            let stored = stored(self.installation.client(), kind, last).await?;
            let found = stored
                .iter()
                .any(|stored| is_acknowledgement(&stored.payload));
            found
                .then_some(())
                .ok_or_else(|| format!("{} others", stored.len()))
        })
        .await;
    }

    /// The same with the subject of every event of an aggregate, known or not: how many subjects there are.
    async fn names_events(&self, aggregate: Aggregate, id: &str) -> u64 {
        let names = aggregate
            .events()
            .iter()
            .map(|info| info.name)
            .chain(["unheard_of"]);
        let subjects: Vec<String> = names
            .map(|name| format!("concord.v1.event.{aggregate}.{id}.{name}"))
            .collect();
        self.names(StreamKind::Events, &subjects).await;
        subjects.len() as u64
    }
}

/// Waits for the first message of this type to `agent`.
pub(crate) async fn message_to(
    installation: &TestInstallation,
    case: &str,
    agent: &AgentId,
    kind: &str,
) -> Value {
    let filter = format!("concord.v1.msg.{case}.*.{agent}.{kind}");
    wait_for(&filter, PATIENCE, async || {
        let messages = message_bodies(installation.client(), &filter).await?;
        messages.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_in_the_place_of_facts_are_passed_over() {
    let [eva, mallory, sam] = agents(["eva", "mallory", "sam"]);
    let config = users(&[&eva, &mallory]);
    let installation = TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan.with_service_setting(Service::EscalationTimer, "service.watchdog_interval_ms=200")
            .with_service_setting(Service::EscalationTimer, "service.watchdog_grace_ms=500")
    })
    .await;
    let case = unique("case");
    let user = User::connect(&installation, &mallory).await;
    let his = Mallory {
        installation: &installation,
        client: user.client.clone(),
        own: format!("concord.v1.msg.{case}.{mallory}.{mallory}.note"),
    };

    // Before the case exists, while its findings come in, in its debate, and after its decision.
    let mut foreign = his.names_events(Aggregate::Case, &case).await;
    let opening = json!({
        "case_id": case, "participants": [eva, mallory, sam], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 10_000, "answer_timeout_ms": 600_000, "rounds_max": 1 },
    });
    installation.open_case(&opening).await;
    let finding = |agent: &AgentId, score: u32| {
        let payload = json!({ "summary": "Seen.", "risk_score": score, "severity": "high", "recommendation": "negotiate" });
        Message::finding(&case, agent.as_str(), payload, 0.8)
    };
    finding(&eva, 20).publish(installation.client()).await;
    foreign += his.names_events(Aggregate::Case, &case).await;
    finding(&mallory, 90).publish(installation.client()).await;
    // Whatever comes after this is not bound to the time of the findings.
    close_findings(&his, &case, &eva).await;
    foreign += his.names_events(Aggregate::Case, &case).await;
    foreign += his.names_events(Aggregate::Detection, &case).await;
    let (debate, more) = hold_debate(&his, &case, [&eva, &mallory]).await;
    foreign += more;
    let filter = format!("case.{case}.decided");
    let decided = wait_for("the decision", PATIENCE, async || {
        let events = events(installation.client(), &filter).await?;
        let is_event = |stored: &&Stored| !is_acknowledgement(&stored.payload);
        let event = events.iter().find(is_event).map(Stored::json);
        event.ok_or_else(|| "not yet".to_owned())
    })
    .await;
    assert_eq!(
        decided["data"]["decision"]["missing"],
        json!([sam]),
        "{decided:#}"
    );
    foreign += his.names_events(Aggregate::Case, &case).await;
    installation.holds(PATIENCE).await;
    check_readers(&installation, &case, &debate, foreign);
}

/// Waits for the deadline that closes the findings, since one participant gives none, and overwrites its schedule in the
/// broker with acknowledgements.
async fn close_findings(his: &Mallory<'_>, case: &str, eva: &AgentId) {
    let armed = format!("concord.v1.timer.armed.case.{case}.findings");
    wait_for(&armed, PATIENCE, async || {
        let armed = stored(his.installation.client(), StreamKind::Timers, &armed).await?;
        let first = armed.first().map(|_| ());
        first.ok_or_else(|| "not yet".to_owned())
    })
    .await;
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

/// A debate in which both keep their positions: its id, and how many acknowledgements were stored meanwhile.
async fn hold_debate(his: &Mallory<'_>, case: &str, agents: [&AgentId; 2]) -> (String, u64) {
    let installation = his.installation;
    let [eva, mallory] = agents;
    let question = message_to(installation, case, eva, "question").await;
    let debates = events(installation.client(), "debate.*.opened").await;
    let debates = debates.expect("the stream can be read");
    let debate = debates.first().expect("a debate").json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let mut foreign = his.names_events(Aggregate::Debate, &debate).await;
    foreign += his.names_events(Aggregate::Case, case).await;
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
    foreign += his.names_events(Aggregate::Debate, &debate).await;
    let asked = message_to(installation, case, mallory, "question").await;
    answer(mallory, &asked).publish(installation.client()).await;
    (debate, foreign)
}

/// Every reader of the command passes over the acknowledgements, and `concord check` counts them.
fn check_readers(installation: &TestInstallation, case: &str, debate: &str, foreign: u64) {
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

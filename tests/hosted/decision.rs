//! A hosted agent is told how the debates of its cases have ended, what was decided, when a decision that it took part in changes, and what
//! became of the credibility of those who argued; so is an agent on NATS.

use concord_agent::Agent;
use concord_agent::payload::notification::{CredibilityChanged, DebateConcluded};
use concord_testkit::{Message, TestInstallation, message_bodies, unique, wait_for};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::clients::stage::is_heard;
use crate::hosted::stage::{PATIENCE, Received, Server, Stage};

/// A server that finds a high risk, and answers what it is told with words that nobody asked for.
async fn start_server() -> Server {
    Server::start(|received| async move {
        let answer = match received.body["message_type"].as_str() {
            Some("task_assignment") => json!({
                "message_type": "finding", "payload": { "summary": "Risky.", "risk_score": 80 },
            }),
            _ => json!({ "message_type": "info_update", "payload": { "content": "Noted." } }),
        };
        (200, answer.to_string())
    })
    .await
}

/// What the server was told of this event.
fn told(received: &[Received], event: &str) -> Vec<Value> {
    received
        .iter()
        .map(|call| &call.body["payload"])
        .filter(|payload| payload["event"] == event)
        .map(|payload| payload["data"].clone())
        .collect()
}

/// An agent of the library with handlers for both notifications: the statuses of the debates, and whose credibility has changed.
async fn listening(name: &str, url: &str) -> (Agent, UnboundedReceiver<String>) {
    let (sender, handled) = unbounded_channel();
    let (of_debates, of_records) = (sender.clone(), sender);
    let agent = Agent::builder(name)
        .on_notification(move |_, _, told: DebateConcluded| {
            let said = of_debates.send(told.outcome.status.as_str().to_owned());
            async move { said.map_err(concord_agent::Error::handler) }
        })
        .on_notification(move |_, _, told: CredibilityChanged| {
            let said = of_records.send(told.agent_id.to_string());
            async move { said.map_err(concord_agent::Error::handler) }
        })
        .connect(url)
        .await;
    let agent = agent.expect("it connects");
    is_heard(&agent).await;
    (agent, handled)
}

/// Who hears of the debate, and where.
struct Hearing<'a> {
    installation: &'a TestInstallation,
    case: &'a str,
    server: &'a Server,
    hosted: &'a str,
    other: &'a str,
}

impl Hearing<'_> {
    /// The data of this event that the hosted agent and the one on NATS were told, once both were told as often; each at high priority.
    async fn heard(&self, event: &str, count: usize) -> [Vec<Value>; 2] {
        wait_for(event, PATIENCE, async || {
            let subject = format!("concord.v1.msg.{}.*.{}.notification", self.case, self.other);
            let stored = message_bodies(self.installation.client(), &subject).await?;
            let is_it = |message: &&Value| message["payload"]["event"] == event;
            let on_nats: Vec<&Value> = stored.iter().filter(is_it).collect();
            let hosted = told(&self.server.received(), event);
            if hosted.len() < count || on_nats.len() < count {
                return Err("not yet".to_owned());
            }
            assert!(on_nats.iter().all(|message| message["priority"] == "high"));
            let data = |message: &Value| message["payload"]["data"].clone();
            Ok([hosted, on_nats.into_iter().map(data).collect()])
        })
        .await
    }
}

/// Both hear of the provisional decision and of the override, and what the override does to the record of each of them: neither was right.
async fn check_news(hearing: &Hearing<'_>) {
    for concluded in hearing.heard("debate_concluded", 2).await {
        let status = |one: &Value| one["outcome"]["status"].clone();
        let ends: Vec<Value> = concluded.iter().map(status).collect();
        assert_eq!(ends, ["provisional", "overridden"]);
    }
    for told in hearing.heard("credibility_changed", 2).await {
        let mut whose: Vec<&str> = told
            .iter()
            .filter_map(|one| one["agent_id"].as_str())
            .collect();
        whose.sort_unstable();
        assert_eq!(whose, [hearing.hosted, hearing.other]);
        for one in told {
            let what = (&one["source"], &one["correct"], &one["by"]);
            assert_eq!(what, (&json!("override"), &json!(false), &json!("gail")));
            let (before, after) = (&one["before"]["score"], &one["after"]["score"]);
            assert_eq!((before, after), (&json!(0.5), &json!(0.0)));
        }
    }
}

/// The handlers of the library are given both ends of the debate, and the credibility of both.
async fn check_handlers(handled: &mut UnboundedReceiver<String>, names: [&str; 2]) {
    let mut said: Vec<String> = Vec::new();
    while said.len() < 4 {
        let next = tokio::time::timeout(PATIENCE, handled.recv()).await;
        said.extend(next.expect("the handlers run"));
    }
    said.sort_unstable();
    let mut expected = [names[0], names[1], "overridden", "provisional"];
    expected.sort_unstable();
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_hosted_agent_is_told_of_an_override_after_the_decision() {
    let server = start_server().await;
    let [hosted, other] = ["hosted", "other"].map(unique);
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{hosted}\"\nhttp = {{ url = \"{}/agent\" }}\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    let installation = &stage.installation;
    installation.register("gail", &["reviewer"]).await;
    let (agent, mut handled) = listening(&other, installation.server_url()).await;
    let opening = json!({
        "participants": [hosted, other], "task": { "type": "t", "title": "t", "input": {} },
        "policy": {
            "conflict_handling": "ladder", "rounds_max": 0,
            "ladder": { "times": { "opinion_ms": 1, "mediation_ms": 50, "person_ms": 100 } },
        },
    });
    let case = installation.open_case(&opening).await;
    let finding = json!({ "summary": "Usual.", "risk_score": 20 });
    Message::finding(case.as_str(), &other, finding, 0.8)
        .store(installation.client())
        .await;
    let decided = installation.decision(&case, PATIENCE).await;
    let decision = &decided["decision"];
    let debate = decision["provisional"][0].as_str().expect("a debate");
    let review = json!({
        "gate": "final review", "action": "override", "debate_id": debate, "position": "10", "value": 10,
        "rationale": "The annex caps it.",
    });
    Message::new(case.as_str(), "gail", "coordinator", "review", review)
        .store(installation.client())
        .await;
    let changed = wait_for("the server to be told", PATIENCE, async || {
        told(&server.received(), "case_decision_changed")
            .pop()
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
    assert_eq!(changed["decision"]["outcome"]["risk_score"], 10.0);
    assert_eq!(
        (&changed["change"]["version"], &changed["change"]["by"]),
        (&json!(2), &json!("gail"))
    );
    check_news(&Hearing {
        installation,
        case: case.as_str(),
        server: &server,
        hosted: &hosted,
        other: &other,
    })
    .await;
    check_handlers(&mut handled, [&hosted, &other]).await;
    agent.close().await.expect("it says goodbye");
    stage.wait_until_done(&hosted).await;
    let decisions = told(&server.received(), "case_decided");
    assert_eq!(decisions.len(), 1, "it is told once: {decisions:?}");
    let subject = format!("concord.v1.msg.{case}.{hosted}.*.info_update");
    let published = message_bodies(installation.client(), &subject).await;
    assert_eq!(published.expect("the messages"), Vec::<Value>::new());
    installation.holds(PATIENCE).await;
}

//! Whole cases in which the agents speak only a dialect.

use async_nats::{Client, Subscriber};
use concord_testkit::{
    TestInstallation, concord, dead_letters, events, knows_agents, unique, wait_for,
};
use concord_wire::CaseId;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::dialects::PATIENCE;
use crate::dialects::dialect_message::{DIALECTS, Incoming, Outgoing};

/// An agent that answers a task with a score, and a question by keeping its position or by agreeing with the other.
struct Agent {
    client: Client,
    inbox: Subscriber,
    dialect: &'static str,
    name: String,
    score: u32,
    agrees: bool,
}

impl Agent {
    /// Subscribes, registers the agent in its dialect, and lets it answer until the test ends.
    async fn start(client: &Client, dialect: &'static str, name: &str, score: u32, agrees: bool) {
        let inbox = client
            .subscribe(format!("concord.v1.msg.*.*.{name}.*"))
            .await
            .expect("the agent subscribes");
        client
            .flush()
            .await
            .expect("the broker has the subscription");
        let mut agent = Self {
            client: client.clone(),
            inbox,
            dialect,
            name: name.to_owned(),
            score,
            agrees,
        };
        agent.register().await;
        tokio::spawn(async move {
            while let Some(message) = agent.inbox.next().await {
                agent.answer(&Incoming::new(dialect, &message)).await;
            }
        });
    }

    async fn register(&mut self) {
        let card = json!({ "agent_id": self.name, "dialect": self.dialect });
        let route = (self.name.as_str(), "coordinator");
        Outgoing::request(self.dialect, route, "register_agent", card)
            .publish(&self.client)
            .await;
        let answer = timeout(PATIENCE, self.inbox.next())
            .await
            .expect("an answer")
            .expect("the broker is there");
        let answer = Incoming::new(self.dialect, &answer);
        assert_eq!(answer.kind, "response", "{}", self.dialect);
    }

    async fn answer(&self, message: &Incoming) {
        let answer = match message.kind.as_str() {
            "task_assignment" => self.finding(message),
            "question" => self.answer_to_question(message),
            _ => return,
        };
        let reply_to = Some(message.reply_with.clone());
        Outgoing { reply_to, ..answer }.publish(&self.client).await;
    }

    fn finding<'a>(&'a self, task: &'a Incoming) -> Outgoing<'a> {
        let confidence = if self.agrees { 0.6 } else { 0.9 };
        let finding = ("What was found.", self.score, confidence);
        Outgoing::finding(self.dialect, &task.case, &self.name, finding)
    }

    fn answer_to_question<'a>(&'a self, question: &'a Incoming) -> Outgoing<'a> {
        let (kind, content) = if self.agrees {
            let peer = &question.content["other_positions"][0]["agent_id"];
            let content = json!({ "agrees_with": peer, "agrees_with_peer": true, "reasoning": "They are right." });
            ("agreement", content)
        } else {
            let content = json!({ "agrees_with_peer": false, "reasoning": "I have looked again." });
            ("disagreement", content)
        };
        let route = (self.name.as_str(), "debate-facilitator");
        Outgoing::new(self.dialect, &question.case, route, kind, content)
    }
}

/// Opens a case of two new agents that speak this dialect: the case, and the agent that agrees with the other.
async fn open_case(installation: &TestInstallation, dialect: &'static str) -> (String, String) {
    let client = installation.client();
    let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
    Agent::start(client, dialect, &ann, 20, false).await;
    Agent::start(client, dialect, &ben, 90, true).await;
    // The facilitator asks them in the dialects of their cards.
    knows_agents(installation, PATIENCE).await;
    let parameters = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 },
    });
    let route = ("opener", "coordinator");
    Outgoing::request(dialect, route, "open_case", parameters)
        .publish(client)
        .await;
    (case, ben)
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_speak_nothing_else_decide_a_case_in_each_dialect() {
    let installation = TestInstallation::start_without_adapter().await;
    installation.free_openers().await;
    let client = installation.client();
    let mut cases = Vec::new();
    for dialect in DIALECTS {
        cases.push((dialect, open_case(&installation, dialect).await));
    }
    for (dialect, (case, ben)) in &cases {
        let case_id = CaseId::new(case.as_str()).expect("a case id");
        let decided = installation.decision(&case_id, PATIENCE).await;
        let decision = &decided["decision"];
        assert_eq!(
            (&decision["reason"], &decision["outcome"]["risk_score"]),
            (&json!("settled"), &json!(20.0)),
            "{dialect}: {decision}"
        );
        check_transcript(&installation, dialect, case, ben);
    }
    installation.holds(PATIENCE).await;
    let letters = dead_letters(client).await.expect("the stream can be read");
    assert!(letters.is_empty(), "{letters:?}");
}

/// `concord case transcript` shows a message of a dialect as an envelope, and beside it the original.
fn check_transcript(installation: &TestInstallation, dialect: &str, case: &str, ben: &str) {
    let output = concord(&[
        "case",
        "transcript",
        case,
        "--json",
        "--server",
        installation.server_url(),
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let of = |kind: &str| {
        let of_kind = |line: &&Value| {
            line["body"]["message_type"] == kind && line["body"]["from_agent"] == ben
        };
        lines
            .iter()
            .find(of_kind)
            .unwrap_or_else(|| panic!("{dialect}: no {kind} of {ben} in {lines:#?}"))
    };
    let finding = of("finding");
    assert_eq!(finding["dialect"], dialect);
    assert_eq!(
        (
            &finding["body"]["payload"]["risk_score"],
            &finding["body"]["metadata"]["confidence"]
        ),
        (&json!(90), &json!(0.6)),
        "{finding:#}"
    );
    assert_ne!(finding["body"], finding["original"]);
    assert_eq!(
        of("agreement")["body"]["payload"]["reasoning"],
        "They are right."
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_in_the_format_of_the_specification_is_one() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let case = unique("case");
    let challenged = "financial_analyst";
    let challenger = "strategy_analyst";
    let opening = json!({
        "case_id": case, "participants": [challenged, challenger], "task": { "type": "test" }, "gates": ["valuation"],
    });
    installation.open_case(&opening).await;
    for from in [challenged, challenger] {
        let finding = ("Management is effective.", 30, 0.8);
        Outgoing::finding("analyst", &case, from, finding)
            .publish(client)
            .await;
    }
    let case_id = CaseId::new(case.as_str()).expect("a case id");
    installation.decision(&case_id, PATIENCE).await;
    let challenge = json!({
        "challenge_id": "CH-001", "challenger": challenger, "challenged": challenged,
        "disputed_finding": "Management effectiveness", "challenge_basis": "ROI declining despite claims",
        "required_evidence": ["Historical ROI data", "Peer comparison"], "escalation_timer": 3600,
        "priority": "critical-path", "provisional_resolution": null,
    });
    let subject = format!("concord.v1.msg.{case}.{challenger}.coordinator.challenge");
    client
        .publish(subject, challenge.to_string().into())
        .await
        .expect("the challenge is sent");
    let filter = format!("case.{case}.challenged");
    let event = wait_for("the challenge to be recorded", PATIENCE, async || {
        let events = events(client, &filter).await?;
        let first = events.first().map(|event| event.json());
        first.ok_or_else(|| "none".to_owned())
    })
    .await;
    assert!(event.to_string().contains("CH-001"), "{event:#}");
}

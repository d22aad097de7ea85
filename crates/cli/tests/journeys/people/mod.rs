//! A disagreement on its way to a person and past a gate, with nothing but the command line.

use concord_testkit::{COMMAND_MAX, Message, TestInstallation, settled, wait_for};
use serde_json::{Value, json};

use crate::command::Session;

mod debate;
mod deceptive;
mod gate;
mod outcome;
mod ruling;

/// An installation with a decided case `c-1` of two analysts, at the gate `valuation`.
struct Stage {
    installation: TestInstallation,
    session: Session,
}

impl std::ops::Deref for Stage {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

const CHALLENGE: &str = r#"{
    "challenger": "sid", "challenged": "fin", "disputed_finding": "Operating margin of 25 %",
    "challenge_basis": "ROI declines despite claims", "required_evidence": ["ROI of five years"],
    "priority": "critical-path", "metric": "operating margin", "challenged_value": 25, "position": "30 %", "value": 30,
    "domain": "valuation", "dependants": ["dcf"]
}"#;

impl Stage {
    /// Times are divided by `scale`.
    async fn start(scale: u32) -> Self {
        Self::start_on(TestInstallation::start_without_adapter().await, scale).await
    }

    /// The same on an installation of one's own.
    async fn start_on(installation: TestInstallation, scale: u32) -> Self {
        let session = Session::new(installation.server_url());
        let stage = Self {
            installation,
            session,
        };
        stage.good("person register gail --role reviewer").await;
        stage.decide("c-1", "valuation", scale).await;
        stage
    }

    /// Opens a case of two analysts with a gate, and has it decided.
    async fn decide(&self, case: &str, gate: &str, scale: u32) {
        let ladder = json!({ "time_scale": scale, "challenges_per_challenger": 4 });
        self.decide_by(case, gate, ladder).await;
    }

    /// The same with these terms of its ladder.
    async fn decide_by(&self, case: &str, gate: &str, ladder: Value) {
        let opening = json!({
            "case_id": case, "participants": ["fin", "sid"], "task": { "type": "test", "title": "The annual report" }, "gates": [gate],
            "policy": { "ladder": ladder },
        });
        self.with_input("case open -", &opening.to_string())
            .await
            .good();
        for agent in ["fin", "sid"] {
            Message::finding(case, agent, json!({ "summary": "Seen." }), 0.8)
                .publish(self.installation.client())
                .await;
        }
        self.until(&format!("case show {case}"), |case| {
            case["phase"] == "decided"
        })
        .await;
    }

    /// Waits until the facilitator has opened a debate, which comes after the event of its case.
    async fn opened(&self, debate: &str) {
        let opened = format!("debate.{debate}.opened");
        wait_for(&opened, COMMAND_MAX, async || {
            let events = concord_testkit::events(self.installation.client(), &opened).await?;
            events.first().map(|_| ()).ok_or_else(|| "none".to_owned())
        })
        .await;
    }

    /// Challenges from the command line; the debate, which is open.
    async fn challenge(&self) -> String {
        let made = self
            .with_input("challenge c-1 - --json", CHALLENGE)
            .await
            .json();
        assert_eq!(
            (&made["became"], &made["fact"]),
            (&json!("recorded"), &json!("challenged"))
        );
        let debate = made["debate_id"].as_str().unwrap().to_owned();
        self.opened(&debate).await;
        debate
    }

    async fn send(&self, debate: &str, from: &str, kind: &str, payload: Value) {
        let message = Message::new("c-1", from, "debate-facilitator", kind, payload)
            .with("/correlation_id", debate);
        message.publish(self.installation.client()).await;
    }

    async fn disagree(&self, debate: &str, reasoning: &str) {
        let payload = json!({ "reasoning": reasoning });
        self.send(debate, "sid", "disagreement", payload).await;
    }

    /// The challenged agent gives evidence, and that is recorded.
    async fn answered(&self, debate: &str) {
        self.send(debate, "fin", "acknowledgement", json!({})).await;
        let evidence = json!({ "evidence": ["10-K page 45"] });
        self.send(debate, "fin", "evidence", evidence).await;
        let given = |shown: &Value| events(shown).any(|name| name == "evidence_given");
        self.until(&format!("debate show {debate}"), given).await;
    }

    async fn holds(&self) {
        settled(self.installation.client(), COMMAND_MAX)
            .await
            .unwrap();
        let check = self.run("check").await;
        assert_eq!(check.code, 0, "{check:?}");
    }
}

/// The names of the events of a debate that is shown.
fn events(shown: &Value) -> impl Iterator<Item = &str> {
    let events = shown["facts"].as_array().unwrap().iter();
    events.filter_map(|event| event["fact"].as_str())
}

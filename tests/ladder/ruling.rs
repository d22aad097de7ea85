//! An expert rules on a debate that came to the level of people, and nobody else can.

use concord_testkit::{Message, unique};
use serde_json::{Value, json};

use crate::ladder::stage::Stage;

/// A debate of the stage's case, and the messages of its participants to the facilitator.
pub(crate) struct Debate<'a> {
    stage: &'a Stage,
    id: String,
}

impl<'a> Debate<'a> {
    /// Waits until the debate is opened.
    pub(crate) async fn opened(stage: &'a Stage) -> Self {
        let event = stage.event("debate", "opened", |_| true).await;
        let id = event["id"].as_str().expect("an id").to_owned();
        Self { stage, id }
    }

    fn message(&self, from: &str, kind: &str, payload: Value) -> Message {
        let message = Message::new(&self.stage.case, from, "debate-facilitator", kind, payload);
        message.with("/correlation_id", self.id.clone())
    }

    async fn send(&self, from: &str, kind: &str, payload: Value) {
        self.stage.send(&self.message(from, kind, payload)).await;
    }

    /// A ruling for this position, by a brief with this digest.
    pub(crate) fn ruling(&self, from: &str, position: &str, digest: &Value) -> Message {
        let ruling = json!({
            "debate_id": self.id, "digest": digest, "position_id": position, "rationale": "The filing says so.",
        });
        self.message(from, "ruling", ruling)
    }

    async fn rule(&self, from: &str, position: &str, digest: &Value) {
        self.stage.send(&self.ruling(from, position, digest)).await;
    }

    /// Brings the debate to level 2 by evidence that the challenger rejects: so it need not wait for the times of agents.
    pub(crate) async fn escalate(&self) {
        let (finance, strategy) = (&self.stage.finance, &self.stage.strategy);
        self.send(finance, "acknowledgement", json!({})).await;
        let evidence = json!({ "evidence": ["10-K page 45"] });
        self.send(finance, "evidence", evidence).await;
        self.stage
            .message_to(strategy, "question", |question| {
                question["payload"]["debate_id"] == self.id.as_str()
            })
            .await;
        let answer = json!({ "reasoning": "That is last year's." });
        self.send(strategy, "disagreement", answer).await;
        assert_eq!(self.stage.escalated_to(2).await["reason"], "rejected");
    }

    /// Waits until an expert is asked to rule by a brief with another digest than `known`: the digest.
    pub(crate) async fn digest_other_than(&self, expert: &str, known: &Value) -> Value {
        let request = self.stage.message_to(expert, "request", |request| {
            let payload = &request["payload"];
            payload["action"] == "rule" && payload["parameters"]["digest"] != *known
        });
        request.await["payload"]["parameters"]["digest"].clone()
    }

    /// Waits for an error to an expert about a ruling that was set aside for this reason.
    async fn set_aside(&self, expert: &str, reason: &str) -> Value {
        self.stage
            .message_to(expert, "error", |error| {
                error["payload"]["details"]["reason"] == reason
            })
            .await
    }
}

/// A ruling of somebody who is no expert is refused, and so is one for a position that does not exist.
async fn check_refused_rulings(debate: &Debate<'_>, expert: &str, digest: &Value) {
    let zoe = unique("zoe");
    debate.rule(&zoe, "p1", digest).await;
    let error = debate.stage.message_to(&zoe, "error", |_| true).await;
    assert_eq!(error["payload"]["error_code"], "UNAUTHORIZED");
    debate.rule(expert, "p9", digest).await;
    debate
        .stage
        .message_to(expert, "error", |error| {
            error["payload"]["details"]["pointer"] == "/payload/position_id"
        })
        .await;
}

/// New evidence changes the brief, so a ruling by the old brief does not count. Returns the digest of the new one.
async fn check_outdated_ruling(debate: &Debate<'_>, expert: &str, digest: &Value) -> Value {
    let evidence = json!({ "evidence": ["The peers' reports"] });
    let from = &debate.stage.strategy;
    debate.send(from, "evidence", evidence).await;
    let newer = debate.digest_other_than(expert, digest).await;
    debate.rule(expert, "p2", digest).await;
    let error = debate.set_aside(expert, "changed").await;
    assert_eq!(error["payload"]["details"]["digest"], newer);
    newer
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_rules_and_nobody_else() {
    // Slow enough for people.
    let stage = Stage::start(60).await;
    let expert = unique("eve");
    let registration = json!({ "agent_id": expert, "domains": ["valuation"] });
    stage.installation.register_expert(&registration).await;
    stage.challenge().await;
    let debate = Debate::opened(&stage).await;
    debate.escalate().await;
    let digest = debate.digest_other_than(&expert, &Value::Null).await;
    check_refused_rulings(&debate, &expert, &digest).await;
    let newer = check_outdated_ruling(&debate, &expert, &digest).await;

    debate.rule(&expert, "p2", &newer).await;
    let event = stage.event("debate", "resolved", |_| true).await;
    let outcome = &event["data"]["outcome"];
    assert_eq!(
        (&outcome["status"], &outcome["resolution"]["value"]),
        (&json!("ruling"), &json!(30))
    );
    assert_eq!(outcome["ruled_by"]["expert"], expert.as_str());
    debate.rule(&expert, "p1", &newer).await;
    debate.set_aside(&expert, "second").await;
    stage
        .event("queue", "released", |data| {
            data["debate_id"] == debate.id.as_str()
        })
        .await;
    stage
        .event("case", "decision_changed", |data| {
            data["outcome"]["status"] == "ruling"
        })
        .await;
    stage.holds().await;
}

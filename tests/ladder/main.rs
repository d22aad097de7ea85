//! The ladder with real processes on a real broker, in scaled time.

use std::time::Duration;

use concord_events::topology::StreamKind;
use concord_testkit::{Message, Stored, TestInstallation, stored, unique, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A running installation, and a case of two analysts that waits at a gate.
struct Stage {
    installation: TestInstallation,
    case: String,
    finance: String,
    strategy: String,
}

impl Stage {
    /// Times are divided by `scale`.
    async fn start(scale: u32) -> Self {
        let installation =
            TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
        let (case, finance, strategy) = (unique("case"), unique("finance"), unique("strategy"));
        let opening = json!({
            "case_id": case, "participants": [finance, strategy], "task": { "type": "test" }, "gates": ["valuation"],
            "policy": { "ladder": { "time_scale": scale } },
        });
        installation.open_case(&opening).await;
        let stage = Self {
            installation,
            case,
            finance,
            strategy,
        };
        for agent in [&stage.finance, &stage.strategy] {
            stage
                .send(&Message::finding(
                    &stage.case,
                    agent,
                    json!({ "summary": "Seen." }),
                    0.8,
                ))
                .await;
        }
        stage.fact("case", "decided", |_| true).await;
        stage
    }

    async fn send(&self, message: &Message) {
        let context = async_nats::jetstream::new(self.installation.client().clone());
        let stored = context
            .publish(message.subject(), message.bytes().into())
            .await;
        stored
            .expect("the message is sent")
            .await
            .expect("the message is stored");
    }

    /// What is challenged has the lower margin, which is the cautious one.
    async fn challenge(&self) {
        let challenge = json!({
            "challenge_id": "CH-001", "challenger": self.strategy, "challenged": self.finance,
            "disputed_finding": "Operating margin of 25 %", "challenge_basis": "ROI declining despite claims",
            "required_evidence": ["Historical ROI data", "Peer comparison"], "escalation_timer": 3600,
            "priority": "critical-path", "provisional_resolution": null,
            "metric": "operating margin", "challenged_value": 25, "position": "30 %", "value": 30, "domain": "valuation",
        });
        self.send(&Message::new(
            &self.case,
            &self.strategy,
            "coordinator",
            "challenge",
            challenge,
        ))
        .await;
    }

    /// Waits for a fact: its contents.
    async fn fact(&self, aggregate: &str, fact: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let filter = format!("concord.v1.event.{aggregate}.*.{fact}");
        let found = until(&filter, PATIENCE, async || {
            let facts = stored(self.installation.client(), StreamKind::Events, &filter).await?;
            let all: Vec<Value> = facts.iter().map(Stored::json).collect();
            let found = all.iter().find(|fact| is_it(&fact["data"])).cloned();
            found.ok_or_else(|| format!("{} others", all.len()))
        });
        found.await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn escalated_to(&self, level: u8) -> Value {
        self.fact("debate", "escalated", |data| data["to"] == level)
            .await["data"]
            .clone()
    }

    /// Registers a person who can rule.
    async fn register(&self, expert: &str) {
        let request =
            json!({ "expert": { "agent_id": expert, "domains": ["valuation"] }, "by": "olga" });
        let answer = self
            .installation
            .ask(Service::DebateFacilitator, "register_expert", &request)
            .await;
        assert_eq!(answer.expect("an answer")["fact"], "expert_registered");
    }

    /// Waits until the broker has told `agent` this kind of thing, with this in it.
    async fn told(&self, agent: &str, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let filter = format!("concord.v1.msg.{}.*.{agent}.{kind}", self.case);
        let found = until(&filter, PATIENCE, async || {
            let messages =
                stored(self.installation.client(), StreamKind::Messages, &filter).await?;
            let all: Vec<Value> = messages.iter().map(Stored::json).collect();
            all.iter()
                .find(|message| is_it(message))
                .cloned()
                .ok_or_else(|| format!("{all:?}"))
        });
        found.await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn review(&self, review: Value) {
        self.send(&Message::new(
            &self.case,
            "gail",
            "coordinator",
            "review",
            review,
        ))
        .await;
    }

    async fn holds(&self) {
        self.installation.holds(PATIENCE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_that_nobody_answers_climbs_all_five_levels_and_a_gate_overrides_it() {
    let stage = Stage::start(14_400).await;
    stage.challenge().await;
    stage
        .told(&stage.finance, "challenge", |message| {
            message["payload"]["challenge_id"] == "CH-001"
        })
        .await;
    assert_eq!(stage.escalated_to(2).await["reason"], "unacknowledged");
    // The hour of mediation is a quarter of a second here: a busy machine may be late for the comparison.
    let reason = stage.escalated_to(3).await["reason"].clone();
    assert!(
        ["credibility_inconclusive", "mediation_overdue"]
            .iter()
            .any(|one| reason == *one),
        "{reason}"
    );
    let fell = stage.fact("debate", "fell_back", |_| true).await["data"]["outcome"].clone();
    assert_eq!(
        (&fell["status"], &fell["resolution"]["value"]),
        (&json!("provisional"), &json!(25))
    );
    assert_eq!(fell["provisional"]["review_at"], "valuation");
    let debate = fell["conflict_id"].as_str().expect("an id").to_owned();
    stage
        .fact("case", "debate_settled", |data| {
            data["outcome"]["status"] == "provisional"
        })
        .await;
    stage
        .review(json!({ "gate": "valuation", "action": "pass" }))
        .await;
    let refused = stage.told("gail", "error", |_| true).await;
    let message = refused["payload"]["error_message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.contains("1 provisional decisions require review"),
        "{refused}"
    );
    stage.fact("debate", "awaits_gate", |_| true).await;
    stage
        .review(json!({
            "gate": "valuation", "action": "override", "debate_id": debate, "position": "28 %", "value": 28,
            "rationale": "Management guidance.",
        }))
        .await;
    let last = stage
        .fact("case", "debate_settled", |data| {
            data["outcome"]["status"] == "overridden"
        })
        .await;
    assert_eq!(last["data"]["outcome"]["resolution"]["value"], 28);
    assert_eq!(
        last["data"]["entry"]["number"], 2,
        "after the provisional one"
    );
    let observed = stage
        .fact("record", "observed", |data| {
            data["observation"]["overridden"] == true
        })
        .await;
    assert_eq!(
        (&observed["id"], &observed["data"]["by"]),
        (&json!(stage.finance), &json!("gail"))
    );
    stage
        .fact("precedent", "recorded", |data| {
            data["precedent"]["status"] == "overridden"
        })
        .await;
    stage
        .review(json!({ "gate": "valuation", "action": "pass" }))
        .await;
    stage
        .fact("case", "gate_passed", |data| data["gate"] == "valuation")
        .await;
    stage.holds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_rules_and_nobody_else() {
    // Slow enough for people: the agents' times are passed over by rejecting the evidence.
    let stage = Stage::start(60).await;
    let expert = unique("eve");
    stage.register(&expert).await;
    stage.challenge().await;
    let debate = stage.fact("debate", "opened", |_| true).await["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let speak = |from: &str, kind: &str, payload: Value| {
        Message::new(&stage.case, from, "debate-facilitator", kind, payload)
            .with("/correlation_id", debate.clone())
    };
    stage
        .send(&speak(&stage.finance, "acknowledgement", json!({})))
        .await;
    stage
        .send(&speak(
            &stage.finance,
            "evidence",
            json!({ "evidence": ["10-K page 45"] }),
        ))
        .await;
    stage
        .told(&stage.strategy, "question", |question| {
            question["payload"]["debate_id"] == debate.as_str()
        })
        .await;
    stage
        .send(&speak(
            &stage.strategy,
            "disagreement",
            json!({ "reasoning": "That is last year's." }),
        ))
        .await;
    assert_eq!(stage.escalated_to(2).await["reason"], "rejected");
    let asked = stage
        .told(&expert, "request", |request| {
            request["payload"]["action"] == "rule"
        })
        .await;
    let digest = asked["payload"]["parameters"]["digest"].clone();
    let ruling = |position: &str, digest: &Value| json!({ "debate_id": debate, "digest": digest, "position_id": position, "rationale": "The filing says so." });
    let zoe = unique("zoe");
    stage
        .send(&speak(&zoe, "ruling", ruling("p1", &digest)))
        .await;
    let refused = stage.told(&zoe, "error", |_| true).await;
    assert_eq!(refused["payload"]["error_code"], "UNAUTHORIZED");
    stage
        .send(&speak(&expert, "ruling", ruling("p9", &digest)))
        .await;
    stage
        .told(&expert, "error", |error| {
            error["payload"]["details"]["pointer"] == "/payload/position_id"
        })
        .await;
    // What comes in between changes the brief: the ruling on the old one does not count.
    stage
        .send(&speak(
            &stage.strategy,
            "evidence",
            json!({ "evidence": ["The peers' reports"] }),
        ))
        .await;
    let newer = stage
        .told(&expert, "request", |request| {
            request["payload"]["parameters"]["digest"] != digest
        })
        .await["payload"]["parameters"]["digest"]
        .clone();
    stage
        .send(&speak(&expert, "ruling", ruling("p2", &digest)))
        .await;
    let aside = stage
        .told(&expert, "error", |error| {
            error["payload"]["details"]["reason"] == "changed"
        })
        .await;
    assert_eq!(aside["payload"]["details"]["digest"], newer);
    stage
        .send(&speak(&expert, "ruling", ruling("p2", &newer)))
        .await;
    let resolved = stage.fact("debate", "resolved", |_| true).await["data"]["outcome"].clone();
    assert_eq!(
        (&resolved["status"], &resolved["resolution"]["value"]),
        (&json!("ruling"), &json!(30))
    );
    assert_eq!(resolved["ruled_by"]["expert"], expert.as_str());
    stage
        .send(&speak(&expert, "ruling", ruling("p1", &newer)))
        .await;
    stage
        .told(&expert, "error", |error| {
            error["payload"]["details"]["reason"] == "second"
        })
        .await;
    stage
        .fact("queue", "released", |data| {
            data["debate_id"] == debate.as_str()
        })
        .await;
    stage
        .fact("case", "debate_settled", |data| {
            data["outcome"]["status"] == "ruling"
        })
        .await;
    stage.holds().await;
}

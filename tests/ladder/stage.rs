//! An installation with a case of two analysts that waits at a gate, and the steps of the tests.

use concord_testkit::{
    Message, Stored, TestInstallation, events, message_bodies, unique, wait_for,
};
use serde_json::{Value, json};

use crate::PATIENCE;

/// A running installation, and a case of two analysts that waits at a gate.
pub(crate) struct Stage {
    pub(crate) installation: TestInstallation,
    pub(crate) case: String,
    pub(crate) finance: String,
    pub(crate) strategy: String,
}

impl Stage {
    /// Starts it; the times of the ladder are divided by `scale`.
    pub(crate) async fn start(scale: u32) -> Self {
        let installation = TestInstallation::start_without_adapter().await;
        installation.register("gail", &["reviewer"]).await;
        let [case, finance, strategy] = ["case", "finance", "strategy"].map(unique);
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
            let finding = json!({ "summary": "Seen." });
            stage
                .send(&Message::finding(&stage.case, agent, finding, 0.8))
                .await;
        }
        stage.event("case", "decided", |_| true).await;
        stage
    }

    /// Sends a message and waits until it is stored.
    pub(crate) async fn send(&self, message: &Message) {
        message.store(self.installation.client()).await;
    }

    /// Lets strategy challenge a margin of finance. The challenged margin is the lower one, which is the conservative
    /// position.
    pub(crate) async fn challenge(&self) {
        let challenge = json!({
            "challenge_id": "CH-001", "challenger": self.strategy, "challenged": self.finance,
            "disputed_finding": "Operating margin of 25 %", "challenge_basis": "ROI declining despite claims",
            "required_evidence": ["Historical ROI data", "Peer comparison"], "escalation_timer": 3600,
            "priority": "critical-path", "provisional_resolution": null,
            "metric": "operating margin", "challenged_value": 25, "position": "30 %", "value": 30, "domain": "valuation",
        });
        let from = &self.strategy;
        self.send(&Message::new(
            &self.case,
            from,
            "coordinator",
            "challenge",
            challenge,
        ))
        .await;
    }

    /// Waits for an event for whose contents `is_it` is true: the whole event.
    pub(crate) async fn event(
        &self,
        aggregate: &str,
        event: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Value {
        let filter = format!("{aggregate}.*.{event}");
        wait_for(&filter, PATIENCE, async || {
            let all = events(self.installation.client(), &filter).await?;
            let mut bodies = all.iter().map(Stored::json);
            let found = bodies.find(|event| is_it(&event["data"]));
            found.ok_or_else(|| format!("{} others", all.len()))
        })
        .await
    }

    /// Waits until the debate comes to a level: the contents of the event.
    pub(crate) async fn escalated_to(&self, level: u8) -> Value {
        let event = self.event("debate", "escalated", |data| data["to"] == level);
        event.await["data"].clone()
    }

    /// Waits for a message of this type to an agent, in the case, for which `is_it` is true.
    pub(crate) async fn message_to(
        &self,
        agent: &str,
        kind: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Value {
        let filter = format!("concord.v1.msg.{}.*.{agent}.{kind}", self.case);
        wait_for(&filter, PATIENCE, async || {
            let all = message_bodies(self.installation.client(), &filter).await?;
            let found = all.iter().find(|message| is_it(message)).cloned();
            found.ok_or_else(|| format!("{all:?}"))
        })
        .await
    }

    /// Sends a review of the gate.
    pub(crate) async fn review(&self, review: Value) {
        let message = Message::new(&self.case, "gail", "coordinator", "review", review);
        self.send(&message).await;
    }

    /// Checks that the invariants hold and that all services live.
    pub(crate) async fn holds(&self) {
        self.installation.holds(PATIENCE).await;
    }
}

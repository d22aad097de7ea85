//! An installation with a case of two analysts that waits at a gate, and the steps of the tests.

use concord_testkit::{
    Message, Stored, TestInstallation, events, message_bodies, unique, wait_for,
};
use serde_json::{Value, json};

use crate::ladder::PATIENCE;

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
        let finding = || json!({ "summary": "Seen." });
        let terms = json!({
            "gates": ["valuation"], "policy": { "ladder": { "time_scale": scale } },
        });
        Self::decided(terms, [finding(), finding()]).await
    }

    /// Starts it with a case on these terms, in which finance and strategy give these findings, and waits until it is decided.
    pub(crate) async fn decided(terms: Value, findings: [Value; 2]) -> Self {
        let stage = Self::empty().await;
        stage.installation.register("gail", &["reviewer"]).await;
        stage.open(terms).await;
        stage.give_findings(findings).await;
        stage.event("case", "decided", |_| true).await;
        stage
    }

    /// An installation without a case yet, and the names of two analysts.
    pub(crate) async fn empty() -> Self {
        Self {
            installation: TestInstallation::start_without_adapter().await,
            case: unique("case"),
            finance: unique("finance"),
            strategy: unique("strategy"),
        }
    }

    /// Opens the case on these terms.
    pub(crate) async fn open(&self, terms: Value) {
        let mut opening = json!({
            "case_id": self.case, "participants": [self.finance, self.strategy], "task": { "type": "test" },
        });
        for (key, value) in terms.as_object().expect("an object") {
            opening[key] = value.clone();
        }
        self.installation.open_case(&opening).await;
    }

    /// Gives the findings of finance and of strategy.
    pub(crate) async fn give_findings(&self, findings: [Value; 2]) {
        for (agent, finding) in [&self.finance, &self.strategy].into_iter().zip(findings) {
            self.send(&Message::finding(&self.case, agent, finding, 0.8))
                .await;
        }
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

    /// Waits for an event of this case: the whole event.
    pub(crate) async fn event_of(&self, case: &str, event: &str) -> Value {
        let filter = format!("case.{case}.{event}");
        wait_for(&filter, PATIENCE, async || {
            let all = events(self.installation.client(), &filter).await?;
            let found = all.iter().map(Stored::json).next();
            found.ok_or_else(|| "there is none".to_owned())
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

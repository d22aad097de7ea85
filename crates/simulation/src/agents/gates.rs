//! Level 5: people who review at gates what stands provisionally; too early, twice, as parties, at the wrong gate.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::experts::with;
use super::ladder::REVIEWERS;
use super::signing;
use super::{Agents, Draft, NAMES, text};
use crate::world::World;

impl Agents {
    /// Something has happened that a gate may have to do with.
    pub(super) fn review(&mut self, world: &mut World, message: &Value) {
        let Some(case) = text(message, "/case_id").map(str::to_owned) else {
            return;
        };
        let data = message.pointer("/payload/data").unwrap_or(&Value::Null);
        match text(message, "/payload/event") {
            Some("debate_provisional") => {
                let gate = text(data, "/outcome/provisional/review_at").map(str::to_owned);
                let debate = text(data, "/debate_id").unwrap_or_default().to_owned();
                // Some work with what stands provisionally.
                for _ in 0..self.random.between(1, 4) {
                    let from = self.somebody();
                    self.publish(world, from, case.clone(), 400);
                }
                let digest = data
                    .pointer("/outcome")
                    .and_then(signing::digest_of_outcome);
                if let Some(gate) = gate.filter(|_| self.random.chance(0.8)) {
                    self.review_debate(world, &case, &gate, (&debate, digest));
                }
            }
            Some("debate_awaits_gate") => {
                let gate = text(data, "/gate").unwrap_or_default().to_owned();
                let debate = text(data, "/debate_id").unwrap_or_default().to_owned();
                self.review_debate(world, &case, &gate, (&debate, None));
            }
            Some("case_decided") => {
                if let Some(gate) = text(data, "/decision/gates/0").map(str::to_owned) {
                    self.pass(world, &case, &gate);
                }
            }
            Some("gate_passed") => {
                if let Some(gate) = text(data, "/next").map(str::to_owned) {
                    self.pass(world, &case, &gate);
                }
            }
            _ => {}
        }
    }

    fn review_debate(
        &mut self,
        world: &mut World,
        case: &str,
        gate: &str,
        (debate, digest): (&str, Option<String>),
    ) {
        let in_ms = self.random.between(0, 9_000);
        let digest = digest.as_deref();
        // Many override when the case is at its gate.
        for _ in 0..self.random.between(0, 2) {
            let later = self.reviewing(case, overriding(gate, debate));
            let in_ms = self.random.between(6_000, 40_000);
            self.say(world, in_ms, &later);
        }
        let draft = self.verdict(case, gate, debate, digest);
        match self.random.between(0, 99) {
            0..60 => self.say(world, in_ms, &draft),
            60..66 => self.twice_said(world, in_ms, &draft),
            // Two reviewers at once.
            66..76 => {
                let second = self.verdict(case, gate, debate, digest);
                self.say(world, in_ms, &draft);
                self.say(world, in_ms, &second);
            }
            76..80 => {
                let from = self
                    .random
                    .pick(&NAMES)
                    .copied()
                    .unwrap_or("ada")
                    .to_owned();
                self.say(world, in_ms, &Draft { from, ..draft });
            }
            80..84 => {
                let other = self.verdict(case, "no gate", debate, None);
                self.say(world, in_ms, &other);
            }
            84..88 => {
                let other = self.verdict(case, gate, "d-nothing", None);
                self.say(world, in_ms, &other);
            }
            _ => {}
        }
    }

    fn verdict(&mut self, case: &str, gate: &str, debate: &str, digest: Option<&str>) -> Draft {
        let payload = match self.random.between(0, 9) {
            0..4 => json!({ "gate": gate, "action": "confirm", "debate_id": debate }),
            4..7 => overriding(gate, debate),
            7..9 => {
                json!({ "gate": gate, "action": "redebate", "debate_id": debate, "context": "New figures." })
            }
            _ => json!({ "gate": gate, "action": "override", "debate_id": debate }),
        };
        let payload = match self.random.between(0, 9) {
            0..6 => payload,
            6 => with(payload, "digest", json!("0".repeat(64))),
            _ => with(payload, "digest", json!(digest)),
        };
        self.reviewing(case, payload)
    }

    fn reviewing(&mut self, case: &str, payload: Value) -> Draft {
        let from = self.random.pick(&REVIEWERS).copied().unwrap_or("gail");
        let id = self.fresh_id();
        self.signed(Draft {
            from: from.into(),
            to: Service::Coordinator,
            kind: "review",
            case: Some(case.into()),
            id,
            payload,
            more: Value::Null,
        })
    }

    /// Somebody wants the case to go on: at first too early, often.
    fn pass(&mut self, world: &mut World, case: &str, gate: &str) {
        for late in [
            self.random.between(0, 3_000),
            self.random.between(5_000, 20_000),
            60_000,
        ] {
            if self.random.chance(0.7) {
                let draft = self.reviewing(case, json!({ "gate": gate, "action": "pass" }));
                self.say(world, late, &draft);
            }
        }
    }
}

/// A review that puts something else in the place of what stands provisionally.
fn overriding(gate: &str, debate: &str) -> Value {
    json!({
        "gate": gate, "action": "override", "debate_id": debate, "position": "28 %", "value": 28,
        "rationale": "The management has said so.",
    })
}

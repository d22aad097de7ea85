//! Levels 1 and 2: challenging, and answering a challenge; in time or not, by those concerned or others.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::ladder::DOMAINS;
use super::{Agents, Draft, NAMES, STRANGER, due_of, text};
use crate::world::World;

impl Agents {
    /// A participant who was given its task may find fault with another's finding.
    pub(super) fn may_challenge(&mut self, world: &mut World, reader: &str, message: &Value) {
        if !self.random.chance(0.5) {
            return;
        }
        let Some(case) = text(message, "/case_id").map(str::to_owned) else {
            return;
        };
        let participants = message
            .pointer("/payload/participants")
            .and_then(Value::as_array);
        let others: Vec<String> = participants
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let Some(challenged) = self.random.pick(&others).cloned() else {
            return;
        };
        let in_ms = self.random.between(50, 5_000);
        let draft = self.challenge(reader, &challenged, &case);
        match self.random.between(0, 99) {
            0..70 => self.say(world, in_ms, &draft),
            70..76 => self.twice_said(world, in_ms, &draft),
            // The same challenge under another message.
            76..82 => {
                self.say(world, in_ms, &draft);
                let id = self.fresh_id();
                self.say(world, in_ms + 5, &Draft { id, ..draft });
            }
            _ => {
                let draft = self.wrong_challenge(draft);
                self.say(world, in_ms, &draft);
            }
        }
    }

    fn challenge(&mut self, from: &str, challenged: &str, case: &str) -> Draft {
        let id = self.fresh_id();
        let (low, high) = (self.random.between(10, 30), self.random.between(10, 30));
        let mut payload = json!({
            "challenger": from, "challenged": challenged, "disputed_finding": format!("Margin of {low} %"),
            "challenge_basis": "The peers say otherwise", "required_evidence": ["Figures of five years"],
            "priority": self.priority(), "provisional_resolution": null,
        });
        let maybe: [(&str, f64, Value); 7] = [
            (
                "challenge_id",
                0.6,
                json!(format!("CH-{}", self.random.between(1, 3))),
            ),
            ("escalation_timer", 0.3, json!(self.random.between(1, 4))),
            (
                "metric",
                0.6,
                json!(self.random.pick(&["operating margin", "risk_score"])),
            ),
            ("domain", 0.4, json!(self.random.pick(&DOMAINS))),
            ("challenged_value", 0.6, json!(low)),
            ("value", 0.7, json!(high)),
            ("position", 0.7, json!(format!("{high} %"))),
        ];
        self.add_fields(&mut payload, maybe);
        Draft {
            from: from.into(),
            to: Service::Coordinator,
            kind: "challenge",
            case: Some(case.into()),
            id,
            payload,
            more: Value::Null,
        }
    }

    fn add_fields<const N: usize>(&mut self, payload: &mut Value, maybe: [(&str, f64, Value); N]) {
        let Some(fields) = payload.as_object_mut() else {
            return;
        };
        for (name, probability, value) in maybe {
            if self.random.chance(probability) {
                fields.insert(name.into(), value);
            }
        }
    }

    fn wrong_challenge(&mut self, good: Draft) -> Draft {
        let (field, value) = match self.random.between(0, 7) {
            0 => ("challenged", json!(STRANGER)),
            1 => ("challenged", json!(good.from)),
            2 => ("challenger", json!(STRANGER)),
            3 => ("finding_id", json!("m-nothing")),
            4 => ("escalation_timer", json!(-5)),
            5 => ("priority", json!("at once")),
            6 => ("challenge_basis", json!(" ")),
            _ => {
                return Draft {
                    case: Some("c-nowhere".into()),
                    ..good
                };
            }
        };
        let mut payload = good.payload.clone();
        if let Some(fields) = payload.as_object_mut() {
            fields.insert(field.into(), value);
        }
        Draft { payload, ..good }
    }

    /// An agent is told that its finding is disputed.
    pub(super) fn challenged(&mut self, world: &mut World, reader: &str, message: &Value) {
        let (due, soon) = (due_of(message), self.random.between(0, 300));
        let Some(debate) = text(message, "/correlation_id").map(str::to_owned) else {
            return;
        };
        let say = |agents: &mut Self, kind| agents.word(reader, kind, &debate, message);
        let acknowledgement = say(self, "acknowledgement");
        match self.random.between(0, 99) {
            0..55 => {
                self.say(world, soon, &acknowledgement);
                if self.random.chance(0.4) {
                    let asked = say(self, "clarification");
                    self.say(world, soon + 100, &asked);
                }
                if self.random.chance(0.8) {
                    let kind = *self
                        .random
                        .pick(&["evidence", "evidence", "revision", "disagreement"])
                        .unwrap_or(&"");
                    let (draft, in_ms) = (say(self, kind), soon + self.random.between(50, 1_500));
                    self.say(world, in_ms, &draft);
                }
            }
            55..65 => {
                let in_ms = self.around(world, due);
                self.say(world, in_ms, &acknowledgement);
            }
            65..75 => {
                let draft = say(self, "evidence");
                let in_ms = if self.random.chance(0.5) {
                    soon
                } else {
                    self.around(world, due)
                };
                self.say(world, in_ms, &draft);
            }
            75..80 => self.twice_said(world, soon, &acknowledgement),
            80..85 => {
                let from = STRANGER.into();
                let draft = Draft {
                    from,
                    ..acknowledgement
                };
                self.say(world, soon, &draft);
            }
            85..88 => {
                let draft = say(self, "evidence");
                let payload = json!({ "evidence": [] });
                self.say(world, soon, &Draft { payload, ..draft });
            }
            // Under the id of the message that opened it, or any other.
            88..90 => {
                let id = text(message, "/message_id").unwrap_or_default().to_owned();
                let draft = Draft {
                    id,
                    ..acknowledgement
                };
                self.say(world, soon, &draft);
            }
            _ => {}
        }
    }

    /// Something said in a debate on the ladder.
    pub(super) fn word(
        &mut self,
        from: &str,
        kind: &'static str,
        debate: &str,
        message: &Value,
    ) -> Draft {
        let payload = match kind {
            "acknowledgement" => json!({ "note": "seen" }),
            "clarification" => json!({ "text": format!("which year? {}", self.said) }),
            "evidence" => {
                json!({ "statement": "as filed", "evidence": [format!("page {}", self.said)] })
            }
            _ => json!({ "reasoning": "so it is", "value": self.random.between(10, 30) }),
        };
        Draft {
            from: from.into(),
            to: Service::DebateFacilitator,
            kind,
            case: text(message, "/case_id").map(str::to_owned),
            id: self.fresh_id(),
            payload,
            more: json!({ "correlation_id": debate }),
        }
    }

    /// The same message again, to the byte.
    pub(super) fn twice_said(&mut self, world: &mut World, in_ms: u64, draft: &Draft) {
        self.say(world, in_ms, draft);
        let again = in_ms + self.random.between(0, 2_000);
        self.say(world, again, draft);
    }

    /// A question or an answer is passed on.
    pub(super) fn clarified(&mut self, world: &mut World, reader: &str, message: &Value) {
        if !self.random.chance(0.5) {
            return;
        }
        let Some(debate) = text(message, "/correlation_id").map(str::to_owned) else {
            return;
        };
        let draft = self.word(reader, "clarification", &debate, message);
        let in_ms = self.random.between(0, 400);
        self.say(world, in_ms, &draft);
    }

    /// The mediator is asked for an opinion.
    pub(super) fn mediate(&mut self, world: &mut World, reader: &str, message: &Value) {
        let Some(debate) = text(message, "/correlation_id").map(str::to_owned) else {
            return;
        };
        let due = due_of(message);
        let draft = self.word(reader, "evidence", &debate, message);
        match self.random.between(0, 9) {
            0..5 => {
                let in_ms = self.random.between(0, 500);
                self.say(world, in_ms, &draft);
            }
            5..7 => {
                let in_ms = self.around(world, due);
                self.say(world, in_ms, &draft);
            }
            7 => {
                self.say(world, 5, &draft);
                let second = self.word(reader, "evidence", &debate, message);
                self.say(world, 8, &second);
            }
            _ => {}
        }
    }

    /// A debate goes up a level: some have something to add, whether they may or not.
    pub(super) fn speak_up(&mut self, world: &mut World, message: &Value) {
        let event = text(message, "/payload/event").unwrap_or_default();
        let often = match event {
            "debate_escalated" => 0.6,
            "debate_provisional" | "debate_resolved" => 0.1,
            _ => 0.0,
        };
        if !self.random.chance(often) {
            return;
        }
        let Some(debate) = text(message, "/correlation_id").map(str::to_owned) else {
            return;
        };
        for _ in 0..self.random.between(1, 3) {
            let from = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
            let kind = *self
                .random
                .pick(&["evidence", "evidence", "clarification"])
                .unwrap_or(&"evidence");
            let draft = self.word(from, kind, &debate, message);
            let in_ms = self.random.between(0, 4_000);
            self.say(world, in_ms, &draft);
        }
    }
}

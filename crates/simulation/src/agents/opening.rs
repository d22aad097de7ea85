//! Opening cases: under small random policies, sometimes twice, sometimes so that it must be refused.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, NAMES, OPENER, OPENERS, OTHER_OPENER};
use crate::policies::SIMULATED;
use crate::world::World;

impl Agents {
    /// Somebody opens a case within the first seconds.
    pub(super) fn open(&mut self, world: &mut World, number: u64) {
        let in_ms = self.random.between(0, 3_000);
        // Without an id of its own the case gets one that follows from the request.
        let case = self.random.chance(0.85).then(|| format!("c-{number}"));
        self.cases.extend(case.clone());
        let parameters = self.parameters(case.as_deref());
        let draft = self.request(parameters);
        self.say(world, in_ms, &draft);
        match self.random.between(0, 11) {
            // The same request again.
            0 => self.say(world, in_ms + 10, &draft),
            // The same case, asked for in another message.
            1 => {
                let id = self.fresh_id();
                self.say(world, in_ms + 5, &Draft { id, ..draft });
            }
            // Another case under the same id: one of the two is refused.
            2 => {
                let parameters = self.parameters(case.as_deref());
                let other = self.request(parameters);
                self.say(world, in_ms + 3, &other);
            }
            3 => self.open_badly(world, in_ms),
            4 | 5 => self.open_loosely(world, in_ms, number),
            _ => {}
        }
    }

    /// Somebody who is no operator goes beyond the bounds of a policy.
    fn open_loosely(&mut self, world: &mut World, in_ms: u64, number: u64) {
        let mut parameters = self.parameters(Some(&format!("loose-{number}")));
        let policy = parameters.get_mut("policy").and_then(Value::as_object_mut);
        if let Some(policy) = policy {
            policy.insert("preset".into(), "contract-review".into());
            policy.insert("vote_rule".into(), "majority".into());
        }
        let draft = Draft {
            from: OTHER_OPENER.into(),
            ..self.request(parameters)
        };
        self.say(world, in_ms, &draft);
    }

    fn request(&mut self, parameters: Value) -> Draft {
        let opener = self.random.pick(&OPENERS).copied();
        Draft {
            from: opener.unwrap_or(OPENER).into(),
            to: Service::Coordinator,
            kind: "request",
            case: None,
            id: self.fresh_id(),
            payload: json!({ "action": "open_case", "parameters": parameters }),
            more: Value::Null,
        }
    }

    fn parameters(&mut self, case: Option<&str>) -> Value {
        let many = self.random.place(4) + 2;
        let first = self.random.place(NAMES.len() - 1);
        let names = NAMES
            .iter()
            .take(NAMES.len() - 1)
            .cycle()
            .skip(first)
            .take(many);
        let mut participants: Vec<&str> = names.copied().collect();
        participants.dedup();
        let task = json!({ "type": "contract_review", "title": format!("matter {}", self.said) });
        let mut parameters =
            json!({ "policy": self.policy(), "participants": participants, "task": task });
        self.add_gates(&mut parameters);
        if let (Some(fields), Some(case)) = (parameters.as_object_mut(), case) {
            fields.insert("case_id".into(), case.into());
        }
        parameters
    }

    /// A policy whose times pass soon.
    pub(super) fn policy(&mut self) -> Value {
        let finding_timeout = self.random.between(100, 3_000);
        let rule = ["confidence", "majority", "reconcile", "unanimous"];
        let mut policy = json!({
            "preset": SIMULATED,
            "finding_timeout_ms": finding_timeout,
            "case_timeout_ms": finding_timeout + self.random.between(50, 20_000),
            "answer_timeout_ms": self.random.between(50, 2_000),
            "rounds_max": self.random.between(0, 2),
            "conflicts_max": self.random.between(0, 5),
            "messages_per_round_max": self.random.between(2, 6),
            "tokens_per_message_max": self.random.between(20, 60),
            "answers_min": self.random.between(2, 3),
            "set_aside_max": self.random.between(0, 4),
            "vote_rule": self.random.pick(&rule),
            "estimates": { "compared": true, "tolerance": { "relative": self.random.pick(&[0.0, 0.1, 0.3]) } },
            "confirmations": if finding_timeout % 5 < 3 { "count" } else { "shown" },
            // In every other case everybody is told of what matters.
            "importance": {
                "filtered": finding_timeout.is_multiple_of(2),
                "synthesis_every_ms": if finding_timeout.is_multiple_of(6) { 2_500 } else { 0 },
            },
            "impact": { "reruns": if finding_timeout % 7 < 5 { "automatic" } else { "manual" } },
            "memory_sync_ms": if self.random.chance(0.4) { self.random.between(20, 2_500) } else { 0 },
        });
        self.add_ladder(&mut policy);
        policy
    }

    /// A request that must be refused.
    fn open_badly(&mut self, world: &mut World, in_ms: u64) {
        let wrong = [
            json!({ "participants": [], "task": { "type": "t" } }),
            json!({ "participants": ["ada", "ada"], "task": { "type": "t" } }),
            json!({ "participants": ["coordinator"], "task": { "type": "t" } }),
            json!({ "participants": ["ada"], "task": { "type": "t" }, "policy": { "rounds_max": 99 } }),
            json!({ "participants": ["ada"] }),
        ];
        let Some(parameters) = self.random.pick(&wrong).cloned() else {
            return;
        };
        let draft = self.request(parameters);
        self.say(world, in_ms, &draft);
    }
}

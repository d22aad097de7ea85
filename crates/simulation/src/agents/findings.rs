//! AnswerContext a task: with a finding, in time or not.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, due_of, text};
use crate::world::World;

impl Agents {
    /// A participant was given its task.
    pub(super) fn assigned(&mut self, world: &mut World, reader: &str, message: &Value) {
        let Some(case) = text(message, "/case_id").map(str::to_owned) else {
            return;
        };
        let due = due_of(message);
        let soon = self.random.between(0, 300);
        let draft = self.finding(reader, &case);
        for _ in 0..self.random.between(0, 2) {
            self.confirm(world, reader);
        }
        match self.random.between(0, 99) {
            0..45 => self.say(world, soon, &draft),
            45..57 => {
                let in_ms = self.around(world, due);
                self.say(world, in_ms, &draft);
            }
            57..65 => {
                let in_ms = due.millis_since(world.clock()) + self.random.between(100, 4_000);
                self.say(world, in_ms, &draft);
            }
            65..73 => {}
            73..79 => self.twice(world, soon, &draft),
            79..85 => {
                self.say(world, soon, &draft);
                let (second, in_ms) = (
                    self.finding(reader, &case),
                    soon + self.random.between(0, 500),
                );
                self.say(world, in_ms, &second);
            }
            85..90 => {
                self.say(world, soon, &draft);
                let second = Draft {
                    id: draft.id,
                    ..self.finding(reader, &case)
                };
                let in_ms = soon + self.random.between(0, 20);
                self.say(world, in_ms, &second);
            }
            90..94 => self.under_a_common_id(world, soon, draft),
            _ => self.malformed(world, soon, draft),
        }
    }

    /// The same message again, to the byte.
    fn twice(&mut self, world: &mut World, in_ms: u64, draft: &Draft) {
        self.say(world, in_ms, draft);
        let again = in_ms + self.random.between(0, 2_000);
        self.say(world, again, draft);
    }

    /// Senders that number their messages alike, or take the id of any message there was: nobody else may lose by it.
    fn under_a_common_id(&mut self, world: &mut World, in_ms: u64, draft: Draft) {
        let id = if self.random.chance(0.5) {
            format!("common-{}", draft.case.as_deref().unwrap_or_default())
        } else {
            format!("m-{}", self.random.between(1, self.said))
        };
        self.say(world, in_ms % 20, &Draft { id, ..draft });
    }

    fn malformed(&mut self, world: &mut World, in_ms: u64, good: Draft) {
        let bad = good.clone();
        let bad = match self.random.between(0, 7) {
            0 => Draft {
                payload: json!({ "summary": "" }),
                ..bad
            },
            1 => Draft {
                payload: json!({ "summary": "x", "risk_score": 300 }),
                ..bad
            },
            2 => Draft {
                more: json!({ "metadata": { "confidence": 7 } }),
                ..bad
            },
            3 => Draft {
                more: json!({ "metadata": { "version": "2.0" } }),
                ..bad
            },
            4 => Draft {
                more: json!({ "from_agent": "olga" }),
                ..bad
            },
            5 => Draft {
                more: json!({ "timestamp": "noon" }),
                ..bad
            },
            6 => Draft {
                kind: "gossip",
                ..bad
            },
            _ => {
                let place = format!(
                    "{}.{}.coordinator.finding.more",
                    bad.case.as_deref().unwrap_or("_"),
                    bad.from
                );
                self.say_raw(world, in_ms, place, None, b"{\"message_id\":".to_vec());
                return;
            }
        };
        self.say(world, in_ms, &bad);
        // Who reads the refusal mends it, here under a new id.
        if self.random.chance(0.5) {
            let id = self.fresh_id();
            self.say(world, in_ms + 50, &Draft { id, ..good });
        }
    }

    /// A finding of `from` in `case`.
    pub(super) fn finding(&mut self, from: &str, case: &str) -> Draft {
        let mut payload = json!({ "summary": format!("what {from} concluded") });
        let maybe: [(&str, f64, Value); 7] = [
            (
                "risk_score",
                0.8,
                json!(self.random.pick(&[20, 35, 45, 80])),
            ),
            (
                "recommendation",
                0.7,
                json!(self.random.pick(&["sign", "negotiate", "reject"])),
            ),
            ("severity", 0.3, json!(self.random.pick(&["low", "high"]))),
            ("critical_findings", 0.4, self.critical()),
            (
                "clauses",
                0.4,
                json!([{ "type": "Governing Law", "present": self.random.chance(0.5) }]),
            ),
            (
                "facts",
                0.4,
                json!([{ "subject": "cap", "attribute": "amount", "value": self.random.between(1, 2) }]),
            ),
            ("estimates", 0.5, self.estimates()),
        ];
        if let Some(fields) = payload.as_object_mut() {
            for (name, probability, value) in maybe {
                if self.random.chance(probability) {
                    fields.insert(name.into(), value);
                }
            }
        }
        let confidence = self.random.between(0, 10) as f64 / 10.0;
        let stated = self.random.chance(0.8);
        let more = if stated {
            json!({ "metadata": { "confidence": confidence } })
        } else {
            Value::Null
        };
        let id = self.fresh_id();
        self.findings.push((case.into(), id.clone()));
        Draft {
            from: from.into(),
            to: Service::Coordinator,
            kind: "finding",
            case: Some(case.into()),
            id,
            payload,
            more,
        }
    }

    /// Somebody confirms a finding that there is, or will be; also its author does, who must not, or somebody outside the case.
    fn confirm(&mut self, world: &mut World, from: &str) {
        let Some((case, finding)) = self.random.pick(&self.findings).cloned() else {
            return;
        };
        let confidence = self.random.between(0, 10) as f64 / 10.0;
        let draft = Draft {
            from: from.into(),
            to: Service::Coordinator,
            kind: "confirmation",
            case: Some(case),
            id: self.fresh_id(),
            payload: json!({ "confirms": finding }),
            more: json!({ "metadata": { "confidence": confidence } }),
        };
        let in_ms = self.random.between(100, 2_500);
        self.twice(world, in_ms, &draft);
    }

    /// Estimates of a margin and of a revenue, in several units.
    fn estimates(&mut self) -> Value {
        let margin = self.random.pick(&[
            (25.0, "%"),
            (26.0, "%"),
            (30.0, "%"),
            (0.25, "fraction"),
            (0.3, ""),
            (25.0, "USD"),
        ]);
        let revenue = self.random.pick(&[(1.0, "USD million"), (900.0, "k USD")]);
        let stated = [("operating margin", margin), ("revenue", revenue)];
        let estimates = stated.into_iter().filter_map(|(metric, stated)| {
            let (value, unit) = stated?;
            Some(json!({ "metric": metric, "value": value, "unit": unit }))
        });
        estimates.collect()
    }

    fn critical(&mut self) -> Value {
        json!([{ "topic": "liability", "severity": self.random.pick(&["low", "medium", "critical"]) }])
    }
}

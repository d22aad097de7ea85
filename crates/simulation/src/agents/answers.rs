//! AnswerContext questions in a debate: in the round, after it, twice, too long, or not at all.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, STRANGER, due_of, text};
use crate::world::World;

impl Agents {
    /// A party was asked for its position.
    pub(super) fn asked(&mut self, world: &mut World, reader: &str, message: &Value) {
        let due = due_of(message);
        let soon = self.random.between(0, 200);
        let Some(draft) = self.answer(reader, message) else {
            return;
        };
        match self.random.between(0, 99) {
            0..58 => self.say(world, soon, &draft),
            58..67 => {
                let in_ms = self.around(world, due);
                self.say(world, in_ms, &draft);
            }
            67..73 => {
                let in_ms = due.millis_since(world.clock()) + self.random.between(50, 4_000);
                self.say(world, in_ms, &draft);
            }
            73..83 => {}
            83..87 => {
                self.say(world, soon, &draft);
                let again = soon + self.random.between(0, 3_000);
                self.say(world, again, &draft);
            }
            87..91 => {
                self.say(world, soon, &draft);
                if let Some(second) = self.answer(reader, message) {
                    self.say(world, soon + 5, &second);
                }
            }
            91..94 => {
                self.say(world, soon, &draft);
                if let Some(second) = self.answer(reader, message) {
                    let id = draft.id;
                    self.say(world, soon + 2, &Draft { id, ..second });
                }
            }
            94..96 => {
                let payload = json!({ "reasoning": "because ".repeat(60) });
                self.say(world, soon, &Draft { payload, ..draft });
            }
            96 => {
                // Taken from the messages of the case: the request that opened the debate has an id of this form.
                let id = text(message, "/message_id").unwrap_or_default().to_owned();
                let opened = self.random.between(1, 60);
                let ids = [
                    id,
                    format!("{}-{opened}-0", draft.case.as_deref().unwrap_or_default()),
                ];
                let id = self.random.pick(&ids).cloned().unwrap_or_default();
                self.say(world, soon, &Draft { id, ..draft });
            }
            97 => {
                let from = STRANGER.into();
                self.say(world, soon, &Draft { from, ..draft });
            }
            _ => {
                let payload = json!({ "confidence": 7 });
                self.say(world, soon, &Draft { payload, ..draft });
            }
        }
    }

    /// An answer to a question.
    fn answer(&mut self, reader: &str, question: &Value) -> Option<Draft> {
        let kind = *self
            .random
            .pick(&["agreement", "agreement", "disagreement", "revision"])?;
        let others = question
            .pointer("/payload/other_positions")
            .and_then(Value::as_array)?;
        let other = self.random.pick(others).cloned().unwrap_or(Value::Null);
        let mut payload = json!({ "reasoning": "so it seems" });
        let fields = payload.as_object_mut()?;
        if self.random.chance(0.5) {
            fields.insert(
                "confidence".into(),
                json!(self.random.between(0, 10) as f64 / 10.0),
            );
        }
        if kind == "agreement" && self.random.chance(0.6) {
            fields.insert(
                "agrees_with".into(),
                other.get("agent_id").cloned().unwrap_or(Value::Null),
            );
        }
        if kind == "revision" {
            let value = if self.random.chance(0.7) {
                other.get("value").cloned()
            } else {
                Some(json!("something else"))
            };
            fields.insert("value".into(), value.unwrap_or(Value::Null));
        }
        Some(Draft {
            from: reader.into(),
            to: Service::DebateFacilitator,
            kind,
            case: text(question, "/case_id").map(str::to_owned),
            id: self.fresh_id(),
            payload,
            more: self.on_snapshot(question),
        })
    }

    /// The reference to the question, and mostly the snapshot that it refers to, or another one.
    fn on_snapshot(&mut self, question: &Value) -> Value {
        let mut more = self.reference(question);
        let right = text(question, "/metadata/memory_snapshot");
        let named = match self.random.between(0, 9) {
            0..2 => None,
            2 => Some("snap_1"),
            _ => right,
        };
        if let (Some(fields), Some(named)) = (more.as_object_mut(), named) {
            fields.insert("metadata".into(), json!({ "memory_snapshot": named }));
        }
        more
    }

    /// How an answer says which question it answers.
    fn reference(&mut self, question: &Value) -> Value {
        let (id, debate) = (
            question.get("message_id"),
            question.pointer("/payload/debate_id"),
        );
        match self.random.between(0, 19) {
            0..12 => {
                json!({ "reply_to": id, "correlation_id": debate, "round": question.get("round") })
            }
            12..16 => json!({ "reply_to": id }),
            16..18 => json!({ "correlation_id": debate }),
            18 => json!({ "correlation_id": "d-nothing" }),
            _ => Value::Null,
        }
    }

    /// Everybody hears how a debate or a case has ended; some have something to add.
    pub(super) fn informed(&mut self, world: &mut World, message: &Value) {
        if !self.random.chance(0.15) {
            return;
        }
        let in_ms = self.random.between(0, 5_000);
        let Some(reader) = self.random.pick(&super::NAMES).copied() else {
            return;
        };
        let Some(case) = text(message, "/case_id").map(str::to_owned) else {
            return;
        };
        if text(message, "/payload/event") == Some("case_decided") {
            let draft = self.finding(reader, &case);
            return self.say(world, in_ms, &draft);
        }
        let draft = Draft {
            from: reader.into(),
            to: Service::DebateFacilitator,
            kind: "disagreement",
            case: Some(case),
            id: self.fresh_id(),
            payload: json!({ "reasoning": "I have thought of something" }),
            more: json!({ "correlation_id": message.get("correlation_id") }),
        };
        self.say(world, in_ms, &draft);
    }
}

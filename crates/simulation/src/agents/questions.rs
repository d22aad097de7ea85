//! What agents answer to questions to the group: at once, about when it is too late, twice, never, or when they were not asked; and
//! what a synthesiser makes of the answers.

use concord_wire::Timestamp;
use concord_wire::subject::Service;
use serde_json::{Map, Value, json};

use super::{Agents, Draft, NAMES, STRANGER, due_of, text};
use crate::process::QUESTIONS;
use crate::world::World;

impl Agents {
    /// The terms of a question: mostly none.
    pub(super) fn question_terms(&mut self) -> Map<String, Value> {
        let synthesiser = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
        let terms = match self.random.between(0, 19) {
            0..=3 => json!({ "mode": "first_responder" }),
            4 => json!({ "mode": "collaborative" }),
            5..=8 => json!({ "mode": "collaborative", "synthesiser": synthesiser }),
            9 => json!({ "mode": "telepathy" }),
            _ => json!({}),
        };
        terms.as_object().cloned().unwrap_or_default()
    }

    /// Until when answers to a question count, where it states it: mostly soon, and sometimes too late or in the past.
    pub(super) fn question_deadline(&mut self, world: &World) -> Option<Timestamp> {
        let in_ms = match self.random.between(0, 19) {
            0..=11 => return None,
            12 => 0,
            13 => QUESTIONS.answer_ms_max * 2,
            _ => self.random.between(300, QUESTIONS.answer_ms_max),
        };
        Some(world.clock().plus_millis(in_ms))
    }

    /// Somebody was woken by a question, and answers whoever asked.
    pub(super) fn answer_question(&mut self, world: &mut World, reader: &str, said: &Value) {
        let Some(asker) = text(said, "/from_agent") else {
            return;
        };
        let stated = said.get("deadline").is_some_and(Value::is_string);
        let due = match stated {
            true => due_of(said),
            false => world.clock().plus_millis(QUESTIONS.answer_ms),
        };
        let times = if self.random.chance(0.15) { 2 } else { 1 };
        for _ in 0..times {
            let in_ms = match self.random.between(0, 3) {
                0 => self.around(world, due),
                _ => self.random.between(0, 400),
            };
            let by = if self.random.chance(0.05) {
                STRANGER
            } else {
                reader
            };
            let (kind, payload) = match self.random.between(0, 5) {
                0 => (
                    "error",
                    json!({ "error_code": "INTERNAL_ERROR", "error_message": "I have no idea." }),
                ),
                1 => ("task_result", json!({ "content": "That one." })),
                2 => ("info_update", json!({ "content": "By the way." })),
                _ => (
                    "response",
                    json!({ "status": "success", "result": { "content": "This one." } }),
                ),
            };
            let id = self.fresh_id();
            let confidence = self.random.between(0, 10) as f64 / 10.0;
            let envelope = json!({
                "message_id": id, "timestamp": world.clock(), "from_agent": by, "to_agent": asker, "message_type": kind,
                "reply_to": said["message_id"], "payload": payload, "metadata": { "confidence": confidence },
            });
            let place = format!("_.{by}.{asker}.{kind}");
            self.say_raw(
                world,
                in_ms,
                place,
                Some(id),
                envelope.to_string().into_bytes(),
            );
        }
    }

    /// What an agent does that is asked to make one answer of all; false where it is asked for something else.
    pub(super) fn synthesise(&mut self, world: &mut World, reader: &str, message: &Value) -> bool {
        if text(message, "/payload/action") != Some("synthesise") {
            return false;
        }
        let in_ms = match self.random.between(0, 3) {
            0 => return true,
            1 => self.around(world, due_of(message)),
            _ => self.random.between(0, 200),
        };
        let by = if self.random.chance(0.05) {
            STRANGER
        } else {
            reader
        };
        let kind = if self.random.chance(0.2) {
            "error"
        } else {
            "response"
        };
        let draft = Draft {
            from: by.to_owned(),
            to: Service::Coordinator,
            kind,
            case: None,
            id: self.fresh_id(),
            payload: json!({ "status": "success", "error_code": "INTERNAL_ERROR", "error_message": "No." }),
            more: json!({ "reply_to": text(message, "/message_id") }),
        };
        self.say(world, in_ms, &draft);
        true
    }
}

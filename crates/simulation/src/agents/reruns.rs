//! Doing analyses again: authors who are on the register do what a run asks them for; some of them not, twice, or with what is no result.

use serde_json::{Value, json};

use super::{Agents, NAMES, capacity_of, text};
use crate::world::World;

impl Agents {
    /// In most worlds authors are on the register from the beginning, so that their analyses can be done again.
    pub(super) fn register_authors(&mut self, world: &mut World) {
        if self.tasks || !self.random.chance(0.7) {
            return;
        }
        for name in NAMES {
            let card = json!({ "agent_id": name, "capacity": capacity_of(name) });
            let in_ms = self.random.between(0, 500);
            self.ask_coordinator(world, in_ms, name, "register_agent", &card);
        }
    }

    /// What an author does that is asked to do an analysis again; false where the message is about something else.
    pub(super) fn do_again(
        &mut self,
        world: &mut World,
        reader: &str,
        kind: &str,
        message: &Value,
    ) -> bool {
        let task = text(message, "/payload/task/type");
        if kind != "task_assignment" || task != Some("rerun_analysis") {
            return false;
        }
        let figures = json!({ "x": self.random.between(0, 9) });
        let done = json!({ "result": { "figures": figures, "confidence": 0.8 } });
        let times = if self.random.chance(0.1) { 2 } else { 1 };
        for _ in 0..times {
            let (kind, payload) = match self.random.between(0, 39) {
                // It is not heard of any more: the task ends when its time is over.
                0 => return true,
                1 => ("refuse", json!({ "why": "busy" })),
                2 => (
                    "task_result",
                    json!({ "status": "failure", "why": "broken" }),
                ),
                3 => ("task_result", json!({ "result": { "figures": {} } })),
                _ => ("task_result", done.clone()),
            };
            let in_ms = self.random.between(0, 800);
            let more = json!({ "reply_to": text(message, "/message_id") });
            self.tell_coordinator(world, in_ms, reader, kind, payload, more);
        }
        true
    }
}

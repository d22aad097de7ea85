//! Joining: who lets whom into a case, and when: before it is there, while it collects findings, later, and when it is over.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, NAMES, OPENER, OTHER_OPENER, STRANGER};
use crate::world::World;

impl Agents {
    /// Somebody lets an agent into a case: mostly who may, and mostly one that takes no part yet.
    pub(super) fn let_in(&mut self, world: &mut World) {
        let Some(case) = self.random.pick(&self.cases).cloned() else {
            return;
        };
        let from = match self.random.between(0, 9) {
            0 => STRANGER,
            1 => OTHER_OPENER,
            _ => OPENER,
        };
        let name = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
        let name = if self.random.chance(0.5) {
            STRANGER
        } else {
            name
        };
        let draft = Draft {
            from: from.to_owned(),
            to: Service::Coordinator,
            kind: "request",
            case: Some(case),
            id: self.fresh_id(),
            payload: json!({ "action": "add_participant", "parameters": { "agent_id": name } }),
            more: Value::Null,
        };
        let in_ms = self.random.between(300, 6_000);
        let times = if self.random.chance(0.2) { 2 } else { 1 };
        for _ in 0..times {
            self.say(world, in_ms, &draft);
        }
    }
}

//! What people say who take part in nothing, and what nobody should say.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, STRANGER};
use crate::world::World;

impl Agents {
    /// Strangers send these messages within the first seconds.
    pub(crate) fn intrude_with(&mut self, world: &mut World, messages: &[(String, Vec<u8>)]) {
        for (place, body) in messages {
            let in_ms = self.random.between(0, 8_000);
            self.say_raw(world, in_ms, place.clone(), None, body.clone());
        }
    }

    /// Somebody says something out of place within the first seconds.
    pub(super) fn intrude(&mut self, world: &mut World) {
        let in_ms = self.random.between(0, 8_000);
        let case = self
            .random
            .pick(&self.cases)
            .cloned()
            .unwrap_or_else(|| "c-1".into());
        let finding = self.finding(STRANGER, &case);
        let plain = Draft {
            kind: "request",
            case: None,
            payload: Value::Null,
            more: Value::Null,
            ..finding.clone()
        };
        let draft = match self.random.between(0, 7) {
            0 => finding,
            1 => Draft {
                case: Some("c-nowhere".into()),
                ..finding
            },
            2 => Draft {
                case: None,
                ..finding
            },
            3 => Draft {
                kind: "gossip",
                ..finding
            },
            4 => Draft {
                payload: json!({ "action": "shut_down" }),
                ..plain
            },
            5 => Draft {
                to: Service::DebateFacilitator,
                payload: json!({ "action": "open_debate", "parameters": {} }),
                ..plain
            },
            6 => Draft {
                kind: "status",
                payload: json!({ "mood": "fine" }),
                ..plain
            },
            _ => {
                let place = format!("{case}.{STRANGER}.debate-facilitator.agreement");
                return self.say_raw(world, in_ms, place, None, b"\xff not json".to_vec());
            }
        };
        self.say(world, in_ms, &draft);
    }
}

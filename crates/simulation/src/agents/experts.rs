//! Level 3: people who are asked for a ruling. They rule, twice, too late, on what they saw before, from two consoles at
//! once, or are never heard of again.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::ladder::EXPERTS;
use super::{Agents, Draft, STRANGER, due_of, text};
use crate::world::World;

impl Agents {
    /// An expert is given a debate, or the brief of one anew.
    pub(super) fn briefed(&mut self, world: &mut World, reader: &str, message: &Value) {
        let Some(debate) = text(message, "/payload/parameters/debate_id").map(str::to_owned) else {
            return;
        };
        let digest = text(message, "/payload/parameters/digest")
            .unwrap_or_default()
            .to_owned();
        let Some(ladder) = &mut self.ladder else {
            return;
        };
        let known = ladder.briefs.entry(debate.clone()).or_default();
        known.push(digest.clone());
        let older = known.iter().find(|earlier| **earlier != digest).cloned();
        if ladder.gone.contains(reader) {
            return;
        }
        if self.random.chance(0.03) {
            // Nobody hears of them any more.
            self.ladder
                .as_mut()
                .map(|ladder| ladder.gone.insert(reader.to_owned()));
            return;
        }
        let (due, soon) = (due_of(message), self.random.between(0, 3_000));
        let ruling = self.ruling(reader, message, &digest);
        match self.random.between(0, 99) {
            0..40 => self.say(world, soon, &ruling),
            40..54 => {
                let in_ms = self.around(world, due);
                self.say(world, in_ms, &ruling);
            }
            54..60 => {
                let in_ms = due.millis_since(world.clock()) + self.random.between(50, 6_000);
                self.say(world, in_ms, &ruling);
            }
            60..64 => self.twice_said(world, soon, &ruling),
            // Two consoles.
            64..72 => {
                let second = self.ruling(reader, message, &digest);
                self.say(world, soon, &ruling);
                self.say(world, soon, &second);
            }
            72..80 => {
                let old = self.ruling(reader, message, &older.unwrap_or_else(|| "0".repeat(64)));
                self.say(world, soon, &old);
            }
            80..84 => {
                let payload = with(ruling.payload.clone(), "position_id", json!("p99"));
                self.say(world, soon, &Draft { payload, ..ruling });
            }
            84..88 => {
                let other = self.random.pick(&EXPERTS).copied();
                let from = other.unwrap_or(STRANGER).to_owned();
                self.say(world, soon, &Draft { from, ..ruling });
            }
            88..90 => {
                let payload = with(ruling.payload.clone(), "rationale", json!(""));
                self.say(world, soon, &Draft { payload, ..ruling });
            }
            90..92 => {
                // The id of a message that there was.
                let id = format!("m-{}", self.random.between(1, self.said));
                self.say(world, soon, &Draft { id, ..ruling });
            }
            _ => {}
        }
    }

    /// A ruling on what `message` shows.
    fn ruling(&mut self, from: &str, message: &Value, digest: &str) -> Draft {
        let shown = message
            .pointer("/payload/parameters")
            .unwrap_or(&Value::Null);
        let positions = shown
            .pointer("/brief/positions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let position = self
            .random
            .pick(&positions)
            .and_then(|position| position.get("position_id"))
            .cloned();
        let mut payload = json!({
            "debate_id": shown.get("debate_id"), "digest": digest, "rationale": format!("seen {}", self.said),
        });
        payload = match position.filter(|_| self.random.chance(0.85)) {
            Some(position) => with(payload, "position_id", position),
            None => with(payload, "position", json!("Neither is right.")),
        };
        let id = self.fresh_id();
        self.signed(Draft {
            from: from.into(),
            to: Service::DebateFacilitator,
            kind: "ruling",
            case: text(message, "/case_id").map(str::to_owned),
            id,
            payload,
            more: Value::Null,
        })
    }

    /// Somebody is told that what they said was of no use; an expert may rule on the brief as it is now.
    pub(super) fn refused(&mut self, world: &mut World, reader: &str, message: &Value) {
        let Some(digest) = text(message, "/payload/details/digest").map(str::to_owned) else {
            return;
        };
        if !self.random.chance(0.7) || !EXPERTS.contains(&reader) {
            return;
        }
        let brief = message
            .pointer("/payload/details/brief")
            .cloned()
            .unwrap_or_default();
        let debate = brief.get("debate_id").cloned().unwrap_or_default();
        let shown = json!({
            "case_id": message.get("case_id"),
            "payload": { "parameters": { "debate_id": debate, "brief": brief, "digest": digest } },
        });
        let draft = self.ruling(reader, &shown, &digest);
        let in_ms = self.random.between(0, 1_000);
        self.say(world, in_ms, &draft);
    }
}

/// A JSON object with a field more, or another value of it.
pub(super) fn with(mut payload: Value, field: &str, value: Value) -> Value {
    if let Some(fields) = payload.as_object_mut() {
        fields.insert(field.into(), value);
    }
    payload
}

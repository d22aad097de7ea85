//! What agents ask each other for, and whether they answer: at once, about when it is too late, twice, never, or when they
//! were not asked.

use concord_wire::Timestamp;
use serde_json::{Value, json};

use super::{Agents, NAMES, STRANGER, text};
use crate::world::World;

impl Agents {
    /// Somebody asks somebody for something within the first seconds.
    pub(super) fn ask_a_peer(&mut self, world: &mut World) {
        let pick =
            |random: &mut crate::random::Random| random.pick(&NAMES).copied().unwrap_or(STRANGER);
        let (from, to) = (pick(&mut self.random), pick(&mut self.random));
        let to = if self.random.chance(0.1) { "_any" } else { to };
        let in_ms = self.random.between(0, 8_000);
        let due = world
            .clock()
            .plus_millis(in_ms + self.random.between(20, 4_000));
        let id = self.fresh_id();
        let payload = match self.random.between(0, 5) {
            0 => json!({ "action": "review_code", "parameters": { "files": "all" } }),
            1 => json!({ "action": "run_tests", "parameters": { "test_suite": "unit" } }),
            _ => json!({ "action": "ponder" }),
        };
        let callback = self.random.chance(0.3);
        let url = callback.then_some("https://example.org/done");
        // Without a deadline it has half a minute, and with a callback an hour, which is longer than this world lasts.
        let deadline = (callback || self.random.chance(0.8)).then_some(due);
        let envelope = json!({
            "message_id": id, "timestamp": world.clock(), "from_agent": from, "to_agent": to,
            "message_type": "request", "payload": with(payload, "callback_url", json!(url)), "deadline": deadline,
        });
        let place = format!("_.{from}.{to}.request");
        let times = if self.random.chance(0.1) { 2 } else { 1 };
        for _ in 0..times {
            let bytes = envelope.to_string().into_bytes();
            self.say_raw(world, in_ms, place.clone(), Some(id.clone()), bytes);
        }
    }

    /// A peer's request is read by whom it is for.
    pub(super) fn requested(&mut self, world: &mut World, reader: &str, message: &Value) {
        let reader = if reader == "_any" {
            *self.random.pick(&NAMES).unwrap_or(&STRANGER)
        } else {
            reader
        };
        let due = text(message, "/deadline").and_then(|due| Timestamp::parse(due).ok());
        let due = due.unwrap_or_else(|| world.clock().plus_millis(30_000));
        if message.pointer("/payload/callback_url").is_some() && self.random.chance(0.8) {
            let in_ms = self.random.between(0, 50);
            self.reply(world, in_ms, reader, message, "acknowledgement", json!({}));
        }
        let times = match self.random.between(0, 9) {
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        for _ in 0..times {
            let in_ms = if self.random.chance(0.5) {
                self.random.between(0, 100)
            } else {
                self.around(world, due)
            };
            let by = if self.random.chance(0.05) {
                STRANGER
            } else {
                reader
            };
            let (kind, payload) = match self.random.between(0, 4) {
                0 => (
                    "error",
                    json!({ "error_code": "INTERNAL_ERROR", "error_message": "I have failed." }),
                ),
                1 => ("notification", json!({ "event": "done" })),
                _ => ("response", json!({ "status": "success" })),
            };
            self.reply(world, in_ms, by, message, kind, payload);
        }
    }

    fn reply(
        &mut self,
        world: &mut World,
        in_ms: u64,
        by: &str,
        message: &Value,
        kind: &str,
        payload: Value,
    ) {
        let Some(asker) = text(message, "/from_agent") else {
            return;
        };
        let id = self.fresh_id();
        let envelope = json!({
            "message_id": id, "timestamp": world.clock(), "from_agent": by, "to_agent": asker, "message_type": kind,
            "correlation_id": message["message_id"], "payload": payload,
        });
        self.say_raw(
            world,
            in_ms,
            format!("_.{by}.{asker}.{kind}"),
            Some(id),
            envelope.to_string().into_bytes(),
        );
    }
}

/// An object with a field more, where there is something in it.
fn with(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(fields) = object.as_object_mut().filter(|_| !value.is_null()) {
        fields.insert(name.to_owned(), value);
    }
    object
}

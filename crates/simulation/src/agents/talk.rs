//! What agents say among themselves: to whoever can help, to everyone, to each other, with names in it; and what they answer
//! when it wakes them, which may go on for ever.

use serde_json::{Value, json};

use super::{Agents, NAMES, STRANGER, text};
use crate::world::World;

/// Threads outside of cases.
const THREADS: [&str; 3] = ["th-1", "th-2", "th-3"];

impl Agents {
    /// Somebody says something within the first seconds.
    pub(super) fn talk(&mut self, world: &mut World) {
        let in_ms = self.random.between(0, 6_000);
        let from = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
        let thread = self
            .random
            .pick(&THREADS)
            .copied()
            .filter(|_| self.random.chance(0.7));
        let (kind, to) = match self.random.between(0, 6) {
            0 => ("info_update", "_all"),
            4 => ("note", "_all"),
            5 => ("note", "_any"),
            1 => ("group_query", "_any"),
            2 => ("group_query", "_all"),
            3 => ("expertise_offer", "_all"),
            _ => (
                "peer_request",
                self.random.pick(&NAMES).copied().unwrap_or(STRANGER),
            ),
        };
        let content = match self.random.between(0, 4) {
            0 => "@ben @cleo what do you think?",
            1 => "Which value added tax applies here?",
            2 => "Is there a cap on liability?",
            3 => "What is the notice period, and what are the terms of payment?",
            _ => "Good morning.",
        };
        self.utter(world, in_ms, from, to, kind, thread, content);
    }

    /// Somebody was woken by what another said.
    pub(super) fn woken(&mut self, world: &mut World, reader: &str, message: &Value) {
        let said = message.pointer("/payload/data/message");
        let Some(said) = said.filter(|_| self.random.chance(0.8)) else {
            return;
        };
        self.answer_and_talk_back(world, reader, said);
    }

    /// Somebody has a message that an answer is expected to, and may have a question of its own besides.
    pub(super) fn answer_and_talk_back(&mut self, world: &mut World, reader: &str, said: &Value) {
        if self.random.chance(0.6) {
            self.answer_question(world, reader, said);
        }
        self.talk_back(world, reader, said);
    }

    /// Somebody answers a message with a request of its own.
    fn talk_back(&mut self, world: &mut World, reader: &str, said: &Value) {
        let Some(author) = text(said, "/from_agent") else {
            return;
        };
        let thread = text(said, "/correlation_id").or_else(|| text(said, "/message_id"));
        let in_ms = self.random.between(0, 300);
        let (kind, to) = if self.random.chance(0.5) {
            ("peer_request", author)
        } else {
            ("group_query", "_all")
        };
        let content = format!("And what does @{author} say?");
        self.utter(world, in_ms, reader, to, kind, thread, &content);
    }

    #[allow(clippy::too_many_arguments)] // A message has as many parts.
    fn utter(
        &mut self,
        world: &mut World,
        in_ms: u64,
        from: &str,
        to: &str,
        kind: &str,
        thread: Option<&str>,
        content: &str,
    ) {
        let id = self.fresh_id();
        let mut payload = json!({ "content": content });
        let mut deadline = None;
        if matches!(kind, "group_query" | "peer_request") {
            deadline = self.question_deadline(world);
            if let Some(payload) = payload.as_object_mut() {
                payload.extend(self.question_terms());
            }
        }
        let mut envelope = json!({
            "message_id": id, "timestamp": world.clock(), "from_agent": from, "to_agent": to, "message_type": kind,
            "payload": payload, "deadline": deadline,
        });
        if let (Some(fields), Some(thread)) = (envelope.as_object_mut(), thread) {
            fields.insert("correlation_id".into(), thread.into());
        }
        let times = if self.random.chance(0.1) { 2 } else { 1 };
        for _ in 0..times {
            let body = envelope.to_string().into_bytes();
            self.say_raw(
                world,
                in_ms,
                format!("_.{from}.{to}.{kind}"),
                Some(id.clone()),
                body,
            );
        }
    }
}

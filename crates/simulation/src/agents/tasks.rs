//! Tasks: who opens them, who joins and leaves, and what those who are asked answer: at once, about when it is too late, twice,
//! never, in part, or by handing it on.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, NAMES, OPENER, OPENERS, STRANGER, Silent, due_of, text};
use crate::world::World;

/// How many tasks each agent works on at a time, as its card says; none for no limit.
pub(crate) const CAPACITIES: [Option<u64>; 6] = [Some(1), Some(2), None, Some(1), None, None];
/// The strategies that are asked for, and one that does not exist.
const STRATEGIES: [&str; 10] = [
    "round_robin",
    "round_robin",
    "broadcast",
    "capability",
    "consensus",
    "swarm",
    "poll",
    "contract_net",
    "panel",
    "telepathy",
];

impl Agents {
    /// Agents register, and tasks are opened and meddled with within the first seconds.
    pub(super) fn begin_tasks(&mut self, world: &mut World) {
        if !self.tasks {
            return;
        }
        for (name, capacity) in NAMES.iter().zip(CAPACITIES) {
            let card =
                json!({ "agent_id": name, "skills": [{ "name": "sum" }], "capacity": capacity });
            let in_ms = self.random.between(0, 200);
            self.ask_coordinator(world, in_ms, name, "register_agent", &card);
        }
        for number in 1..=self.random.between(4, 10) {
            self.open_task(world, number);
        }
        for _ in 0..self.random.between(0, 3) {
            self.meddle_with_tasks(world);
        }
        if self.random.chance(0.5) {
            self.fall_silent(world);
        }
    }

    /// Somebody answers nothing for a while, and is given tasks meanwhile and later.
    fn fall_silent(&mut self, world: &mut World) {
        let agent = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
        let from_ms = self.random.between(0, 2_000);
        let until_ms = from_ms + self.random.between(6_000, 30_000);
        self.silent = Some(Silent {
            agent,
            from_ms,
            until_ms,
        });
        for number in 1..=16 {
            let terms = json!({
                "task_id": format!("s-{number}"), "strategy": "broadcast", "task": { "type": "sum" },
                "criteria": { "agents": [agent] }, "deadline_ms": self.random.between(200, 1_000),
            });
            let in_ms = from_ms + number * self.random.between(1_000, 2_500);
            self.ask_coordinator(world, in_ms, OPENER, "open_task", &terms);
        }
    }

    /// Whether an agent answers nothing now.
    pub(super) fn is_silent(&self, world: &World, agent: &str) -> bool {
        self.silent.as_ref().is_some_and(|silent| {
            silent.agent == agent && (silent.from_ms..silent.until_ms).contains(&world.now)
        })
    }

    fn open_task(&mut self, world: &mut World, number: u64) {
        let strategy = self.random.pick(&STRATEGIES).copied().unwrap_or_default();
        let opener = self.random.pick(&OPENERS).copied().unwrap_or_default();
        let priority = ["low", "normal", "high"];
        let criteria = match self.random.between(0, 3) {
            0 => json!({ "agents": ["ada", "ben"] }),
            _ => json!({ "skills": ["sum"] }),
        };
        let terms = json!({
            "task_id": format!("t-{number}"), "strategy": strategy, "task": { "type": "sum", "input": number },
            "criteria": criteria, "priority": self.random.pick(&priority),
            "deadline_ms": self.random.between(500, 8_000), "answer_ms": self.random.between(200, 3_000),
            "bids_ms": self.random.between(50, 500),
            "quorum": self.random.chance(0.3).then(|| self.random.between(0, 4)),
            "policy": if strategy == "panel" { self.policy() } else { Value::Null },
        });
        let in_ms = self.random.between(100, 4_000);
        let times = if self.random.chance(0.1) { 2 } else { 1 };
        for _ in 0..times {
            self.ask_coordinator(world, in_ms, opener, "open_task", &terms);
        }
    }

    /// Somebody cancels, joins, leaves, or is not there any more.
    fn meddle_with_tasks(&mut self, world: &mut World) {
        let who = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
        let opener = self.random.pick(&OPENERS).copied().unwrap_or_default();
        let task = json!({ "task_id": format!("t-{}", self.random.between(1, 6)) });
        let in_ms = self.random.between(500, 6_000);
        match self.random.between(0, 5) {
            0 => self.ask_coordinator(world, in_ms, opener, "cancel_task", &task),
            1 | 2 => self.ask_coordinator(world, in_ms, who, "join_task", &task),
            3 => self.ask_coordinator(world, in_ms, who, "leave_task", &task),
            4 => self.ask_coordinator(world, in_ms, who, "deregister_agent", &json!({})),
            _ => {
                let payload = json!({ "status": "unavailable" });
                self.tell_coordinator(world, in_ms, who, "status", payload, json!({}));
            }
        }
    }

    /// What an agent does about a message of a task; false where the message is about something else.
    pub(super) fn on_task(
        &mut self,
        world: &mut World,
        reader: &str,
        kind: &str,
        message: &Value,
    ) -> bool {
        let is_assignment = message.pointer("/payload/work").is_some();
        match kind {
            "call_for_proposals" => {
                let payload = json!({
                    "price": self.random.between(0, 20), "time_ms": self.random.between(0, 500), "confidence": 0.5,
                });
                let (kind, payload) = match self.random.between(0, 6) {
                    0 => return true,
                    1 => ("refuse", json!({ "why": "no time" })),
                    2 => (
                        "bid",
                        json!({ "price": -1, "time_ms": 1, "confidence": 0.5 }),
                    ),
                    _ => ("bid", payload),
                };
                self.answer_task(world, reader, message, kind, &payload);
            }
            "task_assignment" | "award" if is_assignment => {
                let result = ["yes", "yes", "no"];
                let result = self.random.pick(&result).copied().unwrap_or_default();
                let to = self.random.pick(&NAMES).copied().unwrap_or(STRANGER);
                let (kind, payload) = match self.random.between(0, 11) {
                    0 => return true,
                    1 => ("refuse", json!({ "why": "busy" })),
                    2 => ("handoff", json!({ "to": to, "context": { "read": 1 } })),
                    3 => (
                        "task_result",
                        json!({ "status": "failure", "why": "broken" }),
                    ),
                    4 => (
                        "task_result",
                        json!({ "status": "partial", "result": result }),
                    ),
                    _ => ("task_result", json!({ "result": result })),
                };
                self.answer_task(world, reader, message, kind, &payload);
                if kind == "task_result" && self.random.chance(0.3) {
                    self.answer_task(world, reader, message, kind, &json!({ "result": "no" }));
                }
            }
            _ => return false,
        }
        true
    }

    fn answer_task(
        &mut self,
        world: &mut World,
        reader: &str,
        message: &Value,
        kind: &'static str,
        payload: &Value,
    ) {
        let by = if self.random.chance(0.03) {
            STRANGER
        } else {
            reader
        };
        let in_ms = match self.random.between(0, 4) {
            0 => self.around(world, due_of(message)),
            _ => self.random.between(0, 400),
        };
        let more = json!({ "reply_to": text(message, "/message_id") });
        self.tell_coordinator(world, in_ms, by, kind, payload.clone(), more);
    }

    pub(super) fn ask_coordinator(
        &mut self,
        world: &mut World,
        in_ms: u64,
        from: &str,
        action: &str,
        parameters: &Value,
    ) {
        let payload = json!({ "action": action, "parameters": parameters });
        self.tell_coordinator(world, in_ms, from, "request", payload, json!({}));
    }

    pub(super) fn tell_coordinator(
        &mut self,
        world: &mut World,
        in_ms: u64,
        from: &str,
        kind: &'static str,
        payload: Value,
        more: Value,
    ) {
        let draft = Draft {
            from: from.to_owned(),
            to: Service::Coordinator,
            kind,
            case: None,
            id: self.fresh_id(),
            payload,
            more,
        };
        self.say(world, in_ms, &draft);
    }
}

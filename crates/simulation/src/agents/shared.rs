//! What people in a case share, and strangers would like to: entries of the board on versions that they have read, or not; analyses; and
//! commitments that they take, keep, give back or forget, and lose when they are gone; and what they remember, in a case or outside.

use concord_wire::payload::{BOARD_PUT, MEMORY_PUT, PUBLISH_ANALYSIS};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::{Agents, Draft, NAMES, STRANGER, capacity_of, text};
use crate::world::World;

/// When the last of it is said.
const UNTIL_MS: u64 = 9_000;
/// When a case is probably still open.
const YOUNG_MS: u64 = 400;

impl Agents {
    /// Writes on boards and commits within the first seconds.
    pub(super) fn share(&mut self, world: &mut World) {
        for _ in 0..self.random.between(0, 4) {
            let (from, case) = (self.somebody(), self.some_case());
            self.put(world, from, case, UNTIL_MS);
        }
        for _ in 0..self.random.between(0, 5) {
            let (from, case) = (self.somebody(), self.some_case());
            let inside = self.random.chance(0.5);
            self.commit(world, from, inside.then_some(case), UNTIL_MS);
        }
        for _ in 0..self.random.between(0, 3) {
            let (from, case) = (self.somebody(), self.some_case());
            self.publish(world, from, case, UNTIL_MS);
        }
        for _ in 0..self.random.between(0, 3) {
            self.come_and_go(world);
        }
        for _ in 0..self.random.between(0, 6) {
            let (from, case) = (self.somebody(), self.some_case());
            let inside = self.random.chance(0.5);
            self.remember(world, from, inside.then_some(case), UNTIL_MS);
        }
    }

    /// Who has been given a task shares something about it while the case is young.
    pub(super) fn share_task(&mut self, world: &mut World, reader: &str, message: &Value) {
        let Some(case) = text(message, "/case_id") else {
            return;
        };
        for _ in 0..self.random.between(0, 2) {
            self.put(world, reader.to_owned(), case.to_owned(), YOUNG_MS);
        }
        for _ in 0..self.random.between(0, 2) {
            self.commit(world, reader.to_owned(), Some(case.to_owned()), YOUNG_MS);
        }
        for _ in 0..self.random.between(0, 3) {
            self.publish(world, reader.to_owned(), case.to_owned(), YOUNG_MS);
        }
        for _ in 0..self.random.between(0, 3) {
            self.remember(world, reader.to_owned(), Some(case.to_owned()), YOUNG_MS);
        }
    }

    pub(super) fn somebody(&mut self) -> String {
        let name = self.random.pick(&NAMES).copied();
        name.unwrap_or(STRANGER).to_owned()
    }

    fn some_case(&mut self) -> String {
        let case = self.random.pick(&self.cases).cloned();
        case.unwrap_or_else(|| "c-1".into())
    }

    /// Says it once, or twice as somebody does who has not seen that it was stored.
    fn say_shared(&mut self, world: &mut World, draft: &Draft, within_ms: u64) {
        let times = if self.random.chance(0.15) { 2 } else { 1 };
        for _ in 0..times {
            let in_ms = self.random.between(0, within_ms);
            self.say(world, in_ms, draft);
        }
    }

    fn put(&mut self, world: &mut World, from: String, case: String, within_ms: u64) {
        let large = self.random.chance(0.05);
        let value = if large {
            json!("v".repeat(1 << 17))
        } else {
            json!(self.random.between(0, 9))
        };
        let name = self.random.pick(&["plan", "risk"]).copied();
        // Most were there before the entry, some when it had changed, and some have seen what never was.
        let based_on = match self.random.between(0, 9) {
            0..6 => 0,
            6..9 => 1,
            _ => 2,
        };
        let parameters = json!({ "name": name, "based_on": based_on, "value": value });
        let draft = Draft {
            from,
            to: Service::Coordinator,
            kind: "request",
            case: Some(case),
            id: self.fresh_id(),
            payload: json!({ "action": BOARD_PUT, "parameters": parameters }),
            more: Value::Null,
        };
        self.say_shared(world, &draft, within_ms);
    }

    /// Writes a topic of its own memory, or tries to write one of somebody else's.
    pub(super) fn remember(
        &mut self,
        world: &mut World,
        from: String,
        case: Option<String>,
        within_ms: u64,
    ) {
        let topic = self.random.pick(&["margin", "price", "rate"]).copied();
        let agent = self.random.chance(0.1).then(|| self.somebody());
        let based_on = self.random.chance(0.3).then(|| self.random.between(0, 2));
        let value = if self.random.chance(0.4) {
            let value = self.random.pick(&[24.0, 26.0, 31.0]);
            json!({ "metric": "operating margin", "value": value, "unit": "%" })
        } else {
            json!(self.random.between(0, 9))
        };
        let parameters = json!({
            "agent": agent, "topic": topic, "value": value, "based_on": based_on,
            "importance": self.random.between(0, 11) as f64 / 10.0,
        });
        let draft = Draft {
            from,
            to: Service::Coordinator,
            kind: "request",
            case,
            id: self.fresh_id(),
            payload: json!({ "action": MEMORY_PUT, "parameters": parameters }),
            more: Value::Null,
        };
        self.say_shared(world, &draft, within_ms);
    }

    /// Publishes an analysis of few that there are, on others of them and on what is disputed. Some would close a circle, some use what
    /// there is not, and some are those of somebody else.
    pub(super) fn publish(
        &mut self,
        world: &mut World,
        from: String,
        case: String,
        within_ms: u64,
    ) {
        let names = ["dcf", "peers", "memo", "note"];
        let id = self.random.pick(&names).copied();
        let mut depends_on = Vec::new();
        for kind in ["assumption", "analysis"] {
            if !self.random.chance(0.6) {
                continue;
            }
            depends_on.push(match kind {
                "assumption" => {
                    let named = self.random.pick(&["risk_score", "operating_margin"]);
                    json!({ "kind": kind, "id": named, "value": self.random.between(0, 99) })
                }
                _ => {
                    let used = self.random.pick(&names).copied();
                    json!({ "kind": kind, "id": used, "metric": "x" })
                }
            });
        }
        let parameters = json!({
            "analysis_id": id, "type": "test", "figures": { "x": self.random.between(0, 9) }, "depends_on": depends_on,
            "confidence": 0.8, "rerun_minutes": 5,
        });
        let draft = Draft {
            from,
            to: Service::Coordinator,
            kind: "request",
            case: Some(case),
            id: self.fresh_id(),
            payload: json!({ "action": PUBLISH_ANALYSIS, "parameters": parameters }),
            more: Value::Null,
        };
        self.say_shared(world, &draft, within_ms);
    }

    fn commit(&mut self, world: &mut World, from: String, case: Option<String>, within_ms: u64) {
        let act = match self.random.between(0, 9) {
            0..6 => "commit",
            6..8 => "renew",
            _ => "release",
        };
        let lease_ms = match self.random.between(0, 19) {
            0 => Value::Null,
            1 => json!(u64::MAX),
            _ => json!(self.random.between(1_000, 6_000)),
        };
        let resource = self.random.pick(&["build", "task/t-1"]).copied();
        let payload = json!({ "act": act, "resource": resource, "lease_ms": lease_ms });
        let draft = Draft {
            from,
            to: Service::Coordinator,
            kind: "commitment",
            case,
            id: self.fresh_id(),
            payload,
            more: Value::Null,
        };
        self.say_shared(world, &draft, within_ms);
    }

    /// An agent registers and is gone a while later; what it has committed to is free then.
    fn come_and_go(&mut self, world: &mut World) {
        let from = self.somebody();
        let draft = |id: String, kind, payload| Draft {
            from: from.clone(),
            to: Service::Coordinator,
            kind,
            case: None,
            id,
            payload,
            more: Value::Null,
        };
        // The same capacity as whenever it registers: that of a card holds.
        let card = json!({ "agent_id": from, "capacity": capacity_of(&from) });
        let register = json!({ "action": "register_agent", "parameters": card });
        let came = draft(self.fresh_id(), "request", register);
        let in_ms = self.random.between(0, 2_000);
        self.say(world, in_ms, &came);
        let gone = if self.random.chance(0.5) {
            draft(
                self.fresh_id(),
                "status",
                json!({ "status": "unavailable" }),
            )
        } else {
            let leave = json!({ "action": "deregister_agent" });
            draft(self.fresh_id(), "request", leave)
        };
        let in_ms = self.random.between(3_000, UNTIL_MS);
        self.say(world, in_ms, &gone);
    }
}

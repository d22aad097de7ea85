//! Alerts that rules raise about what is written into memory, and alerts of people: of the operator, who may, and of others, who may not; to the coordinator, to everybody, or to one agent; some said twice.

use std::sync::Arc;

use concord_domain::aggregates::alert::id_of;
use concord_domain::aggregates::watch::WatchInput;
use concord_wire::AgentId;
use concord_wire::payload::{MEMORY_PUT, REPORT_ALERT};
use concord_wire::subject::{Lane, Service};
use serde_json::{Value, json};

use super::operators::{Operation, Verb, olga};
use super::{Agents, NAMES, OPENER, OutgoingMessage};
use crate::random::Random;
use crate::world::{Action, World};

/// When the last of it is said.
const UNTIL_MS: u64 = 9_000;
/// Distinguishes the choices made here from all others, which stay what they were.
const SALT: u64 = 0xa1e7;
/// The same for what is watched for.
const SALT_OF_RULES: u64 = 0x2_71e5;

impl Agents {
    /// Somebody alerts everybody, where there is somebody who may.
    pub(super) fn alert(&mut self, world: &mut World) {
        if self.ladder.is_none() {
            return;
        }
        let mut random = self.random.fork(SALT);
        for number in 0..random.between(0, 4) {
            let from = match random.chance(0.6) {
                true => OPENER,
                false => random.pick(&NAMES).copied().unwrap_or(OPENER),
            };
            let to = match random.between(0, 9) {
                0..5 => Service::Coordinator.as_str(),
                5..9 => "_all",
                _ => "ben",
            };
            let id = format!("alert-{number}");
            let regime = random.pick(&["BULL", "BEAR", ""]).copied();
            let envelope = json!({
                "message_id": id, "timestamp": world.clock(), "from_agent": from, "to_agent": to,
                "message_type": "alert", "priority": "system_critical",
                "payload": { "event_type": "regime_change", "new_regime": regime },
            });
            let lane = Lane::Urgent.as_str();
            let subject = world.subjects().join(&[lane, "_", from, to, "alert"]);
            for _ in 0..if random.chance(0.3) { 2 } else { 1 } {
                let said = OutgoingMessage {
                    subject: subject.clone(),
                    id: random.chance(0.6).then(|| id.clone()),
                    body: envelope.to_string().into_bytes().into(),
                };
                world.plan(random.between(0, UNTIL_MS), Action::Say(said));
            }
        }
    }
    /// Rules are stored, in most worlds with people, and changed in some; who may alert, and who may not, writes what they look at.
    pub(super) fn watch(&mut self, world: &mut World) {
        let mut random = self.random.fork(SALT_OF_RULES);
        if self.ladder.is_none() || random.chance(0.3) {
            return;
        }
        for number in 0..random.between(1, 2) {
            let in_ms = if number == 0 {
                0
            } else {
                random.between(0, UNTIL_MS)
            };
            let (Ok(rules), Some(by)) = (serde_json::from_value(rules(&mut random)), olga()) else {
                continue;
            };
            let why = "as the house does it".into();
            let operation = Operation {
                unique: format!("rules {number}"),
                verb: Verb::Watch(WatchInput::Put { rules, by, why }),
            };
            world.plan(in_ms, Action::Operate(Arc::new(operation)));
        }
        for number in 0..random.between(0, 10) {
            note(world, &mut random, number);
        }
        for number in 0..random.between(0, 4) {
            report(world, &mut random, number);
        }
    }
}

/// Rules of each kind but those that wait for days; the bound is reached in some worlds.
fn rules(random: &mut Random) -> Value {
    let least = random.between(1, 4);
    json!({
        "per_hour_max": random.between(1, 6),
        "regime_change": { "report_within_ms": random.between(0, 3) * 1_500 },
        "rules": [
            { "name": "regime", "topic": "regime", "field": "regime", "event_type": "regime_change",
              "when": { "confidence_above": { "confidence": 0.8 } } },
            { "name": "policy", "topic": "reg*", "field": "regime", "event_type": "policy_shift", "priority": "high",
              "when": { "changed": {} } },
            { "name": "level", "topic": "regime", "field": "level", "event_type": "rate_move", "priority": "normal",
              "agents": [OPENER, "ann"], "when": { "moved_by": { "by": least, "within_ms": 5_000 } } },
        ],
    })
}

/// Somebody writes what rules look at, once or twice.
fn note(world: &mut World, random: &mut Random, number: u64) {
    let from = match random.chance(0.7) {
        true => OPENER,
        false => random.pick(&NAMES).copied().unwrap_or(OPENER),
    };
    let id = format!("noted-{number}");
    let regime = random.pick(&["BULL", "BEAR", " "]).copied();
    let confidence = random.pick(&[0.7, 0.8, 0.9]).copied();
    let value = json!({ "regime": regime, "level": random.between(0, 9) });
    let parameters = json!({
        "topic": "regime", "value": value, "importance": 0.9, "confidence": confidence,
    });
    let to = Service::Coordinator.as_str();
    let envelope = json!({
        "message_id": id, "timestamp": world.clock(), "from_agent": from, "to_agent": to,
        "message_type": "request", "payload": { "action": MEMORY_PUT, "parameters": parameters },
    });
    let lane = Lane::Normal.as_str();
    let subject = world.subjects().join(&[lane, "_", from, to, "request"]);
    for _ in 0..if random.chance(0.2) { 2 } else { 1 } {
        let said = OutgoingMessage {
            subject: subject.clone(),
            id: random.chance(0.6).then(|| id.clone()),
            body: envelope.to_string().into_bytes().into(),
        };
        world.plan(random.between(500, UNTIL_MS), Action::Say(said));
    }
}

/// Somebody reports what follows from an alert, where it was raised: in time or not, also somebody who may not.
fn report(world: &mut World, random: &mut Random, number: u64) {
    let from = match random.chance(0.7) {
        true => OPENER,
        false => random.pick(&NAMES).copied().unwrap_or(OPENER),
    };
    let Ok(opener) = AgentId::new(OPENER) else {
        return;
    };
    let alert = id_of(&opener, &format!("alert-{}", random.between(0, 3)));
    let (id, to) = (format!("report-{number}"), Service::Coordinator.as_str());
    let parameters = json!({ "alert": alert, "report": id });
    let envelope = json!({
        "message_id": id, "timestamp": world.clock(), "from_agent": from, "to_agent": to,
        "message_type": "request", "payload": { "action": REPORT_ALERT, "parameters": parameters },
    });
    let lane = Lane::Normal.as_str();
    let subject = world.subjects().join(&[lane, "_", from, to, "request"]);
    for _ in 0..if random.chance(0.2) { 2 } else { 1 } {
        let said = OutgoingMessage {
            subject: subject.clone(),
            id: random.chance(0.6).then(|| id.clone()),
            body: envelope.to_string().into_bytes().into(),
        };
        world.plan(random.between(1_000, UNTIL_MS), Action::Say(said));
    }
}

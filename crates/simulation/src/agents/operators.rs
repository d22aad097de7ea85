//! Operators: who can rule, who has which debate, and when its deadlines run. What they ask for is a step, as it is when
//! it comes by the services' API; nothing of it is a message in a stream.

use std::sync::Arc;

use concord_domain::aggregates::case::CaseInput;
use concord_domain::aggregates::debate::Command;
use concord_domain::aggregates::debate::DebateInput;
use concord_domain::aggregates::person::PersonInput;
use concord_domain::aggregates::policy::PolicyInput;
use concord_domain::aggregates::review_queue::QueueInput;
use concord_domain::aggregates::watch::WatchInput;
use concord_events::DeadlineControl;
use concord_wire::payload::PersonRecord;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Token};
use serde_json::{Value, json};

use super::experts::with;
use super::ladder::{DOMAINS, EXPERTS, REVIEWERS, UNREGISTERED};
use super::signing;
use super::{Agents, OPENER};
use crate::policies;
use crate::world::{Action, World};

/// What an operator asks a service for.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// What the id of the request is made of.
    pub(crate) unique: String,
    pub(crate) verb: Verb,
}

/// A step.
#[derive(Debug, Clone)]
pub(crate) enum Verb {
    Policy(PolicyInput),
    Watch(WatchInput),
    Person(PersonInput),
    Queue(QueueInput),
    Debate(Token, DebateInput),
    Case(Token, CaseInput),
}

impl Operation {
    /// Who is asked.
    pub(crate) fn service(&self) -> Service {
        match self.verb {
            Verb::Case(..) | Verb::Person(_) | Verb::Policy(_) | Verb::Watch(_) => {
                Service::Coordinator
            }
            Verb::Queue(_) | Verb::Debate(..) => Service::DebateFacilitator,
        }
    }

    /// The cause of the event that it may lead to.
    pub(crate) fn id(&self) -> MessageId {
        MessageId::of_operator_request(&self.unique)
    }

    /// The name of the verb in the service's API, and the request.
    pub(crate) fn request(&self) -> (&'static str, Vec<u8>) {
        let (name, request) = match &self.verb {
            Verb::Policy(PolicyInput::Put {
                name,
                policy,
                bounds,
                by,
                why,
            }) => (
                "put_policy",
                json!({ "name": name, "policy": policy, "bounds": bounds, "by": by, "why": why }),
            ),
            Verb::Watch(WatchInput::Put { rules, by, why }) => (
                "put_alert_rules",
                json!({ "rules": rules, "by": by, "why": why }),
            ),
            Verb::Person(PersonInput::Register { person, by }) => {
                ("register_person", json!({ "person": person, "by": by }))
            }
            Verb::Person(PersonInput::Suspend { name, by, why }) => (
                "suspend_person",
                json!({ "name": name, "by": by, "why": why }),
            ),
            Verb::Person(PersonInput::Resume { name, by, why }) => (
                "resume_person",
                json!({ "name": name, "by": by, "why": why }),
            ),
            Verb::Queue(QueueInput::Reassign {
                debate_id,
                to,
                by,
                why,
            }) => (
                "reassign_debate",
                json!({ "debate_id": debate_id, "to": to, "by": by, "why": why }),
            ),
            Verb::Debate(id, DebateInput::Command(order)) => match &**order {
                Command::Deadlines {
                    control,
                    later_ms,
                    by,
                    why,
                } => (
                    "control_debate",
                    json!({ "debate_id": id, "control": control, "later_ms": later_ms, "by": by, "why": why }),
                ),
                Command::Cancel { by, why } => (
                    "cancel_debate",
                    json!({ "debate_id": id, "by": by, "why": why }),
                ),
                _ => ("none", Value::Null),
            },
            Verb::Case(id, CaseInput::Cancel { by, why }) => (
                "cancel_case",
                json!({ "case_id": id, "by": by, "why": why }),
            ),
            Verb::Queue(_) | Verb::Debate(..) | Verb::Case(..) | Verb::Watch(_) => {
                ("none", Value::Null)
            }
        };
        (name, request.to_string().into_bytes())
    }
}

impl Agents {
    /// People are registered, come and go, in a world with the ladder.
    pub(super) fn staff(&mut self, world: &mut World) {
        if self.ladder.is_none() {
            return;
        }
        self.register(world, 0, (OPENER, &["opener", "operator"]), 3);
        // A new version of the policy, while cases are opened with it.
        for rounds_max in 3..3 + u32::try_from(self.random.place(3)).unwrap_or(0) {
            let in_ms = self.random.between(0, 3_000);
            if let Some(input) = policies::put(rounds_max) {
                self.order(world, in_ms, Verb::Policy(input));
            }
        }
        let reviewers = REVIEWERS.iter().filter(|name| **name != UNREGISTERED);
        for name in reviewers {
            let comes = self.random.between(0, 1_000);
            self.register(world, comes, (name, &["reviewer"]), 3);
            if self.random.chance(0.1) {
                // Now and then somebody is suspended while a review of theirs is on its way.
                let leaves = self.random.between(2_000, 20_000);
                self.suspend(world, leaves, name);
            }
        }
        let many = match self.is_busy() {
            true => 1 + self.random.place(2),
            false => self.random.place(EXPERTS.len()),
        };
        for name in EXPERTS.iter().take(many) {
            let comes = self.random.between(0, 6_000);
            self.arbiter(world, comes, name);
            match self.random.between(0, 9) {
                // Registers again with another capacity.
                0..3 => {
                    let again = comes + self.random.between(100, 20_000);
                    self.arbiter(world, again, name);
                }
                3..5 => {
                    let leaves = comes + self.random.between(500, 20_000);
                    self.suspend(world, leaves, name);
                    if self.random.chance(0.5) {
                        let again = leaves + self.random.between(100, 5_000);
                        self.resume_person(world, again, name);
                    }
                }
                5 => {
                    // Another role, and no longer that one.
                    let changes = comes + self.random.between(500, 20_000);
                    self.register(world, changes, (name, &["outcome_source"]), 1);
                }
                _ => {}
            }
        }
        if self.random.chance(0.1) {
            // Nobody has heard of them.
            self.suspend(world, 1_000, "mallory");
        }
    }

    fn arbiter(&mut self, world: &mut World, in_ms: u64, name: &str) {
        let capacity = if self.random.chance(0.03) {
            0
        } else {
            self.random.between(1, 2)
        };
        self.register(world, in_ms, (name, &["arbiter"]), capacity);
    }

    fn register(
        &mut self,
        world: &mut World,
        in_ms: u64,
        (name, roles): (&str, &[&str]),
        capacity: u64,
    ) {
        let domains: Vec<&str> = DOMAINS
            .iter()
            .filter(|_| self.random.chance(0.4))
            .copied()
            .collect();
        // A reviewer of few domains would seldom be the right one.
        let limited = |role: &str| matches!(role, "arbiter" | "outcome_source");
        let grant = |role: &&str| match limited(role) {
            true => json!({ "role": role, "domains": domains }),
            false => json!({ "role": role }),
        };
        let roles: Vec<Value> = roles.iter().map(grant).collect();
        let fields = json!({ "name": name, "roles": roles, "capacity": capacity });
        // Now and then somebody has another key from then on, or none.
        let key = match self.random.between(0, 19) {
            0 => None,
            1 => signing::public_key(&format!("{name} again")),
            _ => signing::public_key(name),
        };
        let fields = with(fields, "public_key", json!(key));
        let (Ok(person), Some(by)) = (serde_json::from_value::<PersonRecord>(fields), olga())
        else {
            return;
        };
        let person = Box::new(person);
        let input = PersonInput::Register { person, by };
        self.order(world, in_ms, Verb::Person(input));
    }

    fn suspend(&mut self, world: &mut World, in_ms: u64, name: &str) {
        let (Ok(name), Some(by)) = (AgentId::new(name), olga()) else {
            return;
        };
        let why = "holidays".into();
        let input = PersonInput::Suspend { name, by, why };
        self.order(world, in_ms, Verb::Person(input));
    }

    fn resume_person(&mut self, world: &mut World, in_ms: u64, name: &str) {
        let (Ok(name), Some(by)) = (AgentId::new(name), olga()) else {
            return;
        };
        let why = String::new();
        let input = PersonInput::Resume { name, by, why };
        self.order(world, in_ms, Verb::Person(input));
    }

    /// An operator does something about a debate, or its case.
    pub(super) fn meddle(&mut self, world: &mut World, debate: &str, case: Option<&str>) {
        let in_ms = self.random.between(0, 3_000);
        let closing = self.ladder.as_ref().is_some_and(|ladder| ladder.closing);
        match self.random.between(0, 199) {
            0..14 if !closing => {
                self.control(world, in_ms, debate, (DeadlineControl::Hold, 0));
                if self.random.chance(0.6) {
                    let later = in_ms + self.random.between(10, 12_000);
                    self.resume(world, later, debate);
                }
            }
            14..22 => {
                let by_ms = *self.random.pick(&[0, 1, 500, 4_000, 4_000]).unwrap_or(&1);
                self.control(world, in_ms, debate, (DeadlineControl::Extend, by_ms));
            }
            22..40 => {
                let to = self.random.pick(&EXPERTS).copied().unwrap_or("fay");
                self.reassign(world, in_ms, debate, to);
                if self.random.chance(0.4) {
                    // Twice in a row: whoever has it in the end is the one who can rule.
                    let then = self.random.pick(&EXPERTS).copied().unwrap_or("fay");
                    self.reassign(world, in_ms + 20, debate, then);
                }
            }
            40..44 => self.resume(world, in_ms, debate),
            44..48 => {
                let (Ok(id), Some(by)) = (DebateId::new(debate), olga()) else {
                    return;
                };
                let order = Command::Cancel {
                    by,
                    why: "settled on the telephone".into(),
                };
                self.order(
                    world,
                    in_ms,
                    Verb::Debate(id.token(), DebateInput::Command(Box::new(order))),
                );
            }
            48..51 => {
                let case = case.and_then(|case| CaseId::new(case).ok());
                let (Some(case), Some(by)) = (case, olga()) else {
                    return;
                };
                let input = CaseInput::Cancel {
                    by,
                    why: "the deal is off".into(),
                };
                self.order(world, in_ms, Verb::Case(case.token(), input));
            }
            _ => {}
        }
    }

    fn reassign(&mut self, world: &mut World, in_ms: u64, debate: &str, to: &str) {
        let (Ok(debate_id), Ok(to), Some(by)) = (DebateId::new(debate), AgentId::new(to), olga())
        else {
            return;
        };
        self.order(
            world,
            in_ms,
            Verb::Queue(QueueInput::Reassign {
                debate_id,
                to,
                by,
                why: "knows it".into(),
            }),
        );
    }

    fn control(
        &mut self,
        world: &mut World,
        in_ms: u64,
        debate: &str,
        (control, later_ms): (DeadlineControl, u64),
    ) {
        let (Ok(id), Some(by)) = (DebateId::new(debate), olga()) else {
            return;
        };
        let order = Command::Deadlines {
            control,
            later_ms,
            by,
            why: "maintenance".into(),
        };
        self.order(
            world,
            in_ms,
            Verb::Debate(id.token(), DebateInput::Command(Box::new(order))),
        );
    }

    /// Held deadlines run again.
    pub(super) fn resume(&mut self, world: &mut World, in_ms: u64, debate: &str) {
        self.control(world, in_ms, debate, (DeadlineControl::Resume, 0));
    }

    fn order(&mut self, world: &mut World, in_ms: u64, verb: Verb) {
        let Some(ladder) = &mut self.ladder else {
            return;
        };
        ladder.orders += 1;
        let number = ladder.orders;
        let unique = format!("order {number}");
        world.plan(
            in_ms,
            Action::Operate(Arc::new(Operation {
                unique,
                verb: verb.clone(),
            })),
        );
        // Whoever hears no answer asks again, and that is another order.
        if self.random.chance(0.1) {
            let unique = format!("order {number} again");
            world.plan(
                in_ms + 400,
                Action::Operate(Arc::new(Operation { unique, verb })),
            );
        }
    }
}

/// Who gives orders.
pub(super) fn olga() -> Option<AgentId> {
    AgentId::new(OPENER).ok()
}

//! Operators: who can rule, who has which debate, and when its deadlines run. What they ask for is a step, as it is when
//! it comes by the services' API; nothing of it is a message in a stream.

use std::sync::Arc;

use concord_domain::aggregates::case::CaseInput;
use concord_domain::aggregates::debate::Command;
use concord_domain::aggregates::debate::DebateInput;
use concord_domain::aggregates::review_queue::QueueInput;
use concord_events::{DeadlineControl, ExpertRegistered};
use concord_wire::payload::Expert;
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, DebateId, MessageId, Token};
use serde_json::{Value, json};

use super::Agents;
use super::ladder::{DOMAINS, EXPERTS};
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
    Queue(QueueInput),
    Debate(Token, DebateInput),
    Case(Token, CaseInput),
}

impl Operation {
    /// Who is asked.
    pub(crate) fn service(&self) -> Service {
        match self.verb {
            Verb::Case(..) => Service::Coordinator,
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
            Verb::Queue(QueueInput::Register(registered)) => (
                "register_expert",
                json!({ "expert": registered.expert, "by": registered.by }),
            ),
            Verb::Queue(QueueInput::Leave { agent_id, by, why }) => (
                "expert_leaves",
                json!({ "agent_id": agent_id, "by": by, "why": why }),
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
            Verb::Queue(_) | Verb::Debate(..) | Verb::Case(..) => ("none", Value::Null),
        };
        (name, request.to_string().into_bytes())
    }
}

impl Agents {
    /// Experts come and go, in a world with the ladder.
    pub(super) fn staff(&mut self, world: &mut World) {
        if self.ladder.is_none() {
            return;
        }
        let many = self.random.place(EXPERTS.len());
        for name in EXPERTS.iter().take(many) {
            let comes = self.random.between(0, 6_000);
            self.register(world, comes, name);
            match self.random.between(0, 9) {
                // Registers again with another capacity.
                0..3 => {
                    let again = comes + self.random.between(100, 20_000);
                    self.register(world, again, name);
                }
                3..5 => {
                    let leaves = comes + self.random.between(500, 20_000);
                    self.leave(world, leaves, name);
                    if self.random.chance(0.5) {
                        let again = leaves + self.random.between(100, 5_000);
                        self.register(world, again, name);
                    }
                }
                _ => {}
            }
        }
        if self.random.chance(0.1) {
            // Nobody has heard of them.
            self.leave(world, 1_000, "mallory");
        }
    }

    fn register(&mut self, world: &mut World, in_ms: u64, name: &str) {
        let domains: Vec<&str> = DOMAINS
            .iter()
            .filter(|_| self.random.chance(0.4))
            .copied()
            .collect();
        let capacity = if self.random.chance(0.03) {
            0
        } else {
            self.random.between(1, 2)
        };
        let fields = json!({ "agent_id": name, "domains": domains, "capacity": capacity });
        let (Ok(expert), Some(by)) = (serde_json::from_value::<Expert>(fields), olga()) else {
            return;
        };
        let registered = ExpertRegistered { expert, by };
        self.order(
            world,
            in_ms,
            Verb::Queue(QueueInput::Register(Box::new(registered))),
        );
    }

    fn leave(&mut self, world: &mut World, in_ms: u64, name: &str) {
        let (Ok(agent_id), Some(by)) = (AgentId::new(name), olga()) else {
            return;
        };
        self.order(
            world,
            in_ms,
            Verb::Queue(QueueInput::Leave {
                agent_id,
                by,
                why: "holidays".into(),
            }),
        );
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
fn olga() -> Option<AgentId> {
    AgentId::new(super::OPENER).ok()
}

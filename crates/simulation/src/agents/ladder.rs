//! Worlds in which disagreements climb the ladder: their policies, and who hears what of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::experts::with;
use super::{Agents, text};
use crate::world::World;

/// What people know who have to do with the ladder.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    /// Digests of the briefs that experts were sent, by debate.
    pub(super) briefs: BTreeMap<String, Vec<String>>,
    /// Experts who have disappeared without a word.
    pub(super) gone: BTreeSet<String>,
    /// More comes before people than they can do: openers wait for each other.
    pub(super) busy: bool,
    /// Debates that somebody has heard of.
    pub(super) debates: BTreeSet<String>,
    /// Orders of operators.
    pub(super) orders: u64,
    /// The world is about to end: nothing is held any more.
    pub(super) closing: bool,
}

/// Everybody who is asked for rulings.
pub(super) const EXPERTS: [&str; 4] = ["fay", "gus", "hana", "ivo"];
/// Reviews what stands provisionally.
pub(super) const REVIEWERS: [&str; 3] = ["gail", "hal", "uwe"];
/// The reviewer whom nobody has registered.
pub(super) const UNREGISTERED: &str = "uwe";
/// Fields in which expertise is needed.
pub(super) const DOMAINS: [&str; 2] = ["tax", "valuation"];
/// Names of gates.
const GATES: [&str; 2] = ["first gate", "second gate"];

impl Agents {
    /// Adds gates to a request, in a world with the ladder.
    pub(super) fn add_gates(&mut self, parameters: &mut Value) {
        if self.ladder.is_none() {
            return;
        }
        let many = self.random.place(GATES.len() + 1);
        if let Some(fields) = parameters.as_object_mut() {
            fields.insert(
                "gates".into(),
                json!(GATES.iter().take(many).collect::<Vec<_>>()),
            );
        }
    }

    /// Adds the ladder to a policy, in a world with it.
    pub(super) fn add_ladder(&mut self, policy: &mut Value) {
        if self.ladder.is_none() {
            return;
        }
        let handling = ["vote", "ladder", "ladder", "vote_then_ladder"];
        let handling = match self.is_busy() {
            true => Some("ladder"),
            false => self.random.pick(&handling).copied(),
        };
        let ladder = self.ladder_policy();
        if let Some(fields) = policy.as_object_mut() {
            fields.insert("conflict_handling".into(), json!(handling));
            fields.insert("ladder".into(), ladder);
        }
    }

    fn ladder_policy(&mut self) -> Value {
        let mediators = [None, None, Some("mia"), Some("ada")];
        let mut policy = json!({
            "overflow": self.random.pick(&["escalate", "defer"]),
            "queue_max": self.random.between(0, 3),
            "pass_unreviewed": self.random.chance(0.3),
            "challenges_max": self.random.between(0, 4),
            "challenges_per_challenger": self.random.between(1, 3),
            "reviewers_min": if self.random.chance(0.2) { 2 } else { 1 },
            "signed": self.random.chance(0.1),
            "digest_required": self.random.chance(0.1),
            "redebates_max": self.random.between(0, 2),
            "vote_margin_min": self.random.between(0, 10) as f64 / 10.0,
            "priority": self.priority(),
        });
        let mediator = self.random.pick(&mediators).copied().flatten();
        let domain = (!self.is_busy() && self.random.chance(0.4))
            .then(|| self.random.pick(&DOMAINS).copied())
            .flatten();
        let (times, scale) = self.times();
        if self.is_busy() {
            policy = crowded(policy);
        }
        if let Some(fields) = policy.as_object_mut() {
            fields.insert("times".into(), times);
            fields.insert("time_scale".into(), scale.into());
            fields.extend(mediator.map(|mediator| ("mediator".to_owned(), mediator.into())));
            fields.extend(domain.map(|domain| ("domain".to_owned(), domain.into())));
        }
        policy
    }

    pub(super) fn is_busy(&self) -> bool {
        self.ladder.as_ref().is_some_and(|ladder| ladder.busy)
    }

    /// The times of the levels: those of the specification, scaled; or some at random.
    fn times(&mut self) -> (Value, u64) {
        if !self.is_busy() && self.random.chance(0.3) {
            return (
                json!({}),
                *self.random.pick(&[3_600, 7_200, 14_400]).unwrap_or(&3_600),
            );
        }
        let mediation = self.random.between(20, 3_000);
        let times = json!({
            "acknowledge_ms": self.random.between(30, 2_000),
            "evidence_ms": self.random.between(60, 4_000),
            "evaluation_ms": self.random.between(30, 3_000),
            "opinion_ms": self.random.between(1, mediation),
            "mediation_ms": mediation,
            "person_ms": self.random.between(if self.is_busy() { 6_000 } else { 100 }, 9_000),
            "provisional_ms": self.random.between(10, 6_000),
        });
        (times, 1)
    }

    pub(super) fn priority(&mut self) -> Value {
        json!(
            self.random
                .pick(&["critical-path", "valuation", "supporting"])
        )
    }

    /// What concerns the ladder. True when nothing else is to be done about the message.
    pub(super) fn on_ladder(
        &mut self,
        world: &mut World,
        reader: &str,
        kind: &str,
        message: &Value,
    ) -> bool {
        if self.ladder.is_none() {
            return false;
        }
        match (kind, text(message, "/payload/action")) {
            ("task_assignment", _) => {
                self.may_challenge(world, reader, message);
                false
            }
            ("challenge", _) => {
                self.hear_of(world, message);
                self.challenged(world, reader, message);
                true
            }
            ("clarification", _) => {
                self.clarified(world, reader, message);
                true
            }
            ("request", Some("rule")) => {
                self.briefed(world, reader, message);
                true
            }
            ("request", Some("mediate")) => {
                self.mediate(world, reader, message);
                true
            }
            ("error", _) => {
                self.refused(world, reader, message);
                true
            }
            ("notification", _) => {
                self.hear_of(world, message);
                self.review(world, message);
                self.speak_up(world, message);
                self.say_what_proved_right(world, message);
                false
            }
            _ => false,
        }
    }

    /// A debate is heard of: operators may meddle with it.
    fn hear_of(&mut self, world: &mut World, message: &Value) {
        let Some(debate) = text(message, "/correlation_id").map(str::to_owned) else {
            return;
        };
        if let Some(ladder) = &mut self.ladder {
            ladder.debates.insert(debate.clone());
        }
        self.meddle(world, &debate, text(message, "/case_id"));
    }

    /// The world is about to end: what is held runs again, and nothing is held any more.
    pub(crate) fn close(&mut self, world: &mut World, held: &[String]) {
        if let Some(ladder) = &mut self.ladder {
            ladder.closing = true;
        }
        for debate in held {
            self.resume(world, 10, debate);
        }
    }
}

/// A policy by which much waits for the same people.
fn crowded(policy: Value) -> Value {
    let policy = with(policy, "queue_max", json!(8));
    with(policy, "priority", json!("valuation"))
}

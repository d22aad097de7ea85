//! What the debates of a case say about one subject: which outcome is the latest that stands.

use std::collections::BTreeMap;

use concord_wire::AgentId;
use concord_wire::payload::{Conflict, ConflictOutcome, ConflictType};
use concord_wire::policy::Policy;
use serde_json::Value;

use super::standing::{Said, most_cautious};
use super::state::CaseState;
use crate::rules::canonical::normalise;
use crate::rules::impact::graph::name_of;

/// The rules from which on a debate that nobody has decided leaves standing what was decided or is more cautious (see
/// [`standing`](super::standing)), subjects are compared as names are, and a result that is no value of its subject is not named as what the
/// cautious value rests on.
const PEOPLE_STAND: u32 = 2;

/// What a value rests on that nobody has said: the debate has ended with words that state none.
const CAUTIOUS: &str = "cautious";

/// A detected conflict with the outcomes that say something about its subject.
pub(super) struct Dispute<'a> {
    conflict: &'a Conflict,
    /// The outcome of its debate, or of the last debate that took it up again.
    outcome: Option<&'a ConflictOutcome>,
    /// Later outcomes of challenges about the same subject that leave standing nothing else, the latest first; earlier ones, too, that its
    /// debate leaves standing.
    challenges: Vec<Challenged<'a>>,
    /// Whether its debate leaves standing what a person had decided in a challenge.
    yields: bool,
    deferred: bool,
    rules: u32,
}

/// The outcome of a challenge.
struct Challenged<'a> {
    /// The agent whose finding was challenged.
    agent: &'a AgentId,
    /// What it had stated.
    stated: Option<&'a Value>,
    outcome: &'a ConflictOutcome,
    said: Said<'a>,
}

impl<'a> Challenged<'a> {
    /// The resolved value, where it is another than the challenged agent had stated: a challenge that failed changes nothing.
    fn replacement<T: PartialEq>(&self, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let resolved = resolved(self.outcome, &read)?;
        (self.stated.and_then(read).as_ref() != Some(&resolved)).then_some(resolved)
    }
}

impl Dispute<'_> {
    /// The value that stands, and on what it rests: the latest resolution that `read` accepts, else the most cautious position.
    pub(super) fn result<T: PartialEq>(
        &self,
        policy: &Policy,
        read: impl Fn(&Value) -> Option<T>,
    ) -> (Option<T>, &'static str) {
        for challenged in &self.challenges {
            // A person who has left the finding as it was has decided all the same.
            let is_decided = self.yields && challenged.outcome.status.is_by_person();
            let decided = resolved(challenged.outcome, &read).filter(|_| is_decided);
            if let Some(value) = decided.or_else(|| challenged.replacement(&read)) {
                return (Some(value), challenged.outcome.status.as_str());
            }
        }
        let settled = self.outcome.and_then(|outcome| resolved(outcome, &read));
        if settled.is_some() {
            return (settled, self.basis());
        }
        let says_something = self
            .outcome
            .is_some_and(|outcome| outcome.resolution.is_some());
        let basis = match self.rules >= PEOPLE_STAND && says_something {
            true => CAUTIOUS,
            false => self.basis(),
        };
        let cautious = most_cautious(self.rules, self.conflict, policy);
        (cautious.and_then(&read), basis)
    }

    fn basis(&self) -> &'static str {
        match self.outcome.map(|outcome| outcome.status) {
            Some(status) => status.as_str(),
            None if self.deferred => "deferred",
            None => "unresolved",
        }
    }
}

fn resolved<T>(outcome: &ConflictOutcome, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    read(outcome.resolution.as_ref()?.value.as_ref()?)
}

/// The subject in the form in which these rules compare it.
fn compared(rules: u32, subject: &str) -> String {
    match rules >= PEOPLE_STAND {
        true => name_of(subject),
        false => normalise(subject),
    }
}

/// The conflict of this type about this subject, of which a case has at most one.
pub(super) fn dispute<'a>(
    rules: u32,
    state: &'a CaseState,
    kind: ConflictType,
    subject: &str,
) -> Option<Dispute<'a>> {
    conflicts(state)
        .find(|(conflict, _)| conflict.kind == kind && normalise(&conflict.subject) == subject)
        .map(|(conflict, deferred)| about(rules, state, conflict, deferred))
}

/// The conflicts about clauses by the compared form of the clause. Of two about one clause the
/// first counts.
pub(super) fn clause_disputes(rules: u32, state: &CaseState) -> BTreeMap<String, Dispute<'_>> {
    let mut disputes = BTreeMap::new();
    for (conflict, deferred) in conflicts(state) {
        if conflict.kind == ConflictType::ClausePresenceDisagreement {
            disputes
                .entry(normalise(&conflict.subject))
                .or_insert_with(|| about(rules, state, conflict, deferred));
        }
    }
    disputes
}

/// The value that stands in the place of what the agent's finding says about this subject, because the finding was challenged with
/// success.
pub(super) fn replaced<T: PartialEq>(
    rules: u32,
    state: &CaseState,
    agent: &AgentId,
    subject: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let mut challenges = challenges(rules, state, subject);
    challenges.retain(|challenged| challenged.agent == agent);
    if let Some(opened) = state.opened.as_ref().filter(|_| rules >= PEOPLE_STAND) {
        let all: Vec<Said<'_>> = challenges.iter().map(|one| one.said).collect();
        let leaves_one = |one: &Challenged<'_>| {
            let mut others = all.iter().filter(|other| one.said.is_beside(other));
            others.any(|other| one.said.leaves_standing(other, &opened.policy))
        };
        challenges.retain(|one| !leaves_one(one));
    }
    challenges
        .iter()
        .find_map(|challenged| challenged.replacement(&read))
}

/// All conflicts that were detected, the debated ones first, and whether each was deferred. A debate that takes another up again
/// comes after it.
fn conflicts(state: &CaseState) -> impl Iterator<Item = (&Conflict, bool)> {
    let debated = state.debated.iter().map(|conflict| (conflict, false));
    debated.chain(state.deferred.iter().map(|conflict| (conflict, true)))
}

fn about<'a>(
    rules: u32,
    state: &'a CaseState,
    conflict: &'a Conflict,
    deferred: bool,
) -> Dispute<'a> {
    let own = state.said(conflict);
    let outcome = own.outcome;
    let mut challenges = challenges(rules, state, &conflict.subject);
    let leaves_standing = |challenged: &Challenged<'_>| {
        let counts = rules >= PEOPLE_STAND
            && !outcome.is_some_and(|outcome| state.is_detected_anew(outcome));
        let opened = state.opened.as_ref().filter(|_| counts);
        opened.is_some_and(|opened| own.leaves_standing(&challenged.said, &opened.policy))
    };
    let is_by_default = outcome.is_some_and(|outcome| outcome.status.is_by_default());
    let yields = is_by_default
        && challenges.iter().any(|challenged| {
            challenged.outcome.status.is_by_person() && leaves_standing(challenged)
        });
    challenges.retain(|challenged| {
        let is_later =
            |outcome: &ConflictOutcome| challenged.outcome.resolved_at > outcome.resolved_at;
        let is_said_after = outcome.is_none_or(is_later) || yields || leaves_standing(challenged);
        is_said_after && (rules < PEOPLE_STAND || !state.yields(challenged.outcome))
    });
    Dispute {
        conflict,
        outcome,
        challenges,
        yields,
        deferred,
        rules,
    }
}

/// The challenges about this subject that have an outcome, the latest first.
fn challenges<'a>(rules: u32, state: &'a CaseState, subject: &str) -> Vec<Challenged<'a>> {
    let subject = compared(rules, subject);
    let mut found: Vec<Challenged<'a>> = state
        .asked
        .values()
        .filter(|asked| asked.terms.refers_to.is_none())
        .filter(|asked| compared(rules, &asked.conflict.subject) == subject)
        .filter_map(|asked| {
            let agent = &asked.terms.challenge.as_ref()?.challenged;
            let said = state.said(&asked.conflict);
            let position = asked
                .conflict
                .positions
                .iter()
                .find(|position| position.agent_id == *agent);
            Some(Challenged {
                agent,
                stated: position.and_then(|position| position.value.as_ref()),
                outcome: said.outcome?,
                said,
            })
        })
        .collect();
    found.sort_by_key(|challenged| std::cmp::Reverse(challenged.outcome.resolved_at));
    found
}

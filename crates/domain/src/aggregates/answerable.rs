//! The people who answer for what a case has decided, and are told when it changes.
//!
//! All of it follows from events that are stored anyway, so nothing is added to them: neither names
//! nor addresses are in the events of a case, which its opener may read.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{CaseEvent, DecisionChanged, OutcomeKnown, StoredEvent};
use concord_wire::payload::{ConflictOutcome, Resolution, Status};
use concord_wire::{AgentId, DebateId};

use super::case::{CaseMachine, CaseState, FINDING};
use super::debate::DebateState;
use crate::machine::Machine;
use crate::rules::precedent;
use crate::rules::proved::was_right;

/// What a new version of a decision means for somebody who answers for the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// They have ruled or reviewed in the case.
    Answers,
    /// They have ruled on the very subject, and something else stands now.
    Overridden,
}

/// Whom a new version of a decision concerns, given the events of its case before it. Whoever
/// brought it about is not among them.
pub fn of_change(
    before: &[StoredEvent<CaseEvent>],
    changed: &DecisionChanged,
) -> BTreeMap<AgentId, Concern> {
    let debate_id = &changed.outcome.conflict_id;
    let mut concerned = BTreeMap::new();
    let mut state = CaseState::default();
    for record in before {
        for name in behind(&record.event, debate_id) {
            concerned.insert(name.clone(), Concern::Answers);
        }
        CaseMachine::apply(&mut state, record.clone());
    }
    if let Some(stood) = stood(&state, &changed.outcome)
        && !is_same(
            stood.resolution.as_ref(),
            changed.outcome.resolution.as_ref(),
        )
    {
        for name in ruled_by(stood) {
            concerned.insert(name.clone(), Concern::Overridden);
        }
    }
    let change = &changed.change;
    for by in change.first_reviewer.iter().chain(&change.by) {
        concerned.remove(by);
    }
    concerned
}

/// Who answers for what this event decides. Reviews of the debate that has changed the decision are
/// what changed it.
fn behind<'a>(event: &'a CaseEvent, changed_by: &DebateId) -> Vec<&'a AgentId> {
    match event {
        CaseEvent::DebateSettled(settled) => ruled_by(&settled.outcome),
        CaseEvent::Decided(decided) => decided.last.as_ref().map(ruled_by).unwrap_or_default(),
        CaseEvent::DecisionChanged(changed) => ruled_by(&changed.outcome),
        CaseEvent::ReviewRecorded(recorded)
            if recorded.review.debate_id.as_ref() != Some(changed_by) =>
        {
            vec![&recorded.heard.agent_id]
        }
        CaseEvent::GateReviewed(reviewed) if reviewed.debate_id != *changed_by => {
            vec![&reviewed.heard.agent_id]
        }
        CaseEvent::GatePassed(passed) => vec![&passed.heard.agent_id],
        _ => Vec::new(),
    }
}

/// Who has ruled, at a gate that wants two reviewers both. An operator who cancels decides nothing.
fn ruled_by(outcome: &ConflictOutcome) -> Vec<&AgentId> {
    let ruled = outcome.ruled_by.as_ref();
    let ruled = ruled.filter(|_| outcome.status != Status::Cancelled);
    ruled.map_or_else(Vec::new, |ruled| {
        let first = ruled.first_reviewer.iter();
        first.chain([&ruled.expert]).collect()
    })
}

/// The outcome that this one replaces: the latest of the debates that it takes up again, and of all about the same subject. Without effect
/// are a challenge in vain, which leaves standing what others have found, and a debate that leaves standing what was decided, also where it is the
/// debate that has ended otherwise now; and those that name no metric are each about a finding of its own.
fn stood<'a>(state: &'a CaseState, changed: &ConflictOutcome) -> Option<&'a ConflictOutcome> {
    let about = state.subject_of(&changed.conflict_id)?;
    let same: BTreeSet<&DebateId> = state.taken_up(&changed.conflict_id).collect();
    let is_without_effect = |outcome| state.is_in_vain(outcome) || state.yields(outcome);
    let is_of_all = about != FINDING && !is_without_effect(changed);
    let outcomes = state.outcomes.values();
    outcomes
        .filter(|outcome| outcome.resolution.is_some() && outcome.status != Status::Cancelled)
        .filter(|outcome| {
            let id = &outcome.conflict_id;
            let is_about = is_of_all && state.subject_of(id).as_ref() == Some(&about);
            (same.contains(id) || is_about) && !is_without_effect(outcome)
        })
        .max_by_key(|outcome| outcome.resolved_at)
}

fn is_same(one: Option<&Resolution>, other: Option<&Resolution>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        // A debate that ended without a result leaves standing what was before it.
        return true;
    };
    precedent::is_same(
        (&one.position, one.value.as_ref()),
        (&other.position, other.value.as_ref()),
    )
}

/// Whose ruling in this debate was another than what proved right; nobody's where nobody ruled, or rightly, or in words that state no value, and
/// not theirs who say so.
pub fn of_outcome<'a>(debate: &'a DebateState, known: &OutcomeKnown) -> Vec<&'a AgentId> {
    let (Some(opened), Some(outcome)) = (&debate.opened, &debate.outcome) else {
        return Vec::new();
    };
    let is_wrong = was_right(opened, outcome, known) == Some(false);
    let mut names = ruled_by(outcome);
    names.retain(|name| is_wrong && **name != known.heard.agent_id);
    names
}

//! Who was right in a debate, for the track records: where a person has decided, and where it proved later.

use concord_events::{DebateOpened, DebateResolved, OutcomeKnown};
use concord_wire::payload::track_record::Source;
use concord_wire::payload::{
    Circumstances, Conflict, ConflictOutcome, DebateTerms, Observation, Position, Status,
};
use concord_wire::{AgentId, Timestamp};
use serde_json::Value;

use crate::aggregates::track_record::Observe;
use crate::rules::vote;

/// An observation for the record of this agent.
pub type Verdict = (AgentId, Observe);

/// In which field track records count: the debate's domain, else what it is about.
pub fn domain_of(terms: &DebateTerms, conflict: &Conflict) -> String {
    terms
        .domain
        .clone()
        .unwrap_or_else(|| conflict.subject.clone())
}

/// Whether a position is this one, by the comparison of the vote.
pub(super) fn holds(
    opened: &DebateOpened,
    held: &Position,
    position: &str,
    value: Option<&Value>,
) -> bool {
    let other = Position {
        position: position.to_owned(),
        value: value.cloned(),
        ..held.clone()
    };
    vote::option_count(opened.conflict.kind, &opened.policy, &[held.clone(), other]) == 1
}

/// Who was right and who was not at the end of a debate, where a person has said so. `provisional` is what stood before.
pub fn of_resolution(
    opened: &DebateOpened,
    provisional: Option<&ConflictOutcome>,
    resolved: &DebateResolved,
    now: Timestamp,
) -> Vec<Verdict> {
    let outcome = &resolved.outcome;
    let source = match outcome.status {
        Status::Ruling | Status::Confirmed => Source::Ruling,
        Status::Overridden => Source::Override,
        _ => return Vec::new(),
    };
    let (Some(right), Some(ruled)) = (&outcome.resolution, &outcome.ruled_by) else {
        return Vec::new();
    };
    let stood = provisional.and_then(|provisional| provisional.resolution.as_ref());
    let judged = Judged {
        opened,
        at: outcome.resolved_at.min(now),
        circumstances: &opened.terms.circumstances,
        source,
        by: &ruled.expert,
    };
    let verdict = |held: &Position| {
        let overridden = source == Source::Override
            && stood.is_some_and(|one| one.supporters.contains(&held.agent_id));
        judged.verdict(
            &held.agent_id,
            holds(opened, held, &right.position, right.value.as_ref()),
            overridden,
        )
    };
    outcome.positions.iter().map(verdict).collect()
}

/// Who was right and who was not, as it proved.
pub fn of_outcome(opened: &DebateOpened, known: &OutcomeKnown) -> Vec<Verdict> {
    let judged = Judged {
        opened,
        at: known.at,
        circumstances: &known.circumstances,
        source: Source::Outcome,
        by: &known.heard.agent_id,
    };
    known
        .parties
        .iter()
        .map(|party| judged.verdict(&party.agent_id, party.correct, false))
        .collect()
}

/// What all verdicts of one debate have in common.
struct Judged<'a> {
    opened: &'a DebateOpened,
    at: Timestamp,
    circumstances: &'a Circumstances,
    source: Source,
    by: &'a AgentId,
}

impl Judged<'_> {
    fn verdict(&self, agent: &AgentId, correct: bool, overridden: bool) -> Verdict {
        let conflict = &self.opened.conflict;
        let observation = Observation {
            at: self.at,
            correct,
            domain: domain_of(&self.opened.terms, conflict),
            regime: self.circumstances.regime.clone(),
            context: self.circumstances.judging(&conflict.subject),
            source: self.source,
            overridden,
        };
        let observe = Observe {
            observation,
            debate_id: Some(conflict.conflict_id.clone()),
            case_id: Some(self.opened.case_id.clone()),
            by: self.by.clone(),
        };
        (agent.clone(), observe)
    }
}

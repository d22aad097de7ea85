//! Verdicts: which parties of a debate were right, for their track records. A person has decided
//! it, or it proved later.

use concord_events::{DebateOpened, DebateResolved, OutcomeKnown};
use concord_wire::payload::track_record::Source;
use concord_wire::payload::{
    Circumstances, Conflict, ConflictOutcome, DebateTerms, Observation, Position, Status,
};
use concord_wire::{AgentId, Timestamp};

use crate::aggregates::track_record::Observe;
use crate::rules::proved::holds;

/// An observation for the track record of this agent.
pub type Verdict = (AgentId, Observe);

/// The field in which the debate counts for track records: its domain, else its subject.
pub fn domain_of(terms: &DebateTerms, conflict: &Conflict) -> String {
    terms
        .domain
        .clone()
        .unwrap_or_else(|| conflict.subject.clone())
}

/// The verdict on each party of a resolved debate; empty unless a person decided it. `provisional`
/// is the decision that stood before.
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

/// The verdict on each party of a debate of which the outcome became known.
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

/// What all verdicts on one debate have in common.
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
            opened_by: self.opened.terms.opened_by.clone(),
            by: self.by.clone(),
            imported: None,
            tell: None,
        };
        (agent.clone(), observe)
    }
}

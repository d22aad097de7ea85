//! Builds the outcome of a debate on the ladder, provisional or final.

use concord_events::{DebateEvent, DebateOpened, DebateResolved, Heard};
use concord_wire::DebateId;
use concord_wire::id::TOKEN_BYTES_MAX;
use concord_wire::payload::{
    ConflictOutcome, Level, Mediation, Provisional, Resolution, RuledBy, Ruling, Status,
};

use super::state::DebateState;
use crate::machine::Context;
use crate::rules::impact::resting::NAMED_MAX;

/// Most of them in an outcome: as many as are named of those that were found, and how many more there are.
const DEPENDANTS_MAX: usize = NAMED_MAX + 1;

/// The parts of an outcome that depend on how the debate ends.
pub(super) struct OutcomeBuilder<'a> {
    opened: &'a DebateOpened,
    status: Status,
    level: Level,
    resolution: Option<Resolution>,
    mediation: Option<Mediation>,
    ruled_by: Option<RuledBy>,
    provisional: Option<Provisional>,
    message: Option<Heard>,
    ruling: Option<Box<Ruling>>,
    again: Option<DebateId>,
}

/// What an outcome says of what rests on it: the names of analyses. What a challenger has called so in longer words the case knows itself,
/// and it would take the room of the positions.
pub(super) fn dependants(opened: &DebateOpened) -> Vec<String> {
    let all = opened.terms.dependants.iter();
    let named = all.filter(|one| one.len() <= TOKEN_BYTES_MAX);
    // Those that were found when the debate was opened stand behind those that a challenger has named.
    let mut carried: Vec<String> = named.rev().take(DEPENDANTS_MAX).cloned().collect();
    carried.reverse();
    carried
}

impl<'a> OutcomeBuilder<'a> {
    pub(super) fn new(
        opened: &'a DebateOpened,
        status: Status,
        level: Level,
        resolution: Option<Resolution>,
    ) -> Self {
        Self {
            opened,
            status,
            level,
            resolution,
            mediation: None,
            ruled_by: None,
            provisional: None,
            message: None,
            ruling: None,
            again: None,
        }
    }

    /// Adds the result of mediation.
    pub(super) fn mediation(self, mediation: Mediation) -> Self {
        Self {
            mediation: Some(mediation),
            ..self
        }
    }

    /// Adds the person who decided.
    pub(super) fn ruled_by(self, ruled_by: RuledBy) -> Self {
        Self {
            ruled_by: Some(ruled_by),
            ..self
        }
    }

    /// Adds what a provisional decision states.
    pub(super) fn provisional(self, provisional: Provisional) -> Self {
        Self {
            provisional: Some(provisional),
            ..self
        }
    }

    /// Adds the message that ends the debate.
    pub(super) fn message(self, message: Heard) -> Self {
        Self {
            message: Some(message),
            ..self
        }
    }

    /// Adds the ruling as it was sent, where it was signed: the signature covers all of it.
    pub(super) fn ruling(self, ruling: &Ruling) -> Self {
        let is_signed = ruling.signature.is_some();
        Self {
            ruling: is_signed.then(|| Box::new(ruling.clone())),
            ..self
        }
    }

    /// Adds the debate that takes the conflict up again.
    pub(super) fn debated_again_as(self, again: Option<DebateId>) -> Self {
        Self { again, ..self }
    }

    /// The outcome, with the positions and rounds of `state`.
    pub(super) fn outcome(self, state: &DebateState, context: &Context) -> ConflictOutcome {
        let ladder = state.ladder.as_deref();
        ConflictOutcome {
            conflict_id: self.opened.conflict.conflict_id.clone(),
            status: self.status,
            resolution: self.resolution,
            tally: ladder.and_then(|ladder| ladder.tally.clone()),
            rounds: state.rounds.clone(),
            positions: state.positions.clone(),
            positions_omitted: 0,
            resolved_at: context.now,
            level: Some(self.level),
            mediation: self
                .mediation
                .or_else(|| ladder?.mediation.clone())
                .map(Box::new),
            ruled_by: self.ruled_by,
            provisional: self.provisional.map(Box::new),
            debated_again_as: self.again,
            dependants: dependants(self.opened),
        }
    }

    /// The event that resolves the debate.
    pub(super) fn event(mut self, state: &DebateState, context: &Context) -> DebateEvent {
        debug_assert!(state.outcome.is_none(), "a debate is resolved once");
        debug_assert!(
            self.status != Status::Provisional,
            "a provisional decision does not resolve a debate"
        );
        let (message, ruling) = (self.message.take(), self.ruling.take());
        DebateEvent::Resolved(Box::new(DebateResolved {
            case_id: self.opened.case_id.clone(),
            last: None,
            topic: self.opened.conflict.topic.clone(),
            outcome: self.outcome(state, context),
            heard: message,
            ruling,
        }))
    }
}

//! The end of a debate on the ladder, provisional or final, with everything that its record must say.

use concord_events::{DebateEvent, DebateOpened, DebateResolved, Heard};
use concord_wire::DebateId;
use concord_wire::payload::{
    ConflictOutcome, Level, Mediation, Provisional, Resolution, RuledBy, Status,
};

use super::state::DebateState;
use crate::machine::Context;

/// An end in the making.
pub(crate) struct Resolving<'a> {
    opened: &'a DebateOpened,
    status: Status,
    level: Level,
    resolution: Option<Resolution>,
    mediation: Option<Mediation>,
    ruled_by: Option<RuledBy>,
    provisional: Option<Provisional>,
    heard: Option<Heard>,
    again: Option<DebateId>,
}

impl<'a> Resolving<'a> {
    pub(crate) fn of(
        opened: &'a DebateOpened,
        status: Status,
        level: Level,
        resolution: Option<Resolution>,
    ) -> Self {
        let (mediation, ruled_by, provisional, heard, again) = (None, None, None, None, None);
        Self {
            opened,
            status,
            level,
            resolution,
            mediation,
            ruled_by,
            provisional,
            heard,
            again,
        }
    }

    /// With what mediation came to.
    pub(crate) fn mediated(self, mediation: Mediation) -> Self {
        Self {
            mediation: Some(mediation),
            ..self
        }
    }

    /// With who decided.
    pub(crate) fn ruled(self, ruled_by: RuledBy) -> Self {
        Self {
            ruled_by: Some(ruled_by),
            ..self
        }
    }

    /// With what a provisional decision must say.
    pub(crate) fn provisional(self, provisional: Provisional) -> Self {
        Self {
            provisional: Some(provisional),
            ..self
        }
    }

    /// By this message.
    pub(crate) fn heard(self, heard: Heard) -> Self {
        Self {
            heard: Some(heard),
            ..self
        }
    }

    /// Taken up again by another debate.
    pub(crate) fn again(self, again: Option<DebateId>) -> Self {
        Self { again, ..self }
    }

    /// The outcome.
    pub(crate) fn outcome(self, state: &DebateState, context: &Context) -> ConflictOutcome {
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
        }
    }

    /// The fact that the debate is resolved.
    pub(crate) fn event(mut self, state: &DebateState, context: &Context) -> DebateEvent {
        let heard = self.heard.take();
        let (case_id, topic) = (
            self.opened.case_id.clone(),
            self.opened.conflict.topic.clone(),
        );
        let outcome = self.outcome(state, context);
        DebateEvent::Resolved(Box::new(DebateResolved {
            case_id,
            last: None,
            topic,
            outcome,
            heard,
        }))
    }
}

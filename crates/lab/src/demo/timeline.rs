//! The facts of one case among all others.

use std::collections::BTreeSet;

use concord_events::Aggregate;
use concord_events::{CaseEvent, DebateEvent, DetectionEvent, StoredEvent};
use concord_wire::{CaseId, Token};

use crate::panel::facts::Fact;
use concord_cli::shared::failure::Failure;

/// A fact of the case, read.
#[allow(clippy::large_enum_variant)] // Made one at a time and shown at once.
pub(super) enum Happening {
    /// Of the case itself.
    Case(StoredEvent<CaseEvent>),
    /// Its conflicts.
    Detection(StoredEvent<DetectionEvent>),
    /// Of one of its debates.
    Debate(StoredEvent<DebateEvent>),
}

impl Happening {
    /// True when the case has its decision.
    pub(super) fn is_decision(&self) -> bool {
        matches!(self, Self::Case(record) if matches!(record.event, CaseEvent::Decided(_)))
    }
}

/// Picks the facts of one case: its own, those of its detection, and those of the debates that were opened for it.
pub(super) struct Picker {
    case_id: CaseId,
    debates: BTreeSet<Token>,
}

impl Picker {
    pub(super) fn new(case_id: CaseId) -> Self {
        Self {
            case_id,
            debates: BTreeSet::new(),
        }
    }

    /// The fact, when it is one of the case.
    pub(super) fn pick(&mut self, fact: &Fact) -> Result<Option<Happening>, Failure> {
        Ok(match fact.aggregate {
            Aggregate::Case if fact.id == self.case_id.token() => {
                Some(Happening::Case(fact.read()?))
            }
            Aggregate::Detection => {
                let record = fact.read::<DetectionEvent>()?;
                let DetectionEvent::Completed(detected) = &record.event;
                (detected.case_id == self.case_id).then_some(Happening::Detection(record))
            }
            Aggregate::Debate => {
                let record = fact.read::<DebateEvent>()?;
                if matches!(&record.event, DebateEvent::Opened(opened) if opened.case_id == self.case_id)
                {
                    self.debates.insert(fact.id.clone());
                }
                self.debates
                    .contains(&fact.id)
                    .then_some(Happening::Debate(record))
            }
            _ => None,
        })
    }
}

//! The events of one case among all others.

use std::collections::BTreeSet;

use concord_events::Aggregate;
use concord_events::{CaseEvent, DebateEvent, DetectionEvent, StoredEvent};
use concord_wire::{CaseId, Token};

use crate::panel::events::StoredBytes;
use concord_cli::shared::failure::Failure;

/// An event of the case, decoded.
#[allow(clippy::large_enum_variant)] // Made one at a time and shown at once.
pub(super) enum TimelineEvent {
    /// An event of the case itself.
    Case(StoredEvent<CaseEvent>),
    /// The conflicts of the case.
    Detection(StoredEvent<DetectionEvent>),
    /// An event of one of its debates.
    Debate(StoredEvent<DebateEvent>),
}

impl TimelineEvent {
    /// True when the case has its decision.
    pub(super) fn is_decision(&self) -> bool {
        matches!(self, Self::Case(stored) if matches!(stored.event, CaseEvent::Decided(_)))
    }
}

/// Finds the events of one case: its own, those of its detection, and those of the debates that were opened for it.
pub(super) struct CaseFilter {
    case_id: CaseId,
    debates: BTreeSet<Token>,
}

impl CaseFilter {
    pub(super) fn new(case_id: CaseId) -> Self {
        Self {
            case_id,
            debates: BTreeSet::new(),
        }
    }

    /// The event, when it is one of the case.
    pub(super) fn pick(&mut self, event: &StoredBytes) -> Result<Option<TimelineEvent>, Failure> {
        Ok(match event.aggregate {
            Aggregate::Case if event.id == self.case_id.token() => {
                Some(TimelineEvent::Case(event.read()?))
            }
            Aggregate::Detection => {
                let stored = event.read::<DetectionEvent>()?;
                let DetectionEvent::Completed(detected) = &stored.event;
                (detected.case_id == self.case_id).then_some(TimelineEvent::Detection(stored))
            }
            Aggregate::Debate => {
                let stored = event.read::<DebateEvent>()?;
                if matches!(&stored.event, DebateEvent::Opened(opened) if opened.case_id == self.case_id)
                {
                    self.debates.insert(event.id.clone());
                }
                self.debates
                    .contains(&event.id)
                    .then_some(TimelineEvent::Debate(stored))
            }
            _ => None,
        })
    }
}

//! Invariant 2: every stored finding is in its case's decision, or set aside there with the reason.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{CaseEvent, StoredEvent};
use concord_wire::payload::Decision;
use concord_wire::{CaseId, MessageId, Token};

use super::Settled;
use super::dead::{DeadLetters, Position};
use super::report::{Counts, Invariant};
use crate::aggregates::case::CaseState;

#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Findings that a case has recorded or set aside.
    recorded: BTreeSet<(Token, MessageId)>,
    /// Findings that are stored as messages, and that no event of a case was seen to record.
    unrecorded: BTreeMap<(Token, MessageId), Position>,
}

impl Findings {
    /// Takes an event of a case into account. `before` is the case's state before it; `None` when
    /// the case has ended.
    pub(super) fn event(
        &mut self,
        counts: &mut Counts,
        before: Option<&CaseState>,
        record: &StoredEvent<CaseEvent>,
    ) {
        let received = match &record.event {
            CaseEvent::FindingRecorded(recorded) => Some(&recorded.received),
            CaseEvent::FindingsClosed(closed) => closed.last.as_ref(),
            CaseEvent::FindingSetAside(aside) => Some(&aside.received),
            CaseEvent::Decided(decided) => {
                if let Some(what) = before.and_then(|before| left_out(before, &decided.decision)) {
                    let place = format!("case/{}", record.meta.id);
                    counts.violated(Invariant::FindingsKept, place, Some(record.sequence), what);
                }
                None
            }
            CaseEvent::Opened(_)
            | CaseEvent::ConflictsReceived(_)
            | CaseEvent::DebateSettled(_)
            | CaseEvent::DecisionAwaited(_)
            | CaseEvent::DecisionChanged(_)
            | CaseEvent::FiguresRecorded(_)
            | CaseEvent::Challenged(_)
            | CaseEvent::ReviewRecorded(_)
            | CaseEvent::GateReviewed(_)
            | CaseEvent::GatePassed(_)
            | CaseEvent::Confirmed(_)
            | CaseEvent::EstimateNoted(_)
            | CaseEvent::Joined(_)
            | CaseEvent::Flagged(_)
            | CaseEvent::Cancelled(_) => None,
        };
        if let Some(received) = received {
            let key = (record.meta.id.clone(), received.message_id.clone());
            self.unrecorded.remove(&key);
            self.recorded.insert(key);
        }
    }

    /// Takes a finding to the coordinator into account.
    pub(super) fn message(
        &mut self,
        counts: &mut Counts,
        case: &CaseId,
        id: &MessageId,
        position: &Position,
    ) {
        counts.examined(Invariant::FindingsKept);
        let key = (case.token(), id.clone());
        if !self.recorded.contains(&key) {
            self.unrecorded
                .entry(key)
                .or_insert_with(|| position.clone());
        }
    }

    pub(super) fn finish(&self, counts: &mut Counts, dead: &DeadLetters, settled: &Settled) {
        for ((case, id), position) in &self.unrecorded {
            if position.is_settled(settled) && !dead.holds(position, Some(id)) {
                let what = format!(
                    "The finding is neither in case {case}, nor set aside there, nor dead."
                );
                counts.violated(
                    Invariant::FindingsKept,
                    format!("message/{id}"),
                    Some(position.sequence),
                    what,
                );
            }
        }
    }
}

/// A sentence about the first finding that the decision should name and does not.
fn left_out(before: &CaseState, decision: &Decision) -> Option<String> {
    let named: BTreeSet<&MessageId> = decision
        .findings
        .iter()
        .map(|finding| &finding.message_id)
        .collect();
    let aside: BTreeSet<&MessageId> = decision
        .set_aside
        .iter()
        .map(|note| &note.message_id)
        .collect();
    let finding = before
        .findings
        .iter()
        .map(|received| &received.message_id)
        .find(|id| !named.contains(id));
    let noted = before
        .set_aside
        .iter()
        .map(|(note, _)| &note.message_id)
        .find(|id| !aside.contains(id));
    finding.or(noted).map(|id| {
        format!("The decision does not name the finding {id}, which the case had recorded.")
    })
}

//! Invariant 10: the current decision of a case says what its latest outcomes and reviews give.
//!
//! What the debates and the gates of a case have recorded is compared with what its decision says about them. That the result of the
//! decision follows from the outcomes that it names is recounted with each version; see `CaseMachine::recount`.

use std::collections::BTreeMap;

use concord_events::{Aggregate, CaseEvent, DebateEvent, GateReviewed, StoredEvent};
use concord_wire::payload::{ConflictOutcome, Decision, Status};
use concord_wire::{AgentId, DebateId, Timestamp, Token};

use super::report::{Counts, Invariant};
use super::{Settled, place};

/// What is known of the cases whose decision can still change, or was not made yet.
#[derive(Debug, Default)]
pub(super) struct Decisions(BTreeMap<Token, Case>);

#[derive(Debug, Default)]
struct Case {
    /// What the current decision says about each debate that it names; none before the first version.
    decision: Option<BTreeMap<DebateId, Option<Ended>>>,
    /// The latest end of each debate, by its own events.
    ended: BTreeMap<DebateId, (Ended, u64)>,
    /// Reviews at a gate that change a provisional decision.
    reviewed: BTreeMap<DebateId, (AgentId, u64)>,
    is_cancelled: bool,
}

/// How and when a debate ended.
type Ended = (Status, Timestamp);

fn ended(outcome: &ConflictOutcome) -> Ended {
    (outcome.status, outcome.resolved_at)
}

impl Decisions {
    /// Takes an event of a debate into account.
    pub(super) fn debate(&mut self, counts: &mut Counts, record: &StoredEvent<DebateEvent>) {
        let (case, outcome) = match &record.event {
            DebateEvent::Resolved(resolved) => (&resolved.case_id, &resolved.outcome),
            DebateEvent::FellBack(fell) => (&fell.case_id, &fell.outcome),
            _ => return,
        };
        counts.examined(Invariant::DecisionFollows);
        let case = self.0.entry(case.token()).or_default();
        let end = (ended(outcome), record.sequence);
        case.ended.insert(outcome.conflict_id.clone(), end);
    }

    /// Takes an event of a case into account.
    pub(super) fn case(&mut self, counts: &mut Counts, record: &StoredEvent<CaseEvent>) {
        let decision = match &record.event {
            CaseEvent::Decided(decided) => &decided.decision,
            CaseEvent::DecisionChanged(changed) => &changed.decision,
            CaseEvent::FiguresRecorded(recorded) => &recorded.decision,
            CaseEvent::GateReviewed(reviewed) => {
                counts.examined(Invariant::DecisionFollows);
                self.reviewed(record, reviewed);
                return;
            }
            CaseEvent::Challenged(challenged) => {
                let case = self.0.entry(record.meta.id.clone()).or_default();
                case.opened(&challenged.asked.conflict.conflict_id);
                return;
            }
            CaseEvent::Cancelled(_) => {
                self.0
                    .entry(record.meta.id.clone())
                    .or_default()
                    .is_cancelled = true;
                return;
            }
            _ => return,
        };
        let case = self.0.entry(record.meta.id.clone()).or_default();
        // Decisions without a number are of before there were versions: they were never changed.
        case.decision = (decision.version > 0).then(|| named(decision));
        if decision.is_final() && decision.gates.is_empty() && case.faults().is_empty() {
            // Nothing can change it any more.
            self.0.remove(&record.meta.id);
        }
    }

    fn reviewed(&mut self, record: &StoredEvent<CaseEvent>, reviewed: &GateReviewed) {
        let case = self.0.entry(record.meta.id.clone()).or_default();
        let review = (reviewed.heard.agent_id.clone(), record.sequence);
        case.reviewed.insert(reviewed.debate_id.clone(), review);
        if let Some(again) = &reviewed.again {
            case.opened(&again.conflict.conflict_id);
        }
    }

    /// Counts the decisions that do not follow, where nothing is in flight.
    pub(super) fn finish(&self, counts: &mut Counts, settled: &Settled) {
        for (id, case) in self.0.iter().filter(|(_, case)| !case.is_cancelled) {
            let faults = case.faults().into_iter();
            for (what, sequence) in faults.filter(|(_, sequence)| *sequence <= settled.events) {
                let place = place(Aggregate::Case, id);
                counts.violated(Invariant::DecisionFollows, place, Some(sequence), what);
            }
        }
    }
}

/// What the decision says about each debate that it names.
fn named(decision: &Decision) -> BTreeMap<DebateId, Option<Ended>> {
    let outcome_of = |id: &DebateId| {
        let mut outcomes = decision.outcomes.iter();
        outcomes
            .find(|outcome| outcome.conflict_id == *id)
            .map(ended)
    };
    decision
        .conflicts
        .iter()
        .map(|conflict| {
            (
                conflict.conflict_id.clone(),
                outcome_of(&conflict.conflict_id),
            )
        })
        .collect()
}

impl Case {
    /// A debate was opened after the decision: its outcome changes it.
    fn opened(&mut self, debate: &DebateId) {
        if let Some(decision) = &mut self.decision {
            decision.entry(debate.clone()).or_default();
        }
    }

    /// What the decision should say and does not, with the sequences of the events from which that follows.
    fn faults(&self) -> Vec<(String, u64)> {
        let Some(decision) = &self.decision else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        for (debate, (end, sequence)) in &self.ended {
            let said = decision.get(debate);
            if said.is_some_and(|said| said.as_ref() != Some(end)) {
                let said = said.and_then(|said| said.map(|(status, _)| status.as_str()));
                faults.push((
                    format!(
                        "The debate {debate} has ended as {}; the decision says {}.",
                        end.0,
                        said.unwrap_or("nothing")
                    ),
                    *sequence,
                ));
            }
        }
        for (debate, (by, sequence)) in &self.reviewed {
            let said = decision.get(debate).copied().flatten();
            if said.is_some_and(|(status, _)| status == Status::Provisional) {
                faults.push((
                    format!(
                        "{by} has reviewed {debate}; the decision still says that it is provisional."
                    ),
                    *sequence,
                ));
            }
        }
        faults
    }
}

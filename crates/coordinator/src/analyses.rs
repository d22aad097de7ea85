//! The analyses of a case: an agent publishes one, and what changes in the case is assessed.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_domain::aggregates::case::CaseState;
use concord_domain::aggregates::impact::{
    DecisionMoved, ImpactInput, ImpactMachine, ImpactState, ReceivedAnalysis, assumption_standings,
    debate_standings, moved_by, with_decisions,
};
use concord_domain::machine::Versioned;
use concord_domain::rules::impact::estimate::Standing;
use concord_domain::rules::impact::graph::Source;
use concord_events::{CaseEvent, DebateEvent, DetectionEvent, EventMeta, ImpactEvent, StoredEvent};
use concord_runtime::delivery::handlers;
use concord_runtime::delivery::{Ack, Delivery, HandleError};
use concord_runtime::{Consistency, Ports, Since};
use concord_wire::payload::ConflictOutcome;
use concord_wire::{CaseId, Envelope, Token};

use crate::shared::Shared;

/// What stands, by what it stands of.
type Standings = BTreeMap<Source, Standing>;

impl<P: Ports> Shared<P> {
    /// Steps for an analysis, once its decisions were compared with those of the case.
    pub(crate) async fn publish(
        &self,
        received: ReceivedAnalysis,
        envelope: Envelope,
        delivery: &Delivery,
    ) -> Result<Ack, HandleError> {
        let case_id = &received.case_id;
        let case = self.check_writer(case_id, &envelope.from_agent).await?;
        let (analyses, id) = (&self.analyses, case_id.token());
        let analysis = with_decisions(&case, received.analysis)?;
        let input = ImpactInput::Publish(Box::new(ReceivedAnalysis {
            analysis,
            ..received
        }));
        handlers::step_of_message(&self.service, analyses, id, envelope, &input, delivery).await
    }

    /// Assesses what the end of a debate changes, when the case has taken it into account.
    pub(crate) async fn heard_of_debate(
        &self,
        record: &StoredEvent<DebateEvent>,
    ) -> Result<(), HandleError> {
        let (case_id, outcome) = match &record.event {
            DebateEvent::Resolved(resolved) => (&resolved.case_id, &resolved.outcome),
            DebateEvent::FellBack(fell) => (&fell.case_id, &fell.outcome),
            _ => return Ok(()),
        };
        let standings = |case: &CaseState| {
            let late = BTreeMap::new();
            (debate_standings(case, &outcome.conflict_id), late)
        };
        self.assess(&record.meta, case_id, Some(outcome), standings)
            .await
    }

    /// Assesses what debates have changed that ended before their case had its conflicts, when the case has taken these into account. Only
    /// now is it known what they were about, and a case that is cancelled afterwards has no decision that would tell of them.
    pub(crate) async fn heard_of_conflicts(
        &self,
        record: &StoredEvent<DetectionEvent>,
    ) -> Result<(), HandleError> {
        let DetectionEvent::Completed(detected) = &record.event;
        let case_id = &detected.case_id;
        // The step on the case has left it in memory as it was with its conflicts, or later. Debates that end after them are told of by
        // their own end, and all of them by a decision.
        let case = self.cases.load_up_to(&case_id.token(), 1).await?.state;
        if case.outcomes.is_empty() || case.decision.is_some() {
            return Ok(());
        }
        let standings = |case: &CaseState| (BTreeMap::new(), assumption_standings(case, None));
        self.assess(&record.meta, case_id, None, standings).await
    }

    /// The analyses of a case as they were when the event at this sequence was stored. What was published since is not what that event
    /// speaks of, and would make what follows from it depend on when it is heard of.
    pub(crate) async fn analyses_at(
        &self,
        id: &Token,
        sequence: u64,
    ) -> Result<Arc<ImpactState>, HandleError> {
        let known = self.analyses.load_up_to(id, sequence).await?;
        if known.sequence() <= sequence {
            return Ok(known.state);
        }
        let ports = &self.service.ports;
        let loaded = ports.load::<ImpactEvent>(id, Since::FIRST, Consistency::Leader);
        let mut then = Versioned::<ImpactMachine>::default();
        for record in loaded.await?.records {
            if record.sequence <= sequence {
                then.apply(record);
            }
        }
        Ok(then.state)
    }

    /// Assesses what an event of the case changes.
    pub(crate) async fn heard_of_decision(
        &self,
        record: &StoredEvent<CaseEvent>,
    ) -> Result<(), HandleError> {
        let Some(moved) = moved_by(&record.event) else {
            return Ok(());
        };
        let Ok(case_id) = CaseId::new(record.meta.id.as_str()) else {
            return Ok(());
        };
        self.assess(&record.meta, &case_id, None, |case| moved.standings(case))
            .await
    }

    async fn assess(
        &self,
        meta: &EventMeta,
        case_id: &CaseId,
        outcome: Option<&ConflictOutcome>,
        standings: impl Fn(&CaseState) -> (Standings, Standings),
    ) -> Result<(), HandleError> {
        let id = case_id.token();
        let analyses = self.analyses.load(&id).await?.state;
        if analyses.graph.is_empty() {
            return Ok(());
        }
        let case = self.cases.load(&id).await?.state;
        let Some(opened) = &case.opened else {
            return Ok(());
        };
        let ruled_by = outcome.and_then(|outcome| outcome.ruled_by.as_ref());
        let (standings, late) = standings(&case);
        let moved = DecisionMoved {
            case_id: case_id.clone(),
            opened_by: opened.opened_by.clone(),
            debate_id: outcome.map(|outcome| outcome.conflict_id.clone()),
            status: outcome.map(|outcome| outcome.status),
            by: ruled_by.map(|ruled| ruled.expert.clone()),
            standings,
            late,
        };
        let context = self.service.of_event(meta.event_id.clone());
        let input = ImpactInput::Moved(Box::new(moved));
        let outcome = self.analyses.step(&id, &context, &input, None).await?;
        self.service.count_step::<ImpactMachine>(&outcome);
        Ok(())
    }
}

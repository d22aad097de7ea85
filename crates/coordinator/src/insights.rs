//! Checkpoints: what is held back of shared memory is told when the case comes to one, or the time is over. Every step follows from a
//! stored event, and the synthesis of the case says what was told already.

use concord_domain::Context;
use concord_domain::aggregates::case::{CaseMachine, CaseState, Phase, everyone_in};
use concord_domain::aggregates::memory::{entry_of, insight_of};
use concord_domain::aggregates::synthesis::{
    HELD_MAX, Known, SynthesisInput, SynthesisMachine, SynthesisState,
};
use concord_events::{
    CaseEvent, DeadlineElapsed, DetectionEvent, EventMeta, MemoryEvent, StoredEvent,
};
use concord_runtime::Ports;
use concord_runtime::delivery::{Ack, Delivery, HandleError, handlers};
use concord_wire::payload::{CheckpointReason, Insight, Reach};
use concord_wire::{CaseId, Token};

use crate::route::noted;
use crate::shared::Shared;

impl<P: Ports> Shared<P> {
    /// An entry was written: its estimate is compared, and it is held back, where it is to be.
    pub(crate) async fn heard_of_memory(
        &self,
        record: &StoredEvent<MemoryEvent>,
    ) -> Result<(), HandleError> {
        self.note(record).await?;
        let MemoryEvent::Put(put) = &record.event;
        let (Some(case_id), Some(reach)) = (&put.case_id, &put.reach) else {
            return Ok(());
        };
        if reach.reach != Reach::Held {
            return Ok(());
        }
        let case = self.cases.load(&case_id.token()).await?.state;
        let Some(opened) = &case.opened else {
            return Ok(());
        };
        let every_ms = opened.policy.importance.synthesis_every_ms;
        let insight = insight_of(&entry_of(record));
        let synthesis = self.syntheses.load(&case_id.token()).await?.state;
        let is_checkpoint = synthesis.is_over || synthesis.held.len() + 1 >= HELD_MAX;
        let known = if is_checkpoint {
            self.known((case_id, &case), &synthesis, Some(&insight))
                .await?
        } else {
            Known {
                everyone: everyone_in(opened),
                ..Known::default()
            }
        };
        let input = SynthesisInput::Hold {
            case_id: case_id.clone(),
            insight,
            every_ms,
            known,
        };
        let context = self.service.of_event(record.meta.event_id.clone());
        self.synthesise(case_id, &context, &input).await
    }

    /// A case that still collects findings compares what its participants write.
    async fn note(&self, record: &StoredEvent<MemoryEvent>) -> Result<(), HandleError> {
        let Some((id, input)) = noted(record) else {
            return Ok(());
        };
        let case = self.cases.load(&id).await?.state;
        let opened = case.opened.as_ref();
        let compared = opened.is_some_and(|opened| opened.policy.estimates.compared);
        if !compared || case.phase != Phase::Collecting {
            return Ok(());
        }
        let context = self.service.of_event(record.meta.event_id.clone());
        let outcome = self.cases.step(&id, &context, &input, None).await?;
        self.service.count_step::<CaseMachine>(&outcome);
        Ok(())
    }

    /// The conflicts of a case were detected.
    pub(crate) async fn heard_of_detection(
        &self,
        record: &StoredEvent<DetectionEvent>,
    ) -> Result<(), HandleError> {
        let DetectionEvent::Completed(detected) = &record.event;
        let context = self.service.of_event(record.meta.event_id.clone());
        let id = detected.case_id.token();
        if !self.tells(&id).await? {
            return Ok(());
        }
        let case = self.cases.load(&id).await?.state;
        self.checkpoint(
            &detected.case_id,
            &case,
            &context,
            CheckpointReason::Detected,
        )
        .await
    }

    /// A case has gone on: where it is over, was decided or has passed a gate, that is a checkpoint.
    pub(crate) async fn checkpoint_of_case(
        &self,
        record: &StoredEvent<CaseEvent>,
    ) -> Result<(), HandleError> {
        let reason = match &record.event {
            CaseEvent::Decided(_) => Some(CheckpointReason::Decided),
            CaseEvent::GatePassed(_) => Some(CheckpointReason::GatePassed),
            CaseEvent::DecisionChanged(_)
            | CaseEvent::GateReviewed(_)
            | CaseEvent::Cancelled(_) => None,
            _ => return Ok(()),
        };
        let Ok(case_id) = CaseId::new(record.meta.id.as_str()) else {
            return Ok(());
        };
        if !self.tells(&record.meta.id).await? {
            return Ok(());
        }
        let case = self.cases.load(&record.meta.id).await?.state;
        let reason = if case.is_over() {
            Some(CheckpointReason::CaseOver)
        } else {
            reason
        };
        let Some(reason) = reason else {
            return Ok(());
        };
        let context = self.service.of_event(record.meta.event_id.clone());
        self.checkpoint(&case_id, &case, &context, reason).await
    }

    /// The time is over until which something was held back.
    pub(crate) async fn synthesis_elapsed(
        &self,
        delivery: &Delivery,
        elapsed: DeadlineElapsed,
    ) -> Result<Ack, HandleError> {
        let context = self
            .service
            .of_event(EventMeta::decode(&delivery.payload)?.event_id);
        let id = elapsed.id.clone();
        let Ok(case_id) = CaseId::new(id.as_str()) else {
            self.service.count_ignored("no_case");
            return Ok(Ack::Acknowledge);
        };
        let case = self.cases.load(&id).await?.state;
        let synthesis = self.syntheses.load(&id).await?.state;
        let known = self.known((&case_id, &case), &synthesis, None).await?;
        let input = SynthesisInput::Elapsed {
            elapsed,
            case_id,
            known,
        };
        let (service, syntheses) = (&self.service, &self.syntheses);
        handlers::step(
            service,
            syntheses,
            id,
            context,
            &input,
            delivery.trace.clone(),
        )
        .await
    }

    /// Whether the policy of a case tells of entries; known from memory, because a case keeps the policy that it was opened with.
    async fn tells(&self, case: &Token) -> Result<bool, HandleError> {
        let case = self.cases.load_up_to(case, 1).await?.state;
        let opened = case.opened.as_ref();
        Ok(opened.is_some_and(|opened| opened.policy.importance.filtered))
    }

    async fn checkpoint(
        &self,
        case_id: &CaseId,
        case: &CaseState,
        context: &Context,
        reason: CheckpointReason,
    ) -> Result<(), HandleError> {
        let synthesis = self.syntheses.load(&case_id.token()).await?.state;
        let input = SynthesisInput::Checkpoint {
            case_id: case_id.clone(),
            reason,
            known: self.known((case_id, case), &synthesis, None).await?,
        };
        self.synthesise(case_id, context, &input).await
    }

    async fn synthesise(
        &self,
        case_id: &CaseId,
        context: &Context,
        input: &SynthesisInput,
    ) -> Result<(), HandleError> {
        let id = case_id.token();
        let outcome = self.syntheses.step(&id, context, input, None).await?;
        self.service.count_step::<SynthesisMachine>(&outcome);
        Ok(())
    }

    /// Who is told, which versions stand of what is held back, and what was told at once.
    async fn known(
        &self,
        (case_id, case): (&CaseId, &CaseState),
        synthesis: &SynthesisState,
        last: Option<&Insight>,
    ) -> Result<Known, HandleError> {
        let opened = case.opened.as_ref();
        let mut known = Known {
            everyone: opened.map(|opened| everyone_in(opened)).unwrap_or_default(),
            ..Known::default()
        };
        for insight in synthesis.held.values().chain(last) {
            let memory = self.memories.load(&insight.agent.token()).await?.state;
            let stands = memory.topics.get(&insight.topic);
            if let Some(stands) = stands {
                let place: (Token, _) = (insight.topic.clone(), insight.agent.clone());
                known.standing.insert(place, stands.listing.version);
            }
        }
        for agent in &known.everyone {
            let memory = self.memories.load(&agent.token()).await?.state;
            let entries = memory.topics.values();
            let told = entries.filter(|entry| {
                let listing = &entry.listing;
                let reach = listing.reach.as_ref().map(|reach| reach.reach);
                listing.case_id.as_ref() == Some(case_id) && reach == Some(Reach::Broadcast)
            });
            known.shared.extend(told.map(|entry| insight_of(entry)));
        }
        // As many as are held back at most: the last ones.
        known.shared.sort_by_key(|insight| insight.since);
        let before = known.shared.len().saturating_sub(HELD_MAX);
        known.shared.drain(..before);
        Ok(known)
    }
}

//! Bugs of the ladder that can be planted: steps done on something else than what is known.

use concord_domain::aggregates::debate::MessageBody;
use concord_domain::aggregates::debate::{DebateInput, DebateMachine};
use concord_domain::aggregates::review_queue::{self, QueueInput, ReviewQueueMachine};
use concord_domain::machine::Versioned;
use concord_domain::{Context, Decision, Machine};
use concord_events::{DebateEvent, EARLIER_MAX, StoredEvent};
use concord_runtime::{Consistency, EventStore, Loaded, Routed};
use concord_wire::Token;

use crate::faults::Plant;
use crate::ledger::SimLedger;
use crate::process::{HandleError, Process};

/// The queue is asked for the next assignment as if nobody had a debate. True when that was done.
pub(crate) async fn assigned_badly(
    process: &Process,
    context: &Context,
    input: &QueueInput,
) -> Result<bool, HandleError> {
    if process.connection.plant() != Some(Plant::QueueIgnoresLoad)
        || !matches!(input, QueueInput::Advance)
    {
        return Ok(false);
    }
    let forget = |known: &mut Versioned<ReviewQueueMachine>| {
        known
            .state
            .experts
            .values_mut()
            .for_each(|desk| desk.held.clear());
    };
    decided_on(
        &process.ledger,
        &review_queue::id(),
        context,
        input,
        |_| true,
        forget,
    )
    .await?;
    Ok(true)
}

/// What a ruling is taken for. None when it has been dealt with.
pub(crate) async fn ruled_badly(
    process: &Process,
    context: &Context,
    routed: Routed<DebateInput>,
) -> Result<Option<Routed<DebateInput>>, HandleError> {
    let plant = process.connection.plant();
    let Routed::Step {
        id,
        input: DebateInput::Message(said),
    } = &routed
    else {
        return Ok(Some(routed));
    };
    let MessageBody::Ruling(ruling) = &said.body else {
        return Ok(Some(routed));
    };
    if plant == Some(Plant::RulingOutOfTime) {
        let in_time = |record: &StoredEvent<DebateEvent>| {
            !matches!(
                record.event,
                DebateEvent::FellBack(_) | DebateEvent::AwaitsGate(_)
            )
        };
        let input = DebateInput::Message(said.clone());
        if decided_on::<DebateMachine>(&process.ledger, id, context, &input, in_time, |_| {})
            .await?
        {
            return Ok(None);
        }
    }
    if plant == Some(Plant::RulingOnOldBrief) {
        let records = process
            .ledger
            .load::<DebateEvent>(id, 0, Consistency::Leader)
            .await?
            .records;
        let state = concord_domain::assurance::replay::rebuild::<DebateMachine>(&records)
            .0
            .state;
        if let Some(digest) = state.ladder.and_then(|ladder| ladder.digest) {
            let (mut said, mut ruling) = (said.clone(), ruling.clone());
            ruling.digest = digest;
            said.body = MessageBody::Ruling(ruling);
            return Ok(Some(Routed::Step {
                id: id.clone(),
                input: DebateInput::Message(said),
            }));
        }
    }
    Ok(Some(routed))
}

/// Decides on those facts only that `counts` lets through and on what `forget` leaves of them, and appends the fact all
/// the same. True when one was stored.
async fn decided_on<M: Machine>(
    ledger: &SimLedger,
    id: &Token,
    context: &Context,
    input: &M::Input,
    counts: impl Fn(&StoredEvent<M::Event>) -> bool,
    forget: impl Fn(&mut Versioned<M>),
) -> Result<bool, HandleError> {
    let Loaded { records, head } = ledger.load::<M::Event>(id, 0, Consistency::Leader).await?;
    let mut known = Versioned::<M>::default();
    for record in records {
        if counts(&record) {
            known.apply(record);
        } else {
            concord_domain::event_chain::remember(
                &mut known.sequences,
                record.sequence,
                EARLIER_MAX,
            );
        }
    }
    forget(&mut known);
    let Decision::Append(event) = M::decide(&known.state, context, input) else {
        return Ok(false);
    };
    let record = known.record(id, context, event);
    Ok(matches!(
        ledger.append(&record, head, None).await?,
        concord_runtime::Appended::Stored(_)
    ))
}

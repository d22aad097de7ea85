//! What operators did with a debate in the review queue, which the debate's own events do not say.

use std::collections::BTreeMap;

use concord_domain::aggregates::review_queue;
use concord_events::{Aggregate, ReviewQueueEvent, StoredEvent};
use concord_runtime::Broker;
use concord_wire::{AgentId, DebateId, MessageId};
use serde::Serialize;

use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;

/// Who did something, and why.
#[derive(Debug, Serialize)]
pub(super) struct Reason {
    pub(super) by: AgentId,
    pub(super) why: String,
}

/// Who gave debates to somebody else, and why, by the id of the event in the queue.
pub(super) type Reassigned = BTreeMap<MessageId, Reason>;

/// Who gave the debate to somebody else. Nothing for whoever may not read the queue.
pub(super) async fn reassigned(broker: &Broker, debate: &DebateId) -> Result<Reassigned, Failure> {
    let mut reassigned = Reassigned::new();
    let query = EventQuery::of(Aggregate::ReviewQueue, &review_queue::id()).named(&["reassigned"]);
    let source = EventSource::new(broker).await?;
    let read = source.for_each(&query, "reading the queue", |stored| {
        let StoredEvent { meta, event, .. } = event_of::<ReviewQueueEvent>(&stored)?;
        if let ReviewQueueEvent::Reassigned(one) = event
            && one.debate_id == *debate
        {
            let (by, why) = (one.by, one.why);
            reassigned.insert(meta.event_id, Reason { by, why });
        }
        Ok(())
    });
    match read.await {
        // Whoever opened a case reads its debates, and not the queue.
        Err(failure) if !failure.is_unauthorized() => Err(failure),
        _ => Ok(reassigned),
    }
}

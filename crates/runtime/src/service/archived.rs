//! Knowing what is archived: new events of the archive are few, so they are looked for every few seconds. Those of years are many and
//! each names its cases, so at the start they are taken one by one.

use std::ops::ControlFlow;
use std::time::Duration;

use concord_domain::aggregates::archive::archive_id;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, ArchiveEvent, StoredEvent};

use crate::broker::{log_reader, non_event};
use crate::error_chain::ErrorChain;
use crate::event_store::{Consistency, Error, EventStore, Since};
use crate::service::ServiceRunner;

/// How often is looked. What is sealed is removed from the streams only when every process has looked several times.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Waits until what is archived already is known, and goes on looking until the service stops.
pub(super) async fn follow(runner: &ServiceRunner) {
    if let Err(error) = read_all(runner).await {
        tracing::warn!(error = %ErrorChain(&error), "What is archived cannot be read in order; reading it from the last event on.");
    }
    look(runner).await;
    let followed = runner.clone();
    runner.spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = followed.stop.cancelled() => return,
            }
            look(&followed).await;
        }
    });
}

/// Looks until the broker answers, or the service stops.
async fn look(runner: &ServiceRunner) {
    while let Err(error) = read(runner).await {
        tracing::warn!(error = %ErrorChain(&error), "What is archived cannot be read; trying again.");
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            () = runner.stop.cancelled() => return,
        }
    }
}

async fn read(runner: &ServiceRunner) -> Result<(), Error> {
    let sealed = &runner.broker.sealed;
    let since = Since {
        after: sealed.sequence(),
        form: None,
    };
    let loaded = runner
        .ports
        .load::<ArchiveEvent>(&archive_id(), since, Consistency::Leader)
        .await?;
    for record in loaded.records {
        sealed.apply(runner.service, record.sequence, record.event);
    }
    Ok(())
}

/// Takes all events of the archive into account, as they come.
async fn read_all(runner: &ServiceRunner) -> Result<(), Error> {
    let (kind, broker) = (StreamKind::Events, &runner.broker);
    let id = archive_id();
    let filters = [broker.subjects().events_of(Aggregate::Archive, &id)];
    if log_reader::last(broker, kind, &filters).await?.is_none() {
        return Ok(());
    }
    let mut unreadable = None;
    let reading = log_reader::read_matching(broker, kind, &filters, 1, |message| {
        if non_event::of_stored(Some(&message.headers), &message.payload).is_some() {
            return ControlFlow::Continue(());
        }
        let sequence = message.sequence;
        match StoredEvent::<ArchiveEvent>::decode(&message.payload, sequence) {
            Ok(record) => {
                broker.sealed.apply(runner.service, sequence, record.event);
                ControlFlow::Continue(())
            }
            Err(source) => {
                unreadable = Some(Error::Unreadable { sequence, source });
                ControlFlow::Break(())
            }
        }
    });
    reading.await?;
    unreadable.map_or(Ok(()), Err)
}

//! Knowing what is archived: the events of the archive are few, so they are looked for every few seconds.

use std::time::Duration;

use concord_domain::aggregates::archive::archive_id;
use concord_events::ArchiveEvent;

use crate::error_chain::ErrorChain;
use crate::event_store::{Consistency, Error, EventStore, Since};
use crate::service::ServiceRunner;

/// How often is looked. What is sealed is removed from the streams only when every process has looked several times.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Waits until what is archived already is known, and goes on looking until the service stops.
pub(super) async fn follow(runner: &ServiceRunner) {
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

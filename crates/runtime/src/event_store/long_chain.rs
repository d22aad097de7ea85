//! Reading an aggregate of many events without having them in memory at once.

use concord_domain::event_chain::Chain;
use concord_events::{AggregateEvent, EARLIER_MAX, StoredEvent};
use futures::future::try_join_all;

use crate::event_store::{Error, EventStore, Since};

/// Shows `each` the events of an aggregate that are wanted, up to its last one, in order.
///
/// Events are found from the last one on, and applied from the first one on. Where the last one does not name all of them, only
/// their sequences are kept on the way to the first, and each is read again.
pub(super) async fn each<E: AggregateEvent>(
    store: &impl EventStore,
    last: StoredEvent<E>,
    since: Since,
    mut each: impl FnMut(StoredEvent<E>) + Send,
) -> Result<(), Error> {
    let mut chain = Chain::new(last, since.after, since.form);
    chain.found(at(store, &chain.missing()).await?);
    if chain.missing().is_empty() {
        chain.into_records().into_iter().for_each(each);
        return Ok(());
    }
    let sequences = sequences(store, chain, since).await?;
    for page in sequences.chunks(EARLIER_MAX) {
        at(store, page).await?.into_iter().for_each(&mut each);
    }
    Ok(())
}

/// The sequences of all events that are wanted, in order.
async fn sequences<E: AggregateEvent>(
    store: &impl EventStore,
    mut chain: Chain<E>,
    since: Since,
) -> Result<Vec<u64>, Error> {
    // The last one first.
    let mut sequences: Vec<u64> = Vec::new();
    loop {
        let missing = chain.missing();
        let is_all = missing.is_empty();
        chain.found(at(store, &missing).await?);
        let records = chain.into_records();
        let found = records.iter().map(|record| record.sequence).rev();
        // The oldest of the round before is the first of this one.
        let known = sequences.last().copied().unwrap_or(u64::MAX);
        sequences.extend(found.filter(|sequence| *sequence < known));
        match records.into_iter().next() {
            Some(oldest) if !is_all => chain = Chain::new(oldest, since.after, since.form),
            _ => break,
        }
    }
    sequences.reverse();
    Ok(sequences)
}

async fn at<E: AggregateEvent>(
    store: &impl EventStore,
    sequences: &[u64],
) -> Result<Vec<StoredEvent<E>>, Error> {
    let fetched = sequences.iter().map(|sequence| store.at(*sequence));
    try_join_all(fetched).await
}

//! Payloads that are too large for a message: fetched from the object store where a message is read.

use std::time::Duration;

use concord_encoding::PayloadReference;
use concord_wire::Envelope;
use tokio::time::timeout;

use crate::broker::{Broker, Operation, payload_store};
use crate::codec::Error;

/// How long an object may take.
const FETCH_MAX: Duration = Duration::from_secs(10);

/// A message with its payload, wherever that is. An object that is not what the message says is the sender's fault; a broker
/// that does not answer is not.
pub(crate) async fn whole(broker: &Broker, envelope: Envelope) -> Result<Envelope, Error> {
    match PayloadReference::of(&envelope.payload)? {
        None => Ok(envelope),
        // Boxed: it is rare and large, and every message's task would have to have room for it.
        Some(reference) => Box::pin(fetched(broker, envelope, reference)).await,
    }
}

async fn fetched(
    broker: &Broker,
    envelope: Envelope,
    reference: PayloadReference,
) -> Result<Envelope, Error> {
    reference.check(
        &broker.layout.payload_bucket(),
        broker.payload_store.bytes_max,
    )?;
    let permit = broker.payload_store.fetches.acquire().await;
    let _permit = permit.map_err(|error| Operation::FetchPayload.failed(error))?;
    let connects = broker.connects();
    let fetched = timeout(FETCH_MAX, fetch(broker, &reference)).await;
    let bytes = fetched.map_err(|elapsed| {
        // What was asked of a broker that has gone is not answered, whether it is there or not.
        if broker.is_connected() && broker.connects() == connects {
            Error::Refused(reference.missing())
        } else {
            Operation::FetchPayload.failed(elapsed).into()
        }
    })??;
    // Elsewhere: to read megabytes takes as long as to handle a thousand messages, which would wait for this thread.
    let verified = tokio::task::spawn_blocking(move || reference.verified(bytes)).await;
    let payload = verified.map_err(|error| Operation::FetchPayload.failed(error))??;
    // What this task has woken goes before what is now done with the payload.
    tokio::task::yield_now().await;
    Ok(Envelope {
        payload,
        ..envelope
    })
}

/// At most as many bytes as the reference says, whatever the object says of itself.
async fn fetch(broker: &Broker, reference: &PayloadReference) -> Result<Vec<u8>, Error> {
    let described = payload_store::described(broker, &reference.object).await?;
    let described = described.ok_or_else(|| Error::Refused(reference.missing()))?;
    if described.size > reference.size {
        return Err(reference.larger().into());
    }
    // It is known to be within bounds; to grow would take twice as much.
    let mut bytes = Vec::with_capacity(usize::try_from(reference.size).unwrap_or_default());
    let mut after = 0;
    while (bytes.len() as u64) < reference.size {
        let part = payload_store::part_after(broker, &described.nuid, after).await?;
        let part = part.ok_or_else(|| Error::Refused(reference.missing()))?;
        after = part.sequence;
        bytes.extend_from_slice(&part.payload);
    }
    match bytes.len() as u64 > reference.size {
        true => Err(reference.larger().into()),
        false => Ok(bytes),
    }
}

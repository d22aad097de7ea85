//! Payloads that are too large for a message, for whoever has no right on the object store: the verbs `put_payload` and `payload` of the
//! coordinator, part by part. A part is stored when it is answered; nothing is kept in the process between two requests.
//!
//! What an agent puts is an object under its own name, which the agent can neither change nor remove afterwards. It is given the payloads
//! whose size and digest it knows: those of the messages that it was sent. See `docs/adr/0093`.

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID, NATS_ROLLUP};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use concord_encoding::PayloadReference;
use concord_encoding::parts::{AskedPart, PART_BYTES, Part, PartStored, PutPart, object_subject};
pub use concord_encoding::parts::{PAYLOAD, PUT_PAYLOAD};
use concord_wire::envelope::from_json;
use concord_wire::{AgentId, ErrorCode, Fault, Timestamp};
use serde_json::json;

use crate::broker::{Broker, Operation, Unavailable, payload_store, publish};
use crate::error_chain::ErrorChain;
use crate::ports::Clock;
use crate::service::ServiceRunner;
use crate::service::api::{self, Verb, answer};
use crate::service::under_way::UnderWay;

/// Most bytes of a part that is given: as base64 it fits into a message of the broker. Other clients may have stored larger ones.
const GIVEN_BYTES_MAX: usize = 700 << 10;

/// Answers `put_payload`: takes one part of a payload.
pub fn put(runner: &ServiceRunner) -> Verb {
    let ports = runner.context().ports.clone();
    api::verb(
        (ports, UnderWay::of_pages()),
        |(ports, under_way), call| async move {
            let (broker, now) = (&ports.broker, ports.now());
            let put: PutPart = from_json(&call.body, "")?;
            let _place = under_way.place(&call)?;
            let Some(caller) = &call.caller else {
                return Err(Fault::invalid(
                    "",
                    "Nobody is named who puts the payload.",
                    "Ask under a name, as docs/subjects.md says; an operator may use the object store itself.",
                ));
            };
            answer(&store(broker, &caller.name, &put, now).await?)
        },
    )
}

/// Answers `payload`: gives the next part of a payload.
pub fn get(runner: &ServiceRunner) -> Verb {
    api::verb(
        (runner.broker.clone(), UnderWay::of_pages()),
        |(broker, under_way), call| async move {
            let asked: AskedPart = from_json(&call.body, "")?;
            let _place = under_way.place(&call)?;
            answer(&given(&broker, &asked).await?)
        },
    )
}

/// Stores a part, and with the last one says what the object is.
async fn store(
    broker: &Broker,
    owner: &AgentId,
    put: &PutPart,
    now: Timestamp,
) -> Result<PartStored, Fault> {
    let bytes = put.bytes(broker.payload_store.bytes_max)?;
    let (bucket, nuid) = (broker.layout.payload_bucket(), put.nuid(owner));
    let subject = put.subject(&bucket, owner);
    let id = format!("{nuid}-{}", put.part);
    let after = match check_share(broker, owner, put).await {
        Ok(()) => {
            let part = (id, put.after);
            once(broker, subject, part, HeaderMap::new(), bytes.into()).await?
        }
        // What is stored already is answered as before.
        Err(fault) => stored_as(broker, &subject, &id).await?.ok_or(fault)?,
    };
    if !put.is_last() {
        let reference = None;
        return Ok(PartStored { after, reference });
    }
    let object = put.object(owner);
    // The form in which every client of the object store reads it.
    let info = json!({
        "name": object, "bucket": bucket, "nuid": nuid, "size": put.size, "chunks": put.parts(),
        "digest": put.digest, "mtime": now, "options": { "max_chunk_size": PART_BYTES },
    });
    let mut whole = HeaderMap::new();
    whole.insert(NATS_ROLLUP, "sub");
    let subject = object_subject(&bucket, &object);
    let id = format!("{nuid}-whole");
    once(broker, subject, (id, 0), whole, info.to_string().into()).await?;
    let reference = PayloadReference {
        bucket,
        object,
        size: put.size,
        digest: put.digest.clone(),
    };
    Ok(PartStored {
        after,
        reference: Some(reference),
    })
}

/// Stores something under an id behind what is the last there: its sequence. The same again is stored once, and nothing in the place of
/// something else.
async fn once(
    broker: &Broker,
    subject: String,
    (id, after): (String, u64),
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<u64, Fault> {
    headers.insert(NATS_MESSAGE_ID, id.as_str());
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string());
    match broker.store(subject.clone(), headers, body).await {
        Ok(stored) => Ok(stored.sequence),
        Err(error @ publish::Error::Moved) => stored_as(broker, &subject, &id)
            .await?
            .ok_or_else(|| refused(&error)),
        Err(error) => Err(refused(&error)),
    }
}

/// The sequence of what is the last on a subject, if it was stored under this id.
async fn stored_as(broker: &Broker, subject: &str, id: &str) -> Result<Option<u64>, Fault> {
    let bucket = broker.layout.payload_bucket();
    let there = last(broker, &bucket, subject).await?.filter(|there| {
        let known = there.headers.get(NATS_MESSAGE_ID);
        known.is_some_and(|known| known.as_str() == id)
    });
    Ok(there.map(|there| there.sequence))
}

/// Refuses a part for which its owner's share of the store has no room. The first part of a payload needs room for all of them, so that
/// nothing is begun that cannot be ended. Parts that come at the same moment may each find the same room: an owner has few under way.
async fn check_share(broker: &Broker, owner: &AgentId, put: &PutPart) -> Result<(), Fault> {
    let most = broker.payload_store.agent_bytes_max;
    if most == 0 {
        return Ok(());
    }
    let more = if put.part == 0 { put.parts() } else { 1 } * PART_BYTES;
    let room = most.checked_sub(more);
    let is_full = match room {
        Some(room) => payload_store::has_more_than(broker, owner, room)
            .await
            .map_err(|error| unread(&error))?,
        None => true,
    };
    if !is_full {
        return Ok(());
    }
    let what = format!(
        "With {more} bytes more {owner} would have more payloads over 1 MB stored than the {most} bytes that an agent may have at once; \
         each part counts as {PART_BYTES}."
    );
    let kept = match broker.payload_store.days {
        0 => "for ever".to_owned(),
        days => format!("for {days} days"),
    };
    let advice = format!(
        "Send less, or send it when earlier ones have expired: each is kept {kept}. An operator gives agents more with \
         storage.payload_agent_bytes_max."
    );
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/size",
        what,
        advice,
    ))
}

fn refused(error: &publish::Error) -> Fault {
    let (code, advice) = match error {
        publish::Error::Moved => {
            let what = "Something else stands there: the parts of this upload came in another order, or an upload had this name before.";
            return Fault::invalid(
                "/upload",
                what,
                "Put the payload again, under another name.",
            );
        }
        publish::Error::Full(_) => (ErrorCode::CapacityExceeded, "Send it later, or less of it."),
        _ => (ErrorCode::InternalError, "Send the part again."),
    };
    let what = format!("The part was not stored: {}.", ErrorChain(error));
    Fault::new(code, "", what, advice)
}

/// The part after the one that stands there.
async fn given(broker: &Broker, asked: &AskedPart) -> Result<Part, Fault> {
    let reference = &asked.reference;
    let (bucket, most) = (
        broker.layout.payload_bucket(),
        broker.payload_store.bytes_max,
    );
    reference.check(&bucket, most)?;
    let permit = broker.payload_store.fetches.acquire().await;
    let _permit = permit.map_err(|error| unread(&Operation::FetchPayload.failed(error)))?;
    let described = payload_store::described(broker, &reference.object).await;
    let described = described.map_err(|error| unread(&error))?;
    // Whoever knows a name alone is not told what there is.
    let described = described
        .filter(|it| it.size == reference.size && it.digest.as_ref() == Some(&reference.digest))
        .ok_or_else(|| reference.missing())?;
    let found = payload_store::part_after(broker, &described.nuid, asked.after).await;
    match found.map_err(|error| unread(&error))? {
        Some(found) if found.payload.len() > GIVEN_BYTES_MAX => Err(Fault::new(
            ErrorCode::CapacityExceeded,
            "/reference/object",
            format!(
                "A part of it has {} bytes; at most {GIVEN_BYTES_MAX} can be given.",
                found.payload.len()
            ),
            "Have it put in smaller parts, as the client libraries do.",
        )),
        Some(found) => Ok(Part::new(found.sequence, &found.payload)),
        None => Err(reference.missing()),
    }
}

/// The last message on a subject of the bucket.
async fn last(
    broker: &Broker,
    bucket: &str,
    subject: &str,
) -> Result<Option<StreamMessage>, Fault> {
    let stream = broker
        .jetstream
        .get_stream_no_info(format!("OBJ_{bucket}"))
        .await;
    let stream = stream.map_err(|error| unread(&Operation::FetchPayload.failed(error)))?;
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(unread(&Operation::FetchPayload.failed(error))),
    }
}

fn unread(error: &Unavailable) -> Fault {
    let what = format!("The payload could not be fetched: {}.", ErrorChain(error));
    Fault::new(ErrorCode::InternalError, "", what, "Ask again.")
}

//! The copy of one stream, as the broker makes it.

use std::path::Path;
use std::time::Duration;

use async_nats::Subscriber;
use concord_runtime::Broker;
use concord_wire::hex::hex;
use futures::StreamExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::shared::broker_api;
use crate::shared::failure::Failure;
use crate::shared::own_folder::{self, cannot};

use super::directory::{self, StreamCopy};

/// How many bytes the broker sends in a message.
const CHUNK_BYTES: usize = 128 * 1_024;
/// How long the broker may be silent in the middle of a copy.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Writes the copy of a stream that there is.
pub(super) async fn copy(
    broker: &Broker,
    stream: &str,
    into: &Path,
) -> Result<StreamCopy, Failure> {
    let connects = broker.connects();
    let inbox = broker.client.new_inbox();
    let mut chunks = broker
        .client
        .subscribe(inbox.clone())
        .await
        .map_err(|error| Failure::unavailable(error.to_string()))?;
    // Let it check its own checksums first: a copy of what is broken is none.
    let body = json!({ "deliver_subject": inbox, "no_consumers": false, "chunk_size": CHUNK_BYTES, "jsck": true });
    let subject = format!("$JS.API.STREAM.SNAPSHOT.{stream}");
    let Some(begun) = broker_api::ask(broker, subject, &body).await? else {
        return Err(Failure::failed(format!(
            "{stream} was removed before it was copied; begin again, with an empty directory"
        )));
    };
    let folder = directory::folder(into, stream);
    own_folder::new_folder(&folder)?;
    let described = json!({ "config": begun.get("config"), "state": begun.get("state") });
    let described = directory::write(&directory::description(into, stream), &described)?;
    let path = directory::contents(into, stream);
    let received = receive(broker, stream, &mut chunks, &path);
    let (bytes, sha256) = tokio::select! {
        received = received => received?,
        lost = broker_api::lost(broker, connects) => return Err(lost),
    };
    own_folder::sync_folder(&folder)?;
    let number = |name: &str| {
        begun
            .pointer(&format!("/state/{name}"))
            .and_then(Value::as_u64)
    };
    Ok(StreamCopy {
        stream: stream.to_owned(),
        messages: number("messages").unwrap_or(0),
        first_sequence: number("first_seq").unwrap_or(0),
        last_sequence: number("last_seq").unwrap_or(0),
        consumers: number("consumer_count").unwrap_or(0),
        bytes,
        sha256,
        described_sha256: described,
    })
}

/// Writes the contents that the broker sends: how many bytes that were, and their SHA-256.
async fn receive(
    broker: &Broker,
    stream: &str,
    chunks: &mut Subscriber,
    path: &Path,
) -> Result<(u64, String), Failure> {
    // Not by another thread, which could make it when the directory of a copy that failed is being removed.
    let mut file = tokio::fs::File::from_std(own_folder::new_file(path)?);
    let (mut sum, mut bytes) = (Sha256::new(), 0);
    loop {
        let chunk = timeout(SILENCE_MAX, chunks.next()).await.ok().flatten();
        let Some(chunk) = chunk else {
            return Err(Failure::failed(format!(
                "the broker has stopped in the middle of the copy of {stream}; begin again, with an empty directory"
            )));
        };
        if chunk.payload.is_empty() {
            check_end(stream, &chunk)?;
            break;
        }
        file.write_all(&chunk.payload)
            .await
            .map_err(|error| cannot("written", path, &error))?;
        sum.update(&chunk.payload);
        bytes += chunk.payload.len() as u64;
        // The broker sends no more than a window that was not acknowledged.
        if let Some(reply) = chunk.reply {
            let acknowledged = broker.client.publish(reply, "".into()).await;
            acknowledged.map_err(|error| Failure::unavailable(error.to_string()))?;
        }
    }
    let synced = file.sync_all().await;
    synced.map_err(|error| cannot("written", path, &error))?;
    Ok((bytes, hex(&sum.finalize())))
}

/// The last message of a copy is empty, and says by its status whether it is complete.
fn check_end(stream: &str, last: &async_nats::Message) -> Result<(), Failure> {
    match last.status.map(u16::from) {
        None | Some(204) => Ok(()),
        Some(status) => Err(Failure::failed(format!(
            "the broker could not copy {stream}: {status} {}",
            last.description.as_deref().unwrap_or_default()
        ))),
    }
}

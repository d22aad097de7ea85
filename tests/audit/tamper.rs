//! Ways to change what a broker has stored, with nothing but JetStream's own requests.

use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use concord_events::topology::StreamKind;
use concord_testkit::{layout, stored};
use serde_json::Value;

/// A message as it is stored again.
pub(crate) struct Entry {
    pub(crate) subject: String,
    headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl Entry {
    /// Replaces the value at a JSON pointer.
    pub(crate) fn set(&mut self, pointer: &str, value: Value) {
        let mut body: Value = serde_json::from_slice(&self.payload).expect("an event is JSON");
        let place = body.pointer_mut(pointer);
        *place.unwrap_or_else(|| panic!("{} has no {pointer}", self.subject)) = value;
        self.payload = body.to_string().into();
    }
}

fn name(kind: StreamKind) -> String {
    layout().stream_name(kind)
}

async fn stream(client: &Client, kind: StreamKind) -> (Context, jetstream::stream::Stream) {
    let jetstream = jetstream::new(client.clone());
    let stream = jetstream.get_stream(name(kind)).await.expect("the stream");
    (jetstream, stream)
}

/// Purges a stream of what matches a filter.
pub(crate) async fn purge(client: &Client, kind: StreamKind, filter: &str) {
    let (_, stream) = stream(client, kind).await;
    let purged = stream.purge().filter(filter).await.expect("it is purged");
    assert!(purged.purged > 0, "nothing matched {filter}");
}

/// Deletes a stream and stores what `change` leaves of it anew, at the sequences from 1 on.
pub(crate) async fn rewrite(
    client: &Client,
    kind: StreamKind,
    change: impl FnOnce(&mut Vec<Entry>),
) {
    let all = stored(client, kind, ">").await.expect("the stream");
    let mut entries: Vec<Entry> = all
        .into_iter()
        .map(|one| Entry {
            subject: one.subject,
            headers: one.headers,
            payload: one.payload,
        })
        .collect();
    change(&mut entries);
    let (jetstream, stream) = stream(client, kind).await;
    let config = stream.cached_info().config.clone();
    jetstream
        .delete_stream(name(kind))
        .await
        .expect("it is deleted");
    jetstream
        .create_stream(config)
        .await
        .expect("it is made anew");
    for Entry {
        subject,
        headers,
        payload,
    } in entries
    {
        let sent = jetstream.publish_with_headers(subject, headers, payload);
        sent.await.expect("it is sent").await.expect("it is stored");
    }
}

//! One page of a stream, read from its leader message by message.

use std::collections::BTreeMap;

use bytes::Bytes;
use concord_domain::aggregates::person::Reading;
use concord_domain::rules::size_budget::json_bytes;
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_wire::{Timestamp, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::broker::non_event;
use crate::broker::raw_message::{self, RawMessage};
use crate::broker::{Broker, Operation, Unavailable};
use crate::codec::dialect;
use crate::event_store::archived::ArchivedPart;
use crate::service::reading::archived::ArchivedCases;
use crate::service::reading::matters::Matters;

/// Messages on one page.
const ITEMS_MAX: usize = 250;
/// Messages that are looked at for one page, whether or not the reader is given them.
const EXAMINED_MAX: usize = 500;
/// Bytes of an answer after which a page ends. An event has at most 768 KiB, so a page with one more stays below 1 MB with its
/// headers, which is what the broker takes.
const BYTES_MAX: usize = 128 * 1024;
/// A body with more bytes is left out: it would not fit into an answer. No event has so many.
const BODY_MAX: usize = 800 * 1024;
/// A header with more bytes is left out, as are those that mean nothing here: whoever may publish can give a message a megabyte of them.
const HEADER_MAX: usize = 512;

/// Where events name the addresses at which people are notified. What somebody has said may have a member of that name, too, and is shown as
/// it was said.
const CONTACTS: [(&str, &str); 4] = [
    ("/data", "contact"),
    ("/data/expert", "contact"),
    ("/data/instead_of", "contact"),
    ("/data/person", "contact"),
];

/// One page of what is stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Page {
    /// What it holds, in order; also empty where much was looked at that is not the reader's.
    pub items: Vec<PageItem>,
    /// The sequence after which the next page begins; none where nothing more is stored now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// An event or a message as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageItem {
    /// Its subject.
    pub subject: String,
    /// Its sequence in its stream.
    pub sequence: u64,
    /// When the broker stored it.
    pub at: Timestamp,
    /// Those of its headers that mean something here, but those that say how its body was compressed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Its body, expanded: as it is where that is JSON, else as a text. None where it was not asked for or is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Box<RawValue>>,
    /// The bytes of a body that was left out because it is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<usize>,
}

/// What a page is read from.
pub(super) struct Source<'a> {
    broker: &'a Broker,
    kind: StreamKind,
    filters: Vec<String>,
    pub(super) after: u64,
    pub(super) limit: Option<usize>,
    pub(super) bodies: bool,
    pub(super) contacts: bool,
    /// Where not every aggregate is the reader's: which are.
    pub(super) only: Option<Only<'a>>,
    /// Where it is about one aggregate or case: what is archived of it.
    pub(super) archived: Option<(&'a ArchivedCases, ArchivedPart)>,
}

/// What of a kind of aggregates somebody reads.
pub(super) struct Only<'a> {
    pub(super) reading: &'a Reading<'a>,
    pub(super) matters: &'a Matters,
}

impl<'a> Source<'a> {
    /// The messages of a stream whose subjects match one of these filters, of which no two match the same.
    pub(super) fn new(broker: &'a Broker, kind: StreamKind, filters: Vec<String>) -> Self {
        Self {
            broker,
            kind,
            filters,
            after: 0,
            limit: None,
            bodies: true,
            contacts: true,
            only: None,
            archived: None,
        }
    }

    /// The first page.
    pub(super) async fn page(&self) -> Result<Page, Unavailable> {
        let items_max = self.limit.unwrap_or(ITEMS_MAX).clamp(1, ITEMS_MAX);
        let (mut items, mut bytes) = (Vec::new(), 0);
        // The next message of each filter, so that a page of several is in the order of the stream.
        let mut heads = Vec::new();
        for filter in &self.filters {
            heads.push(self.next(filter, self.after.saturating_add(1)).await?);
        }
        for _ in 0..EXAMINED_MAX {
            let found = heads.iter().enumerate();
            let first = found
                .filter_map(|(place, head)| Some((head.as_ref()?.sequence, place)))
                .min();
            let Some((sequence, place)) = first else {
                return Ok(Page { items, next: None });
            };
            let (Some(head), Some(filter)) = (heads.get_mut(place), self.filters.get(place)) else {
                break;
            };
            let Some(raw) = head.take() else { break };
            if self.shows(&raw.subject).await? {
                let item = self.item(&raw);
                bytes += json_bytes(&item);
                items.push(item);
            }
            // What stands behind the last one is not looked at: who asks for the next page finds out.
            if items.len() >= items_max || bytes >= BYTES_MAX {
                let next = Some(sequence);
                return Ok(Page { items, next });
            }
            *head = self.next(filter, sequence.saturating_add(1)).await?;
        }
        let heads = heads.iter().flatten();
        let next = heads.map(|head| head.sequence.saturating_sub(1)).min();
        Ok(Page { items, next })
    }

    async fn next(&self, filter: &str, sequence: u64) -> Result<Option<RawMessage>, Unavailable> {
        let stored = next_event(self.broker, self.kind, filter, sequence).await?;
        let Some((cases, part)) = &self.archived else {
            return Ok(stored);
        };
        let archived = cases.next(self.kind, part, filter, sequence).await?;
        let both = stored.into_iter().chain(archived);
        // Where the stream still has it, both say the same.
        Ok(both.min_by_key(|message| message.sequence))
    }

    /// Whether the reader is given what is stored on a subject.
    async fn shows(&self, subject: &str) -> Result<bool, Unavailable> {
        let Some(Only { reading, matters }) = &self.only else {
            return Ok(true);
        };
        let parsed = self.broker.subjects().parse(subject);
        let Ok(SystemSubject::Event { aggregate, id, .. }) = parsed else {
            return Ok(false);
        };
        Ok(reading.includes(&matters.of(aggregate, &id).await?))
    }

    fn item(&self, raw: &RawMessage) -> PageItem {
        let block = raw.headers().unwrap_or_default();
        let body = raw.body().unwrap_or_default();
        // What cannot be expanded is given as it is.
        let plain = dialect::plain(&body, dialect::headers_of(&block).as_ref());
        let plain = plain.map_or_else(|_| body.clone(), |plain| plain.into_owned());
        let bytes = plain.len();
        let written = self.bodies.then(|| body_of(plain.into(), self.contacts));
        let written = written.flatten();
        let is_omitted = |body: &RawValue| body.get().len() > BODY_MAX;
        let omitted = written.as_deref().is_some_and(is_omitted);
        PageItem {
            subject: raw.subject.clone(),
            sequence: raw.sequence,
            at: Timestamp::parse(&raw.time).unwrap_or_default(),
            headers: headers(&block),
            omitted_bytes: omitted.then_some(bytes),
            body: written.filter(|_| !omitted),
        }
    }
}

/// The first message from `sequence` on whose subject matches the filter and which, among events, is one.
pub(super) async fn next_event(
    broker: &Broker,
    kind: StreamKind,
    filter: &str,
    sequence: u64,
) -> Result<Option<RawMessage>, Unavailable> {
    let stream = broker.layout.stream_name(kind);
    let mut sequence = sequence;
    loop {
        let found = raw_message::next(broker, &stream, filter, sequence).await;
        let found = found.map_err(|error| Operation::FindMessage.failed(error))?;
        match found {
            Some(raw)
                if kind == StreamKind::Events && non_event::of_raw_message(&raw).is_some() =>
            {
                sequence = raw.sequence.saturating_add(1);
            }
            found => return Ok(found),
        }
    }
}

/// The headers of a block that mean something here, but those that say how the body was compressed.
fn headers(block: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(block);
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let is_known = |name: &str| header::ALL.iter().any(|(known, _)| *known == name);
    let kept = lines.filter(|(name, value)| {
        is_known(name) && *name != header::CONTENT_ENCODING && value.len() <= HEADER_MAX
    });
    kept.map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// A body as JSON; a text where it is none. Without the addresses of people, unless they are to be shown.
fn body_of(body: Bytes, contacts: bool) -> Option<Box<RawValue>> {
    let written = std::str::from_utf8(&body).ok();
    let written = written.and_then(|text| RawValue::from_string(text.trim().to_owned()).ok());
    let Some(written) = written else {
        return serde_json::value::to_raw_value(&String::from_utf8_lossy(&body)).ok();
    };
    if contacts {
        return Some(written);
    }
    without_contacts(&written)
}

/// A stored event without the addresses at which people are notified.
fn without_contacts(event: &RawValue) -> Option<Box<RawValue>> {
    let mut value: Value = serde_json::from_str(event.get()).ok()?;
    let mut found = false;
    for (place, name) in CONTACTS {
        let fields = value.pointer_mut(place).and_then(Value::as_object_mut);
        found |= fields.is_some_and(|fields| fields.remove(name).is_some());
    }
    if !found {
        return Some(event.to_owned());
    }
    serde_json::value::to_raw_value(&value).ok()
}

#[cfg(test)]
mod tests {
    use concord_events::{Aggregate, AggregateEvent, EventVisitor};
    use concord_wire::payload::Contact;
    use schemars::{JsonSchema, SchemaGenerator};
    use serde_json::json;

    use super::*;

    /// The places of addresses in the events of an aggregate, each with the name of its event.
    struct Addresses;

    impl EventVisitor for Addresses {
        type Output = Vec<(&'static str, String)>;

        fn visit<E: AggregateEvent>(self) -> Self::Output {
            let events = E::EVENTS.iter().zip(E::SCHEMAS);
            let places = events.flat_map(|(info, make)| {
                let mut generator = SchemaGenerator::default();
                let schema = make(&mut generator).to_value();
                let types = Value::Object(generator.take_definitions(true));
                let mut found = Vec::new();
                addresses(&schema, &types, "/data", &mut Vec::new(), &mut found);
                found.into_iter().map(|place| (info.name, place))
            });
            places.collect()
        }
    }

    /// The places of addresses in what a schema describes; `within` is what it is a part of.
    fn addresses(
        schema: &Value,
        types: &Value,
        at: &str,
        within: &mut Vec<String>,
        found: &mut Vec<String>,
    ) {
        let Some(members) = schema.as_object() else {
            let parts = schema.as_array().into_iter().flatten();
            return parts.for_each(|part| addresses(part, types, at, within, found));
        };
        for (name, part) in members {
            match (name.as_str(), part) {
                ("$ref", Value::String(path)) => {
                    let of = path.rsplit('/').next().unwrap().to_owned();
                    if of == Contact::schema_name() {
                        found.push(at.to_owned());
                    } else if !within.contains(&of) {
                        within.push(of.clone());
                        addresses(&types[&of], types, at, within, found);
                        within.pop();
                    }
                }
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        addresses(property, types, &format!("{at}/{name}"), within, found);
                    }
                }
                ("items" | "prefixItems" | "additionalProperties", part) => {
                    addresses(part, types, &format!("{at}/*"), within, found);
                }
                ("anyOf" | "oneOf" | "allOf", part) => addresses(part, types, at, within, found),
                _ => {}
            }
        }
    }

    #[test]
    fn every_address_of_every_event_is_left_out() {
        let mut number = 0;
        for aggregate in Aggregate::ALL {
            for (event, place) in aggregate.visit_event(Addresses) {
                let address =
                    json!({ "email": "ada@example.org", "webhook": "https://example.org/s3cret" });
                let names: Vec<&str> = place.split('/').skip(1).collect();
                let nested = names.iter().rev();
                let stored = nested.fold(address, |inner, name| json!({ (*name): inner, "b": 1 }));
                let shown = body_of(stored.to_string().into(), false).unwrap();
                assert!(
                    !shown.get().contains("example.org"),
                    "{aggregate}.{event} has an address at {place}: {shown}"
                );
                number += 1;
            }
        }
        assert_eq!(number, 9, "each is found");
    }

    #[test]
    fn a_body_is_given_as_it_is_and_without_addresses_where_those_are_not_to_be_seen() {
        let event =
            r#"{"fact":"assigned","data":{"b":1.50,"contact":{"email":"eva@example.org"},"a":2}}"#;
        let of = |text: &str, contacts| {
            body_of(Bytes::from(text.to_owned()), contacts)
                .unwrap()
                .get()
                .to_owned()
        };
        assert_eq!(of(event, true), event);
        assert!(!of(event, false).contains("example.org"));
        assert!(of(event, false).contains(r#""a":2"#));
        let expert =
            r#"{"data":{"expert":{"agent_id":"eva","contact":{"webhook":"https://example.org"}}}}"#;
        assert!(!of(expert, false).contains("example.org"));
        let other =
            r#"{"fact":"opened","data":{"task":{"contact":{"email":"eva@example.org"},"b":1.50}}}"#;
        assert_eq!(of(other, false), other);
        assert_eq!(of("no JSON", true), r#""no JSON""#);
        assert_eq!(of("{\"a\":", true), r#""{\"a\":""#);
    }

    #[test]
    fn headers_are_given_but_the_encoding_of_a_body_that_is_expanded() {
        let block = b"NATS/1.0\r\nNats-Msg-Id: m-1\r\nContent-Encoding: gzip\r\n\r\n";
        let found = headers(block);
        assert_eq!(found.len(), 1);
        assert_eq!(found["Nats-Msg-Id"], "m-1");
    }

    #[test]
    fn headers_of_strangers_take_no_room() {
        let long = "a".repeat(60_000);
        let block = format!(
            "NATS/1.0\r\nX-A: {long}\r\ntracestate: {long}\r\nConcord-Dialect: a2a\r\n\r\n"
        );
        let found = headers(block.as_bytes());
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["Concord-Dialect"]);
    }
}

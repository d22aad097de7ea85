//! Reading dead letters and their originals.

use async_nats::HeaderMap;
use async_nats::jetstream::stream::RawMessageErrorKind;
use bytes::Bytes;
use concord_events::dead_letter::{DeadLetter, DeadReason, header, is_letter};
use concord_events::subject::SystemSubject;
use concord_events::topology::{Channel, ConsumerKind, StreamKind};
use concord_runtime::Broker;
use concord_runtime::broker::non_event::BODY_SIZE;
use concord_runtime::delivery::ErrorChain;
use concord_wire::subject::Service;
use concord_wire::{ErrorCode, Timestamp};

use crate::shared::failure::Failure;
use crate::shared::stream_reader::{self, Scope};

/// The reason of what came too late, which its sender was told.
const LATE: &str = "late";

/// All words for why a message is a dead letter.
pub(super) fn reasons() -> Vec<&'static str> {
    let reasons = DeadReason::ALL.into_iter().map(DeadReason::as_str);
    reasons.chain([LATE]).collect()
}

/// A dead letter with its original.
pub(crate) struct Letter {
    /// The description of the letter.
    pub(crate) about: DeadLetter,
    /// The stream of the original.
    pub(crate) stream: String,
    /// The subject of the letter itself.
    pub(crate) subject: String,
    /// All headers of the letter.
    pub(crate) headers: HeaderMap,
    /// The original; empty in a list, and where it was not copied.
    pub(crate) payload: Bytes,
}

impl Letter {
    /// Reads a letter; none for a message that no service has put there.
    fn new(
        broker: &Broker,
        sequence: u64,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Option<Self> {
        let Ok(SystemSubject::DeadLetter { service, reason }) = broker.subjects().parse(&subject)
        else {
            return None;
        };
        if !is_letter(|name| headers.get(name).is_some()) {
            return None;
        }
        let header = |name: &str| {
            headers
                .get(name)
                .map(|value| value.as_str().to_owned())
                .unwrap_or_default()
        };
        let time = |name: &str| Timestamp::parse(&header(name)).ok();
        let about = DeadLetter {
            sequence,
            service,
            consumer: header(header::CONSUMER),
            reason: reason.as_str().to_owned(),
            subject: header(header::SUBJECT),
            original_sequence: header(header::SEQUENCE).parse().ok(),
            code: header(header::CODE),
            pointer: header(header::POINTER),
            error: header(header::ERROR),
            at: time(header::AT),
            bytes: [header::BYTES, BODY_SIZE]
                .into_iter()
                .find_map(|name| header(name).parse().ok())
                .unwrap_or(payload.len()),
            retried: time(header::RETRIED),
        };
        let stream = header(header::STREAM);
        Some(Self {
            about,
            stream,
            subject,
            headers,
            payload,
        })
    }

    /// The original: from the letter or, where it was not copied, from its stream.
    pub(super) async fn original(&self, broker: &Broker) -> Result<Bytes, Failure> {
        let Some(sequence) = self
            .about
            .original_sequence
            .filter(|_| self.payload.is_empty())
        else {
            return Ok(self.payload.clone());
        };
        let stream = &self.stream;
        let gone = || {
            Failure::failed(format!(
                "the original is gone: the letter has no copy of it, and {stream} no longer holds it at {sequence}; \
                 it is in the archive if its case is (`concord archive restore`), else only its sender can send it again"
            ))
        };
        let unread = |error: &dyn std::error::Error| {
            Failure::failed(format!(
                "the original in {stream} cannot be read: {}; see `concord doctor`",
                ErrorChain(error)
            ))
        };
        let found = broker
            .jetstream
            .get_stream_no_info(stream)
            .await
            .map_err(|error| unread(&error))?;
        match found.get_raw_message(sequence).await {
            // A stream that was made anew may hold another message there.
            Ok(message) if message.subject.as_str() == self.about.subject => Ok(message.payload),
            Ok(_) => Err(gone()),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Err(gone()),
            Err(error) => Err(unread(&error)),
        }
    }

    /// The channel of a notification that was not delivered, and the sequence of its event; none for other letters.
    pub(super) fn notice(&self, broker: &Broker) -> Option<(Channel, u64)> {
        let of = |channel: &Channel| {
            let consumers = broker.layout.consumers_of(ConsumerKind::Notices(*channel));
            consumers
                .iter()
                .any(|consumer| consumer.name == self.about.consumer)
        };
        Some((
            Channel::ALL.into_iter().find(of)?,
            self.about.original_sequence?,
        ))
    }

    /// The service that has given an event up, and the sequence of the event; none for what is no event.
    pub(super) fn event(&self, broker: &Broker) -> Option<(Service, u64)> {
        let layout = &broker.layout;
        let all = layout.consumers().into_iter();
        let mut all = all.chain(layout.adapter_consumers());
        let consumer = all.find(|one| one.name == self.about.consumer && one.event.is_some())?;
        Some((consumer.service, self.about.original_sequence?))
    }

    /// Why the message could not be processed. What came too late has a word of its own, by which it is counted, too: its letter has the
    /// reason of what failed again and again.
    pub(crate) fn reason(&self) -> &str {
        let is_late = self.about.reason == DeadReason::Exhausted.as_str()
            && self.about.code == ErrorCode::Timeout.as_str();
        if is_late { LATE } else { &self.about.reason }
    }

    /// Whether a service failed to process the message. Other letters were refused for their contents, or because they came too
    /// late: sending those again makes none of them earlier.
    pub(crate) fn is_failure(&self) -> bool {
        let failures = [DeadReason::Exhausted, DeadReason::Undeliverable];
        failures
            .iter()
            .any(|reason| reason.as_str() == self.reason())
    }
}

/// The dead letters, the oldest first.
#[derive(Default)]
pub(crate) struct Letters {
    /// All of them.
    pub(crate) all: Vec<Letter>,
    /// How many messages stand among them and are none.
    pub(super) others: u64,
}

/// All dead letters, without their originals: those may be large.
pub(crate) async fn letters(broker: &Broker) -> Result<Letters, Failure> {
    let mut letters = Letters::default();
    stream_reader::for_each(
        broker,
        &Scope::all(StreamKind::Dead).without_bodies(),
        "reading dead letters",
        |stored| {
            let letter = Letter::new(
                broker,
                stored.sequence,
                stored.subject,
                stored.headers,
                stored.payload,
            );
            match letter {
                Some(letter) => letters.all.push(letter),
                None => letters.others += 1,
            }
            Ok(())
        },
    )
    .await?;
    Ok(letters)
}

/// Reads the dead letter with this sequence.
pub(super) async fn letter(broker: &Broker, sequence: u64) -> Result<Letter, Failure> {
    let unknown = || {
        Failure::failed(format!(
            "there is no dead letter {sequence}; see `concord dead list --all`"
        ))
    };
    // The broker counts from 1, and takes 0 for a request that it does not understand.
    if sequence == 0 {
        return Err(unknown());
    }
    let stream = broker.stream(StreamKind::Dead).await?;
    let stored = stream
        .get_raw_message(sequence)
        .await
        .map_err(|error| match error.kind() {
            RawMessageErrorKind::NoMessageFound => unknown(),
            _ => Failure::failed(format!(
                "the dead letter cannot be read: {error}; see `concord doctor`"
            )),
        })?;
    Letter::new(
        broker,
        sequence,
        stored.subject.to_string(),
        stored.headers,
        stored.payload,
    )
    .ok_or_else(unknown)
}

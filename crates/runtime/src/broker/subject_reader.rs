//! Reading what a stream holds on some subjects, without a consumer: for whoever looks at many small parts of a stream. A consumer
//! costs the broker more than such a part, and one with many filters far more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use async_nats::{HeaderMap, Message, StatusCode, Subscriber};
use concord_events::topology::StreamKind;
use concord_wire::Timestamp;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::broker::connection::REQUEST_TIMEOUT;
use crate::broker::log_reader::{self, LogMessage};
use crate::broker::{Broker, Operation, Unavailable};

/// Messages that are asked for at once.
const BATCH: usize = 500;
/// Bytes that are asked for at once; a message may be larger than that, and then comes alone.
const BATCH_BYTES: usize = 1 << 20;
/// Subjects of which the broker gives the last messages at once; it allows a few more.
const LAST_MAX: usize = 1_000;
/// The broker has sent all that it sends for a request.
const END_OF_BATCH: u16 = 204;

/// What the broker adds to the headers of a message that it gives so.
mod header {
    pub(super) const SUBJECT: &str = "Nats-Subject";
    pub(super) const SEQUENCE: &str = "Nats-Sequence";
    pub(super) const TIME: &str = "Nats-Time-Stamp";
    /// How many follow.
    pub(super) const PENDING: &str = "Nats-Num-Pending";
    /// The sequence of the message before it in the batch; 0 for the first.
    pub(super) const BEFORE: &str = "Nats-Last-Sequence";
    /// Those of a message that was asked for by its sequence.
    pub(super) const OF_ONE: [&str; 4] = ["Nats-Stream", SUBJECT, SEQUENCE, TIME];
    /// Those of a message in a batch.
    pub(super) const OF_BATCH: [&str; 6] =
        ["Nats-Stream", SUBJECT, SEQUENCE, TIME, PENDING, BEFORE];
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Reads one part of a stream after the other.
pub struct SubjectReader {
    broker: Broker,
    inbox: String,
    answers: Subscriber,
    /// The number of the last request, which ends the subject of its answers.
    asked: u64,
    /// Bytes that it may still read; none left where it has read more than it may.
    left: Option<usize>,
}

impl SubjectReader {
    /// Has asked for nothing yet.
    pub async fn new(broker: &Broker) -> Result<Self, Unavailable> {
        let inbox = broker.client.new_inbox();
        let answers = broker.client.subscribe(format!("{inbox}.*")).await;
        Ok(Self {
            broker: broker.clone(),
            inbox,
            answers: answers.map_err(|error| Operation::Subscribe.failed(error))?,
            asked: 0,
            left: Some(usize::MAX),
        })
    }

    /// Reads at most so many bytes in all, and fails where there are more: whoever holds what was read in memory needs a bound.
    #[must_use]
    pub fn within(self, bytes_max: usize) -> Self {
        Self {
            left: Some(bytes_max),
            ..self
        }
    }

    /// Whether there was more to read than it may.
    pub fn is_exhausted(&self) -> bool {
        self.left.is_none()
    }

    /// Takes into account what was read.
    fn spend(&mut self, message: &LogMessage) -> Result<(), AnyError> {
        let bytes = message.payload.len() + message.subject.len();
        self.left = self.left.and_then(|left| left.checked_sub(bytes));
        let left = self.left.map(|_| ());
        left.ok_or_else(|| "there is more than may be read".into())
    }

    /// What a stream holds on subjects that match `filter`, in order. For few subjects: they are listed, and where one has a single message,
    /// that is the last of it. To search for what matches a filter with wildcards costs the broker far more.
    pub async fn read(
        &mut self,
        kind: StreamKind,
        filter: &str,
    ) -> Result<Vec<LogMessage>, Unavailable> {
        let counts = self.counts(kind, filter).await?;
        if counts.len() > LAST_MAX {
            return self.read_matching(kind, filter).await;
        }
        let stored: usize = counts.values().sum();
        if stored == 0 {
            return Ok(Vec::new());
        }
        let mut read = self.last_of_each(kind, &[filter.to_owned()]).await?;
        read.retain(|message| counts.get(&message.subject) == Some(&1));
        for (subject, _) in counts.iter().filter(|(_, count)| **count > 1) {
            let request = |next| json!({ "batch": BATCH, "max_bytes": BATCH_BYTES, "seq": next, "next_by_subj": subject });
            read.extend(self.read_by(kind, request).await?);
        }
        read.sort_by_key(|message| message.sequence);
        // The leader has counted, and any copy has answered.
        if read.len() < stored {
            let lags = format!(
                "{stored} messages are stored, and a copy has {}",
                read.len()
            );
            return Err(Operation::ReadMessage.failed(lags));
        }
        Ok(read)
    }

    /// How many messages there are on each subject.
    async fn counts(
        &self,
        kind: StreamKind,
        filter: &str,
    ) -> Result<BTreeMap<String, usize>, Unavailable> {
        let stream = self.broker.stream(kind).await?;
        let listed = stream.info_with_subjects(filter).await;
        let listed = listed.map_err(|error| Operation::DescribeStream.failed(error))?;
        let counts = listed.try_collect().await;
        counts.map_err(|error| Operation::DescribeStream.failed(error))
    }

    async fn read_matching(
        &mut self,
        kind: StreamKind,
        filter: &str,
    ) -> Result<Vec<LogMessage>, Unavailable> {
        let (filters, mut read) = ([filter.to_owned()], Vec::new());
        let (broker, mut spent) = (self.broker.clone(), Ok(()));
        log_reader::read_matching(&broker, kind, &filters, 1, |message| {
            spent = self.spend(&message);
            if spent.is_err() {
                return ControlFlow::Break(());
            }
            read.push(message);
            ControlFlow::Continue(())
        })
        .await?;
        spent.map_err(|error| Operation::ReadMessage.failed(error))?;
        Ok(read)
    }

    /// The last message on each subject that matches one of `filters`, in order, as some copy of the stream has it, which may lag. Fails
    /// where there are more than 1,024 subjects.
    pub async fn last_of_each(
        &mut self,
        kind: StreamKind,
        filters: &[String],
    ) -> Result<Vec<LogMessage>, Unavailable> {
        if filters.is_empty() {
            return Ok(Vec::new());
        }
        self.read_by(
            kind,
            |next| json!({ "batch": BATCH, "max_bytes": BATCH_BYTES, "seq": next, "multi_last": filters }),
        )
        .await
    }

    /// The messages at these sequences, which others name; without those that are gone.
    pub async fn at(
        &mut self,
        kind: StreamKind,
        sequences: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<LogMessage>, Unavailable> {
        let found = self.each(kind, sequences).await;
        found.map_err(|error| Operation::ReadMessage.failed(error))
    }

    /// Asks for messages one by one, and for all before the first is there. Not for batches of one: for each of those the broker counts what
    /// follows, through all subjects where something was removed from the stream.
    async fn each(
        &mut self,
        kind: StreamKind,
        sequences: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<LogMessage>, AnyError> {
        let mut waiting = BTreeSet::new();
        for sequence in sequences {
            waiting.insert(self.ask(kind, &json!({ "seq": sequence })).await?);
        }
        let mut found = Vec::new();
        while !waiting.is_empty() {
            let answer = self.answer(|subject| waiting.remove(subject)).await?;
            if text(&answer, header::SEQUENCE).is_ok() {
                let message = as_stored(answer, &header::OF_ONE)?;
                self.spend(&message)?;
                found.push(message);
            } else if answer.status != Some(StatusCode::NOT_FOUND) {
                return Err(refused(&answer));
            }
        }
        Ok(found)
    }

    /// Reads until nothing is left; `request` is what is asked for from a sequence on.
    async fn read_by(
        &mut self,
        kind: StreamKind,
        request: impl Fn(u64) -> Value,
    ) -> Result<Vec<LogMessage>, Unavailable> {
        let mut read: Vec<LogMessage> = Vec::new();
        loop {
            let next = read.last().map_or(1, |last| last.sequence + 1);
            let batch = self.batch(kind, &request(next), &mut read).await;
            if batch.map_err(|error| Operation::ReadMessage.failed(error))? == 0 {
                return Ok(read);
            }
        }
    }

    /// Reads one batch; how many messages are left.
    async fn batch(
        &mut self,
        kind: StreamKind,
        request: &Value,
        read: &mut Vec<LogMessage>,
    ) -> Result<u64, AnyError> {
        let answers = self.ask(kind, request).await?;
        let mut before = 0;
        loop {
            let answer = self.answer(|subject| subject == answers).await?;
            // A stored message may have a status of its own, so it is known by what the broker has added.
            let is_message = text(&answer, header::SEQUENCE).is_ok();
            match answer.status {
                _ if is_message => {}
                Some(StatusCode::NOT_FOUND) => return Ok(0),
                Some(status) if status.as_u16() == END_OF_BATCH => {}
                _ => return Err(refused(&answer)),
            }
            // What was lost on the way must not pass for a gap.
            if number(&answer, header::BEFORE)? != before {
                return Err("a message was lost on the way".into());
            }
            if !is_message {
                return number(&answer, header::PENDING);
            }
            let message = as_stored(answer, &header::OF_BATCH)?;
            before = message.sequence;
            self.spend(&message)?;
            read.push(message);
        }
    }

    /// Sends a request; the subject of its answers.
    async fn ask(&mut self, kind: StreamKind, request: &Value) -> Result<String, AnyError> {
        self.asked += 1;
        let answers = format!("{}.{}", self.inbox, self.asked);
        let stream = self.broker.layout.stream_name(kind);
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let (client, body) = (&self.broker.client, request.to_string().into());
        client
            .publish_with_reply(subject, answers.clone(), body)
            .await?;
        Ok(answers)
    }

    /// The next answer that is expected on its subject; what is late for an earlier request is passed over.
    async fn answer(
        &mut self,
        mut is_expected: impl FnMut(&str) -> bool,
    ) -> Result<Message, AnyError> {
        loop {
            let answer = timeout(REQUEST_TIMEOUT, self.answers.next()).await?;
            let answer = answer.ok_or("the subscription ended")?;
            if is_expected(answer.subject.as_str()) {
                return Ok(answer);
            }
        }
    }
}

fn refused(answer: &Message) -> AnyError {
    let why = answer.description.as_deref().unwrap_or_default();
    format!("the broker gives no messages: {:?} {why}", answer.status).into()
}

fn text<'a>(of: &'a Message, name: &str) -> Result<&'a str, AnyError> {
    let headers = of.headers.as_ref();
    let value = headers.and_then(|headers| headers.get_last(name));
    Ok(value.ok_or_else(|| format!("no {name}"))?.as_str())
}

fn number(of: &Message, name: &str) -> Result<u64, AnyError> {
    Ok(text(of, name)?.parse()?)
}

/// The message as it is stored. Headers of the same names that it has itself stand before those that the broker has `added`.
fn as_stored(given: Message, added: &[&str]) -> Result<LogMessage, AnyError> {
    let sequence = number(&given, header::SEQUENCE)?;
    let subject = text(&given, header::SUBJECT)?.to_owned();
    let at = Timestamp::parse(text(&given, header::TIME)?)?;
    let mut headers = HeaderMap::new();
    for (name, values) in given.headers.iter().flat_map(HeaderMap::iter) {
        let added = usize::from(added.contains(&name.as_ref()));
        for value in values.iter().take(values.len() - added) {
            headers.append(name.clone(), value.clone());
        }
    }
    Ok(LogMessage {
        sequence,
        subject,
        at,
        headers,
        payload: given.payload,
    })
}

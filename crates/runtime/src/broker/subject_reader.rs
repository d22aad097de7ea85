//! Reading what a stream holds on some subjects, without a consumer: for whoever looks at many small parts of a stream. A consumer
//! costs the broker more than such a part, and one with many filters far more.

use async_nats::{HeaderMap, Message, StatusCode, Subscriber};
use concord_events::topology::StreamKind;
use concord_wire::Timestamp;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::broker::connection::REQUEST_TIMEOUT;
use crate::broker::log_reader::LogMessage;
use crate::broker::{Broker, Operation, Unavailable};

/// Messages that are asked for at once.
const BATCH: usize = 500;
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
    pub(super) const ALL: [&str; 6] = ["Nats-Stream", SUBJECT, SEQUENCE, TIME, PENDING, BEFORE];
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Reads one part of a stream after the other.
pub struct SubjectReader {
    broker: Broker,
    inbox: String,
    answers: Subscriber,
    /// The number of the last request, which ends the subject of its answers.
    asked: u64,
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
        })
    }

    /// What a stream holds on subjects that match `filter`, in order, as some copy of the stream has it, which may lag.
    pub async fn read(
        &mut self,
        kind: StreamKind,
        filter: &str,
    ) -> Result<Vec<LogMessage>, Unavailable> {
        self.read_by(
            kind,
            |next| json!({ "batch": BATCH, "seq": next, "next_by_subj": filter }),
        )
        .await
    }

    /// The last message on each subject that matches one of `filters`, in order. For few subjects, but in a stream of many it takes the
    /// broker a fifth of what [`Self::read`] does.
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
            |next| json!({ "batch": BATCH, "seq": next, "multi_last": filters }),
        )
        .await
    }

    /// The message at a sequence, which another one names; none where it is gone.
    pub async fn at(
        &mut self,
        kind: StreamKind,
        sequence: u64,
    ) -> Result<Option<LogMessage>, Unavailable> {
        // A batch of one, so that the broker adds the same to it.
        let request = json!({ "batch": 1, "seq": sequence, "next_by_subj": ">" });
        let mut read = Vec::new();
        let batch = self.batch(kind, &request, &mut read).await;
        batch.map_err(|error| Operation::ReadMessage.failed(error))?;
        Ok(read.pop().filter(|found| found.sequence == sequence))
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
        self.asked += 1;
        let answers = format!("{}.{}", self.inbox, self.asked);
        let stream = self.broker.layout.stream_name(kind);
        let subject = format!("$JS.API.DIRECT.GET.{stream}");
        let (client, body) = (&self.broker.client, request.to_string().into());
        client
            .publish_with_reply(subject, answers.clone(), body)
            .await?;
        let mut before = 0;
        loop {
            let answer = timeout(REQUEST_TIMEOUT, self.answers.next()).await?;
            let answer = answer.ok_or("the subscription ended")?;
            if answer.subject.as_str() != answers {
                continue;
            }
            // A stored message may have a status of its own, so it is known by what the broker has added.
            let is_message = text(&answer, header::SEQUENCE).is_ok();
            match answer.status {
                _ if is_message => {}
                Some(StatusCode::NOT_FOUND) => return Ok(0),
                Some(status) if status.as_u16() == END_OF_BATCH => {}
                status => {
                    let why = answer.description.unwrap_or_default();
                    return Err(format!("the broker gives no messages: {status:?} {why}").into());
                }
            }
            // What was lost on the way must not pass for a gap.
            if number(&answer, header::BEFORE)? != before {
                return Err("a message was lost on the way".into());
            }
            if !is_message {
                return number(&answer, header::PENDING);
            }
            let message = as_stored(answer)?;
            before = message.sequence;
            read.push(message);
        }
    }
}

fn text<'a>(of: &'a Message, name: &str) -> Result<&'a str, AnyError> {
    let headers = of.headers.as_ref();
    let value = headers.and_then(|headers| headers.get_last(name));
    Ok(value.ok_or_else(|| format!("no {name}"))?.as_str())
}

fn number(of: &Message, name: &str) -> Result<u64, AnyError> {
    Ok(text(of, name)?.parse()?)
}

/// The message as it is stored. Headers of the same names that it has itself stand before those that the broker adds.
fn as_stored(given: Message) -> Result<LogMessage, AnyError> {
    let sequence = number(&given, header::SEQUENCE)?;
    let subject = text(&given, header::SUBJECT)?.to_owned();
    let at = Timestamp::parse(text(&given, header::TIME)?)?;
    let mut headers = HeaderMap::new();
    for (name, values) in given.headers.iter().flat_map(HeaderMap::iter) {
        let added = usize::from(header::ALL.contains(&name.as_ref()));
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

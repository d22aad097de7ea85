//! The agent: connecting, publishing, registering, and requests.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::{HeaderMap, jetstream};
use concord_wire::payload::{
    Card, ErrorReport, REGISTER_AGENT, Request, Response, ResponseStatus, UPDATE_AGENT, why_refused,
};
use concord_wire::subject::{Service, SubjectSpace};
use concord_wire::{
    AgentId, Encoding, Envelope, ErrorCode, Fault, MessageId, MessageType, Recipient, Timestamp,
    header,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::batch::Batches;
use crate::builder::{Builder, Handlers, Hears};
use crate::closing::Closing;
use crate::deduplication::Deduplication;
use crate::heartbeat::Heartbeat;
use crate::memory_hold::MemoryHold;
use crate::pending_requests::{AnswerOf, PendingRequests};
use crate::{Error, Message};

/// How long [`Agent::request`] waits for an answer.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The latest deadline that a time limit becomes: Concord refuses one that is more than thirty days away, by its own clock.
const DEADLINE_MAX: Duration = Duration::from_secs(29 * 86_400);

/// A connected agent. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) agent_id: AgentId,
    pub(crate) client: async_nats::Client,
    pub(crate) jetstream: jetstream::Context,
    pub(crate) subjects: SubjectSpace,
    pub(crate) handlers: Handlers,
    pub(crate) closing: Closing,
    /// The tasks that receive messages.
    pub(crate) listening: TaskTracker,
    /// The tasks that handle messages.
    pub(crate) working: TaskTracker,
    pub(crate) card: Option<Card>,
    /// Whether it is left on the register when it closes.
    pub(crate) stays_registered: bool,
    pub(crate) compress_over: Option<usize>,
    /// Agents whose cards say that they read gzip.
    pub(crate) reads_gzip: Mutex<HashSet<AgentId>>,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) pending: PendingRequests,
    pub(crate) memory: MemoryHold,
    /// What is answered to the requests of a batch is not published by itself.
    pub(crate) batches: Batches,
    deduplication: Deduplication,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent")
            .field(&self.inner.agent_id.as_str())
            .finish()
    }
}

impl Agent {
    /// An agent of this name: letters, digits, `_` and `-`.
    pub fn builder(agent_id: &str) -> Builder {
        Builder::new(agent_id)
    }

    pub(crate) async fn connect(builder: Builder, servers: &str) -> Result<Self, Error> {
        let subjects = builder.subjects()?;
        let Builder {
            agent_id,
            hears,
            compress_over,
            close_within,
            card,
            stays_registered,
            handlers,
            options,
            ..
        } = builder;
        let agent_id = agent_id?;
        // Answers come where the broker's permissions let this agent listen, and nobody else.
        let options = options.custom_inbox_prefix(SubjectSpace::replies(&agent_id));
        let client = options.connect(servers).await;
        let client = client.map_err(|error| Error::broker("take the connection")(error.into()))?;
        let agent = Self {
            inner: Arc::new(Inner {
                agent_id,
                jetstream: jetstream::new(client.clone()),
                client,
                subjects,
                handlers,
                closing: Closing::new(close_within),
                listening: TaskTracker::new(),
                working: TaskTracker::new(),
                card: card.map(with_encodings),
                stays_registered,
                compress_over,
                reads_gzip: Mutex::default(),
                heartbeat: Heartbeat::default(),
                pending: PendingRequests::default(),
                memory: MemoryHold::default(),
                batches: Batches::default(),
                deduplication: Deduplication::default(),
            }),
        };
        match agent.start(hears).await {
            Ok(()) => Ok(agent),
            Err(error) => {
                // Nobody holds this agent: without this it would go on receiving beside the next one that connects.
                agent.disconnect().await;
                Err(error)
            }
        }
    }

    async fn start(&self, hears: Hears) -> Result<(), Error> {
        self.listen(hears).await?;
        self.inner.listening.spawn(self.clone().keep_beating());
        if self.inner.card.is_some() {
            self.register().await?;
        }
        if hears == Hears::RegisteredInbox {
            self.make_inbox().await?;
        }
        Ok(())
    }

    /// Has the coordinator make the durable inbox. Where nobody answers that can, the agent takes what operators have made.
    async fn make_inbox(&self) -> Result<(), Error> {
        match self
            .query::<Value>(Service::Coordinator, "inbox", &json!({}))
            .await
        {
            Err(error @ Error::Broker { .. }) => {
                tracing::warn!(%error, "Nobody makes a durable inbox; one that operators have made is used.");
                Ok(())
            }
            made => made.map(|_| ()),
        }
    }

    /// The id of the agent.
    pub fn id(&self) -> &AgentId {
        &self.inner.agent_id
    }

    /// Replaces the card with which the agent is registered. Its heart beats as often as the new card says.
    pub async fn update(&self, card: &Card) -> Result<(), Error> {
        let before = self.inner.heartbeat.every();
        let after = card.heartbeat_ms;
        // The coordinator goes by the new card before its answer is here.
        self.beat_every(before.into_iter().chain(after).min())
            .await?;
        let card = with_encodings(card.clone());
        let to = Service::Coordinator.agent_id();
        let updated = self.request(to, UPDATE_AGENT, &card).await;
        match &updated {
            Ok(_) => self.beat_every(after).await?,
            Err(Error::Refused(_)) => self.beat_every(before).await?,
            // It may have either card.
            Err(_) => {}
        }
        updated.map(|_| ())
    }

    async fn register(&self) -> Result<(), Error> {
        self.request(
            Service::Coordinator.agent_id(),
            REGISTER_AGENT,
            &self.inner.card,
        )
        .await?;
        let card = self.inner.card.as_ref();
        self.beat_every(card.and_then(|card| card.heartbeat_ms))
            .await
    }

    /// A new message of this agent. Change it as needed and give it to [`Self::publish`].
    pub fn message(
        &self,
        to: Recipient,
        kind: MessageType,
        payload: &impl Serialize,
    ) -> Result<Message, Error> {
        let message_id = self.new_id()?;
        let from = self.inner.agent_id.clone();
        let payload = serde_json::value::to_raw_value(payload)?;
        Ok(Envelope::new(message_id, now(), from, to, kind, payload))
    }

    /// An id that no other message has.
    pub(crate) fn new_id(&self) -> Result<MessageId, Fault> {
        let inbox = self.inner.client.new_inbox();
        let unique = inbox.rsplit('.').next().unwrap_or_default();
        let message_id = MessageId::new(format!("{}-{unique}", self.inner.agent_id));
        message_id.map_err(|error| Fault::invalid("/message_id", error.to_string(), "Try again."))
    }

    /// Publishes a message. The broker has stored it when this returns without an error.
    pub async fn publish(&self, message: &Message) -> Result<(), Error> {
        if self.inner.batches.take(message) {
            return Ok(());
        }
        let mut headers = HeaderMap::new();
        let id = self.inner.deduplication.id_of(message);
        headers.insert(header::MESSAGE_ID, id);
        self.publish_with(headers, message).await
    }

    async fn publish_with(&self, mut headers: HeaderMap, message: &Message) -> Result<(), Error> {
        let subject = self.inner.subjects.build(&message.subject());
        let (body, encoding) = match serde_json::to_vec(message)? {
            body if self.is_too_large(body.len()) => (
                serde_json::to_vec(&self.with_stored_payload(message).await?)?,
                None,
            ),
            body => self.encoded(message, body)?,
        };
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, encoding.as_str());
        }
        let sent = self
            .inner
            .jetstream
            .publish_with_headers(subject, headers, body.into())
            .await;
        let sent = sent.map_err(|error| Error::broker("take a message")(error.into()))?;
        let stored = sent.await.map_err(not_stored)?;
        if stored.duplicate {
            tracing::warn!(
                message_id = %message.message_id, message_type = %message.message_type,
                "The broker has stored a message under this message_id before, and not this one: what says something else needs another."
            );
        }
        Ok(())
    }

    /// Sends a request and waits up to 30 seconds for its result: the `result` of the response, or the whole payload of an answer
    /// that is not in the form of a response.
    pub async fn request(
        &self,
        to: impl Into<Recipient>,
        action: &str,
        parameters: &impl Serialize,
    ) -> Result<Value, Error> {
        let request = json!({ "action": action, "parameters": serde_json::to_value(parameters)? });
        let message = self.message(to.into(), MessageType::Request, &request)?;
        self.ask(message, REQUEST_TIMEOUT).await
    }

    /// The same as [`Self::request`] for a message that is made already, and another time limit. A request that may take longer than the
    /// 30 seconds after which Concord ends it with `TIMEOUT`, and that states no deadline and no callback, is given the time limit as its
    /// deadline.
    pub async fn ask(&self, message: Message, within: Duration) -> Result<Value, Error> {
        self.ask_for_answer(with_deadline(message, within), within, AnswerOf::Anybody)
            .await
    }

    pub(crate) async fn ask_for_answer(
        &self,
        message: Message,
        within: Duration,
        of: AnswerOf,
    ) -> Result<Value, Error> {
        result(&self.ask_for_message(message, within, of).await?)
    }

    /// The answer as it came, an `error` too.
    pub(crate) async fn ask_for_message(
        &self,
        message: Message,
        within: Duration,
        of: AnswerOf,
    ) -> Result<Message, Error> {
        let message = Envelope {
            requires_response: true,
            ..message
        };
        let mut answered = self.inner.pending.register(message.message_id.as_str(), of);
        // Whoever asks again, because there was no answer, is to be heard again: the broker would drop what it knows by its id.
        let began = Instant::now();
        let (left, unsure) = match self.publish_with(HeaderMap::new(), &message).await {
            Ok(()) => (within, None),
            // It may be answered all the same.
            Err(error) if is_unsure(&error) => {
                (within.saturating_sub(began.elapsed()), Some(error))
            }
            Err(error) => return Err(error),
        };
        match tokio::time::timeout(left, answered.answer()).await {
            Ok(Some(answer)) => Ok(answer),
            _ => Err(unsure.unwrap_or(Error::Timeout {
                to: message.to_agent,
                within,
            })),
        }
    }
}

/// What the broker did not do where only its acknowledgement is missing.
const CONFIRM: &str = "say in time whether it has stored a message";

fn not_stored(error: PublishError) -> Error {
    let what = match error.kind() {
        PublishErrorKind::TimedOut => CONFIRM,
        _ => "store a message",
    };
    Error::broker(what)(error.into())
}

/// Whether the broker may have stored a message for all that.
fn is_unsure(error: &Error) -> bool {
    matches!(error, Error::Broker { what, .. } if *what == CONFIRM)
}

/// The time that is so far away.
pub(crate) fn after(time: Duration) -> Timestamp {
    now().plus_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The message with the time limit of its asker as its deadline, where it is a request that Concord would end before that.
fn with_deadline(message: Message, within: Duration) -> Message {
    let is_stated = || {
        let request = message.payload::<Request>();
        // What is asked with a callback has an hour without being told.
        request.is_ok_and(|it| it.deadline.is_some() || it.callback_url.is_some())
    };
    if within <= REQUEST_TIMEOUT
        || message.message_type != MessageType::Request
        || message.deadline.is_some()
        || is_stated()
    {
        return message;
    }
    Envelope {
        deadline: Some(after(within.min(DEADLINE_MAX))),
        ..message
    }
}

/// The card with the encodings that this library reads, unless it names some itself.
fn with_encodings(card: Card) -> Card {
    if card.encodings.is_empty() {
        Card {
            encodings: vec![Encoding::Gzip, Encoding::Zstd],
            ..card
        }
    } else {
        card
    }
}

fn result(answer: &Message) -> Result<Value, Error> {
    if answer.message_type == MessageType::Error {
        return Err(Error::Refused(Box::new(ErrorReport::of(answer))));
    }
    if answer.message_type == MessageType::Refuse {
        return Err(failed(why_refused(answer), "Ask another agent."));
    }
    // Not every dialect has a status; then the whole payload is the result.
    let Ok(response) = answer.payload::<Response>() else {
        return Ok(answer.payload()?);
    };
    if response.status != ResponseStatus::Failure {
        return Ok(response.result);
    }
    let why = if response.errors.is_empty() {
        "It failed.".to_owned()
    } else {
        response.errors.join("; ")
    };
    Err(failed(why, "Ask again."))
}

/// The error of a request that was answered and not done.
pub(crate) fn failed(why: String, advice: &str) -> Error {
    let fault = Fault::new(ErrorCode::InternalError, "", why, advice);
    Error::Refused(Box::new(ErrorReport::from(&fault)))
}

/// The current time.
pub(crate) fn now() -> Timestamp {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    Timestamp::from_unix_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

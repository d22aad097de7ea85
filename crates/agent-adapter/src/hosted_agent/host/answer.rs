//! One answer of a hosted agent: it is asked when it has a permit, and its answer is read.

use std::time::Duration;

use bytes::Bytes;
use concord_domain::resilience::call_policy::Rank;
use concord_runtime::Ports;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_wire::payload::Task;
use concord_wire::payload::batch::is_batch;
use concord_wire::{Dialect, Envelope, ErrorCode, Fault, MessageId, MessageType, Timestamp};

use super::{Host, Runner};
use crate::hosted_agent::agent_caller::{AgentCall, AgentCaller};
use crate::hosted_agent::call_policy::{Call, EXPIRED};
use crate::hosted_agent::callback::AnswerWait;
use crate::hosted_agent::callback::token::AnswerTarget;
use crate::hosted_agent::concurrency_limit::{AdmissionError, Permit};
use crate::hosted_agent::decode::{self, RawAnswer};
use crate::hosted_agent::encode;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::http::{ServerCall, ServerReply};
use crate::hosted_agent::inbox::is_alert;
use crate::hosted_agent::openai::{Model, ModelCall};
use crate::hosted_agent::spans::AnswerSpan;

/// The largest payload of an answer, in bytes. With what the adapter adds it fits into an envelope.
pub(super) const ANSWER_BYTES_MAX: usize = concord_wire::envelope::ENVELOPE_BYTES_MAX - 16_384;

/// The outcome of a message for which there was no room.
pub(super) const QUEUE_FULL: &str = "queue_full";

/// The answer to a message.
pub(super) enum Answer {
    /// A message to publish.
    Message(Box<Envelope>),
    /// The agent has nothing to say.
    Nothing,
    /// The agent posted its answer later, and it was published.
    Posted,
}

/// The reply to a call.
pub(super) enum Reply {
    Message(Box<Envelope>),
    Nothing,
    /// The agent promised to post its answer.
    Promised(Option<AnswerWait>),
}

/// What an agent is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// A message, whose answer may be posted later.
    Message,
    /// A request of a batch, which is answered now or not at all.
    Part,
    /// News of a service: of what it answers, now or later, a confirmation counts, and nobody waits for it.
    News,
    /// What another agent tells it, or everybody is alerted of: nothing that it answers counts, now or later.
    Nothing,
}

/// Why there is no answer.
pub(super) enum AnswerError {
    /// The agent gave none. Its sender is told.
    Agent(Failure),
    /// The delivery could not be handled.
    Handle(HandleError),
}

impl From<Failure> for AnswerError {
    fn from(failure: Failure) -> Self {
        Self::Agent(failure)
    }
}

impl From<HandleError> for AnswerError {
    fn from(error: HandleError) -> Self {
        Self::Handle(error)
    }
}

/// A line for a program.
struct ProgramCall<'a, C> {
    caller: &'a C,
    line: Bytes,
    id: &'a MessageId,
    dialect: Dialect,
    is_usable: &'a (dyn Fn(&[u8]) -> bool + Sync),
}

impl<C: AgentCaller> Call for ProgramCall<'_, C> {
    type Value = Bytes;

    async fn make(
        &self,
        within: Duration,
        trace: Option<&concord_runtime::Trace>,
    ) -> Result<(Bytes, Option<u64>), Failure> {
        let call = AgentCall {
            body: self.line.clone(),
            idempotency_key: self.id.as_str(),
            dialect: self.dialect,
            callback_url: None,
            trace,
            within,
            is_usable: self.is_usable,
        };
        Ok((self.caller.call(call).await?.body, None))
    }
}

impl<P: Ports, C: AgentCaller> Host<P, C> {
    /// Has the agent answer a message before `until`, and waits for an answer that it promises to post.
    pub(super) async fn answer(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
        span: &AnswerSpan,
        until: Timestamp,
        asked: Asked,
    ) -> Result<Answer, AnswerError> {
        let reply = if is_batch(incoming) {
            self.ask_parts(incoming, span, until).await?
        } else {
            self.ask(incoming, span, until, asked).await?
        };
        match reply {
            Reply::Message(message) => {
                check_size(&message)?;
                Ok(Answer::Message(message))
            }
            Reply::Nothing => Ok(Answer::Nothing),
            Reply::Promised(wait) => self.wait_for_posted(incoming, delivery, wait).await,
        }
    }

    /// Waits for a permit. A program has one for an alert as soon as it has answered: it is the same copy that is to know of it. A server
    /// is told at once, whatever it works on.
    async fn admitted(
        &self,
        incoming: &Envelope,
        within: Duration,
    ) -> Result<Permit, AdmissionError> {
        let ports = &self.context.ports;
        let rank = match is_alert(incoming) {
            true => Rank::Alert,
            false => incoming.priority.into(),
        };
        let limit = match (rank, &self.runner) {
            (Rank::Alert, Runner::Server) => &self.alerts,
            _ => &self.limit,
        };
        limit.acquire(ports, rank, within).await
    }

    /// Waits for a permit and calls the agent.
    pub(super) async fn ask(
        &self,
        incoming: &Envelope,
        span: &AnswerSpan,
        until: Timestamp,
        asked: Asked,
    ) -> Result<Reply, AnswerError> {
        let ports = &self.context.ports;
        // A message that would be refused when it is let in need not wait for that.
        self.policy.check()?;
        let within = Duration::from_millis(until.millis_since(ports.now()));
        let queue = span.queue();
        let permit = self.admitted(incoming, within).await;
        let permit = permit.map_err(|error| self.not_admitted(error));
        // Whoever waits for no answer learns of it nowhere else.
        if let Err(failure) = &permit {
            self.policy.count(failure.outcome);
        }
        let _permit = queue.finish("let_in", permit)?;
        debug_assert!(
            self.limit.load().0 <= self.agent.instances,
            "more messages are worked on than there are instances"
        );
        let started = ports.now();
        let agent = &self.agent.agent_id;
        let id = MessageId::of_answer(&incoming.message_id, agent);
        let target = AnswerTarget {
            is_news: asked == Asked::News,
            ..AnswerTarget::of(incoming, agent, started)
        };
        let (body, named) = match &self.runner {
            Runner::Program => {
                let body = self
                    .ask_program((incoming, &id), until, span, &target)
                    .await?;
                (body, None)
            }
            Runner::Server => {
                let wait = match asked {
                    Asked::Message => self.listen_for_answer(incoming),
                    Asked::Part | Asked::News | Asked::Nothing => None,
                };
                let callback_url = match asked {
                    Asked::Message | Asked::News => self.callback_url(incoming, span, asked),
                    Asked::Part | Asked::Nothing => None,
                };
                let callback_url = callback_url.as_deref();
                match self
                    .ask_server((incoming, &id, callback_url), until, span)
                    .await?
                {
                    ServerReply::Now(body, named) => (body, named),
                    ServerReply::Later if asked == Asked::News => return Ok(Reply::Nothing),
                    ServerReply::Later => return Ok(Reply::Promised(wait)),
                }
            }
            Runner::Model(model) => {
                return self.ask_model(model, (incoming, &id), until, span).await;
            }
        };
        let answer = self.raw_answer(&body, named.as_deref());
        let now = ports.now();
        let took_ms = now.millis_since(started);
        let message =
            decode::parse_answer(&answer, &target, now, Some(took_ms)).map_err(|fault| {
                Failure::local(ErrorCode::InternalError, self.unusable(&fault, &target))
            })?;
        Ok(message.map_or(Reply::Nothing, |message| Reply::Message(Box::new(message))))
    }

    fn not_admitted(&self, error: AdmissionError) -> Failure {
        match error {
            AdmissionError::Full => {
                let why = format!("{} messages wait for it already", self.agent.queue_max);
                Failure::local(ErrorCode::CapacityExceeded, why).with_outcome(QUEUE_FULL)
            }
            AdmissionError::TimedOut => {
                let why = "its time was over before its turn came";
                Failure::local(ErrorCode::Timeout, why).with_outcome(EXPIRED)
            }
        }
    }

    async fn ask_program(
        &self,
        (incoming, id): (&Envelope, &MessageId),
        until: Timestamp,
        span: &AnswerSpan,
        target: &AnswerTarget,
    ) -> Result<Bytes, AnswerError> {
        let ports = &self.context.ports;
        let is_usable = |body: &[u8]| {
            let answer = self.raw_answer(body, None);
            decode::parse_answer(&answer, target, ports.now(), None).is_ok()
        };
        let call = ProgramCall {
            caller: &self.caller,
            line: self.write(incoming).await?.into(),
            id,
            dialect: self.agent.dialect,
            is_usable: &is_usable,
        };
        Ok(self.policy.run(0, until, &call, span).await?)
    }

    async fn ask_server(
        &self,
        (incoming, id, callback_url): (&Envelope, &MessageId, Option<&str>),
        until: Timestamp,
        span: &AnswerSpan,
    ) -> Result<ServerReply, AnswerError> {
        let body = self.write(incoming).await?.into();
        let call = ServerCall {
            caller: &self.caller,
            body,
            id: id.clone(),
            dialect: self.agent.dialect,
            callback_url,
        };
        Ok(self.policy.run(0, until, &call, span).await?)
    }

    async fn ask_model(
        &self,
        model: &Model,
        (incoming, id): (&Envelope, &MessageId),
        until: Timestamp,
        span: &AnswerSpan,
    ) -> Result<Reply, AnswerError> {
        let ports = &self.context.ports;
        let started = ports.now();
        let task = self.task(incoming).await?;
        let call = ModelCall {
            caller: &self.caller,
            policy: &self.policy,
            span,
            incoming,
            task: task.as_ref(),
            id,
            until,
        };
        let answer = model.ask(call).await?;
        let now = ports.now();
        let took_ms = now.millis_since(started);
        let agent = &self.agent.agent_id;
        let message = decode::model_message(answer, agent, incoming, now, took_ms);
        Ok(Reply::Message(Box::new(message)))
    }

    fn raw_answer<'a>(&self, body: &'a [u8], dialect: Option<&'a str>) -> RawAnswer<'a> {
        RawAnswer {
            body,
            dialect,
            card_dialect: self.agent.dialect,
        }
    }

    /// Says why an answer cannot be used. Of a server's answer only the place is said: some servers repeat what they were
    /// sent, and with it the key.
    fn unusable(&self, fault: &Fault, target: &AnswerTarget) -> String {
        match &self.runner {
            Runner::Program => fault.to_string(),
            Runner::Server | Runner::Model(_) => {
                let at = if fault.pointer.is_empty() {
                    "its beginning"
                } else {
                    &fault.pointer
                };
                let dialect = match self.agent.dialect {
                    Dialect::Concord => String::new(),
                    dialect => format!("a message in the dialect {dialect}, "),
                };
                if let Some(asked) = target.asked.filter(|_| at == decode::MESSAGE_TYPE) {
                    let types = asked.named();
                    return format!(
                        "its answer cannot be used, at {at}; what it was asked is answered by {types}"
                    );
                }
                format!(
                    "its answer cannot be used, at {at}; it is {dialect}message_type and payload, or {{}}"
                )
            }
        }
    }

    /// The task of the message's case. None for an assignment, which holds its own.
    async fn task(&self, incoming: &Envelope) -> Result<Option<Task>, HandleError> {
        let Some(case) = &incoming.case_id else {
            return Ok(None);
        };
        if incoming.message_type == MessageType::TaskAssignment {
            return Ok(None);
        }
        let opened = self.cases.opening_of(case).await?;
        Ok(opened.map(|opened| opened.task.clone()))
    }

    /// Writes the message in the agent's dialect, a question with the task of its case. A message that the dialect cannot
    /// express is refused.
    async fn write(&self, incoming: &Envelope) -> Result<Vec<u8>, AnswerError> {
        let dialect = self.agent.dialect;
        let with_task;
        let is_question = incoming.message_type == MessageType::Question;
        let incoming = if is_question && incoming.case_id.is_some() {
            let task = self.task(incoming).await?;
            with_task = encode::with_task(incoming, task.as_ref()).map_err(HandleError::from)?;
            &with_task
        } else {
            incoming
        };
        encode::write_line(incoming, dialect).map_err(|fault| {
            let at = if fault.pointer.is_empty() {
                ""
            } else {
                ", at "
            };
            let reason = fault.message.trim_end_matches('.');
            let why = format!(
                "a {} cannot be said in its dialect {dialect}{at}{}: {reason}",
                incoming.message_type, fault.pointer
            );
            Failure::inexpressible(fault.code, why).into()
        })
    }
}

/// Refuses an answer that does not fit into a message. Refused here it costs one call; refused by the broker, one each time
/// that the message is delivered.
fn check_size(message: &Envelope) -> Result<(), Failure> {
    let bytes = message.payload.get().len();
    if bytes <= ANSWER_BYTES_MAX {
        return Ok(());
    }
    let why = format!(
        "its answer has {bytes} bytes, more than the {ANSWER_BYTES_MAX} that there is room for"
    );
    Err(Failure::answer_too_large(why))
}

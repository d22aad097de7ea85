//! A hosted agent in one replica. It answers the messages that wait for an answer; where it has none, the sender is told why.

use std::sync::Arc;

use concord_domain::resilience::breaker::Rules;
use concord_domain::resilience::call_policy::{self, FailureHandling};
use concord_runtime::Ports;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_wire::payload::Card;
use concord_wire::{Envelope, ErrorCode, MessageType, Timestamp};

use crate::case_cache::CaseCache;
use crate::context::AdapterContext;
use crate::hosted_agent::agent_caller::AgentCaller;
use crate::hosted_agent::budget::Budget;
use crate::hosted_agent::call_policy::{CallPolicy, breaker_rules};
use crate::hosted_agent::callback::AsyncAnswers;
use crate::hosted_agent::concurrency_limit::ConcurrencyLimit;
use crate::hosted_agent::decode;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::inbox::{is_alert, is_of_agent, is_of_case, is_refusal};
use crate::hosted_agent::openai::Model;
use crate::hosted_agent::reply_loops::ReplyLoops;
use crate::hosted_agent::spans::{AnswerSpan, SpanSubject};
use crate::hosted_agent::timing::Jitter;
use crate::settings::prompts::PromptTemplates;
use crate::settings::{Error, HostedAgent};

mod answer;
mod async_answers;
mod batch;
mod describe;
mod expired;

use answer::{Answer, AnswerError, Asked, QUEUE_FULL};
pub(crate) use describe::Description;
use expired::is_ended_by_coordinator;

/// The way in which messages are written for an agent and its answers are read.
pub enum Runner {
    /// A program: one message a line, one answer a line.
    Program,
    /// A server: each message is posted to it.
    Server,
    /// A model: each message becomes a prompt.
    Model(Box<Model>),
}

impl Runner {
    /// The runner of an agent, with the templates that its settings name.
    pub fn of(agent: &HostedAgent) -> Result<Self, Error> {
        Ok(match (&agent.http, &agent.openai) {
            (Some(_), _) => Self::Server,
            (None, Some(openai)) => {
                let key = format!("agents.{}.openai", agent.agent_id);
                let templates = PromptTemplates::read(&key, openai)?;
                Self::Model(Box::new(Model::new(openai.clone(), templates)))
            }
            (None, None) => Self::Program,
        })
    }

    fn as_str(&self) -> &'static str {
        match self {
            Self::Program => "command",
            Self::Server => "http",
            Self::Model(_) => "openai",
        }
    }
}

/// One hosted agent, as it is to be run.
pub struct HostConfig {
    /// Its settings.
    pub agent: HostedAgent,
    /// The way in which messages are written for it.
    pub runner: Runner,
    /// The rules of its circuit breaker.
    pub breaker: Rules,
}

impl HostConfig {
    /// The agent with the breaker that its settings say.
    pub fn new(agent: HostedAgent, runner: Runner) -> Self {
        Self {
            breaker: breaker_rules(&agent),
            agent,
            runner,
        }
    }
}

/// A hosted agent.
pub struct Host<P: Ports, C> {
    pub(crate) agent: HostedAgent,
    pub(crate) context: ServiceContext<P>,
    runner: Runner,
    caller: C,
    cases: Arc<CaseCache<P>>,
    loops: Arc<ReplyLoops<P>>,
    limit: ConcurrencyLimit,
    /// Alerts are let in beside everything else.
    alerts: ConcurrencyLimit,
    policy: CallPolicy<P>,
    /// None where agents cannot answer later.
    async_answers: Option<AsyncAnswers>,
}

impl<P: Ports, C: AgentCaller> Host<P, C> {
    /// The agent, without a budget and without answers that come later.
    pub fn new(
        config: HostConfig,
        caller: C,
        adapter: &AdapterContext<P>,
        loops: &Arc<ReplyLoops<P>>,
    ) -> Self {
        Self::with_budget(config, caller, adapter, loops, None)
    }

    /// The agent with the budget of its provider, if it has one.
    pub(crate) fn with_budget(
        config: HostConfig,
        caller: C,
        adapter: &AdapterContext<P>,
        loops: &Arc<ReplyLoops<P>>,
        budget: Option<Arc<Budget>>,
    ) -> Self {
        let HostConfig {
            agent,
            runner,
            breaker,
        } = config;
        debug_assert!(agent.instances > 0, "an agent that works on no message");
        let jitter = Jitter::new(adapter.service.ports.unique_id());
        let ports = adapter.service.ports.clone();
        let metrics = adapter.metrics.clone();
        let limit = ConcurrencyLimit::new(agent.instances, agent.queue_max);
        let alerts = ConcurrencyLimit::new(1, agent.queue_max);
        let queues = [limit.clone(), alerts.clone()];
        metrics.waiting.show(agent.agent_id.clone(), move || {
            let waiting: usize = queues.iter().map(|queue| queue.load().1).sum();
            i64::try_from(waiting).unwrap_or(i64::MAX)
        });
        Self {
            limit,
            alerts,
            policy: CallPolicy::new(ports, &agent, breaker, budget, metrics, jitter),
            // A slow agent keeps its large messages, and only its own.
            context: adapter.service.clone().with_own_room(),
            runner,
            caller,
            cases: Arc::clone(&adapter.cases),
            loops: Arc::clone(loops),
            async_answers: None,
            agent,
        }
    }

    /// The same agent, which may answer later.
    pub(crate) fn with_async_answers(self, answers: Option<AsyncAnswers>) -> Self {
        Self {
            async_answers: answers,
            ..self
        }
    }

    /// Whether it is told what happens in its cases. A model is not: it would forget it.
    pub(crate) fn hears_news(&self) -> bool {
        !matches!(self.runner, Runner::Model(_))
    }

    /// How many deliveries may be under way at once.
    pub fn in_flight_max(&self) -> usize {
        call_policy::in_flight_max(self.agent.instances, self.agent.queue_max)
    }

    /// How many messages are worked on, and how many wait.
    pub fn load(&self) -> (usize, usize) {
        self.limit.load()
    }

    /// Has a message answered. The answer is published once, however often the message is delivered.
    ///
    /// A message to `acknowledge`, a request with a callback, is acknowledged when it is let in.
    pub(crate) async fn handle(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
        acknowledge: bool,
    ) -> Result<(), HandleError> {
        if self.was_answered_before(incoming, delivery).await? {
            return Ok(());
        }
        let now = self.context.ports.now();
        let until = incoming.deadline.map_or_else(
            || now.plus_millis(self.agent.wait_max_ms),
            |deadline| deadline.max(now),
        );
        let span = self.span(incoming, delivery);
        if acknowledge && self.policy.check().is_ok() && !self.is_expired(incoming) {
            let receipt = self.acknowledgement(incoming)?;
            self.publish(&receipt, &span).await?;
        }
        let asked = Asked::Message;
        let answered = self.answer(incoming, delivery, &span, until, asked).await;
        let publishes = matches!(
            answered,
            Ok(Answer::Message(_)) | Err(AnswerError::Agent(_))
        );
        if publishes && self.was_answered_since(now, incoming, delivery).await? {
            return Ok(());
        }
        match answered {
            Ok(answer) => self.publish_answer(answer, incoming, &span).await,
            Err(AnswerError::Agent(failure)) => {
                self.report_failure(failure, incoming, delivery, &span)
                    .await
            }
            Err(AnswerError::Handle(error)) => {
                span.set_failure("not_given");
                Err(error)
            }
        }
    }

    /// Tells the agent what has happened in its case, what everybody is alerted of, what another agent says to it, or that a service has
    /// refused what it said. Nothing that it answers to an agent or to a refusal is published, so that nobody answers each other without
    /// end; of what it answers to a service otherwise, now or later, only a confirmation of somebody's finding.
    pub(crate) async fn inform(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        if !self.hears_news() {
            self.context.count_ignored("no_response_required");
            return Ok(());
        }
        let span = self.span(incoming, delivery);
        let until = self.context.ports.now().plus_millis(self.agent.wait_max_ms);
        let is_answered_by_nothing =
            is_of_agent(incoming) || is_alert(incoming) || is_refusal(incoming);
        let answered = match is_answered_by_nothing {
            true => self
                .ask(incoming, &span, until, Asked::Nothing)
                .await
                .map(|_| Answer::Nothing),
            false => {
                let asked = Asked::News;
                self.answer(incoming, delivery, &span, until, asked).await
            }
        };
        match answered {
            Ok(Answer::Message(message)) if message.message_type == MessageType::Confirmation => {
                span.set_outcome("answered");
                self.publish(&message, &span).await
            }
            Ok(_) => {
                span.set_outcome("told");
                Ok(())
            }
            Err(AnswerError::Handle(error)) => Err(error),
            Err(AnswerError::Agent(failure)) => {
                span.set_failure(failure.outcome);
                if self.handling(&failure, incoming, delivery, false) == FailureHandling::Later {
                    return Err(HandleError::retry(failure));
                }
                let (agent, why) = (&self.agent.agent_id, &failure.why);
                tracing::warn!(%agent, subject = %delivery.subject, why, "A hosted agent could not be told.");
                Ok(())
            }
        }
    }

    async fn publish_answer(
        &self,
        answer: Answer,
        incoming: &Envelope,
        span: &AnswerSpan,
    ) -> Result<(), HandleError> {
        match answer {
            Answer::Message(message) if self.is_expired(incoming) => {
                self.report_late_answer(&message, incoming, span).await
            }
            Answer::Message(message) => {
                span.set_outcome("answered");
                // Before it is published: what it leads to may come at once.
                if message.message_type != MessageType::Error {
                    self.loops.record_answer(incoming, &self.agent.agent_id);
                }
                self.publish(&message, span).await
            }
            Answer::Nothing => {
                span.set_outcome("nothing");
                Ok(())
            }
            Answer::Posted => {
                self.loops.record_answer(incoming, &self.agent.agent_id);
                span.set_outcome("answered_later");
                Ok(())
            }
        }
    }

    /// Tells the sender why there is no answer, unless the message is to be delivered again or the coordinator tells it.
    async fn report_failure(
        &self,
        failure: Failure,
        incoming: &Envelope,
        delivery: &Delivery,
        span: &AnswerSpan,
    ) -> Result<(), HandleError> {
        span.set_failure(failure.outcome);
        let agent = &self.agent.agent_id;
        let is_expired = self.is_expired(incoming);
        match self.handling(&failure, incoming, delivery, is_expired) {
            FailureHandling::Later => Err(HandleError::retry(failure)),
            FailureHandling::Nothing => {
                tracing::info!(%agent, subject = %delivery.subject, "A request's time was over.");
                Ok(())
            }
            FailureHandling::Error => {
                let why = &failure.why;
                tracing::warn!(%agent, subject = %delivery.subject, why, "A hosted agent gave no answer.");
                self.publish_error(&failure, incoming, span).await
            }
        }
    }

    /// What is done about a message without an answer. What a service says in a case and finds no room is put back at first: a case waits
    /// for the answer, and nobody floods the agent by it. Other agents are told at once that there is no room.
    fn handling(
        &self,
        failure: &Failure,
        incoming: &Envelope,
        delivery: &Delivery,
        is_expired: bool,
    ) -> FailureHandling {
        let tried = delivery.deliveries;
        let waits_for_room = failure.outcome == QUEUE_FULL && is_of_case(incoming);
        if waits_for_room && !is_expired && tried < self.context.work.deliveries_max {
            return FailureHandling::Later;
        }
        call_policy::handling(&failure.verdict, tried, is_expired)
    }

    /// Whether a message is withheld from the agent because the agent and its sender answer each other without end.
    pub(crate) async fn breaks_loop(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        let agent = &self.agent.agent_id;
        self.loops.breaks(incoming, agent, delivery).await
    }

    /// Tells the sender that its message is withheld from the agent because of a reply loop. An error is not answered, so the
    /// loop ends.
    pub(crate) async fn reject_loop(
        &self,
        incoming: &Envelope,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        let why = format!(
            "it and {} answer each other without end in this thread, which is broken",
            incoming.from_agent
        );
        let failure = Failure::local(ErrorCode::CapacityExceeded, why).with_outcome("loop_broken");
        self.decline(failure, incoming, delivery).await
    }

    /// Tells the sender that its message is withheld from the agent, and why.
    pub(crate) async fn decline(
        &self,
        failure: Failure,
        incoming: &Envelope,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        let span = self.span(incoming, delivery);
        span.set_failure(failure.outcome);
        if self.is_expired(incoming) {
            return Ok(());
        }
        self.publish_error(&failure, incoming, &span).await
    }

    /// The agent's card.
    pub(crate) fn card(&self) -> Card {
        self.agent.card()
    }

    fn is_expired(&self, incoming: &Envelope) -> bool {
        is_ended_by_coordinator(incoming, self.context.ports.now())
    }

    fn span(&self, incoming: &Envelope, delivery: &Delivery) -> AnswerSpan {
        let subject = SpanSubject {
            brought: delivery.trace.as_ref(),
            case: incoming.case_id.as_ref(),
            message_type: &incoming.message_type,
        };
        let kind = match &self.runner {
            Runner::Program => "program",
            Runner::Server | Runner::Model(_) => self.runner.as_str(),
        };
        AnswerSpan::begin(&self.context, &self.agent.agent_id, kind, subject)
    }

    async fn publish_error(
        &self,
        failure: &Failure,
        incoming: &Envelope,
        span: &AnswerSpan,
    ) -> Result<(), HandleError> {
        let now: Timestamp = self.context.ports.now();
        let error = decode::error_message(failure, &self.agent.agent_id, incoming, now)?;
        self.publish(&error, span).await
    }

    /// Publishes a message unless one with its id was published before.
    async fn publish(&self, message: &Envelope, span: &AnswerSpan) -> Result<(), HandleError> {
        let ports = &self.context.ports;
        if !ports.publish_first(message, span.context()).await? {
            self.context.count_ignored("answered_before");
        }
        Ok(())
    }
}

//! A hosted agent: each message that waits for an answer is given to it when its turn has come, and what it says, or why it
//! says nothing, is published.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use concord_domain::resilience::call_policy::{self, Tell};
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::clock;
use concord_runtime::service::metrics::Reason;
use concord_wire::payload::{Card, Task};
use concord_wire::{Dialect, Envelope, ErrorCode, Fault, MessageId, MessageType};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::budget::Budgets;
use crate::call_policy::Guard;
use crate::callback::token::Asked;
use crate::callback::{Address, Awaited, Wait};
use crate::case_cache::Cases;
use crate::concurrency_limit::{Gate, Refusal};
use crate::decode::{self, Said};
use crate::encode;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::http::{Answered, Beside, Post};
use crate::openai::Model;
use crate::pool::{OfProgram, Pool};
use crate::reply_loops::Loops;
use crate::settings::HostedAgent;
use crate::settings::check::Error;
use crate::spans::{About, Turn};

mod async_answers;
mod describe;
mod expired;

pub(crate) use describe::Description;
use expired::is_told_by_coordinator;

/// The largest payload of an answer: with what the adapter adds it fits into an envelope.
const ANSWER_BYTES_MAX: usize = concord_wire::envelope::ENVELOPE_BYTES_MAX - 16_384;

/// How an agent is run.
enum Runner {
    Program(Box<Pool>),
    Http(Box<Endpoint>),
    OpenAi(Box<Model>),
}

impl Runner {
    fn new(agent: &HostedAgent) -> Result<Self, Error> {
        let key = format!("agents.{}", agent.agent_id);
        match (&agent.http, &agent.openai) {
            (Some(http), _) => Ok(Self::Http(Box::new(Endpoint::of_server(
                &format!("{key}.http"),
                http,
            )?))),
            (_, Some(openai)) => Ok(Self::OpenAi(Box::new(Model::new(
                &format!("{key}.openai"),
                openai,
            )?))),
            (None, None) => Ok(Self::Program(Box::new(Pool::new(agent.clone())))),
        }
    }

    fn as_str(&self) -> &'static str {
        match self {
            Self::Program(_) => "command",
            Self::Http(_) => "http",
            Self::OpenAi(_) => "openai",
        }
    }
}

/// What all hosted agents of a replica share.
pub(crate) struct Shared {
    pub(crate) shell: ServiceRunner,
    pub(crate) cases: Arc<Cases>,
    pub(crate) budgets: Budgets,
    pub(crate) address: Option<Arc<Address>>,
    pub(crate) awaited: Awaited,
    pub(crate) loops: Arc<Loops>,
}

/// A hosted agent.
pub(crate) struct Host {
    pub(crate) agent: HostedAgent,
    shared: Arc<Shared>,
    runner: Runner,
    gate: Gate,
    guard: Guard,
    /// How many answers may be waited for that come later.
    later: Semaphore,
}

/// What came of a message.
enum Came {
    /// This is said.
    Answer(Box<Envelope>),
    /// It has nothing to say.
    Nothing,
    /// It says it later.
    Later(Option<Wait>),
}

impl Host {
    pub(crate) fn new(agent: HostedAgent, shared: &Arc<Shared>) -> Result<Self, Error> {
        let budget = agent
            .provider
            .as_ref()
            .and_then(|provider| shared.budgets.get(provider))
            .cloned();
        Ok(Self {
            runner: Runner::new(&agent)?,
            gate: Gate::new(agent.instances, agent.queue_max),
            guard: Guard::new(&agent, budget, shared.shell.metrics.clone()),
            later: Semaphore::new(agent.queue_max.clamp(1, Semaphore::MAX_PERMITS)),
            shared: Arc::clone(shared),
            agent,
        })
    }

    /// Deliveries under way at once.
    pub(crate) fn in_flight_max(&self) -> usize {
        call_policy::in_flight_max(self.agent.instances, self.agent.queue_max)
    }

    /// Has a message answered. What is published is published once, however often the message is delivered.
    ///
    /// What `will_be_answered_later`, a request with a callback, is acknowledged when it is let in.
    pub(crate) async fn handle(
        &self,
        asked: &Envelope,
        delivery: &Delivery,
        will_be_answered_later: bool,
    ) -> Result<(), HandleError> {
        // A replica that was killed may have had an answer already, or have been promised one that has come since.
        if delivery.deliveries > 1 && self.has_answered(asked, delivery).await? {
            self.shared.shell.count_ignored("answered_before");
            return Ok(());
        }
        let now = clock::now();
        let wait = asked.deadline.map_or(self.agent.wait_max_ms, |deadline| {
            deadline.millis_since(now)
        });
        let until = Instant::now() + Duration::from_millis(wait);
        let turn = self.turn(asked, delivery);
        if will_be_answered_later && self.guard.check().is_ok() && !is_told_by_coordinator(asked) {
            self.publish(&self.acknowledgement(asked)?, &turn).await?;
        }
        let came = match self.answer(asked, &turn, until).await {
            Ok(Came::Later(Some(answer))) => {
                self.wait_for(asked, delivery, answer).await.map(|()| {
                    self.shared.loops.answered(asked, &self.agent.agent_id);
                    turn.came_to("answered_later");
                    Came::Later(None)
                })
            }
            other => other,
        };
        let message = match came.and_then(fits) {
            Ok(Came::Answer(message)) if is_told_by_coordinator(asked) => {
                return self.keep(&message, asked, &turn).await;
            }
            Ok(Came::Answer(message)) => {
                turn.came_to("answered");
                *message
            }
            Ok(Came::Later(_)) => return Ok(()),
            Ok(Came::Nothing) => {
                turn.came_to("nothing");
                return Ok(());
            }
            Err(Stop::HandleError(problem)) => {
                turn.failed("not_given");
                return Err(problem);
            }
            Err(Stop::Failure(failure)) => {
                turn.failed(failure.outcome);
                let (agent, why) = (&self.agent.agent_id, &failure.why);
                match call_policy::tell(
                    &failure.verdict,
                    delivery.deliveries,
                    is_told_by_coordinator(asked),
                ) {
                    Tell::Later => return Err(HandleError::retry(failure)),
                    Tell::Nothing => {
                        tracing::info!(%agent, subject = %delivery.subject, "A request's time was over.");
                        return Ok(());
                    }
                    Tell::Error => {
                        tracing::warn!(%agent, subject = %delivery.subject, why, "A hosted agent gave no answer.");
                        decode::failure(&failure, agent, asked, clock::now())?
                    }
                }
            }
        };
        // Before it is said: what it leads to may come at once.
        if message.message_type != MessageType::Error {
            self.shared.loops.answered(asked, &self.agent.agent_id);
        }
        self.publish(&message, &turn).await
    }

    /// Whether a message is not to be given to the agent because it and whoever said it answer each other without end.
    pub(crate) async fn breaks(
        &self,
        asked: &Envelope,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        self.shared
            .loops
            .breaks(asked, &self.agent.agent_id, delivery)
            .await
    }

    /// Tells who asked that its message is not given to the agent, because the two answer each other without end. An error
    /// is not answered, so that it is the end.
    pub(crate) async fn refuse(
        &self,
        asked: &Envelope,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        let why = format!(
            "it and {} answer each other without end in this thread, which is broken",
            asked.from_agent
        );
        let failure = Failure::here(ErrorCode::CapacityExceeded, why).named("loop_broken");
        self.decline(failure, asked, delivery).await
    }

    /// Tells who asked that the agent is not given what was said to it, and why.
    pub(crate) async fn decline(
        &self,
        failure: Failure,
        asked: &Envelope,
        delivery: &Delivery,
    ) -> Result<(), HandleError> {
        let turn = self.turn(asked, delivery);
        turn.failed(failure.outcome);
        if is_told_by_coordinator(asked) {
            return Ok(());
        }
        self.publish(
            &decode::failure(&failure, &self.agent.agent_id, asked, clock::now())?,
            &turn,
        )
        .await
    }

    fn acknowledgement(&self, asked: &Envelope) -> Result<Envelope, HandleError> {
        let nothing = serde_json::value::to_raw_value(&serde_json::json!({}))?;
        Ok(asked.reply(
            &self.agent.agent_id,
            clock::now(),
            MessageType::Acknowledgement,
            nothing,
        ))
    }

    /// The agent's card.
    pub(crate) fn card(&self) -> Card {
        self.agent.card()
    }

    fn turn(&self, asked: &Envelope, delivery: &Delivery) -> Turn {
        let about = About {
            brought: delivery.trace.as_ref(),
            case: asked.case_id.as_ref(),
            message_type: &asked.message_type,
        };
        let kind = match &self.runner {
            Runner::Program(_) => "program",
            Runner::Http(_) | Runner::OpenAi(_) => self.runner.as_str(),
        };
        Turn::begin(&self.shared.shell, &self.agent.agent_id, kind, about)
    }

    async fn publish(&self, message: &Envelope, turn: &Turn) -> Result<(), HandleError> {
        if !self
            .shared
            .shell
            .broker
            .publish_first(message, turn.context())
            .await?
        {
            self.shared.shell.count_ignored("answered_before");
        }
        Ok(())
    }

    async fn answer(&self, asked: &Envelope, turn: &Turn, until: Instant) -> Result<Came, Stop> {
        // What would be refused when its turn comes need not wait for it.
        self.guard.check()?;
        let within = until.saturating_duration_since(Instant::now());
        let queue = turn.queue();
        let entered = self
            .gate
            .enter(asked.priority.lane(), within)
            .await
            .map_err(|refusal| match refusal {
                Refusal::Full => {
                    let why = format!("{} messages wait for it already", self.agent.queue_max);
                    Failure::here(ErrorCode::CapacityExceeded, why).named("queue_full")
                }
                Refusal::Late => {
                    Failure::here(ErrorCode::Timeout, "its time was over before its turn came")
                }
            });
        let _seat = queue.ended("let_in", entered)?;
        let started = Instant::now();
        let took_ms = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let agent = &self.agent.agent_id;
        let id = MessageId::of_answer(&asked.message_id, agent);
        let answering = Asked::of(asked, agent, clock::now());
        let (body, named): (Bytes, Option<String>) = match &self.runner {
            Runner::Program(pool) => {
                let line = self.given(asked).await?;
                (
                    self.ask_program(pool, &line, until, turn, &answering)
                        .await?
                        .into(),
                    None,
                )
            }
            Runner::Http(endpoint) => {
                let message = self.given(asked).await?;
                let callback = self.callback(asked, turn);
                // Listened for before it is asked: it may answer before it has said that it will.
                let later = self.shared.awaited.answer(agent, asked.message_id.as_str());
                let beside = Beside {
                    dialect: self.agent.dialect,
                    callback: callback.as_deref(),
                };
                match self
                    .guard
                    .run(0, until, &Post::new(endpoint, message, id, beside), turn)
                    .await?
                {
                    Answered::Now(body, named) => (body, named),
                    Answered::Later => return Ok(Came::Later(Some(later))),
                }
            }
            Runner::OpenAi(model) => {
                let task = self.task(asked).await?;
                let said = model
                    .ask((&self.guard, turn), asked, task.as_ref(), &id, until)
                    .await?;
                let message = decode::of_model(said, agent, asked, clock::now(), took_ms());
                return Ok(Came::Answer(Box::new(message)));
            }
        };
        let said = Said {
            body: &body,
            dialect: named.as_deref(),
            speaks: self.agent.dialect,
        };
        let message = decode::message(&said, &answering, clock::now(), Some(took_ms()));
        let message = message
            .map_err(|fault| Failure::here(ErrorCode::InternalError, self.unusable(&fault)))?;
        Ok(message.map_or(Came::Nothing, |message| Came::Answer(Box::new(message))))
    }

    async fn ask_program(
        &self,
        pool: &Pool,
        line: &[u8],
        until: Instant,
        turn: &Turn,
        answering: &Asked,
    ) -> Result<Vec<u8>, Failure> {
        let starts = pool.starts.load(Ordering::Relaxed);
        let usable = |body: &[u8]| {
            let said = Said {
                body,
                dialect: None,
                speaks: self.agent.dialect,
            };
            decode::message(&said, answering, clock::now(), None).is_ok()
        };
        let answered = self
            .guard
            .run(0, until, &OfProgram { pool, line, usable }, turn)
            .await;
        let started_now = pool.starts.load(Ordering::Relaxed).saturating_sub(starts);
        let label = Reason {
            reason: self.agent.agent_id.to_string(),
        };
        self.shared
            .shell
            .metrics
            .program_starts
            .get_or_create(&label)
            .inc_by(started_now);
        answered
    }

    /// What is wrong with an answer. Of a server's, the place alone: some repeat in their answers what they were sent, and
    /// with it the key.
    fn unusable(&self, fault: &Fault) -> String {
        match &self.runner {
            Runner::Program(_) => fault.to_string(),
            Runner::Http(_) | Runner::OpenAi(_) => {
                let at = if fault.pointer.is_empty() {
                    "its beginning"
                } else {
                    &fault.pointer
                };
                let dialect = match self.agent.dialect {
                    Dialect::Concord => String::new(),
                    dialect => format!("a message in the dialect {dialect}, "),
                };
                format!(
                    "its answer cannot be used, at {at}; it is {dialect}message_type and payload, or {{}}"
                )
            }
        }
    }

    async fn task(&self, asked: &Envelope) -> Result<Option<Task>, HandleError> {
        let Some(case) = &asked.case_id else {
            return Ok(None);
        };
        if asked.message_type == MessageType::TaskAssignment {
            return Ok(None);
        }
        Ok(self
            .shared
            .cases
            .of(case)
            .await?
            .map(|opened| opened.task.clone()))
    }

    /// The message in the agent's dialect, a question with the task of its case. What the dialect cannot say is refused.
    async fn given(&self, asked: &Envelope) -> Result<Vec<u8>, Stop> {
        let dialect = self.agent.dialect;
        let with_task;
        let asked = if asked.message_type == MessageType::Question && asked.case_id.is_some() {
            let task = self.task(asked).await?;
            with_task = encode::with_task(asked, task.as_ref()).map_err(HandleError::from)?;
            &with_task
        } else {
            asked
        };
        encode::written(asked, dialect).map_err(|fault| {
            let at = if fault.pointer.is_empty() {
                ""
            } else {
                ", at "
            };
            let said = fault.message.trim_end_matches('.');
            let why = format!(
                "a {} cannot be said in its dialect {dialect}{at}{}: {said}",
                asked.message_type, fault.pointer
            );
            Failure::unsaid(fault.code, why).into()
        })
    }
}

/// An answer that there is room for in a message. Refused here it costs one call; refused by the broker, one each time.
fn fits(came: Came) -> Result<Came, Stop> {
    if let Came::Answer(message) = &came {
        let bytes = message.payload.get().len();
        if bytes > ANSWER_BYTES_MAX {
            let why = format!(
                "its answer has {bytes} bytes, more than the {ANSWER_BYTES_MAX} that there is room for"
            );
            return Err(Failure::here(ErrorCode::CapacityExceeded, why)
                .named("too_large")
                .into());
        }
    }
    Ok(came)
}

/// Why there is no answer: the agent's side, or ours.
enum Stop {
    Failure(Failure),
    HandleError(HandleError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<HandleError> for Stop {
    fn from(problem: HandleError) -> Self {
        Self::HandleError(problem)
    }
}

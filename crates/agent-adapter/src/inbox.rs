//! A hosted agent's messages: each that waits for an answer is given to the program, and the answer is published.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use concord_protocol::payload::Task;
use concord_protocol::{AgentId, Envelope, ErrorCode, MessageType, Token};
use concord_runtime::consume::{Chain, Delivery, Done, Handler, Problem};
use concord_runtime::metrics::Reason;
use concord_runtime::service::Shell;
use concord_runtime::{Trace, clock, dialect};
use serde::Serialize;
use serde_json::Value;

use crate::HostedAgent;
use crate::context::Tasks;
use crate::pool::Pool;
use crate::program::Error;
use crate::reply;

/// How often a message is given to a program that ends without answering it.
const TRIES_MAX: u64 = 3;

/// A hosted agent.
pub(crate) struct Host {
    pub(crate) agent: HostedAgent,
    shell: Shell,
    pool: Pool,
    tasks: Arc<Tasks>,
}

/// A hosted agent, as `concord agents` shows it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Description {
    agent_id: AgentId,
    description: String,
    skills: Vec<String>,
    domains: Vec<Token>,
    instances: usize,
    idle: usize,
    starts: u64,
}

impl Host {
    pub(crate) fn new(shell: &Shell, agent: HostedAgent, tasks: &Arc<Tasks>) -> Self {
        let pool = Pool::new(agent.clone());
        Self { agent, shell: shell.clone(), pool, tasks: Arc::clone(tasks) }
    }

    pub(crate) fn describe(&self) -> Description {
        let HostedAgent { agent_id, description, skills, domains, instances, .. } = self.agent.clone();
        let (idle, starts) = (self.pool.idle_count(), self.pool.starts.load(Ordering::Relaxed));
        Description { agent_id, description, skills, domains, instances, idle, starts }
    }

    async fn answer(&self, asked: &Envelope, delivery: &Delivery) -> Result<Option<Envelope>, Problem> {
        let line = self.line(asked).await?;
        let started = Instant::now();
        let starts = self.pool.starts.load(Ordering::Relaxed);
        let answered = self.pool.ask(&line).await;
        let started_now = self.pool.starts.load(Ordering::Relaxed).saturating_sub(starts);
        let label = Reason { reason: self.agent.agent_id.to_string() };
        self.shell.metrics.program_starts.get_or_create(&label).inc_by(started_now);
        let agent = &self.agent.agent_id;
        let failed = |code, why: &str| {
            tracing::warn!(%agent, subject = %delivery.subject, why, "A hosted agent gave no answer.");
            reply::failure(code, why, agent, asked, clock::now())
        };
        match answered {
            Ok(line) => {
                let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                match reply::message(&line, agent, asked, clock::now(), took_ms) {
                    Ok(message) => Ok(message),
                    Err(fault) => Ok(Some(failed(ErrorCode::InternalError, &fault.to_string())?)),
                }
            }
            Err(error @ Error::Timeout(_)) => Ok(Some(failed(ErrorCode::Timeout, &error.to_string())?)),
            Err(error) if delivery.deliveries < TRIES_MAX => Err(error.into()),
            Err(error) => Ok(Some(failed(ErrorCode::AgentUnavailable, &Chain(&error).to_string())?)),
        }
    }

    /// The message as one line, a question with the task of its case.
    async fn line(&self, asked: &Envelope) -> Result<Vec<u8>, Problem> {
        let mut message = serde_json::to_value(asked)?;
        if asked.message_type == MessageType::Question
            && let Some(case) = &asked.case_id
        {
            let task = self.tasks.of(case).await?;
            add_task(&mut message, task.as_deref())?;
        }
        // `to_vec` writes no line breaks: those inside texts are escaped.
        Ok(serde_json::to_vec(&message)?)
    }
}

fn add_task(message: &mut Value, task: Option<&Task>) -> Result<(), serde_json::Error> {
    if let Some(payload) = message.get_mut("payload").and_then(Value::as_object_mut) {
        payload.entry("task").or_insert(serde_json::to_value(task)?);
    }
    Ok(())
}

/// The consumer's side of a hosted agent.
pub(crate) struct Inbox(pub(crate) Arc<Host>);

impl Handler for Inbox {
    async fn handle(&self, delivery: &Delivery) -> Result<Done, Problem> {
        let host = &*self.0;
        // What another agent garbled is its own affair, and is in the transcript; the program is not bothered with it.
        let asked = dialect::envelope(&host.shell, delivery).ok();
        let Some(asked) = asked.filter(|asked| asked.requires_response) else {
            host.shell.count_ignored("no_response_required");
            return Ok(Done::Acknowledge);
        };
        if let Some(message) = host.answer(&asked, delivery).await? {
            let trace = delivery.trace.clone().or_else(|| asked.case_id.as_ref().map(Trace::of_case));
            host.shell.broker.publish(&message, trace.as_ref()).await?;
        }
        Ok(Done::Acknowledge)
    }
}

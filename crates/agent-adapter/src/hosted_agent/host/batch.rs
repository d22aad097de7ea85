//! Batches: the agent is asked each request by itself, and what it answers is one response.

use std::time::Duration;

use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_wire::payload::BATCH_MAX;
use concord_wire::payload::batch::{BatchResult, PartResponse, answered_by, parts};
use concord_wire::{Envelope, ErrorCode, Timestamp};
use futures::StreamExt;
use futures::stream::iter;

use super::Host;
use super::answer::{ANSWER_BYTES_MAX, AnswerError, Asked, Reply};
use crate::hosted_agent::agent_caller::AgentCaller;
use crate::hosted_agent::call_policy::EXPIRED;
use crate::hosted_agent::callback::token::AnswerTarget;
use crate::hosted_agent::decode;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::spans::AnswerSpan;
use crate::hosted_agent::timing::timeout;

/// What is kept of an answer for its errors in words, in bytes: a sentence for each request.
const ROOM: usize = BATCH_MAX * 1_024;

impl<P: Ports, C: AgentCaller> Host<P, C> {
    /// Has the agent answer each request of a batch that is due at `due`, as many at once as it has instances: more would take the
    /// places of messages that wait. What is not answered shortly before that is an error in the answer.
    pub(super) async fn ask_parts(
        &self,
        incoming: &Envelope,
        span: &AnswerSpan,
        due: Timestamp,
    ) -> Result<Reply, AnswerError> {
        let (ports, agent) = (&self.context.ports, &self.agent.agent_id);
        let started = ports.now();
        let until = answered_by(due, started);
        let parts = parts(incoming, due)
            .map_err(|fault| Failure::local(fault.code, format!("its request is none: {fault}")))?;
        let mut responses = vec![None; parts.len()];
        let asked = iter(parts.into_iter().enumerate())
            .map(|(place, part)| async move { (place, self.ask_part(&part, span, until).await) });
        let mut answered = std::pin::pin!(asked.buffer_unordered(self.agent.instances));
        loop {
            let left = Duration::from_millis(until.millis_since(ports.now()));
            let Some(Some((place, response))) = timeout(ports, left, answered.next()).await else {
                break;
            };
            if let Some(slot) = responses.get_mut(place) {
                *slot = Some(response?);
            }
        }
        let late = || {
            self.policy.count(EXPIRED);
            PartResponse::late(agent)
        };
        let responses = responses.into_iter();
        let whole = BatchResult {
            responses: responses.map(|one| one.unwrap_or_else(late)).collect(),
        };
        let now = ports.now();
        let target = AnswerTarget::of(incoming, agent, now);
        let response = whole.into_response(ANSWER_BYTES_MAX - ROOM);
        let took_ms = now.millis_since(started);
        let message = decode::batch_message(&response, &target, now, took_ms);
        Ok(Reply::Message(Box::new(
            message.map_err(HandleError::from)?,
        )))
    }

    /// Only what hinders the delivery of the whole is an error here; what the agent fails in is its answer.
    async fn ask_part(
        &self,
        part: &Envelope,
        span: &AnswerSpan,
        until: Timestamp,
    ) -> Result<PartResponse, HandleError> {
        let until = part.deadline.map_or(until, |own| own.min(until));
        let failed = match self.ask(part, span, until, Asked::Part).await {
            Ok(Reply::Message(answer)) => return Ok(PartResponse::of_answer(&answer)),
            Ok(Reply::Nothing) => Failure::local(ErrorCode::InternalError, "it has nothing to say"),
            Ok(Reply::Promised(_)) => {
                let why = "it will answer later (status 202), and a request of a batch is answered at once";
                Failure::local(ErrorCode::InternalError, why)
            }
            Err(AnswerError::Agent(failure)) => failure,
            Err(AnswerError::Handle(error)) => return Err(error),
        };
        let report = decode::error_report(&failed, &self.agent.agent_id);
        Ok(PartResponse::failed(report))
    }
}

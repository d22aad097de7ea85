//! Requests whose time is over. The coordinator tells their senders, so the adapter tells them nothing more.

use concord_runtime::Ports;
use concord_runtime::delivery::HandleError;
use concord_wire::payload::Notification;
use concord_wire::payload::notification::AnsweredLate;
use concord_wire::subject::Service;
use concord_wire::{Envelope, MessageType, Recipient, Timestamp};

use super::Host;
use crate::hosted_agent::agent_caller::AgentCaller;
use crate::hosted_agent::spans::AnswerSpan;

/// Whether the coordinator tells the sender of a message that its time is over: it does for requests between agents, at their
/// deadline. Nobody needs to be told twice.
pub(super) fn is_ended_by_coordinator(incoming: &Envelope, now: Timestamp) -> bool {
    let between_agents = incoming.message_type == MessageType::Request
        && Service::parse(incoming.from_agent.as_str()).is_err();
    between_agents && incoming.deadline.is_some_and(|deadline| deadline <= now)
}

impl<P: Ports, C: AgentCaller> Host<P, C> {
    /// Gives an answer that comes too late to the coordinator, which records it. A program is given its whole time, because one
    /// that is interrupted must be started again, so it may answer when nobody waits any more.
    pub(super) async fn report_late_answer(
        &self,
        answer: &Envelope,
        incoming: &Envelope,
        span: &AnswerSpan,
    ) -> Result<(), HandleError> {
        let agent = &self.agent.agent_id;
        tracing::info!(%agent, request = %incoming.message_id, "A request's time was over when the agent answered.");
        span.set_failure("late");
        let notification = Notification::new(&AnsweredLate::new(answer)?.into())?;
        let payload = serde_json::value::to_raw_value(&notification)?;
        let now = self.context.ports.now();
        let notice = incoming.reply(agent, now, MessageType::Notification, payload);
        let to_agent = Recipient::Agent(Service::Coordinator.agent_id());
        self.publish(&Envelope { to_agent, ..notice }, span).await
    }
}

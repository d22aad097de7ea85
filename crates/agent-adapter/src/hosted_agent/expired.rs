//! What comes of a request whose time is over: whoever asked is told so by the coordinator, and nothing more by the adapter.

use concord_runtime::delivery::HandleError;
use concord_runtime::service::clock;
use concord_wire::payload::Notification;
use concord_wire::payload::notification::AnsweredLate;
use concord_wire::subject::Service;
use concord_wire::{Envelope, MessageType, Recipient};

use super::Host;
use crate::spans::Turn;

/// Whether the asker of a message is told by the coordinator that its time is over: of requests between agents, at their
/// deadline. Nobody needs to hear that twice.
pub(super) fn is_told_by_coordinator(asked: &Envelope) -> bool {
    let between_agents = asked.message_type == MessageType::Request
        && Service::parse(asked.from_agent.as_str()).is_err();
    between_agents
        && asked
            .deadline
            .is_some_and(|deadline| deadline <= clock::now())
}

impl Host {
    /// Gives an answer that comes too late to the coordinator, which records it. A program is given its whole time, because one
    /// that is interrupted must be started again, so it may answer when nobody waits any more.
    pub(super) async fn keep(
        &self,
        answer: &Envelope,
        asked: &Envelope,
        turn: &Turn,
    ) -> Result<(), HandleError> {
        let agent = &self.agent.agent_id;
        tracing::info!(%agent, request = %asked.message_id, "A request's time was over when the agent answered.");
        turn.failed("late");
        let notification = Notification::new(&AnsweredLate::new(answer)?.into())?;
        let payload = serde_json::value::to_raw_value(&notification)?;
        let notice = asked.reply(agent, clock::now(), MessageType::Notification, payload);
        let to_agent = Recipient::Agent(Service::Coordinator.agent_id());
        self.publish(&Envelope { to_agent, ..notice }, turn).await
    }
}

//! Passing on what everybody is told to hosted agents, who hear only what is addressed to them: how a debate has ended, which its parties
//! have settled themselves or by vote, to each that was a party; what a case has decided, to each that is in it; and what an agent tells everybody, to each that can read it.

use std::collections::BTreeSet;

use concord_domain::activation::conversation::REPEATED_BYTES_MAX;
use concord_domain::aggregates::case::is_told_together;
use concord_runtime::Ports;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_wire::payload::Notification;
use concord_wire::payload::notification::{CaseDecided, DebateResolved, EventData, PassedOn};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Envelope, Extensions, MessageId, MessageType, Recipient};
use serde_json::value::to_raw_value;

use crate::hosted_agent::inbox::is_of_agent;

/// Whether a message of this sender and type can say to everybody how a debate has ended, or what a case has decided.
pub(crate) fn may_be_passed_on(sender: Option<&AgentId>, kind: Option<&str>) -> bool {
    let services = [Service::DebateFacilitator, Service::Coordinator];
    sender.is_some_and(|sender| services.iter().any(|one| one.agent_id() == *sender))
        && kind == Some(MessageType::Notification.as_str())
}

/// Whether a message says what its case has decided, which concerns everybody in it.
pub(crate) fn is_decision(message: &Envelope) -> bool {
    message.from_agent == Service::Coordinator.agent_id()
        && message
            .payload::<Notification>()
            .is_ok_and(|told| told.event == CaseDecided::EVENT)
}

/// Passes a message of a service on to each of these agents. False where there are none.
pub(crate) async fn pass_on<P: Ports>(
    context: &ServiceContext<P>,
    agents: impl Iterator<Item = &AgentId>,
    message: &Envelope,
    delivery: &Delivery,
) -> Result<bool, HandleError> {
    let told: Vec<Envelope> = agents.map(|agent| addressed_to(agent, message)).collect();
    let ports = &context.ports;
    ports.publish(&told, delivery.trace.as_ref()).await?;
    Ok(!told.is_empty())
}

/// The parties to the debate that a message says to have ended, where nobody is told alone of that.
pub(crate) fn parties(message: &Envelope) -> BTreeSet<AgentId> {
    let told = message.payload::<Notification>().ok();
    let told = told.filter(|told| told.event == DebateResolved::EVENT);
    let resolved = told.and_then(|told| serde_json::from_value::<DebateResolved>(told.data).ok());
    let outcome = resolved.map(|resolved| resolved.outcome);
    let outcome = outcome.filter(|outcome| is_told_together(outcome.status));
    let positions = outcome.map(|outcome| outcome.positions).unwrap_or_default();
    positions.into_iter().map(|held| held.agent_id).collect()
}

/// Whether an agent tells everybody something, and who is hosted is to be told alone.
pub(crate) fn is_told_to_everybody(message: &Envelope) -> bool {
    is_of_agent(message)
        && message.message_type == MessageType::Notification
        && message.to_agent == Recipient::All
}

/// Passes a message on to each of these agents. What is too large to be repeated is not passed on.
pub(crate) async fn pass_on_to<P: Ports>(
    context: &ServiceContext<P>,
    agents: &BTreeSet<AgentId>,
    message: &Envelope,
    delivery: &Delivery,
) -> Result<(), HandleError> {
    let bytes = message.payload.get().len();
    if bytes > REPEATED_BYTES_MAX {
        tracing::info!(subject = %delivery.subject, bytes, "A message to everybody is too large to be passed on.");
        return Ok(());
    }
    delivery.spend(bytes * agents.len())?;
    let whole = PassedOn::new(message)?.into();
    let payload = to_raw_value(&Notification::new(&whole)?)?;
    let told: Vec<Envelope> = agents
        .iter()
        .map(|agent| Envelope {
            message_type: MessageType::Notification,
            requires_response: false,
            deadline: None,
            payload: payload.clone(),
            extensions: Extensions::default(),
            ..addressed_to(agent, message)
        })
        .collect();
    let ports = &context.ports;
    ports.publish(&told, delivery.trace.as_ref()).await?;
    Ok(())
}

/// The same message, from the adapter to one agent.
fn addressed_to(agent: &AgentId, message: &Envelope) -> Envelope {
    Envelope {
        message_id: MessageId::of_passing_on(&message.message_id, agent),
        from_agent: Service::AgentAdapter.agent_id(),
        to_agent: Recipient::Agent(agent.clone()),
        ..message.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_facilitator_and_the_coordinator_tell_everybody_may_concern_who_is_hosted() {
        let may = |from: &AgentId, kind| may_be_passed_on(Some(from), Some(kind));
        for service in [Service::DebateFacilitator, Service::Coordinator] {
            assert!(may(&service.agent_id(), "notification"), "{service:?}");
            assert!(!may(&service.agent_id(), "alert"), "{service:?}");
        }
        assert!(!may(&AgentId::new("bob").unwrap(), "notification"));
    }
}

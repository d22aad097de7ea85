//! Changes of the register, as the coordinator announces them.

use async_nats::Subscriber;
use concord_runtime::Broker;
use concord_wire::payload::{AgentJoined, StatusReport};
use concord_wire::subject::{Lane, Service};
use concord_wire::{Envelope, MessageType};
use futures::StreamExt;
use futures::stream::{SelectAll, select_all};

use super::list::style;
use crate::shared::failure::Failure;
use crate::shared::output::{self, FAINT, NAMED, styled};

/// Announcements that are listened to.
pub(super) struct News {
    broker: Broker,
    announced: SelectAll<Subscriber>,
}

impl News {
    pub(super) async fn subscribe(broker: &Broker) -> Result<Self, Failure> {
        let mut subscribed = Vec::new();
        for kind in [MessageType::AgentJoined, MessageType::Status] {
            let subject = broker.subjects().of_type(Lane::Normal, &kind.token());
            let subscriber = broker.client.subscribe(subject).await;
            subscribed.push(subscriber.map_err(|error| Failure::failed(error.to_string()))?);
        }
        Ok(Self {
            broker: broker.clone(),
            announced: select_all(subscribed),
        })
    }

    /// Prints what is announced until Ctrl-C.
    pub(super) async fn print(mut self, as_json: bool) -> Result<u8, Failure> {
        loop {
            let message = tokio::select! {
                message = self.announced.next() => message,
                _ = tokio::signal::ctrl_c() => return Ok(0),
            };
            let Some(message) = message else { return Ok(0) };
            let subject = self.broker.subjects().parse(&message.subject).ok();
            let envelope =
                subject.and_then(|subject| Envelope::decode(&message.payload, &subject).ok());
            // Only the coordinator knows; what agents say of themselves it announces when it is so.
            let Some(envelope) =
                envelope.filter(|one| one.from_agent == Service::Coordinator.agent_id())
            else {
                continue;
            };
            if as_json {
                output::json_line(&envelope)?;
            } else if let Some(line) = line(&envelope) {
                output::print(&line)?;
            }
        }
    }
}

fn line(envelope: &Envelope) -> Option<String> {
    let at = styled(FAINT, envelope.timestamp);
    match &envelope.message_type {
        MessageType::AgentJoined => {
            let joined: AgentJoined = envelope.payload().ok()?;
            let (agent, status) = (
                styled(NAMED, &joined.card.agent_id),
                styled(style(joined.status), joined.status),
            );
            Some(format!(
                "{at}  {agent}  joined, {status}: {}\n",
                output::one_line(&joined.card.description, 60)
            ))
        }
        MessageType::Status => {
            let report: StatusReport = envelope.payload().ok()?;
            let (agent, status) = (
                styled(NAMED, report.agent_id?),
                styled(style(report.status), report.status),
            );
            Some(format!(
                "{at}  {agent}  {status}  {}\n",
                output::one_line(&report.why, 80)
            ))
        }
        _ => None,
    }
}

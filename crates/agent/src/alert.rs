//! Alerting everybody.

use concord_wire::payload::{Alert, REPORT_ALERT, ReportAlert};
use concord_wire::subject::Service;
use concord_wire::{MessageId, MessageType, Priority, Recipient, Token};
use serde::Deserialize;
use serde_json::json;

use crate::agent::REQUEST_TIMEOUT;
use crate::{Agent, Error, Message};

/// That everybody is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Raised {
    /// The id of the alert.
    pub alert: Token,
    /// How many agents were on the register.
    pub registered: u64,
}

impl Agent {
    /// Alerts everybody at once, and waits up to 30 seconds until the coordinator has taken it. That needs the role `alerter`, which an
    /// operator gives; [`Error::Refused`] says so. After [`Error::Timeout`] nobody knows whether everybody is told: the same alert
    /// again under the same `message_id` is told once. Whoever is told handles it with `on(MessageType::Alert, ...)`.
    pub async fn alert(
        &self,
        alert: &Alert,
        message_id: Option<MessageId>,
    ) -> Result<Raised, Error> {
        let to = Recipient::Agent(Service::Coordinator.agent_id());
        let message = self.message(to, MessageType::Alert, alert)?;
        let message_id = message_id.unwrap_or_else(|| message.message_id.clone());
        let message = Message {
            message_id,
            priority: Priority::SystemCritical,
            ..message
        };
        let raised = self.ask(message, REQUEST_TIMEOUT).await?;
        Ok(serde_json::from_value(raised)?)
    }
    /// Reports what follows from an alert, as is awaited after a change of regime of whoever has raised it; waits up to 30 seconds
    /// until it is stored. [`Error::Refused`] says why it is not: the alert is unknown, has its report, or is none of this agent's.
    pub async fn report_alert(
        &self,
        alert: &Token,
        report: impl Into<String>,
    ) -> Result<(), Error> {
        let report = ReportAlert {
            alert: alert.clone(),
            report: report.into(),
        };
        let request = json!({ "action": REPORT_ALERT, "parameters": report });
        let to = Recipient::Agent(Service::Coordinator.agent_id());
        let message = self.message(to, MessageType::Request, &request)?;
        self.ask(message, REQUEST_TIMEOUT).await?;
        Ok(())
    }
}

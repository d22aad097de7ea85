//! What an agent does about the case that it is in, and what services answer.

use concord_wire::payload::{
    ADD_PARTICIPANT, AddParticipant, Confirmation, ErrorReport, Remembered,
};
use concord_wire::subject::{Service, Subject};
use concord_wire::{AgentId, CaseId, MessageType, Recipient, Token};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agent::REQUEST_TIMEOUT;
use crate::{Agent, Error, Message};

/// The header in which a service says why it does not answer.
const SERVICE_ERROR: &str = "Nats-Service-Error";

/// What an agent may see of a case's conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Window {
    /// The case.
    pub case_id: CaseId,
    /// The agent.
    pub agent_id: AgentId,
    /// The messages, the oldest first. The last of these the agent is given when a message wakes it.
    pub messages: Vec<Remembered>,
}

/// The answer to `add_participant`.
#[derive(Deserialize)]
struct Joined {
    agent_id: AgentId,
}

/// The answer to a confirmation.
#[derive(Deserialize)]
struct Strengthened {
    strengthened: Option<f64>,
}

/// What the agent adapter is asked.
#[derive(Serialize)]
struct AskedWindow<'a> {
    case_id: &'a CaseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a AgentId>,
}

impl Agent {
    /// Lets an agent into a case that is not over, and waits up to 30 seconds until it has joined. Whoever opened the case may, and
    /// operators. The agent gets a `session_briefing`, and everybody in the case hears `case_joined`. [`Error::Refused`] says what is
    /// wrong and what to do; after [`Error::Timeout`] nobody knows whether it has joined, and to ask again does no harm.
    pub async fn add_participant(
        &self,
        case_id: &CaseId,
        agent_id: &AgentId,
    ) -> Result<AgentId, Error> {
        let parameters = AddParticipant {
            agent_id: agent_id.clone(),
        };
        let request = json!({ "action": ADD_PARTICIPANT, "parameters": parameters });
        let to = Recipient::Agent(Service::Coordinator.agent_id());
        let message = Message {
            case_id: Some(case_id.clone()),
            ..self.message(to, MessageType::Request, &request)?
        };
        let joined = self.ask(message, REQUEST_TIMEOUT).await?;
        Ok(serde_json::from_value::<Joined>(joined)?.agent_id)
    }

    /// Confirms a finding of another in a case that both take part in, and waits up to 30 seconds until that is recorded: the confidence of
    /// the finding with all its confirmations; none while findings are collected, for they are secret until all are in. `confidence` is how
    /// sure this agent is. [`Error::Refused`] says what is wrong and what to do.
    pub async fn confirm(
        &self,
        case_id: &CaseId,
        confirmation: &Confirmation,
        confidence: f64,
    ) -> Result<Option<f64>, Error> {
        let to = Recipient::Agent(Service::Coordinator.agent_id());
        let mut message = self.message(to, MessageType::Confirmation, confirmation)?;
        message.case_id = Some(case_id.clone());
        message.metadata.confidence = Some(confidence);
        let recorded = self.ask(message, REQUEST_TIMEOUT).await?;
        Ok(serde_json::from_value::<Strengthened>(recorded)?.strengthened)
    }

    /// What this agent may see of a case's conversation; operators and auditors may name another agent. [`Error::Refused`] where it
    /// takes no part in the case.
    pub async fn context(
        &self,
        case_id: &CaseId,
        agent_id: Option<&AgentId>,
    ) -> Result<Window, Error> {
        let asked = AskedWindow { case_id, agent_id };
        self.query(Service::AgentAdapter, "context", &asked).await
    }

    /// What a service answers to a verb of its API.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        service: Service,
        verb: &'static str,
        asked: &impl Serialize,
    ) -> Result<T, Error> {
        let subject = self.inner.subjects.build(&Subject::Api {
            service,
            verb: Token::fixed(verb),
            caller: Some(self.inner.agent_id.clone()),
        });
        let request = async_nats::Request::new()
            .payload(serde_json::to_vec(asked)?.into())
            .timeout(Some(REQUEST_TIMEOUT));
        let answer = self.inner.client.send_request(subject, request).await;
        let answer =
            answer.map_err(|error| Error::broker("bring the answer of a service")(error.into()))?;
        let failed = answer.headers.as_ref();
        if let Some(report) = failed.and_then(|headers| headers.get(SERVICE_ERROR)) {
            let report: ErrorReport = serde_json::from_str(report.as_str())?;
            return Err(Error::Refused(Box::new(report)));
        }
        Ok(serde_json::from_slice(&answer.payload)?)
    }
}

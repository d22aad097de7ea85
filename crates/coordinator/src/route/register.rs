//! Which messages are about an agent's entry in the register.

use concord_domain::aggregates::agent::AgentInput;
use concord_runtime::Routed;
use concord_wire::payload::{
    Card, DEREGISTER_AGENT, Deregister, REGISTER_AGENT, StatusReport, UPDATE_AGENT, action_of,
    parameters_of,
};
use concord_wire::subject::whose_name;
use concord_wire::{AgentId, Envelope, ErrorCode, Fault, MessageType};

/// Where the parameters of a request stand.
const PARAMETERS: &str = "/payload/parameters";

/// A message that is about an agent; none when it is about something else.
pub fn from_message(envelope: &Envelope) -> Result<Option<Routed<AgentInput>>, Fault> {
    match &envelope.message_type {
        MessageType::Request => {}
        MessageType::Status => return status(envelope).map(Some),
        _ => return Ok(None),
    }
    let by = envelope.from_agent.clone();
    let request_id = Some(envelope.message_id.clone());
    let input = match action_of(envelope)?.as_str() {
        action @ (REGISTER_AGENT | UPDATE_AGENT) => {
            let card: Card = parameters_of(envelope)?;
            own(&by, &card.agent_id)?;
            let must_exist = action == UPDATE_AGENT;
            AgentInput::Register {
                card: Box::new(card),
                by: by.clone(),
                request_id,
                must_exist,
            }
        }
        DEREGISTER_AGENT => {
            let departure: Option<Deregister> = parameters_of(envelope)?;
            let departure = departure.unwrap_or_default();
            departure.check(PARAMETERS)?;
            own(&by, departure.agent_id.as_ref().unwrap_or(&by))?;
            AgentInput::Deregister {
                agent_id: by.clone(),
                by: by.clone(),
                why: departure.why,
                request_id,
            }
        }
        _ => return Ok(None),
    };
    known_as_agent(&by, "/from_agent")?;
    Ok(Some(Routed::Step {
        id: by.token(),
        input,
    }))
}

/// An agent's own word on how it is. What is about work is not for the register.
fn status(envelope: &Envelope) -> Result<Routed<AgentInput>, Fault> {
    let Some(report) = StatusReport::of(envelope)? else {
        return Ok(Routed::Ignored("other_status"));
    };
    let agent_id = envelope.from_agent.clone();
    own(&agent_id, report.agent_id.as_ref().unwrap_or(&agent_id))?;
    Deregister {
        agent_id: None,
        why: report.why.clone(),
    }
    .check("/payload")?;
    let input = AgentInput::Status {
        agent_id: agent_id.clone(),
        status: report.status,
        why: report.why,
    };
    Ok(Routed::Step {
        id: agent_id.token(),
        input,
    })
}

fn own(by: &AgentId, of: &AgentId) -> Result<(), Fault> {
    if by == of {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::Unauthorized,
        "/payload/parameters/agent_id",
        format!("{by} speaks for {of}."),
        "Name yourself; an operator enters others with `concord agents register`.",
    ))
}

pub(crate) fn known_as_agent(agent: &AgentId, pointer: &str) -> Result<(), Fault> {
    let Some(whose) = whose_name(agent.as_str()) else {
        return Ok(());
    };
    Err(Fault::invalid(
        pointer,
        format!("{agent} is the name of {whose}."),
        "Give the agent another id.",
    ))
}

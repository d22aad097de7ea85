//! Entering agents by request and reply, for operators.

use concord_domain::aggregates::agent::AgentInput;
use concord_wire::envelope::from_json;
use concord_wire::payload::Card;
use concord_wire::{AgentId, Fault, Token};
use serde::Deserialize;

use crate::route::register::known_as_agent;

/// `register_agent` of an operator.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registration {
    card: Card,
    by: AgentId,
}

/// The card that an operator enters.
pub(crate) fn read_card(request: &[u8]) -> Result<(Token, AgentInput), Fault> {
    let Registration { card, by } = from_json(request, "")?;
    known_as_agent(&card.agent_id, "/card/agent_id")?;
    let id = card.agent_id.token();
    Ok((
        id,
        AgentInput::Register {
            card: Box::new(card),
            by,
            request_id: None,
            must_exist: false,
        },
    ))
}

/// `deregister_agent` of an operator.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Departure {
    agent_id: AgentId,
    by: AgentId,
    #[serde(default)]
    why: String,
}

/// The agent that an operator takes off the register.
pub(crate) fn read_departure(request: &[u8]) -> Result<(Token, AgentInput), Fault> {
    let Departure { agent_id, by, why } = from_json(request, "")?;
    Ok((
        agent_id.token(),
        AgentInput::Deregister {
            agent_id,
            by,
            why,
            request_id: None,
        },
    ))
}

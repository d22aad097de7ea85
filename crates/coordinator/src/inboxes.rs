//! The verbs of durable inboxes: an agent that is on the register has its own made (`inbox`), whoever has registered it, and says what the
//! broker is to be told of what comes from them (`acknowledge`).

use std::sync::Arc;

use async_nats::jetstream::AckKind;
use concord_domain::aggregates::agent::AgentMachine;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::api::{self, Call, Caller, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_runtime::{Aggregates, NatsPorts};
use concord_wire::envelope::from_json;
use concord_wire::subject::Lane;
use concord_wire::{ErrorCode, Fault};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Whose inbox it is about.
fn owner(call: &Call) -> Result<&Caller, Fault> {
    call.caller.as_ref().ok_or_else(|| {
        Fault::invalid(
            "",
            "Nobody is named whose inbox it is.",
            "Ask under the agent's name, or make it with: concord agents register CARD --inbox",
        )
    })
}

/// What the broker is to be told of a delivery, as clients of NATS write it.
#[derive(Deserialize, Serialize, Clone, Copy, Default)]
enum Told {
    /// It is dealt with.
    #[default]
    #[serde(rename = "+ACK")]
    Done,
    /// It is to come again at once.
    #[serde(rename = "-NAK")]
    Again,
    /// It is still worked on.
    #[serde(rename = "+WPI")]
    Working,
    /// It is not to come again.
    #[serde(rename = "+TERM")]
    Never,
}

impl From<Told> for AckKind {
    fn from(told: Told) -> Self {
        match told {
            Told::Done => Self::Ack,
            Told::Again => Self::Nak(None),
            Told::Working => Self::Progress,
            Told::Never => Self::Term,
        }
    }
}

/// `acknowledge`: a delivery, by its reply subject, and what is said of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Acknowledged {
    delivery: String,
    #[serde(default)]
    told: Told,
}

/// Answers `acknowledge`: `{"told": ...}`, when the broker is told.
pub(crate) fn acknowledge(runner: &ServiceRunner) -> Verb {
    api::verb(runner.broker.clone(), |broker, call| async move {
        let asked: Acknowledged = from_json(&call.body, "")?;
        let agent = &owner(&call)?.name;
        let told = broker
            .acknowledge_for(agent, &asked.delivery, asked.told.into())
            .await;
        let is_own = told.map_err(|error| {
            let what = format!("The broker could not be told: {}.", ErrorChain(&error));
            Fault::new(ErrorCode::InternalError, "", what, "Ask again.")
        })?;
        if !is_own {
            return Err(Fault::invalid(
                "/delivery",
                format!("This is no delivery from a durable inbox of {agent}."),
                "Give the reply subject of a message that came from it, as it is: it begins with $JS.ACK.",
            ));
        }
        answer(&json!({ "told": asked.told }))
    })
}

/// `inbox`: nothing but who asks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboxAsked {}

/// Answers `inbox`: `{"agent_id": ..., "heard_on": [...]}`, the subjects on which the agent hears what the broker keeps for it. Asked again
/// it changes nothing.
pub(crate) fn verb(
    runner: &ServiceRunner,
    agents: &Arc<Aggregates<AgentMachine, NatsPorts>>,
) -> Verb {
    api::verb(
        (runner.broker.clone(), Arc::clone(agents)),
        |(broker, agents), call| async move {
            let InboxAsked {} = from_json(&call.body, "")?;
            let caller = owner(&call)?;
            let known = agents.load(&caller.name.token()).await;
            let known = known.map_err(|error| unread(&error))?;
            if known.state.card.is_none() {
                return Err(Fault::new(
                    ErrorCode::Unauthorized,
                    "",
                    format!("{} is not on the register.", caller.name),
                    "Register with register_agent first.",
                ));
            }
            let made = broker.make_inboxes(&caller.name).await;
            made.map_err(|error| {
                let what = format!("The inbox could not be made: {}.", ErrorChain(&error));
                Fault::new(ErrorCode::InternalError, "", what, "Ask again.")
            })?;
            let inboxes =
                Lane::ALL.map(|lane| broker.subjects().registered_inboxes(lane, &caller.name));
            let heard_on = inboxes.into_iter().flatten().map(|inbox| inbox.deliver_to);
            let heard_on: Vec<String> = heard_on.collect();
            answer(&json!({ "agent_id": caller.name, "heard_on": heard_on }))
        },
    )
}

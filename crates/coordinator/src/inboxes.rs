//! The verb `inbox`: an agent that is on the register has its durable inboxes made, whoever has registered it.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::service::api::{self, Verb, answer};
use concord_runtime::service::operator_api::unread;
use concord_runtime::{Aggregates, NatsPorts};
use concord_wire::envelope::from_json;
use concord_wire::subject::Lane;
use concord_wire::{ErrorCode, Fault};
use serde::Deserialize;
use serde_json::json;

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
            let Some(caller) = &call.caller else {
                return Err(Fault::invalid(
                    "",
                    "Nobody is named whose inbox it is to be.",
                    "Ask under the agent's name, or make it with: concord agents register CARD --inbox",
                ));
            };
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

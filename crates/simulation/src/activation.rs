//! The part of the agent adapter that decides whom messages wake, with the cards of this world and without a model; and
//! what is addressed to the adapter itself.

use std::sync::{Arc, LazyLock};

use concord_agent_adapter::AdapterContext;
use concord_agent_adapter::activation::{Matching, WakeHandler, bind_effects};
use concord_domain::activation::LoopBounds;
use concord_runtime::service::{Binder, ServiceContext};
use concord_wire::AgentId;
use concord_wire::payload::Card;
use serde_json::json;

use crate::ports::SimPorts;

/// Loops are broken early here, so that there are some.
const BOUNDS: LoopBounds = LoopBounds {
    depth_max: 4,
    window_ms: 60_000,
    pause_ms: 20_000,
};

/// The skills of the agents. Nothing of them changes, so all worlds share the matcher.
static MATCHING: LazyLock<Arc<Matching>> = LazyLock::new(|| {
    let skills = [
        ("ada", "taxes", "Value added tax and customs duties"),
        ("ben", "liability", "Caps on liability and indemnities"),
        (
            "cleo",
            "termination",
            "Notice periods and termination of contracts",
        ),
        ("dan", "payment", "Invoices and terms of payment"),
    ];
    let cards: Vec<Card> = skills
        .into_iter()
        .filter_map(|(agent, name, description)| {
            let skill = json!({ "name": name, "description": description });
            let card = json!({ "agent_id": agent, "skills": [skill], "triggers": [name] });
            serde_json::from_value(card).ok()
        })
        .collect();
    debug_assert_eq!(cards.len(), skills.len(), "a card cannot be read");
    Arc::new(Matching::of_cards(&cards))
});

/// The agent that is told alone how its debates have ended, as if the adapter hosted it.
pub(crate) fn hosted() -> AgentId {
    AgentId::fixed("dan")
}

/// Binds the adapter's own handlers of waking, and of its inbox.
pub(crate) fn bind(context: &ServiceContext<SimPorts>, binder: &mut impl Binder) {
    let adapter = AdapterContext::new(context);
    let matching = Arc::clone(&MATCHING);
    let waking = WakeHandler::new(&adapter, matching, Some(BOUNDS));
    waking.hosting([hosted()].into()).bind(binder);
    bind_effects(context, binder);
    binder.handle_no_messages(context);
}

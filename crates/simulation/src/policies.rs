//! The policy that the installation of each world begins with: its opener may change everything of it.

use concord_domain::aggregates::policy::{PolicyInput, PolicyMachine, id_of};
use concord_domain::machine::Versioned;
use concord_domain::{Context, Decision, Machine};
use concord_events::Aggregate;
use concord_events::subject::SystemFilters;
use concord_wire::id::PolicyName;
use concord_wire::policy::{Bound, Policy, PolicyBounds};
use concord_wire::{AgentId, MessageId};

use crate::broker::Publication;
use crate::world::World;

/// The name of the policy.
pub(crate) const SIMULATED: &str = "simulated";
/// Who stores policies.
const OPERATOR: &str = "olga";

/// An order to store the policy in another form: `rounds_max` of what a case is opened with, which every case changes.
pub(crate) fn put(rounds_max: u32) -> Option<PolicyInput> {
    let anything = [("*".to_owned(), Bound::Any)];
    Some(PolicyInput::Put {
        name: PolicyName::parse(SIMULATED).ok()?,
        policy: Box::new(Policy {
            rounds_max,
            ..Policy::contract_review()
        }),
        bounds: PolicyBounds {
            fields: anything.into(),
        },
        by: AgentId::new(OPERATOR).ok()?,
        why: "what is simulated has any limits".into(),
    })
}

/// Stores the policy before anything else happens.
pub(crate) fn begin(world: &mut World) {
    let stored = try_begin(world);
    debug_assert!(stored.is_some(), "the policy of the world is not stored");
}

fn try_begin(world: &mut World) -> Option<()> {
    let input = put(Policy::contract_review().rounds_max)?;
    let id = id_of(&PolicyName::parse(SIMULATED).ok()?);
    let cause = MessageId::of_operator_request(SIMULATED);
    let context = Context::of_message(world.clock(), cause);
    let known = Versioned::<PolicyMachine>::default();
    let Decision::Append(event) = PolicyMachine::decide(&known.state, &context, &input) else {
        return None;
    };
    let record = known.record(&id, &context, event);
    let subjects = world.subjects();
    let lock = subjects.events_of(Aggregate::Policy, &id);
    let event = Publication {
        subject: subjects.build(&record.subject()),
        id: Some(record.meta.event_id.to_string()),
        body: record.encode().ok()?.into(),
        original: None,
    };
    world.broker.append(world.now, &lock, Some(0), event);
    Some(())
}

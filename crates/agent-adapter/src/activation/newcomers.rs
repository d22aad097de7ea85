//! Agents that have registered a moment ago. Whoever registers is answered by the coordinator, and may be named by the next message before this
//! process has heard of them. Whom a message wakes is decided once, so it waits for them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use concord_domain::activation::{Matcher, Message, NAMED_MAX, mentions};
use concord_domain::aggregates::agent::AgentMachine;
use concord_runtime::delivery::{Delivery, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Ports};
use concord_wire::AgentId;

use super::matching::Matching;

/// Looks for agents that are registered and not known.
pub(super) struct Newcomers<P> {
    service: ServiceContext<P>,
    agents: Aggregates<AgentMachine, P>,
}

impl<P: Ports> Newcomers<P> {
    pub(super) fn new(service: &ServiceContext<P>) -> Self {
        Self {
            service: service.clone(),
            agents: Aggregates::new(service.ports.clone(), &service.cache),
        }
    }

    /// Whether a message names somebody who is registered and whom `matching` does not know yet.
    pub(super) async fn are_named(
        &self,
        message: &Message<'_>,
        matching: &Matching,
        delivery: &Delivery,
    ) -> Result<bool, HandleError> {
        // What is told of them may come late, and must not hold up a message for ever.
        if !delivery.may_wait(self.service.work.deliveries_max) {
            return Ok(false);
        }
        for agent in matching.read(|matcher| strangers(matcher, message)) {
            if self.agents.load(&agent.token()).await?.state.card.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Names in a message that no agent has who is known, as many as one message may name.
fn strangers(matcher: &Matcher, message: &Message<'_>) -> BTreeSet<AgentId> {
    let strangers = RefCell::new(BTreeSet::new());
    let look_for = |name: &str| {
        let known = matcher.agent_named(name);
        if let (None, Ok(stranger)) = (known, AgentId::new(name))
            && strangers.borrow().len() < NAMED_MAX
        {
            strangers.borrow_mut().insert(stranger);
        }
        known
    };
    mentions(message.content, look_for);
    for agent in message.preferred {
        look_for(agent.as_str());
    }
    strangers.into_inner()
}

#[cfg(test)]
mod tests {
    use concord_domain::activation::Parameters;
    use concord_wire::payload::Card;
    use concord_wire::{MessageType, Recipient};

    use super::*;

    #[test]
    fn names_that_nobody_has_who_is_known_are_looked_for_and_no_more_than_count() {
        let agent = |name: &str| AgentId::new(name).unwrap();
        let mut matcher = Matcher::new(Parameters::default());
        matcher.insert(&Card::new(agent("ann")), |_| None);
        let named = |content: &str, preferred: &[AgentId]| {
            let message = Message {
                message_type: &MessageType::GroupQuery,
                from: &agent("eva"),
                to: &Recipient::Any,
                content,
                assigned: None,
                preferred,
                reply_to_author: None,
                asks_for_objections: false,
            };
            let strangers = strangers(&matcher, &message).into_iter();
            strangers.map(|one| one.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named("@ann and @Ann, who knows?", &[]), [""; 0]);
        assert_eq!(
            named("@ben or me@home.org?", &[agent("ann"), agent("cyd")]),
            ["ben", "cyd"]
        );
        let many: String = (0..20).map(|number| format!("@a{number} ")).collect();
        assert_eq!(named(&many, &[]).len(), NAMED_MAX);
    }
}

//! How many messages and bytes a second one agent may cause before the excess is not worked on, so that a flood costs the others
//! little. This is decided where a delivery begins to be handled, by its subject and size, before its body is read. What a
//! message costs beyond its own bytes is counted when that is known, before it is done.
//!
//! Services have no limit. Hosted agents' inboxes have none either, since their queues are bounded. Only first deliveries
//! are counted: what was admitted or refused once is so again when it is delivered again. See `docs/floods.md` and
//! `docs/adr/0028`.

mod accounts;
mod refusal;

use std::sync::Arc;

use concord_events::topology::{ConsumerKind, Layout, is_second_delivery};
use concord_wire::subject::Service;
use concord_wire::{AgentId, Fault, MessageType, Timestamp};

use crate::context::ServiceContext;
use crate::context::metrics::Consumer;
use crate::delivery::route::is_between_agents;
use crate::delivery::{Budget, Delivery};
use crate::ports::Ports;

use accounts::{Counted, Gathered};
pub(crate) use accounts::{RateLimits, Senders};
pub(crate) use refusal::GATHERED;

/// What became of a delivery over the limit, in the metrics.
pub(crate) const LIMITED: &str = "limited";

/// Messages to services that have an answer, or that decide something. Each one that is refused is answered, as long as
/// these answers are not too many themselves.
const ANSWERED: [MessageType; 15] = [
    MessageType::Request,
    MessageType::Question,
    MessageType::PeerRequest,
    MessageType::GroupQuery,
    MessageType::CollaborationInvite,
    MessageType::CallForProposals,
    MessageType::Finding,
    MessageType::FindingWithPrecedent,
    MessageType::Agreement,
    MessageType::Disagreement,
    MessageType::Revision,
    MessageType::Evidence,
    MessageType::Challenge,
    MessageType::Ruling,
    MessageType::Review,
];

fn is_answered(kind: &str) -> bool {
    ANSWERED.iter().any(|answered| kind == answered.as_str())
}

/// What is done with messages over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// They are refused.
    Refuse,
    /// The handler is told, because it has to end what they begin.
    TellHandler,
    /// They are skipped: the recipient that they are addressed to has them.
    Skip,
}

/// The limit of a consumer that delivers what agents say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimit {
    kind: ConsumerKind,
    action: Action,
}

/// What the sender of an admitted delivery may still cause.
struct SenderBudget {
    limits: Arc<RateLimits>,
    kind: ConsumerKind,
    sender: AgentId,
}

impl Budget for SenderBudget {
    fn spend(&self, bytes: u64, now: Timestamp) -> Result<(), Fault> {
        self.limits.spend(self.kind, &self.sender, bytes, now)
    }
}

/// What an agent may still cause where this kind of consumer counts.
pub(crate) fn budget(
    limits: &Arc<RateLimits>,
    kind: ConsumerKind,
    sender: AgentId,
) -> Arc<dyn Budget> {
    Arc::new(SenderBudget {
        limits: Arc::clone(limits),
        kind,
        sender,
    })
}

/// How a delivery stands to the limit of its sender.
pub(crate) struct Assessment {
    /// What is to be done in place of handling it, where it is not to be handled.
    pub(crate) excess: Option<Excess>,
    /// Whether its sender floods: it has sent a good part of a second's worth at once, if not yet more than it may.
    pub(crate) floods: bool,
}

impl Assessment {
    const WITHIN_LIMIT: Self = Self {
        excess: None,
        floods: false,
    };
}

/// What is done with a delivery over the limit, in place of handling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Its sender is told at once.
    Answer,
    /// Its sender is told together with others. This is the first of them, and is not acknowledged until that is done.
    TellTogether,
    /// Nothing: another delivery tells its sender, or nobody needs to.
    Skip,
}

impl RateLimit {
    /// The limit of the consumer with this name; none where what it delivers is not said by agents, or waits in a bounded
    /// queue.
    pub(crate) fn of(layout: &Layout, consumer: &str) -> Option<Self> {
        let all = layout
            .consumers()
            .into_iter()
            .chain(layout.adapter_consumers());
        let kind = all
            .into_iter()
            .find(|definition| definition.name == consumer)?
            .kind;
        let action = match kind {
            ConsumerKind::Inbox(_) | ConsumerKind::UrgentInbox(_) => Action::Refuse,
            ConsumerKind::Exchange => Action::TellHandler,
            ConsumerKind::Wake => Action::Skip,
            _ => return None,
        };
        Some(Self { kind, action })
    }

    /// Counts a delivery, and says what is to be done with it. Where the handler must end what the delivery begins, the
    /// delivery says why it is over the limit.
    pub(crate) fn assess<P: Ports>(
        self,
        context: &ServiceContext<P>,
        limits: &Arc<RateLimits>,
        delivery: &mut Delivery,
    ) -> Assessment {
        if limits.is_off() {
            return Assessment::WITHIN_LIMIT;
        }
        if delivery.deliveries > 1 {
            return Assessment {
                excess: limits.refused_before(self.kind, delivery.sequence),
                floods: false,
            };
        }
        let Some(sender) = sender_of(context, delivery) else {
            return Assessment::WITHIN_LIMIT;
        };
        // The last token of a message's subject is its type. The whole subject is parsed only where the limit is passed,
        // because every message comes by here.
        let kind = delivery.subject.rsplit('.').next();
        if !self.counts(kind, &delivery.consumer) {
            return Assessment::WITHIN_LIMIT;
        }
        let bytes = delivery.bytes();
        let Counted { admitted, floods } =
            limits.count(self.kind, &sender, bytes, delivery.stored_at);
        debug_assert!(admitted || floods, "what is over the limit is a flood");
        let excess = if admitted {
            self.charge(limits, sender, delivery);
            None
        } else {
            let excess = self.excess(context, limits, delivery, &sender);
            if let Some(excess) = excess {
                limits.remember_refused(self.kind, delivery.sequence, excess);
            }
            excess
        };
        Assessment { excess, floods }
    }

    /// Has the sender of a delivery that another replica has counted pay here for what it costs beyond its own bytes.
    pub(crate) fn charge_sender<P: Ports>(
        self,
        context: &ServiceContext<P>,
        limits: &Arc<RateLimits>,
        delivery: &mut Delivery,
    ) {
        if !limits.is_off()
            && let Some(sender) = sender_of(context, delivery)
        {
            self.charge(limits, sender, delivery);
        }
    }

    fn charge(self, limits: &Arc<RateLimits>, sender: AgentId, delivery: &mut Delivery) {
        delivery.cost.budget = Some(budget(limits, self.kind, sender));
    }

    fn excess<P: Ports>(
        self,
        context: &ServiceContext<P>,
        limits: &RateLimits,
        delivery: &mut Delivery,
        sender: &AgentId,
    ) -> Option<Excess> {
        let consumer = delivery.consumer.to_string();
        let rate_limited = &context.metrics.rate_limited;
        rate_limited.get_or_create(&Consumer { consumer }).inc();
        let subjects = context.ports.subjects();
        let kind = delivery.subject.rsplit('.').next();
        let between_agents = || {
            let subject = subjects.parse(&delivery.subject);
            subject.is_ok_and(|subject| is_between_agents(&subject))
        };
        match self.action {
            // The recipient's own consumer refuses what is said to a service.
            Action::TellHandler if !between_agents() => Some(Excess::Skip),
            Action::TellHandler => {
                delivery.over_limit = Some(Box::new(limits.fault(self.kind, sender)));
                None
            }
            Action::Skip => Some(Excess::Skip),
            // An error is not answered by an error.
            Action::Refuse if kind == Some(MessageType::Error.as_str()) => Some(Excess::Skip),
            Action::Refuse
                if kind.is_none_or(is_answered)
                    && limits.may_answer(self.kind, sender, context.ports.now()) =>
            {
                Some(Excess::Answer)
            }
            Action::Refuse if limits.gather(self.kind, sender, delivery.sequence) => {
                Some(Excess::TellTogether)
            }
            Action::Refuse => Some(Excess::Skip),
        }
    }

    /// Whether a message of a type counts. What ends a request is always worked on, and what two consumers of a kind are
    /// given counts once.
    fn counts(self, kind: Option<&str>, consumer: &str) -> bool {
        match self.kind {
            ConsumerKind::Exchange => kind == Some(MessageType::Request.as_str()),
            ConsumerKind::Wake => !kind.is_some_and(|kind| is_second_delivery(consumer, kind)),
            _ => true,
        }
    }
}

/// The agent that has sent a delivery; none for a service.
fn sender_of<P: Ports>(context: &ServiceContext<P>, delivery: &Delivery) -> Option<AgentId> {
    let sender = context.ports.subjects().sender_of(&delivery.subject)?;
    Service::parse(sender.as_str()).is_err().then_some(sender)
}

#[cfg(test)]
mod tests;

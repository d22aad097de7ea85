//! How many messages a second one agent may send before what is more is not worked on, so that a flood costs the others
//! little. Looked at where a delivery begins to be handled, before its body is read.
//!
//! Each agent has a token bucket for each kind of consumer that hears agents, in each process. Time is that at which the
//! broker stored the messages: how fast an agent sends does not depend on how fast they are worked on, nor on whether the
//! service was away for a while. Services have none, and
//! neither have hosted agents' inboxes, whose queues are bounded. Only first deliveries are counted: what was let in once
//! is let in when it is delivered again. See `docs/adr/0028`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::AckKind;
use concord_events::topology::{ConsumerKind, Layout, is_second_delivery};
use concord_wire::payload::{ErrorReport, RATE_LIMIT};
use concord_wire::subject::Service;
use concord_wire::{AgentId, ErrorCode, Fault, MessageType, Timestamp};
use lru::LruCache;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::delivery::Delivery;
use crate::delivery::reject;
use crate::delivery::route::is_between_agents;
use crate::event_store::Error;
use crate::service::ServiceContext;
use crate::service::clock;
use crate::service::metrics::Consumer;
use crate::service::settings::WorkSettings;

/// So many agents are remembered; whoever was silent the longest begins anew.
const ACCOUNTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// How often it is tried to tell of refusals that are acknowledged.
const TRIES_MAX: usize = 20;
/// How long refusals that are not answered each are gathered into one notice.
const GATHERED: Duration = Duration::from_secs(1);
/// Whoever sends what it may send in so many seconds at once floods. The sooner that is seen, the fewer wait behind it.
const FLOOD_SECONDS: f64 = 0.25;
/// Even where an agent may send fewer a second, so many of a flood are read: it is to come to an end.
const FLOOD_RATE_MIN: u32 = 1_000;
/// So long after it was seen to flood an agent is taken to do so.
const FLOODS: Duration = Duration::from_secs(10);

/// What is said to services and has an answer, or decides something: each that is refused is answered, as long as these
/// answers are not too many themselves.
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

/// What became of a delivery over the limit, in the metrics.
pub(crate) const LIMITED: &str = "limited";

/// What is done with messages over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// They are refused.
    Refuse,
    /// The handler is told: it has to end what they begin.
    Tell,
    /// They are passed over: whom they are addressed to has them.
    PassOver,
}

/// The limit of a consumer that hears agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    kind: ConsumerKind,
    measure: Measure,
}

/// What a look at a delivery says.
pub(crate) struct Look {
    /// What is to be done in place of handling it, if it is not to be handled.
    pub(crate) over: Option<Over>,
    /// Whether its sender floods: it has sent a good part of a second's worth at once, if not yet more than it may.
    pub(crate) floods: bool,
}

impl Look {
    const QUIET: Self = Self {
        over: None,
        floods: false,
    };
}

/// A delivery that is not to be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Its sender is told at once.
    Answered,
    /// Its sender is told together with others; this is the first of them, and is not acknowledged until that is done.
    First,
    /// Another delivery sees to its sender, or nobody needs to.
    Passed,
}

impl Limit {
    /// Of the consumer with this name; none where what it delivers is not said by agents, or waits in a bounded queue.
    pub(crate) fn of(layout: &Layout, consumer: &str) -> Option<Self> {
        let all = layout
            .consumers()
            .into_iter()
            .chain(layout.adapter_consumers());
        let kind = all
            .into_iter()
            .find(|definition| definition.name == consumer)?
            .kind;
        let measure = match kind {
            ConsumerKind::Inbox(_) | ConsumerKind::UrgentInbox(_) => Measure::Refuse,
            ConsumerKind::Exchange => Measure::Tell,
            ConsumerKind::Wake => Measure::PassOver,
            _ => return None,
        };
        Some(Self { kind, measure })
    }

    /// What is to be done with a delivery. A handler that must end what the delivery begins finds in it why it is over the
    /// limit.
    pub(crate) fn look(self, shell: &ServiceContext, delivery: &mut Delivery) -> Look {
        if delivery.deliveries > 1 || shell.limits.is_off() {
            return Look::QUIET;
        }
        let subjects = shell.broker.subjects();
        let sender = subjects
            .sender_of(&delivery.subject)
            .filter(|name| Service::parse(name.as_str()).is_err());
        let Some(sender) = sender else {
            return Look::QUIET;
        };
        // The last token of a message's subject is its type. All of it is read only where the limit is passed: every
        // message comes by here.
        let kind = delivery.subject.rsplit('.').next();
        if !self.counts(kind, &delivery.consumer) {
            return Look::QUIET;
        }
        let Admission { admitted, floods } =
            shell.limits.admits(self.kind, &sender, delivery.stored_at);
        let over = if admitted {
            None
        } else {
            self.over(shell, delivery, &sender)
        };
        Look { over, floods }
    }

    fn over(
        self,
        shell: &ServiceContext,
        delivery: &mut Delivery,
        sender: &AgentId,
    ) -> Option<Over> {
        shell
            .metrics
            .rate_limited
            .get_or_create(&Consumer {
                consumer: delivery.consumer.to_string(),
            })
            .inc();
        let subjects = shell.broker.subjects();
        let kind = delivery.subject.rsplit('.').next();
        let between_agents = || {
            subjects
                .parse(&delivery.subject)
                .is_ok_and(|said| is_between_agents(&said))
        };
        match self.measure {
            // The recipient's own consumer sees to what is said to a service.
            Measure::Tell if !between_agents() => Some(Over::Passed),
            Measure::Tell => {
                delivery.over_limit = Some(Box::new(shell.limits.fault(sender)));
                None
            }
            Measure::PassOver => Some(Over::Passed),
            // An error is not answered by an error.
            Measure::Refuse if kind == Some(MessageType::Error.as_str()) => Some(Over::Passed),
            Measure::Refuse
                if kind.is_none_or(is_answered)
                    && shell.limits.answers(self.kind, sender, clock::now()) =>
            {
                Some(Over::Answered)
            }
            Measure::Refuse if shell.limits.gather(self.kind, sender, delivery.sequence) => {
                Some(Over::First)
            }
            Measure::Refuse => Some(Over::Passed),
        }
    }

    /// Whether a message of a type counts: what ends a request always does its work, and what two consumers of a kind are
    /// given counts once.
    fn counts(self, kind: Option<&str>, consumer: &str) -> bool {
        match self.kind {
            ConsumerKind::Exchange => kind == Some(MessageType::Request.as_str()),
            ConsumerKind::Wake => !kind.is_some_and(|kind| is_second_delivery(consumer, kind)),
            _ => true,
        }
    }

    /// Does in place of handling a delivery what its sender has to be told.
    pub(crate) async fn refuse(
        self,
        shell: &ServiceContext,
        over: Over,
        delivery: &Delivery,
        permit: OwnedSemaphorePermit,
    ) -> (AckKind, &'static str) {
        let told = match over {
            Over::Passed => Ok(()),
            Over::Answered => self.answer(shell, delivery).await,
            Over::First => {
                // Nothing is worked on meanwhile.
                drop(permit);
                self.tell_together(shell, delivery).await
            }
        };
        match told {
            Ok(()) => (AckKind::Ack, LIMITED),
            Err(error) => {
                tracing::warn!(subject = %delivery.subject, %error, "A sender was not told of its limit; trying again.");
                (AckKind::Nak(Some(GATHERED)), "failed")
            }
        }
    }

    async fn answer(self, shell: &ServiceContext, delivery: &Delivery) -> Result<(), Error> {
        let Some(sender) = shell.broker.subjects().sender_of(&delivery.subject) else {
            return Ok(());
        };
        reject::tell(shell, delivery, shell.limits.report(&sender)).await
    }

    /// Waits while refusals are gathered, and tells of all of them. They are acknowledged already, but for the first, so what
    /// cannot be said is said later, with what has come meanwhile.
    async fn tell_together(self, shell: &ServiceContext, delivery: &Delivery) -> Result<(), Error> {
        let Some(sender) = shell.broker.subjects().sender_of(&delivery.subject) else {
            return Ok(());
        };
        let mut tries = 0;
        loop {
            let stops = tokio::time::timeout(GATHERED, shell.stop.cancelled())
                .await
                .is_ok();
            let gathered = shell.limits.gathered(self.kind, &sender, delivery.sequence);
            tries += 1;
            match self.notify(shell, delivery, &sender, gathered).await {
                Err(_) if tries < TRIES_MAX && !stops => {
                    shell.limits.gather_again(self.kind, &sender, gathered)
                }
                told => return told,
            }
        }
    }

    /// Tells a sender how many of its messages were refused that were not answered each.
    async fn notify(
        self,
        shell: &ServiceContext,
        delivery: &Delivery,
        sender: &AgentId,
        gathered: Gathered,
    ) -> Result<(), Error> {
        let Gathered { count, last } = gathered;
        tracing::warn!(agent = %sender, consumer = %delivery.consumer, count, "An agent sends more than it may.");
        let mut report = shell.limits.report(sender);
        let what = &report.error_message;
        report.error_message =
            format!("{what} {count} of your messages were refused together, this one first.");
        report.details.insert("refused".into(), json!(count));
        report.details.insert("last_sequence".into(), json!(last));
        reject::tell(shell, delivery, report).await
    }
}

/// What every agent may send.
pub(crate) struct Limits {
    rate: u32,
    burst: u32,
    accounts: Mutex<LruCache<(ConsumerKind, AgentId), Account>>,
}

/// What one agent may send now.
#[derive(Debug)]
struct Account {
    messages: Bucket,
    /// Refusals that are answered each.
    answers: Bucket,
    gathered: Option<Gathered>,
    /// When it was seen to flood last.
    flooded: Option<Instant>,
}

/// Whether a message is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Admission {
    admitted: bool,
    floods: bool,
}

/// Who was heard by a kind of consumer.
pub(crate) struct Known {
    /// Who sends no more than it may, whoever was heard last first.
    pub(crate) quiet: Vec<AgentId>,
    /// Who floods, or has a few seconds ago.
    pub(crate) flooding: BTreeSet<AgentId>,
}

/// A token bucket.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    /// When tokens were added last; none before the first.
    filled: Option<Timestamp>,
}

impl Bucket {
    /// Takes a token, if there is one. A time that goes back, as between two streams, adds nothing.
    fn take(&mut self, rate: u32, burst: u32, now: Timestamp) -> bool {
        let filled = self.filled.map_or(now, |filled| filled.max(now));
        // Milliseconds since the last message, or an idle day: exact as a float.
        let passed_ms = self.filled.map_or(0, |before| filled.millis_since(before));
        let refilled = Duration::from_millis(passed_ms).as_secs_f64() * f64::from(rate);
        self.tokens = (self.tokens + refilled).min(f64::from(burst));
        self.filled = Some(filled);
        let taken = self.tokens >= 1.0;
        if taken {
            self.tokens -= 1.0;
        }
        taken
    }
}

/// Refusals that are told together.
#[derive(Debug, Clone, Copy)]
struct Gathered {
    count: u64,
    last: u64,
}

impl Limits {
    pub(crate) fn new(work: &WorkSettings) -> Self {
        let (rate, burst) = (work.agent_rate_max, work.agent_burst_max.max(1));
        Self {
            rate,
            burst,
            accounts: Mutex::new(LruCache::new(ACCOUNTS_MAX)),
        }
    }

    /// How many messages a second of those who flood are read, while the others are read past them.
    pub(crate) fn flood_rate(&self) -> u32 {
        self.rate.max(FLOOD_RATE_MIN)
    }

    fn is_off(&self) -> bool {
        self.rate == 0
    }

    fn account<T>(
        &self,
        kind: ConsumerKind,
        agent: &AgentId,
        change: impl FnOnce(&mut Account) -> T,
    ) -> T {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || {
            let full = |tokens: u32| Bucket {
                tokens: f64::from(tokens),
                filled: None,
            };
            Account {
                messages: full(self.burst),
                answers: full(self.rate),
                gathered: None,
                flooded: None,
            }
        };
        change(accounts.get_or_insert_mut((kind, agent.clone()), fresh))
    }

    /// Whether a message that was stored at this time is worked on.
    fn admits(&self, kind: ConsumerKind, agent: &AgentId, stored_at: Timestamp) -> Admission {
        self.account(kind, agent, |account| {
            let admitted = account.messages.take(self.rate, self.burst, stored_at);
            // What may be sent at once may still take long to work on.
            let floods = !admitted
                || account.messages.tokens
                    < f64::from(self.burst) - f64::from(self.rate) * FLOOD_SECONDS;
            if floods {
                account.flooded = Some(Instant::now());
            }
            Admission { admitted, floods }
        })
    }

    /// Who was heard where a limit is looked at, and who of them floods.
    pub(crate) fn known(&self, limit: Limit) -> Known {
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, mut known) = (
            Instant::now(),
            Known {
                quiet: Vec::new(),
                flooding: BTreeSet::new(),
            },
        );
        for ((_, agent), account) in accounts.iter().filter(|((kind, _), _)| *kind == limit.kind) {
            if account
                .flooded
                .is_some_and(|at| now.saturating_duration_since(at) < FLOODS)
            {
                known.flooding.insert(agent.clone());
            } else {
                known.quiet.push(agent.clone());
            }
        }
        known
    }

    /// Whether one that is not has an answer of its own. So many a second have as are worked on: beyond that an answer to
    /// each would cost the others as much as the flood itself.
    fn answers(&self, kind: ConsumerKind, agent: &AgentId, now: Timestamp) -> bool {
        self.account(kind, agent, |account| {
            account.answers.take(self.rate, self.rate, now)
        })
    }

    /// Counts a refusal; true when it is the first of those that will be told together.
    fn gather(&self, kind: ConsumerKind, agent: &AgentId, sequence: u64) -> bool {
        self.account(kind, agent, |account| match &mut account.gathered {
            Some(gathered) => {
                gathered.count += 1;
                gathered.last = gathered.last.max(sequence);
                false
            }
            none => {
                *none = Some(Gathered {
                    count: 1,
                    last: sequence,
                });
                true
            }
        })
    }

    /// The refusals since the first one, at `sequence`.
    fn gathered(&self, kind: ConsumerKind, agent: &AgentId, sequence: u64) -> Gathered {
        let gathered = self.account(kind, agent, |account| account.gathered.take());
        // An agent's account may have had to make room for others' meanwhile.
        gathered.unwrap_or(Gathered {
            count: 1,
            last: sequence,
        })
    }

    /// Refusals that nobody was told of: those that come now are told with them.
    fn gather_again(&self, kind: ConsumerKind, agent: &AgentId, untold: Gathered) {
        self.account(kind, agent, |account| {
            let since = account.gathered.take();
            let (count, last) = since.map_or((0, 0), |since| (since.count, since.last));
            account.gathered = Some(Gathered {
                count: untold.count + count,
                last: untold.last.max(last),
            });
        });
    }

    /// What is wrong with a message over the limit.
    fn fault(&self, agent: &AgentId) -> Fault {
        let Self { rate, burst, .. } = self;
        Fault::new(
            ErrorCode::CapacityExceeded,
            "",
            format!("{agent} sends more than {rate} messages a second."),
            format!(
                "Send at most {rate} a second, or {burst} at once after a pause; send this again in a second or later, \
                 under a new message_id."
            ),
        )
    }

    fn report(&self, agent: &AgentId) -> ErrorReport {
        let mut report = ErrorReport::from(&self.fault(agent));
        report.details.insert("limit".into(), json!(RATE_LIMIT));
        report.details.insert("rate_max".into(), json!(self.rate));
        report
            .details
            .insert("retry_after_ms".into(), json!(GATHERED.as_millis()));
        report
    }
}

#[cfg(test)]
mod tests;

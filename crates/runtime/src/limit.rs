//! How many messages a second one agent may send before what is more is not worked on, so that a flood costs the others
//! little. Looked at where a delivery begins to be handled, before its body is read.
//!
//! Each agent has a token bucket for each kind of consumer that hears agents, in each process. Services have none, and
//! neither have hosted agents' inboxes, whose queues are bounded. Only first deliveries are counted: what was let in once
//! is let in when it is delivered again. See `docs/adr/0028`.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::AckKind;
use concord_protocol::payload::{ErrorReport, RATE_LIMIT};
use concord_protocol::stream::{ConsumerKind, Layout, WAKING};
use concord_protocol::subject::{Service, Subject};
use concord_protocol::{AgentId, ErrorCode, Fault, MessageType};
use lru::LruCache;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::consume::Delivery;
use crate::ledger::Error;
use crate::metrics::Consumer;
use crate::refuse;
use crate::service::Shell;
use crate::settings::WorkSettings;

/// Buckets of so many agents are remembered; whoever was silent the longest begins anew.
const BUCKETS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// How long refusals that nobody waits for are gathered into one notice.
const GATHERED: Duration = Duration::from_secs(1);

/// What is said to services and has an answer, or decides something: each that is refused is answered.
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

/// A delivery that is not to be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Its sender is told at once.
    Answered,
    /// Its sender is told together with others; this is the first of them, and is not acknowledged until that is done.
    First,
    /// Somebody else has seen to its sender, or nobody needs to.
    Passed,
}

impl Limit {
    /// Of the consumer with this name; none where what it delivers is not said by agents, or waits in a bounded queue.
    pub(crate) fn of(layout: &Layout, consumer: &str) -> Option<Self> {
        let all = layout.consumers().into_iter().chain(layout.adapter_consumers());
        let kind = all.into_iter().find(|definition| definition.name == consumer)?.kind;
        let measure = match kind {
            ConsumerKind::Inbox(_) | ConsumerKind::UrgentInbox(_) => Measure::Refuse,
            ConsumerKind::Exchange => Measure::Tell,
            ConsumerKind::Wake => Measure::PassOver,
            _ => return None,
        };
        Some(Self { kind, measure })
    }

    /// What is to be done with a delivery in place of handling it; none when it is to be handled. A handler that must end
    /// what the delivery begins finds the reason in it.
    pub(crate) fn look(self, shell: &Shell, delivery: &mut Delivery) -> Option<Over> {
        if delivery.deliveries > 1 || shell.limits.is_off() {
            return None;
        }
        let subjects = shell.broker.subjects();
        let sender = subjects.sender_of(&delivery.subject).filter(|name| Service::parse(name.as_str()).is_err())?;
        let said = subjects.parse(&delivery.subject).ok();
        let kind = match &said {
            Some(Subject::Message { kind, .. }) => Some(kind.as_str()),
            _ => None,
        };
        if !self.counts(kind, &delivery.consumer) || shell.limits.admits(self.kind, &sender, Instant::now()) {
            return None;
        }
        shell.metrics.rate_limited.get_or_create(&Consumer { consumer: delivery.consumer.to_string() }).inc();
        match self.measure {
            Measure::Tell => {
                delivery.over_limit = Some(Box::new(shell.limits.fault(&sender)));
                None
            }
            Measure::PassOver => Some(Over::Passed),
            Measure::Refuse if kind.is_none_or(is_answered) => Some(Over::Answered),
            // An error is not answered by an error.
            Measure::Refuse if kind == Some(MessageType::Error.as_str()) => Some(Over::Passed),
            Measure::Refuse if shell.limits.gather(self.kind, &sender, delivery.sequence) => Some(Over::First),
            Measure::Refuse => Some(Over::Passed),
        }
    }

    /// Whether a message of a type counts: what ends a request always does its work, and what two consumers of a kind are
    /// given counts once.
    fn counts(self, kind: Option<&str>, consumer: &str) -> bool {
        match self.kind {
            ConsumerKind::Exchange => kind == Some(MessageType::Request.as_str()),
            ConsumerKind::Wake if consumer.ends_with("-any") => {
                !WAKING.iter().any(|waking| kind == Some(waking.as_str()))
            }
            _ => true,
        }
    }

    /// Does in place of handling a delivery what its sender has to be told.
    pub(crate) async fn refuse(
        self,
        shell: &Shell,
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
                tokio::select! {
                    () = tokio::time::sleep(GATHERED) => {}
                    () = shell.stop.cancelled() => {}
                }
                self.notify(shell, delivery).await
            }
        };
        match told {
            Ok(()) => (AckKind::Ack, "limited"),
            Err(error) => {
                tracing::warn!(subject = %delivery.subject, %error, "A sender was not told of its limit; trying again.");
                (AckKind::Nak(Some(GATHERED)), "failed")
            }
        }
    }

    async fn answer(self, shell: &Shell, delivery: &Delivery) -> Result<(), Error> {
        let Some(sender) = shell.broker.subjects().sender_of(&delivery.subject) else { return Ok(()) };
        refuse::tell(shell, delivery, shell.limits.report(&sender)).await
    }

    /// Tells a sender how many of its messages were refused, of which nobody awaits an answer.
    async fn notify(self, shell: &Shell, delivery: &Delivery) -> Result<(), Error> {
        let Some(sender) = shell.broker.subjects().sender_of(&delivery.subject) else { return Ok(()) };
        let Gathered { count, last } = shell.limits.gathered(self.kind, &sender, delivery.sequence);
        tracing::warn!(agent = %sender, consumer = %delivery.consumer, count, "An agent sends more than it may.");
        let mut report = shell.limits.report(&sender);
        report.error_message =
            format!("{} {count} of your messages were refused, this one first.", report.error_message);
        report.details.insert("refused".into(), json!(count));
        report.details.insert("last_sequence".into(), json!(last));
        refuse::tell(shell, delivery, report).await
    }
}

/// What every agent may send.
pub(crate) struct Limits {
    rate: u32,
    burst: u32,
    buckets: Mutex<LruCache<(ConsumerKind, AgentId), Bucket>>,
}

/// What one agent may send now.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
    gathered: Option<Gathered>,
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
        Self { rate, burst, buckets: Mutex::new(LruCache::new(BUCKETS_MAX)) }
    }

    fn is_off(&self) -> bool {
        self.rate == 0
    }

    fn bucket<T>(&self, kind: ConsumerKind, agent: &AgentId, change: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full = || Bucket { tokens: f64::from(self.burst), filled: Instant::now(), gathered: None };
        change(buckets.get_or_insert_mut((kind, agent.clone()), full))
    }

    /// Takes a token, if there is one.
    fn admits(&self, kind: ConsumerKind, agent: &AgentId, now: Instant) -> bool {
        self.bucket(kind, agent, |bucket| {
            let refilled = now.saturating_duration_since(bucket.filled).as_secs_f64() * f64::from(self.rate);
            bucket.tokens = (bucket.tokens + refilled).min(f64::from(self.burst));
            bucket.filled = now;
            let admitted = bucket.tokens >= 1.0;
            if admitted {
                bucket.tokens -= 1.0;
            }
            admitted
        })
    }

    /// Counts a refusal; true when it is the first of those that will be told together.
    fn gather(&self, kind: ConsumerKind, agent: &AgentId, sequence: u64) -> bool {
        self.bucket(kind, agent, |bucket| match &mut bucket.gathered {
            Some(gathered) => {
                gathered.count += 1;
                gathered.last = gathered.last.max(sequence);
                false
            }
            none => {
                *none = Some(Gathered { count: 1, last: sequence });
                true
            }
        })
    }

    /// The refusals since the first one, at `sequence`.
    fn gathered(&self, kind: ConsumerKind, agent: &AgentId, sequence: u64) -> Gathered {
        let gathered = self.bucket(kind, agent, |bucket| bucket.gathered.take());
        // An agent's bucket may have had to make room for others' meanwhile.
        gathered.unwrap_or(Gathered { count: 1, last: sequence })
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
        report.details.insert("retry_after_ms".into(), json!(GATHERED.as_millis()));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INBOX: ConsumerKind = ConsumerKind::Inbox(Service::Coordinator);

    fn limits(rate: u32, burst: u32) -> Limits {
        Limits::new(&WorkSettings { agent_rate_max: rate, agent_burst_max: burst, ..WorkSettings::default() })
    }

    fn agent(name: &str) -> AgentId {
        AgentId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_admitted_and_then_the_rate_and_nobody_pays_for_another() {
        let limits = limits(10, 3);
        let now = Instant::now();
        let admitted = |name: &str, at_ms: u64, tries: usize| {
            let at = now + Duration::from_millis(at_ms);
            (0..tries).filter(|_| limits.admits(INBOX, &agent(name), at)).count()
        };
        for (name, at_ms, tries, expected) in [
            ("ann", 0, 10, 3),
            ("bob", 0, 2, 2),
            ("ann", 99, 10, 0),
            ("ann", 100, 10, 1),
            ("ann", 350, 10, 2),
            ("bob", 350, 10, 3),
            ("ann", 60_000, 10, 3),
        ] {
            assert_eq!(admitted(name, at_ms, tries), expected, "{name} after {at_ms} ms");
        }
        assert!(limits.admits(ConsumerKind::Wake, &agent("ann"), now), "each kind of consumer counts by itself");
        // A clock that stands still gives nothing, and takes nothing away.
        assert_eq!(admitted("ann", 60_000, 1), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_refusals_are_gathered_until_they_are_told() {
        let limits = limits(1, 1);
        for number in 0..=BUCKETS_MAX.get() {
            limits.admits(INBOX, &agent(&format!("a-{number}")), Instant::now());
        }
        assert_eq!(limits.buckets.lock().unwrap().len(), BUCKETS_MAX.get());
        let ann = agent("ann");
        let first: Vec<bool> = [7, 9, 8].iter().map(|sequence| limits.gather(INBOX, &ann, *sequence)).collect();
        assert_eq!(first, [true, false, false]);
        let Gathered { count, last } = limits.gathered(INBOX, &ann, 7);
        assert_eq!((count, last), (3, 9));
        assert!(limits.gather(INBOX, &ann, 10), "what comes after is told by itself");
    }

    #[test]
    fn what_hears_agents_has_a_limit_and_what_two_consumers_are_given_counts_once() {
        let layout = Layout::default();
        let of = |name: &str| Limit::of(&layout, name).map(|limit| limit.measure);
        for (name, expected) in [
            ("coordinator-inbox", Some(Measure::Refuse)),
            ("debate-facilitator-urgent", Some(Measure::Refuse)),
            ("coordinator-exchange-msg-request", Some(Measure::Tell)),
            ("agent-adapter-wake-msg-group_query", Some(Measure::PassOver)),
            ("escalation-timer-due", None),
            ("agent-adapter-agent-ann", None),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
        let counts = |consumer: &str, kind: &str| Limit::of(&layout, consumer).unwrap().counts(Some(kind), consumer);
        for (consumer, kind, expected) in [
            ("coordinator-exchange-msg-request", "request", true),
            ("coordinator-exchange-msg-response", "response", false),
            ("agent-adapter-wake-msg-group_query", "group_query", true),
            ("agent-adapter-wake-msg-any", "group_query", false),
            ("agent-adapter-wake-msg-any", "question", true),
            ("coordinator-inbox", "status", true),
        ] {
            assert_eq!(counts(consumer, kind), expected, "{consumer} {kind}");
        }
    }
}

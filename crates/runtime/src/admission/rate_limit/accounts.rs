//! What each agent has sent: a token bucket for each agent and kind of consumer, in each process.
//!
//! Time is that at which the broker stored the messages: how fast an agent sends does not depend on how fast its messages
//! are worked on, nor on whether the service was away for a while.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concord_events::topology::ConsumerKind;
use concord_wire::payload::{ErrorReport, RATE_LIMIT};
use concord_wire::{AgentId, ErrorCode, Fault, Timestamp};
use lru::LruCache;
use serde_json::json;
use tokio::time::Instant;

use super::refusal::GATHERED;
use super::{Excess, RateLimit};
use crate::settings::WorkSettings;

/// How many accounts are remembered. Whoever was silent the longest begins anew.
pub(super) const ACCOUNTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// How many messages that were refused are remembered, the latest.
pub(super) const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);
/// Whoever sends at once what it may send in this many seconds floods. The sooner that is seen, the fewer wait behind it.
const FLOOD_SECONDS: f64 = 0.25;
/// Even where an agent may send fewer a second, this many of a flood are read, so that it comes to an end.
const FLOOD_RATE_MIN: u32 = 1_000;
/// How long after its last flood an agent is taken to flood.
const FLOOD_MEMORY: Duration = Duration::from_secs(10);

/// How far the time of what is counted may go back before the time before is taken for that of a wrong clock, in milliseconds. Streams
/// that are read side by side are less far apart; and if each step back began anew, whoever sends on two of them would have no limit.
const AHEAD_MS_MAX: u64 = 60_000;

/// A token bucket.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    /// When tokens were added last; none before the first.
    filled: Option<Timestamp>,
}

impl Bucket {
    fn full(tokens: u32) -> Self {
        Self {
            tokens: f64::from(tokens),
            filled: None,
        }
    }

    /// Adds what has come since tokens were added last. A time that goes back, as between two streams, adds nothing. Where it goes back
    /// far, what was counted last came by a clock that is ahead, as this process's may be of the broker's: time counts from here, or
    /// nothing would be added until the one has caught up with the other.
    fn fill(&mut self, rate: u32, burst: u32, now: Timestamp) {
        let is_ahead = |filled: &Timestamp| filled.millis_since(now) > AHEAD_MS_MAX;
        let latest = |filled: Timestamp| filled.max(now);
        let filled = self.filled.filter(|filled| !is_ahead(filled));
        let filled = filled.map_or(now, latest);
        // Milliseconds since the last message, or an idle day: exact as a float.
        let passed_ms = self.filled.map_or(0, |before| filled.millis_since(before));
        let refilled = Duration::from_millis(passed_ms).as_secs_f64() * f64::from(rate);
        self.tokens = (self.tokens + refilled).min(f64::from(burst));
        self.filled = Some(filled);
    }

    /// Takes a token, if there is one.
    fn take(&mut self, rate: u32, burst: u32, now: Timestamp) -> bool {
        self.fill(rate, burst, now);
        let taken = self.tokens >= 1.0;
        if taken {
            self.tokens -= 1.0;
        }
        debug_assert!(self.tokens >= 0.0, "a bucket owes tokens");
        taken
    }

    /// Takes tokens, if there are any: what is larger than what is left is owed, so that nothing is too large for ever.
    fn owe(&mut self, tokens: u64, rate: u32, burst: u32, now: Timestamp) -> bool {
        self.fill(rate, burst, now);
        let taken = self.tokens > 0.0;
        if taken {
            self.tokens -= f64::from(u32::try_from(tokens).unwrap_or(u32::MAX));
        }
        taken
    }
}

/// Refusals that are told together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathered {
    pub(super) count: u64,
    /// The greatest sequence of a refused message.
    pub(super) last: u64,
}

/// What one agent may send now.
#[derive(Debug)]
struct Account {
    messages: Bucket,
    /// Bytes that it causes; below zero what it owes.
    bytes: Bucket,
    /// Refusals that are answered each.
    answers: Bucket,
    gathered: Option<Gathered>,
    /// When it was seen to flood last.
    flooded: Option<Instant>,
}

/// A message as its sender's account counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// Whether it is within the limit.
    pub(super) admitted: bool,
    /// Whether its sender floods.
    pub(super) floods: bool,
}

/// The senders that a kind of consumer has heard.
pub(crate) struct Senders {
    /// Those that send no more than they may, whoever was heard last first.
    pub(crate) quiet: Vec<AgentId>,
    /// Those that flood, or have flooded a few seconds ago.
    pub(crate) flooding: BTreeSet<AgentId>,
}

type Accounts = LruCache<(ConsumerKind, AgentId), Account>;

/// What every agent may send.
pub(crate) struct RateLimits {
    rate: u32,
    burst: u32,
    bytes_rate: u32,
    bytes_burst: u32,
    accounts: Mutex<Accounts>,
    /// What was done in place of handling a message, by its consumer and sequence: its acknowledgement may come too late.
    refused: Mutex<LruCache<(ConsumerKind, u64), Excess>>,
}

impl RateLimits {
    pub(crate) fn new(work: &WorkSettings) -> Self {
        Self {
            rate: work.agent_rate_max,
            burst: work.agent_burst_max.max(1),
            bytes_rate: work.agent_bytes_max,
            bytes_burst: work.agent_bytes_burst_max.max(1),
            accounts: Mutex::new(LruCache::new(ACCOUNTS_MAX)),
            refused: Mutex::new(LruCache::new(REFUSED_MAX)),
        }
    }

    /// How many messages a second of flooding senders are read while the others are read past them.
    pub(crate) fn flood_rate(&self) -> u32 {
        self.rate.max(FLOOD_RATE_MIN)
    }

    pub(super) fn is_off(&self) -> bool {
        self.rate == 0 && self.bytes_rate == 0
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account<T>(
        &self,
        kind: ConsumerKind,
        agent: &AgentId,
        change: impl FnOnce(&mut Account) -> T,
    ) -> T {
        let fresh = || Account {
            messages: Bucket::full(self.burst),
            bytes: Bucket::full(self.bytes_burst),
            answers: Bucket::full(self.answer_rate()),
            gathered: None,
            flooded: None,
        };
        change(
            self.accounts()
                .get_or_insert_mut((kind, agent.clone()), fresh),
        )
    }

    /// Counts a message of so many bytes that was stored at this time.
    pub(super) fn count(
        &self,
        kind: ConsumerKind,
        agent: &AgentId,
        bytes: usize,
        stored_at: Timestamp,
    ) -> Counted {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.account(kind, agent, |account| {
            let admitted = (self.rate == 0
                || account.messages.take(self.rate, self.burst, stored_at))
                && self.may_cause(account, bytes, stored_at);
            // What may be sent at once may still take long to work on.
            let quiet_min = f64::from(self.burst) - f64::from(self.rate) * FLOOD_SECONDS;
            let floods = !admitted || account.messages.tokens < quiet_min;
            if floods {
                account.flooded = Some(Instant::now());
            }
            Counted { admitted, floods }
        })
    }

    fn may_cause(&self, account: &mut Account, bytes: u64, now: Timestamp) -> bool {
        let (rate, burst) = (self.bytes_rate, self.bytes_burst);
        rate == 0 || account.bytes.owe(bytes, rate, burst, now)
    }

    /// Counts bytes that a message causes beyond its own; refused where nothing is left.
    pub(super) fn spend(
        &self,
        kind: ConsumerKind,
        agent: &AgentId,
        bytes: u64,
        now: Timestamp,
    ) -> Result<(), Fault> {
        if self.account(kind, agent, |account| self.may_cause(account, bytes, now)) {
            Ok(())
        } else {
            Err(self.fault(kind, agent))
        }
    }

    /// The senders that were heard where a limit counts.
    pub(crate) fn senders(&self, limit: RateLimit) -> Senders {
        let now = Instant::now();
        let mut senders = Senders {
            quiet: Vec::new(),
            flooding: BTreeSet::new(),
        };
        let accounts = self.accounts();
        for ((_, agent), account) in accounts.iter().filter(|((kind, _), _)| *kind == limit.kind) {
            let floods = account
                .flooded
                .is_some_and(|at| now.saturating_duration_since(at) < FLOOD_MEMORY);
            if floods {
                senders.flooding.insert(agent.clone());
            } else {
                senders.quiet.push(agent.clone());
            }
        }
        senders
    }

    /// How many refusals a second are answered each.
    fn answer_rate(&self) -> u32 {
        if self.rate == 0 {
            FLOOD_RATE_MIN
        } else {
            self.rate
        }
    }

    /// Whether a refused message has an answer of its own. As many a second have one as are worked on: beyond that, an
    /// answer to each would cost the others as much as the flood itself.
    pub(super) fn may_answer(&self, kind: ConsumerKind, agent: &AgentId, now: Timestamp) -> bool {
        self.account(kind, agent, |account| {
            let rate = self.answer_rate();
            account.answers.take(rate, rate, now)
        })
    }

    fn refused(&self) -> MutexGuard<'_, LruCache<(ConsumerKind, u64), Excess>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn remember_refused(&self, kind: ConsumerKind, sequence: u64, excess: Excess) {
        self.refused().put((kind, sequence), excess);
    }

    /// What was done in place of handling a message that is delivered again; none where it was admitted, or is not remembered. What is
    /// said once more has the same id, by which the broker knows it.
    pub(super) fn refused_before(&self, kind: ConsumerKind, sequence: u64) -> Option<Excess> {
        self.refused().get(&(kind, sequence)).copied()
    }

    /// Counts a refusal; true when it is the first of those that will be told together.
    pub(super) fn gather(&self, kind: ConsumerKind, agent: &AgentId, sequence: u64) -> bool {
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

    /// The refusals since the first one, which is at `sequence`. They are gathered no longer.
    pub(super) fn take_gathered(
        &self,
        kind: ConsumerKind,
        agent: &AgentId,
        sequence: u64,
    ) -> Gathered {
        let gathered = self.account(kind, agent, |account| account.gathered.take());
        // An agent's account may have had to make room for others' meanwhile.
        gathered.unwrap_or(Gathered {
            count: 1,
            last: sequence,
        })
    }

    /// Puts back refusals that nobody was told of: those that come now are told with them.
    pub(super) fn gather_again(&self, kind: ConsumerKind, agent: &AgentId, untold: Gathered) {
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
    pub(super) fn fault(&self, kind: ConsumerKind, agent: &AgentId) -> Fault {
        let Self { rate, burst, .. } = self;
        if let Some(seconds) = self.seconds_owed(kind, agent) {
            let (rate, burst) = (self.bytes_rate, self.bytes_burst);
            return Fault::new(
                ErrorCode::CapacityExceeded,
                "",
                format!("{agent} causes more than {rate} bytes a second."),
                format!(
                    "Cause at most {rate} a second, or {burst} at once after a pause: what is expanded, fetched or passed on to \
                     each participant counts too. Send this again in {seconds} seconds or later, under a new message_id."
                ),
            );
        }
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

    /// In how many seconds an agent that owes bytes owes none; none where it does not.
    fn seconds_owed(&self, kind: ConsumerKind, agent: &AgentId) -> Option<u64> {
        let owed = -self.account(kind, agent, |account| account.bytes.tokens);
        let seconds = Duration::try_from_secs_f64(owed / f64::from(self.bytes_rate));
        seconds.ok().map(|seconds| seconds.as_secs() + 1)
    }

    pub(super) fn report(&self, kind: ConsumerKind, agent: &AgentId) -> ErrorReport {
        let mut report = ErrorReport::from(&self.fault(kind, agent));
        let mut detail = |name: &str, value| report.details.insert(name.into(), value);
        detail("limit", json!(RATE_LIMIT));
        detail("rate_max", json!(self.rate));
        let mut retry_after_ms = GATHERED.as_millis();
        if let Some(seconds) = self.seconds_owed(kind, agent) {
            detail("bytes_max", json!(self.bytes_rate));
            retry_after_ms = retry_after_ms.max(u128::from(seconds) * 1_000);
        }
        detail("retry_after_ms", json!(retry_after_ms));
        report
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.accounts().len()
    }
}

//! Adds up what counts, and compares it with the targets of the specification.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tracker::Countable;

/// The targets of the specification ("Success Metrics"): the share through the lead, the seconds of
/// peer help, matching accuracy, the share of false wake-ups, and collaboration events for each
/// session. The second value says whether the metric should be above the target.
pub const TARGETS: [(f64, bool); 5] = [
    (0.5, false),
    (2.0, false),
    (0.8, true),
    (0.1, false),
    (5.0, true),
];

/// Response times up to this many milliseconds are kept to the millisecond, longer ones to the
/// second, so that their number is bounded.
const EXACT_MS_MAX: u64 = 60_000;

/// A value and its target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measure {
    /// The value; `None` when there is nothing to measure.
    pub value: Option<f64>,
    /// The target.
    pub target: f64,
    /// Whether the value should be above the target, else below it.
    pub above: bool,
    /// Whether the target is met; `None` without a value.
    pub met: Option<bool>,
}

impl Measure {
    fn new(value: Option<f64>, (target, above): (f64, bool)) -> Self {
        let met = value.map(|value| {
            if above {
                value > target
            } else {
                value < target
            }
        });
        Self {
            value,
            target,
            above,
            met,
        }
    }
}

/// How agents that were woken reacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Feedbacks {
    /// How many agents were woken.
    pub woken: u64,
    /// How many of them answered.
    pub accepted: u64,
    /// How many of them declined.
    pub declined: u64,
    /// How many did not answer within the window.
    pub silent: u64,
    /// How many still have time to answer.
    pub waiting: u64,
}

/// Messages and wake-ups that may still be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Requests for help between peers.
    pub asks: u64,
    /// Agents that were woken.
    pub wakes: u64,
    /// The agents among them that were woken by a match.
    pub matches: u64,
}

/// How peers helped each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PeerHelp {
    /// How often a peer asked for help.
    pub asked: u64,
    /// How often somebody answered within the window.
    pub answered: u64,
    /// How often nobody answered within the window.
    pub unanswered: u64,
    /// How often there is still time to answer.
    pub waiting: u64,
    /// The mean of the response times, in milliseconds.
    pub average_ms: Option<u64>,
    /// The median of the response times, in milliseconds.
    pub p50_ms: Option<u64>,
    /// The 95th percentile of the response times, in milliseconds.
    pub p95_ms: Option<u64>,
}

/// The five metrics, and the numbers behind them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Report {
    /// How many messages agents sent to each other.
    pub messages: u64,
    /// How many of them a lead sent or received.
    pub messages_through_lead: u64,
    /// How peers helped each other.
    pub peer_help: PeerHelp,
    /// How agents that were woken by a match reacted.
    pub matches: Feedbacks,
    /// How all agents that were woken reacted.
    pub wakes: Feedbacks,
    /// How many collaboration events there were between peers.
    pub collaboration_events: u64,
    /// How many sessions there were in which agents sent messages.
    pub sessions: u64,
    /// The share of messages through the lead, 0 to 1.
    pub lead_share: Measure,
    /// The average response time of peer help, in seconds.
    pub peer_help_seconds: Measure,
    /// The share of matches that were right, 0 to 1.
    pub matching_accuracy: Measure,
    /// The share of wake-ups that were wrong, 0 to 1.
    pub false_wakes: Measure,
    /// Collaboration events for each session.
    pub events_per_session: Measure,
}

/// Adds up what counts. Its size is bounded.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    messages: u64,
    through_lead: u64,
    sessions: u64,
    collaboration: u64,
    asked: u64,
    unanswered: u64,
    /// The number of occurrences of each response time.
    times: BTreeMap<u64, u64>,
    sum_ms: u64,
    answered: u64,
    matches: Feedbacks,
    wakes: Feedbacks,
}

impl Tally {
    /// Counts one more thing.
    pub fn add(&mut self, what: Countable) {
        match what {
            Countable::Message { through_lead } => {
                self.messages += 1;
                self.through_lead += u64::from(through_lead);
            }
            Countable::Session => self.sessions += 1,
            Countable::Collaboration => self.collaboration += 1,
            Countable::Asked => self.asked += 1,
            Countable::Unanswered => self.unanswered += 1,
            Countable::Helped { after_ms } => {
                let kept = if after_ms > EXACT_MS_MAX {
                    after_ms / 1_000 * 1_000
                } else {
                    after_ms
                };
                *self.times.entry(kept).or_default() += 1;
                self.sum_ms = self.sum_ms.saturating_add(after_ms);
                self.answered += 1;
            }
            Countable::Woken { matched } => {
                self.wakes.woken += 1;
                self.matches.woken += u64::from(matched);
            }
            Countable::Feedback { matched, feedback } => {
                self.wakes.add(feedback);
                if matched {
                    self.matches.add(feedback);
                }
            }
        }
    }

    /// The report of what was counted, and of what may still be answered.
    pub fn report(&self, waiting: &Waiting) -> Report {
        let [lead, help, accuracy, wakes, events] = TARGETS;
        let peer_help = PeerHelp {
            asked: self.asked,
            answered: self.answered,
            unanswered: self.unanswered,
            waiting: waiting.asks,
            average_ms: self.sum_ms.checked_div(self.answered),
            p50_ms: self.percentile(50),
            p95_ms: self.percentile(95),
        };
        let seconds = share(self.sum_ms, self.answered).map(|mean| mean / 1_000.0);
        let heard = |of: &Feedbacks| of.accepted + of.declined;
        Report {
            messages: self.messages,
            messages_through_lead: self.through_lead,
            peer_help,
            matches: Feedbacks {
                waiting: waiting.matches,
                ..self.matches
            },
            wakes: Feedbacks {
                waiting: waiting.wakes,
                ..self.wakes
            },
            collaboration_events: self.collaboration,
            sessions: self.sessions,
            lead_share: Measure::new(share(self.through_lead, self.messages), lead),
            peer_help_seconds: Measure::new(seconds, help),
            matching_accuracy: Measure::new(
                share(self.matches.accepted, heard(&self.matches)),
                accuracy,
            ),
            false_wakes: Measure::new(share(self.wakes.declined, heard(&self.wakes)), wakes),
            events_per_session: Measure::new(share(self.collaboration, self.sessions), events),
        }
    }

    /// The nearest rank of a percentile.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = self.answered.saturating_mul(percent).div_ceil(100);
        let mut seen = 0;
        self.times.iter().find_map(|(millis, count)| {
            seen += count;
            (seen >= rank).then_some(*millis)
        })
    }
}

/// A part of a whole; `None` where the whole is 0.
#[allow(clippy::cast_precision_loss)] // Far below 2^52.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

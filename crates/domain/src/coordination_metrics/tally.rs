//! What counts, added up, and held against what the specification aims at.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tracker::What;

/// What the specification aims at ("Success Metrics"): the share through the lead, the seconds of peer help, matching accuracy, the share
/// of false wake-ups, collaboration events a session; and whether the value is to be above.
pub const TARGETS: [(f64, bool); 5] = [
    (0.5, false),
    (2.0, false),
    (0.8, true),
    (0.1, false),
    (5.0, true),
];

/// Response times up to this are remembered to the millisecond, longer ones to the second, so that their number is bounded.
const EXACT_MS_MAX: u64 = 60_000;

/// A value beside what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measure {
    /// The value; none where there is nothing to measure.
    pub value: Option<f64>,
    /// The bound.
    pub target: f64,
    /// Whether the value should be above the bound; below it otherwise.
    pub above: bool,
    /// Whether it is; none without a value.
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

/// What agents made of being woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Feedbacks {
    /// How many were woken.
    pub woken: u64,
    /// How many of them answered.
    pub accepted: u64,
    /// How many declined.
    pub declined: u64,
    /// How many said nothing within the window.
    pub silent: u64,
    /// How many have time left.
    pub waiting: u64,
}

/// What may still be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Requests of peers for help.
    pub asks: u64,
    /// Agents that were woken.
    pub wakes: u64,
    /// Those of them that were woken by a match.
    pub matches: u64,
}

/// How peers were helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PeerHelp {
    /// How often peers asked for help.
    pub asked: u64,
    /// How often somebody answered within the window.
    pub answered: u64,
    /// How often nobody did.
    pub unanswered: u64,
    /// How often there is time left.
    pub waiting: u64,
    /// The mean of the response times, in milliseconds.
    pub average_ms: Option<u64>,
    /// Half of them are at most this.
    pub p50_ms: Option<u64>,
    /// 95 of 100 of them are at most this.
    pub p95_ms: Option<u64>,
}

/// All five, and what they are made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Report {
    /// Messages between agents.
    pub messages: u64,
    /// Those of them that a lead sent or received.
    pub messages_through_lead: u64,
    /// How peers were helped.
    pub peer_help: PeerHelp,
    /// What agents that a match woke made of it.
    pub matches: Feedbacks,
    /// The same of all that were woken.
    pub wakes: Feedbacks,
    /// What peers did with or for each other.
    pub collaboration_events: u64,
    /// Sessions in which agents said anything.
    pub sessions: u64,
    /// The share of messages through the lead, 0 to 1.
    pub lead_share: Measure,
    /// The average response time of peer help, in seconds.
    pub peer_help_seconds: Measure,
    /// The share of matches that were right, 0 to 1.
    pub matching_accuracy: Measure,
    /// The share of wake-ups that were wrong, 0 to 1.
    pub false_wakes: Measure,
    /// Collaboration events a session.
    pub events_per_session: Measure,
}

/// Adds up. Of bounded size.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    messages: u64,
    through_lead: u64,
    sessions: u64,
    collaboration: u64,
    asked: u64,
    unanswered: u64,
    /// How often each response time was seen.
    times: BTreeMap<u64, u64>,
    sum_ms: u64,
    answered: u64,
    matches: Feedbacks,
    wakes: Feedbacks,
}

impl Tally {
    /// One more thing.
    pub fn add(&mut self, what: What) {
        match what {
            What::Message { through_lead } => {
                self.messages += 1;
                self.through_lead += u64::from(through_lead);
            }
            What::Session => self.sessions += 1,
            What::Collaboration => self.collaboration += 1,
            What::Asked => self.asked += 1,
            What::Unanswered => self.unanswered += 1,
            What::Helped { after_ms } => {
                let kept = if after_ms > EXACT_MS_MAX {
                    after_ms / 1_000 * 1_000
                } else {
                    after_ms
                };
                *self.times.entry(kept).or_default() += 1;
                self.sum_ms = self.sum_ms.saturating_add(after_ms);
                self.answered += 1;
            }
            What::Woken { matched } => {
                self.wakes.woken += 1;
                self.matches.woken += u64::from(matched);
            }
            What::Feedback { matched, feedback } => {
                self.wakes.add(feedback);
                if matched {
                    self.matches.add(feedback);
                }
            }
        }
    }

    /// All of it; `waiting` is what may still be answered.
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

    /// The nearest rank.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = self.answered.saturating_mul(percent).div_ceil(100);
        let mut seen = 0;
        self.times.iter().find_map(|(millis, count)| {
            seen += count;
            (seen >= rank).then_some(*millis)
        })
    }
}

/// One number of another; none of nothing.
#[allow(clippy::cast_precision_loss)] // Far below 2^52.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

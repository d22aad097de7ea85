//! Whether an agent is there, from its heartbeats.
//!
//! Heartbeats are not stored: every replica of the coordinator hears all of them, and what one concludes becomes a fact
//! like any other, once. A replica that has just started has heard nothing yet, so it counts from its own start: it is
//! late rather than wrong.

use concord_wire::Timestamp;
use concord_wire::payload::AgentStatus;

use super::AgentState;

/// Heartbeats that may be missed before an agent is unavailable.
pub const MISSED_MAX: u64 = 3;
/// The shortest time between two changes that are believed of one agent, in milliseconds: one that flickers is not
/// news each time.
pub const SETTLE_MS: u64 = 1_000;

/// What is known of an agent's heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// When the last one came; none before the first.
    pub last: Option<Timestamp>,
    /// What it said.
    pub status: AgentStatus,
    /// Since when heartbeats are listened for.
    pub listening_since: Timestamp,
    /// When the status was last changed by what was heard.
    pub changed_at: Option<Timestamp>,
}

impl Heard {
    /// Nothing heard yet.
    pub fn nothing(now: Timestamp) -> Self {
        Self {
            last: None,
            status: AgentStatus::Available,
            listening_since: now,
            changed_at: None,
        }
    }

    /// A heartbeat has come.
    pub fn beat(&mut self, now: Timestamp, status: AgentStatus) {
        (self.last, self.status) = (Some(now), status);
    }
}

/// How an agent should be called now, and why; none when it is called so already, or when nothing speaks for a change.
pub fn conclude(
    agent: &AgentState,
    heard: &Heard,
    now: Timestamp,
) -> Option<(AgentStatus, String)> {
    let card = agent.card.as_ref()?;
    if heard
        .changed_at
        .is_some_and(|at| now.millis_since(at) < SETTLE_MS)
    {
        return None;
    }
    // A registration, or its own word, is a sign of life as good as a heartbeat.
    let last_sign = [heard.last, agent.since, Some(heard.listening_since)]
        .into_iter()
        .flatten()
        .max()?;
    let silent_ms = now.millis_since(last_sign);
    let missed = card
        .heartbeat_ms
        .is_some_and(|every| silent_ms > every.saturating_mul(MISSED_MAX));
    let (status, why) = if missed {
        (
            AgentStatus::Unavailable,
            format!("No heartbeat for {silent_ms} ms."),
        )
    } else {
        // What was said in a message since the last heartbeat is newer than it.
        let heard_at = heard.last?;
        if agent.since.is_some_and(|since| since >= heard_at) {
            return None;
        }
        (heard.status, String::new())
    };
    (agent.status != status).then_some((status, why))
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::{AgentStatus::*, Card};

    use super::*;
    use crate::fixtures::*;

    fn registered(heartbeat_ms: Option<u64>, status: AgentStatus, since: u64) -> AgentState {
        let card = Card {
            heartbeat_ms,
            ..Card::new(agent("ann"))
        };
        AgentState {
            card: Some(card),
            status,
            since: Some(after(since)),
            ..AgentState::default()
        }
    }

    fn heard(last: Option<(u64, AgentStatus)>) -> Heard {
        let mut heard = Heard::nothing(after(0));
        if let Some((at, status)) = last {
            heard.beat(after(at), status);
        }
        heard
    }

    #[test]
    fn three_missed_heartbeats_make_unavailable_and_one_heard_makes_available() {
        for (every, status, since, last, now, expected) in [
            // Of an agent that promises none, nothing is missed.
            (None, Available, 0, None, 9_000_000, None),
            // From its registration on.
            (Some(1_000), Available, 5_000, None, 8_000, None),
            (
                Some(1_000),
                Available,
                5_000,
                None,
                8_001,
                Some(Unavailable),
            ),
            (
                Some(1_000),
                Available,
                0,
                Some((7_000, Available)),
                10_000,
                None,
            ),
            (
                Some(1_000),
                Available,
                0,
                Some((7_000, Available)),
                10_001,
                Some(Unavailable),
            ),
            (
                Some(1_000),
                Unavailable,
                0,
                Some((7_000, Available)),
                10_001,
                None,
            ),
            (
                Some(1_000),
                Unavailable,
                5_000,
                Some((7_000, Available)),
                7_100,
                Some(Available),
            ),
            // What it says of itself.
            (None, Available, 0, Some((7_000, Busy)), 7_000, Some(Busy)),
            (None, Busy, 7_000, Some((8_000, Busy)), 8_000, None),
            (None, Busy, 7_000, Some((6_000, Available)), 8_000, None),
        ] {
            let agent = registered(every, status, since);
            let concluded = conclude(&agent, &heard(last), after(now)).map(|(status, _)| status);
            assert_eq!(
                concluded, expected,
                "{every:?} {status} since {since}, heard {last:?}, now {now}"
            );
        }
    }

    #[test]
    fn who_is_not_registered_has_no_status_and_who_flickers_is_believed_once_a_second() {
        assert_eq!(
            conclude(&AgentState::default(), &heard(Some((1, Busy))), after(2)),
            None
        );
        let mut flickers = heard(Some((1_500, Busy)));
        flickers.changed_at = Some(after(1_000));
        let agent = registered(None, Available, 1_000);
        assert_eq!(conclude(&agent, &flickers, after(1_999)), None);
        assert_eq!(
            conclude(&agent, &flickers, after(2_000)),
            Some((Busy, String::new()))
        );
    }

    #[test]
    fn a_replica_that_has_just_started_waits_before_it_judges() {
        let agent = registered(Some(1_000), Available, 0);
        let fresh = Heard::nothing(after(100_000));
        assert_eq!(conclude(&agent, &fresh, after(103_000)), None);
        assert!(conclude(&agent, &fresh, after(103_001)).is_some());
    }
}

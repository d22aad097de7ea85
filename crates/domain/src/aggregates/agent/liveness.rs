//! Whether an agent is there, concluded from its heartbeats.
//!
//! Heartbeats are not stored: every replica of the coordinator receives all of them, and what one
//! replica concludes becomes an event, once. A replica that has just started has received nothing
//! yet, so it counts from its own start: it is late rather than wrong. So does one that may have
//! missed some, because it was frozen or had lost its connection.

use concord_wire::Timestamp;
use concord_wire::payload::AgentStatus;

use super::AgentState;

/// How many heartbeats may be missed before an agent is unavailable.
pub const MISSED_MAX: u64 = 3;
/// The shortest time between two changes of one agent's status, in milliseconds. Others are not
/// told of each change of an agent that flickers.
pub const SETTLE_MS: u64 = 1_000;

/// What this replica has received of an agent's heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeats {
    /// When the last heartbeat came; `None` before the first.
    pub last: Option<Timestamp>,
    /// The status that the last heartbeat states.
    pub status: AgentStatus,
    /// Since when this replica receives heartbeats.
    pub listening_since: Timestamp,
    /// When the status was last changed because of heartbeats.
    pub changed_at: Option<Timestamp>,
}

impl Heartbeats {
    /// No heartbeat received yet.
    pub fn none(now: Timestamp) -> Self {
        Self {
            last: None,
            status: AgentStatus::Available,
            listening_since: now,
            changed_at: None,
        }
    }

    /// Some may have been missed until now: what is missing from now on counts.
    pub fn listen_anew(&mut self, now: Timestamp) {
        self.listening_since = now;
    }

    /// Takes a heartbeat into account.
    pub fn beat(&mut self, now: Timestamp, status: AgentStatus) {
        (self.last, self.status) = (Some(now), status);
    }
}

/// The status that the agent should have now, and the reason; `None` when it has that status
/// already, or when nothing speaks for a change.
pub fn conclude(
    agent: &AgentState,
    heartbeats: &Heartbeats,
    now: Timestamp,
) -> Option<(AgentStatus, String)> {
    let card = agent.card.as_ref()?;
    // A heartbeat says that a process runs, not that it answers.
    if agent.silence.is_open() {
        return None;
    }
    if heartbeats
        .changed_at
        .is_some_and(|at| now.millis_since(at) < SETTLE_MS)
    {
        return None;
    }
    // A registration and a status message are signs of life too.
    let last_sign = [
        heartbeats.last,
        agent.since,
        Some(heartbeats.listening_since),
    ]
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
        // A status message since the last heartbeat is newer than the heartbeat.
        let heard_at = heartbeats.last?;
        if agent.since.is_some_and(|since| since >= heard_at) {
            return None;
        }
        (heartbeats.status, String::new())
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

    fn heard(last: Option<(u64, AgentStatus)>) -> Heartbeats {
        let mut heard = Heartbeats::none(after(0));
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
        let mut frozen = heard(Some((50_000, Available)));
        frozen.listen_anew(after(100_000));
        for heard in [Heartbeats::none(after(100_000)), frozen] {
            assert_eq!(conclude(&agent, &heard, after(103_000)), None);
            assert!(conclude(&agent, &heard, after(103_001)).is_some());
        }
    }
}

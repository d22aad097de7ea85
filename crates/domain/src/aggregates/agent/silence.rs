//! A circuit breaker for agents that answer for themselves: whoever lets requests and tasks pass again and again is not asked for a
//! while, and then tried with what comes next.
//!
//! | state     | Silent                                       | Answered                  | Retry, when its time has come |
//! |-----------|----------------------------------------------|---------------------------|-------------------------------|
//! | closed    | silent: one more; at `silent_max` open [1]   | answered, if it was silent | ignored                       |
//! | open      | ignored: it was asked before                 | answered: closed          | retried: half-open            |
//! | half-open | silent: open, for twice as long [1]          | answered: closed          | ignored                       |
//!
//! [1] Ignored where the last agent whose request counted has asked again: with what nobody can answer, one agent alone would make
//! another unavailable for everybody. A task is given by the coordinator, and what a service asks counts each time.
//!
//! It is the table of [`crate::resilience::breaker`], with two differences. It is stored, because an agent that answers nobody is
//! unavailable for everybody. And nobody holds back calls: while it is open the agent is unavailable, and while it is half-open the
//! first that is not answered opens it. A registration and a word of the agent about its own status close it; a heartbeat does not,
//! because it says no more than that a process runs.

use concord_events::{AgentAnswered, AgentEvent, AgentRetried, AgentSilent, SilenceBounds};
use concord_wire::{AgentId, Timestamp, Token};
use serde::{Deserialize, Serialize};

use super::AgentState;
use crate::machine::{Context, Decision, Ignored};

/// How silent an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Silence {
    /// How much in a row it has let pass.
    pub in_a_row: u32,
    /// The agent whose request was the last of it that counted.
    asked_by: Option<AgentId>,
    /// The time at which it is tried again, while it is unavailable for its silence.
    pub retry_at: Option<Timestamp>,
    /// Whether it is being tried again.
    is_retried: bool,
    /// How often in a row it has become unavailable.
    openings: u32,
}

impl Silence {
    /// Whether the agent is unavailable because it did not answer.
    pub fn is_open(&self) -> bool {
        self.retry_at.is_some()
    }

    pub(super) fn silent(&mut self, silent: &AgentSilent) {
        self.in_a_row = silent.in_a_row;
        self.retry_at = silent.retry_at;
        if silent.asked_by.is_some() {
            self.asked_by.clone_from(&silent.asked_by);
        }
        if silent.retry_at.is_some() {
            self.openings = self.openings.saturating_add(1);
            self.is_retried = false;
        }
    }

    pub(super) fn retried(&mut self) {
        self.retry_at = None;
        self.is_retried = true;
    }
}

pub(super) fn silent(
    state: &AgentState,
    context: &Context,
    agent_id: &AgentId,
    (about, asked_by): (&Token, Option<&AgentId>),
    bounds: SilenceBounds,
) -> Decision<AgentEvent> {
    let silence = &state.silence;
    let counts = asked_by.is_none() || asked_by != silence.asked_by.as_ref();
    if state.card.is_none() || bounds.silent_max == 0 || silence.is_open() || !counts {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    let in_a_row = silence.in_a_row.saturating_add(1);
    let opens = silence.is_retried || in_a_row >= bounds.silent_max;
    let factor = 1_u64.checked_shl(silence.openings).unwrap_or(u64::MAX);
    let open_ms = bounds.open_ms.saturating_mul(factor);
    let retry_at = opens.then(|| context.now.plus_millis(open_ms.min(bounds.open_max_ms)));
    let why = retry_at.map(|at| {
        format!("It has not answered {in_a_row} requests and tasks in a row. It is tried again at {at}, or when it is heard of.")
    });
    Decision::Append(AgentEvent::Silent(AgentSilent {
        agent_id: agent_id.clone(),
        about: about.clone(),
        in_a_row,
        asked_by: asked_by.cloned(),
        retry_at,
        why: why.unwrap_or_default(),
    }))
}

pub(super) fn answered(state: &AgentState, agent_id: &AgentId) -> Decision<AgentEvent> {
    if state.card.is_none() || state.silence == Silence::default() {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(AgentEvent::Answered(AgentAnswered {
        agent_id: agent_id.clone(),
        available: state.silence.is_open(),
    }))
}

pub(super) fn retry(
    state: &AgentState,
    context: &Context,
    agent_id: &AgentId,
) -> Decision<AgentEvent> {
    let due = state.silence.retry_at;
    if state.card.is_none() || due.is_none_or(|at| context.now < at) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(AgentEvent::Retried(AgentRetried {
        agent_id: agent_id.clone(),
        why: "It is tried again.".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::{AgentStatus, Card};
    use proptest::prelude::*;

    use super::super::{AgentInput, AgentMachine};
    use super::*;
    use crate::effect;
    use crate::fixtures::*;

    const BOUNDS: SilenceBounds = SilenceBounds {
        silent_max: 2,
        open_ms: 1_000,
        open_max_ms: 3_000,
        answer_ms_min: 0,
    };

    fn ann() -> AgentId {
        agent("ann")
    }

    fn registered() -> AgentInput {
        AgentInput::Register {
            card: Box::new(Card::new(ann())),
            by: ann(),
            request_id: None,
            must_exist: false,
        }
    }

    fn silent_input() -> AgentInput {
        AgentInput::Silent {
            agent_id: ann(),
            about: token("t-1"),
            asked_by: None,
            bounds: BOUNDS,
        }
    }

    fn silent_to(asker: &str) -> AgentInput {
        AgentInput::Silent {
            agent_id: ann(),
            about: token("r-1"),
            asked_by: Some(agent(asker)),
            bounds: BOUNDS,
        }
    }

    fn answered_input() -> AgentInput {
        AgentInput::Answered { agent_id: ann() }
    }

    fn retry_input() -> AgentInput {
        AgentInput::Retry { agent_id: ann() }
    }

    #[test]
    fn who_lets_too_much_pass_is_unavailable_until_it_is_tried_again_or_heard() {
        use AgentStatus::{Available, Unavailable};
        let mut story = Story::<AgentMachine>::of("ann");
        for (at, input, expected, status) in [
            (0, silent_input(), "ignored: already_done", Unavailable),
            (1, registered(), "registered", Available),
            (2, answered_input(), "ignored: already_done", Available),
            (3, silent_input(), "silent", Available),
            (4, answered_input(), "answered", Available),
            (5, silent_input(), "silent", Available),
            (6, silent_input(), "silent", Unavailable),
            (7, silent_input(), "ignored: already_done", Unavailable),
            (1_005, retry_input(), "ignored: already_done", Unavailable),
            (1_006, retry_input(), "retried", Available),
            // One more is enough, and it stays away twice as long.
            (1_007, silent_input(), "silent", Unavailable),
            (3_006, retry_input(), "ignored: already_done", Unavailable),
            (3_007, retry_input(), "retried", Available),
            (3_008, silent_input(), "silent", Unavailable),
            (6_007, retry_input(), "ignored: already_done", Unavailable),
            (6_008, retry_input(), "retried", Available),
            (6_009, answered_input(), "answered", Available),
            (6_010, silent_input(), "silent", Available),
            (6_011, silent_input(), "silent", Unavailable),
            (6_012, answered_input(), "answered", Available),
            (6_013, silent_input(), "silent", Available),
            (6_014, registered(), "registered", Available),
            (6_015, silent_input(), "silent", Available),
        ] {
            let cause = happened(&format!("e-{at}"), at);
            assert_eq!(story.hears(&cause, &input), expected, "{at}: {input:?}");
            assert_eq!(story.state().status, status, "{at}: {input:?}");
        }
    }

    #[test]
    fn one_asker_alone_makes_nobody_unavailable_and_keeps_nobody_so() {
        use AgentStatus::{Available, Unavailable};
        let mut story = Story::<AgentMachine>::of("ann");
        story.hears(&happened("e-0", 0), &registered());
        for (at, input, expected, status) in [
            (1, silent_to("mallory"), "silent", Available),
            (2, silent_to("mallory"), "ignored: already_done", Available),
            (3, silent_to("mallory"), "ignored: already_done", Available),
            (4, silent_to("ben"), "silent", Unavailable),
            (1_004, retry_input(), "retried", Available),
            (1_005, silent_to("ben"), "ignored: already_done", Available),
            (1_006, silent_to("mallory"), "silent", Unavailable),
            (3_006, retry_input(), "retried", Available),
            (
                3_007,
                silent_to("mallory"),
                "ignored: already_done",
                Available,
            ),
            // What a service has asked is no excuse for who has asked before.
            (3_008, silent_input(), "silent", Unavailable),
            (6_008, retry_input(), "retried", Available),
            (
                6_009,
                silent_to("mallory"),
                "ignored: already_done",
                Available,
            ),
            (6_010, answered_input(), "answered", Available),
            (6_011, silent_to("mallory"), "silent", Available),
        ] {
            let cause = happened(&format!("e-{at}"), at);
            assert_eq!(story.hears(&cause, &input), expected, "{at}: {input:?}");
            assert_eq!(story.state().status, status, "{at}: {input:?}");
        }
    }

    #[test]
    fn others_hear_of_it_when_it_becomes_unavailable_and_when_it_is_there_again() {
        let mut story = Story::<AgentMachine>::of("ann");
        story.hears(&happened("e-0", 0), &registered());
        for (at, input, told) in [
            (1, silent_input(), 0),
            (2, silent_input(), 1),
            (3, answered_input(), 1),
            (4, silent_input(), 0),
            (5, answered_input(), 0),
        ] {
            story.hears(&happened(&format!("e-{at}"), at), &input);
            let messages = effect::messages::<AgentMachine>(story.last()).unwrap();
            assert_eq!(messages.len(), told, "{at}");
        }
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let mut story = Story::<AgentMachine>::of("ann");
        story.hears(&happened("e-0", 0), &registered());
        let input = AgentInput::Silent {
            agent_id: ann(),
            about: token("t-1"),
            asked_by: None,
            bounds: SilenceBounds {
                silent_max: 0,
                ..BOUNDS
            },
        };
        let heard = story.hears(&happened("e-1", 1), &input);
        assert_eq!(heard, "ignored: already_done");
    }

    proptest! {
        #[test]
        fn it_is_open_for_no_longer_than_the_bounds_say_and_never_while_it_answers(
            inputs in prop::collection::vec((0..5_u8, 1..2_000_u64), 0..60),
        ) {
            let mut story = Story::<AgentMachine>::of("ann");
            story.hears(&happened("e-0", 0), &registered());
            let mut now = 0;
            for (number, (what, millis)) in inputs.into_iter().enumerate() {
                now += millis;
                let input = match what {
                    0 | 1 => silent_input(),
                    2 => answered_input(),
                    3 => silent_to("mallory"),
                    _ => retry_input(),
                };
                story.hears(&happened(&format!("m-{number}"), now), &input);
                let state = story.state();
                prop_assert_eq!(state.silence.is_open(), state.status == AgentStatus::Unavailable);
                prop_assert!(state.silence.in_a_row <= BOUNDS.silent_max || state.silence.openings > 0);
                if let Some(at) = state.silence.retry_at {
                    prop_assert!(at <= after(now).plus_millis(BOUNDS.open_max_ms));
                }
                if what == 2 {
                    prop_assert_eq!(&state.silence, &Silence::default());
                }
            }
        }
    }
}

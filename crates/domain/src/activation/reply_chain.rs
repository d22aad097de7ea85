//! Reply chains: two agents that answer each other's answers would never stop by themselves.
//!
//! For each pair of agents the times of their turns are remembered. A turn is a message that
//! answers the other agent; a second message of the same agent before the other has answered is no
//! turn. The length of the chain is the number of turns within the window. A pair whose chain is
//! too long is paused, and its chain begins anew after the pause. Loops of three and more agents
//! are not found.
//!
//! | the pair            | said in turn, not too deep | said in turn, too deep | said again by the same |
//! |---------------------|----------------------------|------------------------|------------------------|
//! | is not paused       | goes on                    | breaks                 | goes on                |
//! | is paused           | is paused                  | is paused              | is paused              |

use std::collections::VecDeque;

use concord_wire::{AgentId, Timestamp};
use serde::{Deserialize, Serialize};

/// The greatest depth that can be measured: as many turns of a pair are remembered.
pub const DEPTH_MAX: u32 = 128;
/// How many pairs are remembered. A new pair displaces the one that was silent the longest.
pub const PAIRS_MAX: usize = 16;

/// How long a reply chain may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopBounds {
    /// ReplyChains within the window; at most [`DEPTH_MAX`] less one.
    pub depth_max: u32,
    /// The window, in milliseconds.
    pub window_ms: u64,
    /// How long a pair with a longer chain is paused, in milliseconds.
    pub pause_ms: u64,
}

/// What a further message does to the reply chain of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainState {
    /// The chain may go on.
    GoesOn,
    /// The chain is too long with this message.
    Breaks {
        /// The length of the chain.
        depth: u32,
        /// Until when the pair is to be paused.
        until: Timestamp,
    },
    /// The pair is paused already.
    Paused,
}

/// Two agents, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pair(AgentId, AgentId);

impl Pair {
    fn of(one: &AgentId, other: &AgentId) -> Self {
        let (first, second) = if one <= other {
            (one, other)
        } else {
            (other, one)
        };
        Self(first.clone(), second.clone())
    }
}

/// The reply chain of one pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ReplyChain {
    pair: Pair,
    last: Option<AgentId>,
    turns: VecDeque<Timestamp>,
    paused_until: Option<Timestamp>,
}

impl ReplyChain {
    fn is_paused(&self, at: Timestamp) -> bool {
        self.paused_until.is_some_and(|until| at < until)
    }

    fn is_turn_of(&self, from: &AgentId) -> bool {
        self.last.as_ref() != Some(from)
    }
}

/// The reply chains of the pairs of one conversation. Their number is bounded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplyChains {
    /// The pair that spoke last is the last one.
    chains: VecDeque<ReplyChain>,
}

impl ReplyChains {
    fn chain(&self, pair: &Pair) -> Option<&ReplyChain> {
        self.chains.iter().find(|chain| chain.pair == *pair)
    }

    /// The chain of a pair, moved to the end.
    fn touch(&mut self, pair: Pair) -> Option<&mut ReplyChain> {
        let known = self
            .chains
            .iter()
            .position(|chain| chain.pair == pair)
            .and_then(|place| self.chains.remove(place));
        if known.is_none() && self.chains.len() >= PAIRS_MAX {
            self.chains.pop_front();
        }
        let fresh = || ReplyChain {
            pair,
            last: None,
            turns: VecDeque::new(),
            paused_until: None,
        };
        self.chains.push_back(known.unwrap_or_else(fresh));
        debug_assert!(
            self.chains.len() <= PAIRS_MAX,
            "the number of pairs is bounded"
        );
        self.chains.back_mut()
    }

    /// What a message from `from` to `to` at this time does to their reply chain.
    pub fn course(
        &self,
        from: &AgentId,
        to: &AgentId,
        at: Timestamp,
        bounds: &LoopBounds,
    ) -> ChainState {
        let Some(chain) = self.chain(&Pair::of(from, to)) else {
            return ChainState::GoesOn;
        };
        if chain.is_paused(at) {
            return ChainState::Paused;
        }
        if !chain.is_turn_of(from) {
            return ChainState::GoesOn;
        }
        let recent = chain
            .turns
            .iter()
            .filter(|turn| at.millis_since(**turn) < bounds.window_ms)
            .count();
        let depth = u32::try_from(recent).unwrap_or(u32::MAX).saturating_add(1);
        match depth > bounds.depth_max {
            true => ChainState::Breaks {
                depth,
                until: at.plus_millis(bounds.pause_ms),
            },
            false => ChainState::GoesOn,
        }
    }

    /// Whether the pair is paused at this time.
    pub fn is_paused(&self, one: &AgentId, other: &AgentId, at: Timestamp) -> bool {
        self.chain(&Pair::of(one, other))
            .is_some_and(|chain| chain.is_paused(at))
    }

    /// Whether each of the two has sent the other a message.
    pub fn have_both_spoken(&self, one: &AgentId, other: &AgentId) -> bool {
        self.chain(&Pair::of(one, other))
            .is_some_and(|chain| chain.turns.len() > 1 || chain.paused_until.is_some())
    }

    /// Takes a message from `from` to `to` into account. A message during a pause does not count
    /// for the next chain.
    pub fn record(&mut self, from: &AgentId, to: &AgentId, at: Timestamp) {
        if from == to {
            return;
        }
        let Some(chain) = self.touch(Pair::of(from, to)) else {
            return;
        };
        if chain.is_paused(at) || !chain.is_turn_of(from) {
            return;
        }
        chain.last = Some(from.clone());
        chain.turns.push_back(at);
        if chain.turns.len() > DEPTH_MAX as usize {
            chain.turns.pop_front();
        }
    }

    /// Pauses a pair. After the pause its chain begins anew.
    pub fn pause(&mut self, one: &AgentId, other: &AgentId, until: Timestamp) {
        if let Some(chain) = self.touch(Pair::of(one, other)) {
            chain.turns.clear();
            chain.last = None;
            chain.paused_until = Some(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::{after, agent};

    const BOUNDS: LoopBounds = LoopBounds {
        depth_max: 4,
        window_ms: 1_000,
        pause_ms: 5_000,
    };

    /// Says something and takes it into account, as whoever keeps the turns does.
    fn say(chains: &mut ReplyChains, from: &str, to: &str, at_ms: u64) -> ChainState {
        let (from, to, at) = (agent(from), agent(to), after(at_ms));
        let course = chains.course(&from, &to, at, &BOUNDS);
        chains.record(&from, &to, at);
        if let ChainState::Breaks { until, .. } = course {
            chains.pause(&from, &to, until);
        }
        course
    }

    #[test]
    fn a_pair_that_answers_itself_too_often_is_paused_and_then_begins_anew() {
        let breaks = |depth, until_ms| ChainState::Breaks {
            depth,
            until: after(until_ms),
        };
        let mut turns = ReplyChains::default();
        for (from, to, at_ms, expected) in [
            ("ann", "ben", 0, ChainState::GoesOn),
            ("ben", "ann", 10, ChainState::GoesOn),
            // Said again: no turn.
            ("ben", "ann", 15, ChainState::GoesOn),
            ("ann", "ben", 20, ChainState::GoesOn),
            // Others speak with each of them.
            ("cleo", "ben", 21, ChainState::GoesOn),
            ("ben", "cleo", 22, ChainState::GoesOn),
            ("ben", "ann", 30, ChainState::GoesOn),
            ("ben", "ann", 31, ChainState::GoesOn),
            ("ann", "ben", 40, breaks(5, 5_040)),
            ("ben", "ann", 50, ChainState::Paused),
            ("ann", "ben", 5_039, ChainState::Paused),
            ("cleo", "ben", 5_039, ChainState::GoesOn),
            ("ann", "ben", 5_040, ChainState::GoesOn),
            ("ben", "ann", 5_041, ChainState::GoesOn),
            ("ann", "ben", 5_042, ChainState::GoesOn),
            ("ben", "ann", 5_043, ChainState::GoesOn),
            // The window has moved on.
            ("ann", "ben", 6_043, ChainState::GoesOn),
        ] {
            assert_eq!(
                say(&mut turns, from, to, at_ms),
                expected,
                "{from} to {to} after {at_ms} ms"
            );
        }
    }

    #[test]
    fn what_goes_round_among_three_is_no_pair() {
        let mut turns = ReplyChains::default();
        for round in 0..50 {
            for (from, to) in [("ann", "ben"), ("ben", "cleo"), ("cleo", "ann")] {
                assert_eq!(say(&mut turns, from, to, round), ChainState::GoesOn);
            }
        }
    }

    proptest! {
        /// Whatever is said: no more than the depth goes on within a window, and memory is bounded.
        #[test]
        fn no_pair_goes_deeper_than_it_may(said in prop::collection::vec((0..40_u8, 0..40_u8, 0..300_u64), 1..400)) {
            let (mut turns, mut at) = (ReplyChains::default(), 0);
            let mut gone_on: Vec<(Pair, AgentId, u64)> = Vec::new();
            for (from, to, pause) in said {
                // Few speak much.
                let (from, to) = (format!("a-{}", from / 13), format!("a-{}", to / 13 + 1));
                at += pause;
                let pair = Pair::of(&agent(&from), &agent(&to));
                let course = say(&mut turns, &from, &to, at);
                if course == ChainState::GoesOn && from != to {
                    gone_on.push((pair.clone(), agent(&from), at));
                }
                let of_pair = gone_on.iter().filter(|(of, _, said_at)| *of == pair && at - said_at < BOUNDS.window_ms);
                let speakers: Vec<&AgentId> = of_pair.map(|(_, speaker, _)| speaker).collect();
                let turns_taken = 1 + speakers.windows(2).filter(|two| two[0] != two[1]).count();
                prop_assert!(turns_taken <= BOUNDS.depth_max as usize + 1, "{turns_taken} turns");
                prop_assert!(turns.chains.len() <= PAIRS_MAX);
                prop_assert!(turns.chains.iter().all(|chain| chain.turns.len() <= DEPTH_MAX as usize));
            }
        }

        /// Whoever never waits for the other is in no exchange, however much it says.
        #[test]
        fn one_who_speaks_alone_is_never_paused(times in prop::collection::vec(0..50_u64, 1..600)) {
            let (mut turns, mut at) = (ReplyChains::default(), 0);
            for pause in times {
                at += pause;
                prop_assert_eq!(say(&mut turns, "ann", "ben", at), ChainState::GoesOn);
            }
        }
    }
}

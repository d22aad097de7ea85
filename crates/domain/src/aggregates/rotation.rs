//! A rotation: whose turn it is among the agents that fit the same criteria. Owned by the coordinator; its id follows from the
//! criteria ([`id_of`]).
//!
//! | the task           | Turn                                                          |
//! |--------------------|---------------------------------------------------------------|
//! | had no turn yet    | turned: the next of the eligible after the last, by their ids |
//! | had a turn         | ignored                                                       |
//!
//! All replicas turn the same aggregate, so a turn is given once, whoever is restarted. Agents may come and go between two turns:
//! the order of ids goes on from the last one, whether it is still eligible or not.

use concord_events::{RotationEvent, StoredEvent, Turned};
use concord_wire::payload::Criteria;
use concord_wire::{AgentId, Token};
use serde::{Deserialize, Serialize};

use crate::aggregates::review_queue::Recent;
use crate::machine::{Carry, Context, Decision, Ignored, Machine, forgetting};

/// How many turns are remembered, to recognise a task that is handled again.
const TURNS_MAX: usize = 1_024;

/// The state machine of a rotation.
#[derive(Debug, Clone, Copy)]
pub struct RotationMachine;

/// The state of a rotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RotationState {
    /// Whose turn it was last.
    pub last: Option<AgentId>,
    turns: Recent<Token, AgentId>,
}

impl Default for RotationState {
    fn default() -> Self {
        Self {
            last: None,
            turns: Recent::new(TURNS_MAX),
        }
    }
}

impl RotationState {
    /// Whose turn it was for a task.
    pub fn turn_of(&self, task_id: &Token) -> Option<&AgentId> {
        self.turns.get(task_id)
    }
}

/// A task is to be offered to one of these agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The task.
    pub task_id: Token,
    /// The agents, at least one.
    pub eligible: Vec<AgentId>,
}

/// The id of the rotation among those who fit the criteria.
pub fn id_of(criteria: &Criteria) -> Token {
    let text = serde_json::to_string(criteria).unwrap_or_default();
    Token::derived(&format!("rotation/{text}"))
}

impl Machine for RotationMachine {
    type State = RotationState;
    type Event = RotationEvent;
    type Input = Turn;

    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    fn state_bytes_max(state: &RotationState) -> usize {
        forgetting(state.turns.len() * 128)
    }

    fn decide(state: &RotationState, _: &Context, turn: &Turn) -> Decision<RotationEvent> {
        if state.turns.contains(&turn.task_id) {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        let later = |agent: &&AgentId| state.last.as_ref().is_none_or(|last| *agent > last);
        let next = turn.eligible.iter().filter(later).min();
        match next.or_else(|| turn.eligible.iter().min()) {
            Some(agent) => Decision::Append(RotationEvent::Turned(Turned {
                task_id: turn.task_id.clone(),
                agent: agent.clone(),
            })),
            None => Decision::Ignore(Ignored::AlreadyDone),
        }
    }

    fn apply(state: &mut RotationState, record: StoredEvent<RotationEvent>) {
        let RotationEvent::Turned(turned) = record.event;
        state.turns.insert(turned.task_id, turned.agent.clone());
        state.last = Some(turned.agent);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::*;

    fn turn(task: usize, names: &[&str]) -> Turn {
        Turn {
            task_id: token(&format!("t-{task}")),
            eligible: names.iter().map(|name| agent(name)).collect(),
        }
    }

    #[test]
    fn the_next_by_id_has_the_turn_and_a_task_has_one_turn() {
        let mut story = Story::<RotationMachine>::of("r");
        for (task, names, expected) in [
            (1, &["ben", "ann"][..], Some("ann")),
            (1, &["ben", "ann"], None),
            (2, &["ben", "ann"], Some("ben")),
            (3, &["ben", "ann", "cyd"], Some("cyd")),
            (4, &["ben", "ann"], Some("ann")),
            (5, &["cyd", "ann"], Some("cyd")),
            (6, &[], None),
        ] {
            let heard = story.hears(&said(&format!("m-{task}"), 1), &turn(task, names));
            assert_eq!(heard == "turned", expected.is_some(), "{task}: {heard}");
            if let Some(expected) = expected {
                let last = story.state().turn_of(&token(&format!("t-{task}")));
                assert_eq!(last, Some(&agent(expected)));
            }
        }
    }

    proptest! {
        #[test]
        fn among_the_same_agents_nobody_has_two_turns_more_than_another(count in 1usize..7, tasks in 1usize..40) {
            let names = ["ann", "ben", "cyd", "dan", "eve", "fay", "gus"];
            let mut story = Story::<RotationMachine>::of("r");
            let mut turns: BTreeMap<AgentId, usize> = names[..count].iter().map(|name| (agent(name), 0)).collect();
            for task in 0..tasks {
                story.hears(&said(&format!("m-{task}"), 1), &turn(task, &names[..count]));
                *turns.get_mut(story.state().last.as_ref().unwrap()).unwrap() += 1;
            }
            let (least, most) = (turns.values().min().unwrap(), turns.values().max().unwrap());
            prop_assert!(most - least <= 1, "{turns:?}");
        }
    }
}

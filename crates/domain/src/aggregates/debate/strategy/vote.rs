//! `vote`: the parties vote on what the discussion has left open.

use concord_wire::payload::{Resolution, Status, Tally};
use concord_wire::policy::{Policy, VoteRule};

use super::{Conclusion, Ending, ResolutionStrategy};
use crate::aggregates::debate::discussion::Discussion;

/// Discussion, then the vote.
#[derive(Debug)]
pub(super) struct Vote;

impl ResolutionStrategy for Vote {
    fn needs_prior_knowledge(&self, policy: &Policy) -> bool {
        policy.vote_rule == VoteRule::Credibility
    }

    fn conclude(&self, discussion: &Discussion<'_>) -> Conclusion {
        Conclusion::Resolve(ending(discussion.tally()))
    }
}

/// The end of a debate that a vote decides. A vote without a winner leaves it unresolved.
pub(super) fn ending(tally: Tally) -> Ending {
    let resolution = winner(&tally);
    Ending {
        status: if resolution.is_some() {
            Status::Vote
        } else {
            Status::Unresolved
        },
        resolution,
        tally: Some(tally),
    }
}

fn winner(tally: &Tally) -> Option<Resolution> {
    let winner = tally.winner.as_ref()?;
    let option = tally
        .options
        .iter()
        .find(|option| option.position_id == *winner)?;
    Some(Resolution {
        position: option.position.clone(),
        value: option.value.clone(),
        supporters: option
            .voters
            .iter()
            .map(|voter| voter.agent_id.clone())
            .collect(),
    })
}

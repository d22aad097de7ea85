//! `vote_then_ladder`: the parties vote; where the vote is too narrow, the debate goes up the ladder.

use concord_events::EscalationReason;
use concord_wire::policy::Policy;

use super::vote::ending;
use super::{Conclusion, ResolutionStrategy};
use crate::aggregates::debate::discussion::Discussion;

/// Discussion, then the vote, then the ladder from level 2 on where the vote has no winner or a margin below the policy's
/// `vote_margin_min`.
#[derive(Debug)]
pub(super) struct VoteThenEscalate;

impl ResolutionStrategy for VoteThenEscalate {
    fn needs_prior_knowledge(&self, _: &Policy) -> bool {
        true
    }

    fn conclude(&self, discussion: &Discussion<'_>) -> Conclusion {
        let tally = discussion.tally();
        let margin_min = discussion.opened().policy.ladder.vote_margin_min;
        if tally.winner.is_none() || tally.margin < margin_min {
            return Conclusion::Escalate {
                reason: EscalationReason::NarrowVote,
                tally: Some(tally),
            };
        }
        Conclusion::Resolve(ending(tally))
    }
}

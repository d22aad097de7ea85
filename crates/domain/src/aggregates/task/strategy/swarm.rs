//! A mission to all members; who joins gets it too, and who leaves is waited for no longer. The result is everybody's, by agent.

use super::{Next, Progress, TaskStrategy, all_failed, all_in_time, by_agent};
use crate::aggregates::task::Stage;

pub(super) struct Swarm;

impl TaskStrategy for Swarm {
    fn after(&self, progress: &Progress<'_>) -> Next {
        let results = progress.results().count();
        let is_left = |stage| stage == Stage::Withdrawn;
        let left = progress.parts.values().filter(|part| is_left(part.stage));
        let members = progress.parts.len() - left.count();
        let quorum = progress.terms.quorum.map_or(1, |_| progress.quorum(0));
        // A swarm that has nobody, or too few, waits for others to join.
        if progress.is_active() || members < quorum {
            return Next::Wait;
        }
        let (result, by) = by_agent(progress.results_and_parts());
        // Without a stated quorum a part is better than nothing.
        let is_enough = progress.terms.quorum.is_none() || results >= quorum;
        match is_enough {
            _ if by.is_empty() => Next::Fail(all_failed(progress)),
            false => Next::Wait,
            true => Next::Complete {
                result,
                by,
                partial: results < members,
            },
        }
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        all_in_time(progress)
    }

    fn has_members(&self) -> bool {
        true
    }
}

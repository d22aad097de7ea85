//! A mission to all members; who joins gets it too, and who leaves is waited for no longer. The result is everybody's, by agent.

use super::{
    MORE_OR_FEWER, Next, Progress, TaskStrategy, all_failed, all_in_time, by_agent, no_quorum,
};
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
        match results {
            _ if by.is_empty() => Next::Fail(all_failed(progress)),
            1.. if results < quorum => Next::Wait,
            _ => Next::Complete {
                result,
                by,
                partial: results < members,
            },
        }
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        let results = progress.results().count();
        match progress.terms.quorum {
            Some(quorum) if results > 0 && results < progress.quorum(0) => Next::Fail(no_quorum(
                format!("{results} members have succeeded; {quorum} must."),
                MORE_OR_FEWER,
            )),
            _ => all_in_time(progress),
        }
    }

    fn has_members(&self) -> bool {
        true
    }
}

//! Everybody who fits does it; the result is everybody's, by agent.

use super::{Next, Progress, TaskStrategy, all_failed, all_in_time, by_agent};

pub(super) struct Broadcast;

impl TaskStrategy for Broadcast {
    fn after(&self, progress: &Progress<'_>) -> Next {
        if progress.is_active() {
            return Next::Wait;
        }
        let (result, by) = by_agent(progress.results_and_parts());
        if by.is_empty() {
            return Next::Fail(all_failed(progress));
        }
        let partial = progress.results().count() < progress.parts.len();
        Next::Complete {
            result,
            by,
            partial,
        }
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        all_in_time(progress)
    }
}

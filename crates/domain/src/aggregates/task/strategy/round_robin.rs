//! One agent after the other in turn; the next when one fails.

use super::{Next, Progress, TaskStrategy, one_after_another, one_in_time};

pub(super) struct RoundRobin;

impl TaskStrategy for RoundRobin {
    fn after(&self, progress: &Progress<'_>) -> Next {
        one_after_another(progress)
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        one_in_time(progress)
    }

    fn asks_one(&self) -> bool {
        true
    }

    fn rotates(&self) -> bool {
        true
    }
}

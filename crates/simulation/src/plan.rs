//! What is going to happen, in the order of time; at one instant, in the order in which it was planned.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// What is going to happen.
pub(crate) struct Plan<H> {
    order: u64,
    planned: BinaryHeap<Reverse<Planned<H>>>,
}

struct Planned<H> {
    at: u64,
    order: u64,
    action: H,
}

impl<H> PartialEq for Planned<H> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<H> Eq for Planned<H> {}
impl<H> PartialOrd for Planned<H> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<H> Ord for Planned<H> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<H> Default for Plan<H> {
    fn default() -> Self {
        Self {
            order: 0,
            planned: BinaryHeap::new(),
        }
    }
}

impl<H> Plan<H> {
    /// Plans something for an instant.
    pub(crate) fn push(&mut self, at: u64, action: H) {
        self.order += 1;
        self.planned.push(Reverse(Planned {
            at,
            order: self.order,
            action,
        }));
    }

    /// What happens next, and when.
    pub(crate) fn pop(&mut self) -> Option<(u64, H)> {
        self.planned
            .pop()
            .map(|Reverse(next)| (next.at, next.action))
    }
}

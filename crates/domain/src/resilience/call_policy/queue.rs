//! The queue of a hosted agent: how many messages it works on at once, and how many wait. Alerts come first, then those of the
//! highest priority.

use std::collections::{BTreeMap, VecDeque};

use concord_wire::Priority;
use concord_wire::subject::Lane;

/// What goes before what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// What is said at this priority.
    Said(Priority),
    /// Of which the coordinator alerts everybody: before all others.
    Alert,
}

impl Rank {
    /// What is of a higher class displaces what is of a lower one where there is no room for both.
    fn class(self) -> (bool, Lane) {
        match self {
            Self::Said(priority) => (false, priority.lane()),
            Self::Alert => (true, Lane::Urgent),
        }
    }
}

impl From<Priority> for Rank {
    fn from(priority: Priority) -> Self {
        Self::Said(priority)
    }
}

/// The decision about a message that arrives.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<W> {
    /// It has a seat.
    Seat,
    /// It waits ([`Queue::wait`]).
    Wait,
    /// It waits in the place of this message, which finds no room any more.
    InPlaceOf(W),
    /// It finds no room.
    Full,
}

/// The seats of an agent, and the messages that wait for one. `W` identifies a message that waits.
#[derive(Debug)]
pub struct Queue<W> {
    seats: usize,
    free: usize,
    waiting_max: usize,
    /// Those that wait, by rank; each in the order of arrival.
    waiting: BTreeMap<Rank, VecDeque<W>>,
}

impl<W> Queue<W> {
    /// An empty queue.
    pub fn new(seats: usize, waiting_max: usize) -> Self {
        Self {
            seats,
            free: seats,
            waiting_max,
            waiting: BTreeMap::new(),
        }
    }

    /// How many messages have a seat.
    pub fn working(&self) -> usize {
        self.seats.saturating_sub(self.free)
    }

    /// How many messages wait. Those of which `waits` says that they have given up are removed.
    pub fn waiting(&mut self, waits: impl Fn(&W) -> bool) -> usize {
        self.waiting.retain(|_, queue| {
            queue.retain(&waits);
            !queue.is_empty()
        });
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Decides about a message that arrives. One that is to wait is added by [`Queue::wait`] before
    /// the next arrives or leaves.
    pub fn admit(&mut self, rank: impl Into<Rank>, waits: impl Fn(&W) -> bool) -> Admission<W> {
        if self.free > 0 {
            self.free -= 1;
            return Admission::Seat;
        }
        if self.waiting(waits) < self.waiting_max {
            return Admission::Wait;
        }
        // The last of those with the lowest rank makes room for an urgent one where it is not urgent itself, and for an alert where it
        // is none; its sender is told that there is none.
        let class = rank.into().class();
        let lower = self.waiting.iter_mut();
        let mut lower = lower.take_while(|(rank, _)| rank.class() < class);
        let displaced = lower.find_map(|(_, queue)| queue.pop_back());
        displaced.map_or(Admission::Full, Admission::InPlaceOf)
    }

    /// Adds a message behind the others of its rank.
    pub fn wait(&mut self, rank: impl Into<Rank>, waiter: W) {
        self.waiting
            .entry(rank.into())
            .or_default()
            .push_back(waiter);
    }

    /// Gives a seat back. Returns the message that gets it; `None` when the seat is free. A message
    /// that has given up gives it back again.
    pub fn leave(&mut self) -> Option<W> {
        let mut highest = self.waiting.values_mut().rev();
        let next = highest.find_map(VecDeque::pop_front);
        if next.is_none() {
            self.free += 1;
        }
        debug_assert!(
            self.free <= self.seats,
            "no more seats are given back than there are"
        );
        next
    }
}

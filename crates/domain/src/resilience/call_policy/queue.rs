//! The queue of a hosted agent: how many messages it works on at once, and how many wait. Urgent
//! messages come first.

use std::collections::VecDeque;

use concord_wire::subject::Lane;

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
    urgent: VecDeque<W>,
    normal: VecDeque<W>,
}

impl<W> Queue<W> {
    /// An empty queue.
    pub fn new(seats: usize, waiting_max: usize) -> Self {
        Self {
            seats,
            free: seats,
            waiting_max,
            urgent: VecDeque::new(),
            normal: VecDeque::new(),
        }
    }

    /// How many messages have a seat.
    pub fn working(&self) -> usize {
        self.seats.saturating_sub(self.free)
    }

    /// How many messages wait. Those of which `waits` says that they have given up are removed.
    pub fn waiting(&mut self, waits: impl Fn(&W) -> bool) -> usize {
        self.urgent.retain(&waits);
        self.normal.retain(&waits);
        self.urgent.len() + self.normal.len()
    }

    /// Decides about a message that arrives. One that is to wait is added by [`Queue::wait`] before
    /// the next arrives or leaves.
    pub fn admit(&mut self, lane: Lane, waits: impl Fn(&W) -> bool) -> Admission<W> {
        if self.free > 0 {
            self.free -= 1;
            return Admission::Seat;
        }
        if self.waiting(waits) < self.waiting_max {
            return Admission::Wait;
        }
        // The last message among those that are not urgent makes room; its sender is told that
        // there is none.
        let displaced = if lane == Lane::Urgent {
            self.normal.pop_back()
        } else {
            None
        };
        displaced.map_or(Admission::Full, Admission::InPlaceOf)
    }

    /// Adds a message at the end of a lane.
    pub fn wait(&mut self, lane: Lane, waiter: W) {
        match lane {
            Lane::Urgent => self.urgent.push_back(waiter),
            Lane::Normal => self.normal.push_back(waiter),
        }
    }

    /// Gives a seat back. Returns the message that gets it; `None` when the seat is free. A message
    /// that has given up gives it back again.
    pub fn leave(&mut self) -> Option<W> {
        let next = self.urgent.pop_front().or_else(|| self.normal.pop_front());
        if next.is_none() {
            self.free += 1;
        }
        next
    }
}

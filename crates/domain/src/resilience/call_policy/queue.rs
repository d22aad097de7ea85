//! How many messages an agent works on at once, and how many wait: urgent ones first.

use std::collections::VecDeque;

use concord_wire::subject::Lane;

/// What becomes of a message that comes.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission<W> {
    /// It has a seat.
    Seat,
    /// It waits ([`Queue::wait`]).
    Wait,
    /// It waits in the place of this one, which finds no room any more.
    InPlaceOf(W),
    /// It finds no room.
    Full,
}

/// The seats of an agent and who waits for one; `W` is how somebody who waits is reached.
#[derive(Debug)]
pub struct Queue<W> {
    seats: usize,
    free: usize,
    waiting_max: usize,
    urgent: VecDeque<W>,
    normal: VecDeque<W>,
}

impl<W> Queue<W> {
    /// Nobody is there.
    pub fn new(seats: usize, waiting_max: usize) -> Self {
        Self {
            seats,
            free: seats,
            waiting_max,
            urgent: VecDeque::new(),
            normal: VecDeque::new(),
        }
    }

    /// How many are worked on.
    pub fn working(&self) -> usize {
        self.seats.saturating_sub(self.free)
    }

    /// How many wait. Who has given up, as `waits` says, keeps no place.
    pub fn waiting(&mut self, waits: impl Fn(&W) -> bool) -> usize {
        self.urgent.retain(&waits);
        self.normal.retain(&waits);
        self.urgent.len() + self.normal.len()
    }

    /// What becomes of somebody who comes. Who is to wait is put there by [`Queue::wait`] before anybody else comes or goes.
    pub fn admit(&mut self, lane: Lane, waits: impl Fn(&W) -> bool) -> Admission<W> {
        if self.free > 0 {
            self.free -= 1;
            return Admission::Seat;
        }
        if self.waiting(waits) < self.waiting_max {
            return Admission::Wait;
        }
        // The one that came last among those that are not urgent makes room: its sender is told that there is none.
        let displaced = if lane == Lane::Urgent {
            self.normal.pop_back()
        } else {
            None
        };
        displaced.map_or(Admission::Full, Admission::InPlaceOf)
    }

    /// Puts somebody at the end of a lane.
    pub fn wait(&mut self, lane: Lane, waiter: W) {
        match lane {
            Lane::Urgent => self.urgent.push_back(waiter),
            Lane::Normal => self.normal.push_back(waiter),
        }
    }

    /// A seat is given back: whose it is now, and nobody's when it is free. Who has given up does not need it, and it is
    /// given back again.
    pub fn leave(&mut self) -> Option<W> {
        let next = self.urgent.pop_front().or_else(|| self.normal.pop_front());
        if next.is_none() {
            self.free += 1;
        }
        next
    }
}

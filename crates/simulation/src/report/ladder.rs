//! What is counted of disagreements that climb the ladder.

use serde::Serialize;

/// What came of disagreements that climbed the ladder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LadderCounts {
    /// Challenges that were accepted.
    pub challenges: u64,
    /// Debates that came before a person.
    pub to_people: u64,
    /// Debates that an expert was given.
    pub assigned: u64,
    /// Assignments while debates of several openers waited.
    pub contended: u64,
    /// Debates that were taken from an expert who let them lie.
    pub returned: u64,
    /// Debates for which the queue had no place.
    pub overflowed: u64,
    /// Rulings that counted.
    pub rulings: u64,
    /// Rulings that did not.
    pub rulings_refused: u64,
    /// Provisional decisions.
    pub provisional: u64,
    /// Reviews at gates.
    pub reviews: u64,
    /// Debates taken up again.
    pub debated_again: u64,
    /// Gates that were passed.
    pub gates: u64,
    /// Challenges that the agents settled themselves.
    pub accepted: u64,
    /// Times an operator has moved deadlines, or given a debate to another expert.
    pub operated: u64,
    /// Cases and debates that were cancelled.
    pub cancelled: u64,
    /// Debates that wait at a gate at the end.
    pub waiting: u64,
}

impl LadderCounts {
    /// Names, values and meanings, in the order of the table.
    pub fn rows(&self) -> [(&'static str, u64, &'static str); 16] {
        [
            (
                "challenges",
                self.challenges,
                "challenges that were accepted",
            ),
            (
                "accepted",
                self.accepted,
                "challenges that the agents settled themselves",
            ),
            (
                "to_people",
                self.to_people,
                "debates that came before a person",
            ),
            ("assigned", self.assigned, "assignments to experts"),
            (
                "contended",
                self.contended,
                "of them while several openers waited",
            ),
            (
                "returned",
                self.returned,
                "debates taken from experts who let them lie",
            ),
            (
                "overflowed",
                self.overflowed,
                "debates for which the queue had no place",
            ),
            ("rulings", self.rulings, "rulings that counted"),
            (
                "rulings_refused",
                self.rulings_refused,
                "rulings recorded that did not count",
            ),
            ("provisional", self.provisional, "provisional decisions"),
            ("reviews", self.reviews, "reviews at gates"),
            (
                "debated_again",
                self.debated_again,
                "debates taken up again",
            ),
            ("gates", self.gates, "gates that were passed"),
            (
                "operated",
                self.operated,
                "times an operator moved deadlines or a debate",
            ),
            (
                "cancelled",
                self.cancelled,
                "cases and debates that were cancelled",
            ),
            (
                "waiting",
                self.waiting,
                "debates that wait at a gate at the end",
            ),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.challenges += other.challenges;
        self.to_people += other.to_people;
        self.assigned += other.assigned;
        self.contended += other.contended;
        self.returned += other.returned;
        self.overflowed += other.overflowed;
        self.rulings += other.rulings;
        self.rulings_refused += other.rulings_refused;
        self.provisional += other.provisional;
        self.reviews += other.reviews;
        self.debated_again += other.debated_again;
        self.gates += other.gates;
        self.accepted += other.accepted;
        self.operated += other.operated;
        self.cancelled += other.cancelled;
        self.waiting += other.waiting;
    }
}

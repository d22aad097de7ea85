//! The report of an audit, by invariant.

use serde::Serialize;

use super::Settled;

/// The invariants of the design that can be checked over what is stored, with their numbers there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// 1: every case and debate has ended, or waits with an open deadline.
    NothingStuck,
    /// 2: every finding is in its case's decision, or set aside there with the reason.
    FindingsKept,
    /// 3: every case and debate ends once, and no round goes back.
    EndsOnce,
    /// 4: every effect of a stored event is published, and no other.
    EffectsPublished,
    /// 5: every deadline fires, never early, and is acted on at most once.
    Deadlines,
    /// 6: nobody is given more debates than their capacity.
    Capacity,
    /// 7: the same events give the same state and the same vote.
    Replay,
    /// 8: every message is used, or kept as a dead letter.
    MessagesKept,
    /// 9: every entry of a decision log is as it was written, and none is missing between two
    /// others.
    DecisionLog,
    /// 10: the current decision of a case says what its latest outcomes and reviews give.
    DecisionFollows,
    /// 11: every case was opened within the bounds of the policy that it names, or by an operator.
    PolicyBounds,
    /// 12: what people have signed is as they signed it, with a key that was registered with them.
    Signatures,
}

impl Invariant {
    /// All invariants that are checked here, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::NothingStuck,
        Self::FindingsKept,
        Self::EndsOnce,
        Self::EffectsPublished,
        Self::Deadlines,
        Self::Capacity,
        Self::Replay,
        Self::MessagesKept,
        Self::DecisionLog,
        Self::DecisionFollows,
        Self::PolicyBounds,
        Self::Signatures,
    ];

    /// The number of the invariant in the design.
    pub fn number(self) -> u8 {
        match self {
            Self::NothingStuck => 1,
            Self::FindingsKept => 2,
            Self::EndsOnce => 3,
            Self::EffectsPublished => 4,
            Self::Deadlines => 5,
            Self::Capacity => 6,
            Self::Replay => 7,
            Self::MessagesKept => 8,
            Self::DecisionLog => 9,
            Self::DecisionFollows => 10,
            Self::PolicyBounds => 11,
            Self::Signatures => 12,
        }
    }

    /// The short name of the invariant.
    pub fn name(self) -> &'static str {
        match self {
            Self::NothingStuck => "nothing_stuck",
            Self::FindingsKept => "findings_kept",
            Self::EndsOnce => "ends_once",
            Self::EffectsPublished => "effects_of_facts",
            Self::Deadlines => "deadlines",
            Self::Capacity => "capacity",
            Self::Replay => "replay",
            Self::MessagesKept => "messages_kept",
            Self::DecisionLog => "decision_log",
            Self::DecisionFollows => "decision_follows",
            Self::PolicyBounds => "policy_bounds",
            Self::Signatures => "signatures",
        }
    }

    /// The things that were examined, for a reader: the unit of [`Checked::examined`].
    pub fn unit(self) -> &'static str {
        match self {
            Self::NothingStuck | Self::EndsOnce => "cases and debates",
            Self::FindingsKept => "findings",
            Self::EffectsPublished => "effects and messages of services",
            Self::Deadlines => "deadlines",
            Self::Capacity => "assignments to experts",
            Self::Replay => "facts",
            Self::MessagesKept => "messages to services",
            Self::DecisionLog => "entries of decision logs",
            Self::DecisionFollows => "outcomes and reviews of decided cases",
            Self::PolicyBounds => "opened cases",
            Self::Signatures => "signed rulings and reviews",
        }
    }

    /// Whether it can only be judged in full while nothing is in flight.
    fn needs_quiescence(self) -> bool {
        !matches!(
            self,
            Self::EndsOnce
                | Self::Capacity
                | Self::Replay
                | Self::DecisionLog
                | Self::PolicyBounds
                | Self::Signatures
        )
    }
}

/// One violation of an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// A sentence that says what is wrong.
    pub what: String,
    /// The aggregate or message: `case/<id>`, `debate/<id>`, `message/<message_id>` and the like.
    pub place: String,
    /// Its sequence in the stream that holds it, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

/// The result for one invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The invariant's number in the design.
    pub number: u8,
    /// The invariant's short name.
    pub name: &'static str,
    /// How many things were examined.
    pub examined: u64,
    /// The kind of things that were examined.
    pub unit: &'static str,
    /// How many violations were found.
    pub violations: u64,
    /// The first violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Violation>,
    /// False when things in flight could not be judged yet: it is said of what is settled.
    pub complete: bool,
}

/// Entries of the stream of events that are no events. They violate nothing, because every reader
/// passes them over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// How many entries.
    pub number: u64,
    /// The first entry; its place is its subject.
    pub first: Violation,
}

/// The report of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The result for each invariant, in the order of their numbers.
    pub invariants: Vec<Checked>,
    /// How many events were read.
    pub events: u64,
    /// How many messages were read.
    pub messages: u64,
    /// How many dead letters were read.
    pub dead: u64,
    /// Entries of the stream of events that are no events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Passed>,
}

impl Report {
    /// Whether no invariant is violated.
    pub fn holds(&self) -> bool {
        self.invariants
            .iter()
            .all(|checked| checked.violations == 0)
    }

    /// The result for one invariant.
    pub fn of(&self, invariant: Invariant) -> Option<&Checked> {
        self.invariants
            .iter()
            .find(|checked| checked.number == invariant.number())
    }

    /// The first violation of each violated invariant.
    pub fn violations(&self) -> impl Iterator<Item = (&Checked, &Violation)> {
        self.invariants
            .iter()
            .filter_map(|checked| Some((checked, checked.first.as_ref()?)))
    }
}

#[derive(Debug, Clone, Default)]
struct Count {
    examined: u64,
    violations: u64,
    first: Option<Violation>,
}

/// How much was examined of each invariant so far, and what was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(std::collections::BTreeMap<Invariant, Count>);

impl Counts {
    /// Counts one more thing that was examined.
    pub(super) fn examined(&mut self, invariant: Invariant) {
        self.0.entry(invariant).or_default().examined += 1;
    }

    /// Counts a violation, and keeps the first of each invariant.
    pub(super) fn violated(
        &mut self,
        invariant: Invariant,
        place: impl Into<String>,
        sequence: Option<u64>,
        what: impl Into<String>,
    ) {
        let count = self.0.entry(invariant).or_default();
        count.violations += 1;
        count.first.get_or_insert_with(|| Violation {
            what: what.into(),
            place: place.into(),
            sequence,
        });
    }

    pub(super) fn checked(&self, settled: &Settled) -> Vec<Checked> {
        let of = |invariant: &Invariant| {
            let count = self.0.get(invariant).cloned().unwrap_or_default();
            Checked {
                number: invariant.number(),
                name: invariant.name(),
                examined: count.examined,
                unit: invariant.unit(),
                violations: count.violations,
                first: count.first,
                complete: *settled == Settled::ALL || !invariant.needs_quiescence(),
            }
        };
        Invariant::ALL.iter().map(of).collect()
    }
}

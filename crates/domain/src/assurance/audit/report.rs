//! What an audit has found, by invariant.

use serde::Serialize;

/// The invariants of the design that can be checked over what is stored, with their numbers there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// 1: every case and debate has ended, or waits with an open deadline.
    NothingStuck,
    /// 2: every finding is in its case's decision, or set aside there with the reason.
    FindingsKept,
    /// 3: every case and debate ends once, and no round goes back.
    EndsOnce,
    /// 4: every effect of a stored fact is published, and no other.
    EffectsOfFacts,
    /// 5: every deadline fires, never early, and is acted on at most once.
    Deadlines,
    /// 6: nobody is given more debates than their capacity.
    Capacity,
    /// 7: the same facts give the same state and the same vote.
    Replay,
    /// 8: every message is used, or kept among the dead.
    MessagesKept,
    /// 9: every entry of a decision log is as it was written, and none is missing between two others.
    DecisionLog,
}

impl Invariant {
    /// All that are checked here, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::NothingStuck,
        Self::FindingsKept,
        Self::EndsOnce,
        Self::EffectsOfFacts,
        Self::Deadlines,
        Self::Capacity,
        Self::Replay,
        Self::MessagesKept,
        Self::DecisionLog,
    ];

    /// Its number in the design.
    pub fn number(self) -> u8 {
        match self {
            Self::NothingStuck => 1,
            Self::FindingsKept => 2,
            Self::EndsOnce => 3,
            Self::EffectsOfFacts => 4,
            Self::Deadlines => 5,
            Self::Capacity => 6,
            Self::Replay => 7,
            Self::MessagesKept => 8,
            Self::DecisionLog => 9,
        }
    }

    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::NothingStuck => "nothing_stuck",
            Self::FindingsKept => "findings_kept",
            Self::EndsOnce => "ends_once",
            Self::EffectsOfFacts => "effects_of_facts",
            Self::Deadlines => "deadlines",
            Self::Capacity => "capacity",
            Self::Replay => "replay",
            Self::MessagesKept => "messages_kept",
            Self::DecisionLog => "decision_log",
        }
    }

    /// What was examined, for a reader: the unit of [`Checked::examined`].
    pub fn unit(self) -> &'static str {
        match self {
            Self::NothingStuck | Self::EndsOnce => "cases and debates",
            Self::FindingsKept => "findings",
            Self::EffectsOfFacts => "effects and messages of services",
            Self::Deadlines => "deadlines",
            Self::Capacity => "assignments to experts",
            Self::Replay => "facts",
            Self::MessagesKept => "messages to services",
            Self::DecisionLog => "entries of decision logs",
        }
    }

    /// True when it can only be judged in full while nothing is in flight.
    fn needs_quiescence(self) -> bool {
        !matches!(
            self,
            Self::EndsOnce | Self::Capacity | Self::Replay | Self::DecisionLog
        )
    }
}

/// One thing that should not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What is wrong, as a sentence.
    pub what: String,
    /// Where: `case/<id>`, `debate/<id>`, `message/<message_id>` and the like.
    pub place: String,
    /// Position in the stream that holds it, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

/// What was found about one invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Its number in the design.
    pub number: u8,
    /// Its short name.
    pub name: &'static str,
    /// Over how many things it was examined.
    pub examined: u64,
    /// What those things are.
    pub unit: &'static str,
    /// How often it did not hold.
    pub violations: u64,
    /// Where it first did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Violation>,
    /// False when what is still in flight was given the benefit of the doubt.
    pub complete: bool,
}

/// What stands among the facts and is none. It violates nothing, because everybody passes it over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// How many messages.
    pub number: u64,
    /// The first of them; its place is its subject.
    pub first: Violation,
}

/// What an audit has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// By invariant, in the order of their numbers.
    pub invariants: Vec<Checked>,
    /// Facts read.
    pub events: u64,
    /// Messages read.
    pub messages: u64,
    /// Dead letters read.
    pub dead: u64,
    /// What stands among the facts and is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Passed>,
}

impl Report {
    /// True when no invariant is violated.
    pub fn holds(&self) -> bool {
        self.invariants
            .iter()
            .all(|checked| checked.violations == 0)
    }

    /// What was found about one invariant.
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
struct Ledger {
    examined: u64,
    violations: u64,
    first: Option<Violation>,
}

/// Keeps count while the audit goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledgers(std::collections::BTreeMap<Invariant, Ledger>);

impl Ledgers {
    /// One more thing was examined.
    pub(super) fn examined(&mut self, invariant: Invariant) {
        self.0.entry(invariant).or_default().examined += 1;
    }

    /// Something is not as it should be.
    pub(super) fn violated(
        &mut self,
        invariant: Invariant,
        place: impl Into<String>,
        sequence: Option<u64>,
        what: impl Into<String>,
    ) {
        let ledger = self.0.entry(invariant).or_default();
        ledger.violations += 1;
        ledger.first.get_or_insert_with(|| Violation {
            what: what.into(),
            place: place.into(),
            sequence,
        });
    }

    pub(super) fn checked(&self, quiescent: bool) -> Vec<Checked> {
        let of = |invariant: &Invariant| {
            let ledger = self.0.get(invariant).cloned().unwrap_or_default();
            Checked {
                number: invariant.number(),
                name: invariant.name(),
                examined: ledger.examined,
                unit: invariant.unit(),
                violations: ledger.violations,
                first: ledger.first,
                complete: quiescent || !invariant.needs_quiescence(),
            }
        };
        Invariant::ALL.iter().map(of).collect()
    }
}

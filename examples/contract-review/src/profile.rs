//! What makes one reader differ from another: its rules, its weights and its temper.

use std::sync::LazyLock;

use crate::clause::{Clause, Recogniser, Rule};
use crate::facts::{FactReader, FactRule};
use crate::pattern::Pattern;
use crate::severity::Severity;
use crate::{roles, rules};

/// A role of the panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Says of every clause type whether it is present.
    ClauseExtractor,
    /// Weighs exposures.
    RiskAssessor,
    /// Weighs the commercial terms.
    NegotiationAdvisor,
    /// Weighs strategy.
    ExecutiveReviewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [
        Self::ClauseExtractor,
        Self::RiskAssessor,
        Self::NegotiationAdvisor,
        Self::ExecutiveReviewer,
    ];

    /// The role's name, which is also its agent id.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClauseExtractor => "clause_extractor",
            Self::RiskAssessor => "risk_assessor",
            Self::NegotiationAdvisor => "negotiation_advisor",
            Self::ExecutiveReviewer => "executive_reviewer",
        }
    }

    /// The role with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The role's way of reading.
    #[must_use]
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::ClauseExtractor => &EXTRACTOR,
            Self::RiskAssessor => &RISK,
            Self::NegotiationAdvisor => &NEGOTIATION,
            Self::ExecutiveReviewer => &EXECUTIVE,
        }
    }
}

/// What changes the gravity of a clause.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    /// Nothing does.
    Never,
    /// The presence of another clause.
    With(Clause, Severity),
    /// The absence of another clause.
    Without(Clause, Severity),
    /// Certain wording in the clause itself.
    Worded(&'static [&'static str], Severity),
}

/// What a reader thinks of a clause.
#[derive(Debug, Clone, Copy)]
pub struct Concern {
    /// The clause, which is the topic of the reader's finding as well.
    pub clause: Clause,
    /// Points of risk when it is present; negative when it protects.
    pub present: i32,
    /// Points of risk when it is missing.
    pub missing: i32,
    /// Its gravity when it is present.
    pub severity: Severity,
    /// What changes that.
    pub turn: Turn,
    /// Its gravity when it is missing, if that is worth reporting.
    pub severity_missing: Option<Severity>,
}

/// The constant part of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Temper {
    /// The role.
    pub role: Role,
    /// How clauses are recognised.
    pub rules: &'static [Rule],
    /// What is thought of them; empty for a reader that does not judge.
    pub concerns: &'static [Concern],
    /// How facts are read.
    pub facts: &'static [FactRule],
    /// The risk of a contract with none of the clauses, 0 to 100.
    pub base: i32,
    /// The scores from which the reader advises to negotiate, to escalate, to reject.
    pub ladder: [i32; 3],
    /// The gravity from which a point is reported.
    pub report_from: Severity,
    /// The confidence of a reader that has found nothing to rely on, 0 to 1.
    pub confidence: f64,
}

/// A reader's way of reading, with its rules compiled.
#[derive(Debug)]
pub struct Profile {
    /// The constant part.
    pub temper: Temper,
    /// The compiled clause rules.
    pub recogniser: Recogniser,
    /// The compiled fact rules.
    pub facts: Vec<FactReader>,
    turns: Vec<(Clause, Vec<Pattern>)>,
}

impl Profile {
    fn new(temper: Temper) -> Self {
        let turns = temper
            .concerns
            .iter()
            .filter_map(|concern| match concern.turn {
                Turn::Worded(patterns, _) => Some((concern.clause, Pattern::all(patterns))),
                Turn::Never | Turn::With(..) | Turn::Without(..) => None,
            })
            .collect();
        Self {
            temper,
            recogniser: Recogniser::new(temper.rules),
            facts: temper.facts.iter().copied().map(FactReader::new).collect(),
            turns,
        }
    }

    /// The patterns whose wording changes the gravity of `clause`.
    #[must_use]
    pub fn turn_patterns(&self, clause: Clause) -> &[Pattern] {
        self.turns
            .iter()
            .find(|(turned, _)| *turned == clause)
            .map_or(&[], |(_, patterns)| patterns.as_slice())
    }

    /// The clause types this reader knows.
    pub fn interests(&self) -> impl Iterator<Item = Clause> + '_ {
        Clause::ALL
            .iter()
            .copied()
            .filter(|clause| self.temper.rules.iter().any(|rule| rule.clause == *clause))
    }
}

static EXTRACTOR: LazyLock<Profile> = LazyLock::new(|| Profile::new(roles::EXTRACTOR));
static RISK: LazyLock<Profile> = LazyLock::new(|| Profile::new(roles::RISK));
static NEGOTIATION: LazyLock<Profile> = LazyLock::new(|| Profile::new(roles::NEGOTIATION));
static EXECUTIVE: LazyLock<Profile> = LazyLock::new(|| Profile::new(roles::EXECUTIVE));
static CONFIRM: LazyLock<Recogniser> = LazyLock::new(|| Recogniser::new(rules::confirm::RULES));

/// The check that a sentence shown by a colleague must pass to change a reader's mind.
#[must_use]
pub fn confirm() -> &'static Recogniser {
    &CONFIRM
}

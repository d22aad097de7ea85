//! The clause types the panel reads for, and the form of a recogniser.

use std::collections::BTreeMap;

use crate::pattern::{self, Pattern};
use crate::text::{Document, Sentence};

macro_rules! clauses {
    ($($variant:ident = $name:literal,)*) => {
        /// A clause type; `name` gives the spelling used in findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Clause {
            $(#[doc = $name] $variant,)*
        }

        impl Clause {
            /// Every clause type.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as it is written in findings.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

clauses! {
    GoverningLaw = "Governing Law",
    AntiAssignment = "Anti-Assignment",
    CapOnLiability = "Cap On Liability",
    UncappedLiability = "Uncapped Liability",
    TerminationForConvenience = "Termination For Convenience",
    Exclusivity = "Exclusivity",
    NonCompete = "Non-Compete",
    AuditRights = "Audit Rights",
    Insurance = "Insurance",
    LicenseGrant = "License Grant",
    ChangeOfControl = "Change Of Control",
    MostFavoredNation = "Most Favored Nation",
    MinimumCommitment = "Minimum Commitment",
    LiquidatedDamages = "Liquidated Damages",
    RevenueSharing = "Revenue/Profit Sharing",
    IpOwnershipAssignment = "Ip Ownership Assignment",
    WarrantyDuration = "Warranty Duration",
    PostTerminationServices = "Post-Termination Services",
    RenewalTerm = "Renewal Term",
    ThirdPartyBeneficiary = "Third Party Beneficiary",
}

impl Clause {
    /// The clause type with this name, in any letter case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::ALL
            .iter()
            .copied()
            .find(|clause| clause.name().eq_ignore_ascii_case(name))
    }
}

/// How one clause type is recognised: a sentence counts when one of `any` occurs in it, one of
/// `with` as well (unless `with` is empty), and none of `unless`.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The clause type.
    pub clause: Clause,
    /// Patterns of which one must occur.
    pub any: &'static [&'static str],
    /// Patterns of which one must occur too; empty means no further condition.
    pub with: &'static [&'static str],
    /// Patterns that rule the sentence out.
    pub unless: &'static [&'static str],
}

impl Rule {
    /// A rule with neither further conditions nor exceptions.
    #[must_use]
    pub const fn any(clause: Clause, any: &'static [&'static str]) -> Self {
        Self {
            clause,
            any,
            with: &[],
            unless: &[],
        }
    }
}

#[derive(Debug, Clone)]
struct Compiled {
    clause: Clause,
    any: Vec<Pattern>,
    with: Vec<Pattern>,
    unless: Vec<Pattern>,
}

impl Compiled {
    fn matches(&self, sentence: &Sentence) -> bool {
        pattern::any(&self.any, sentence)
            && (self.with.is_empty() || pattern::any(&self.with, sentence))
            && !pattern::any(&self.unless, sentence)
    }
}

/// A set of rules, ready to read with.
#[derive(Debug, Clone)]
pub struct Recogniser {
    rules: Vec<Compiled>,
}

/// Clause types found, each with the sentences it was found in.
pub type Found<'a> = BTreeMap<Clause, Vec<&'a Sentence>>;

impl Recogniser {
    /// Compiles `rules`.
    #[must_use]
    pub fn new(rules: &[Rule]) -> Self {
        let rules = rules
            .iter()
            .map(|rule| Compiled {
                clause: rule.clause,
                any: Pattern::all(rule.any),
                with: Pattern::all(rule.with),
                unless: Pattern::all(rule.unless),
            })
            .collect();
        Self { rules }
    }

    /// Whether `sentence` is a `clause` by these rules.
    #[must_use]
    pub fn accepts(&self, clause: Clause, sentence: &Sentence) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.clause == clause && rule.matches(sentence))
    }

    /// The clause types of `sentence`, each once.
    pub fn read<'a>(&'a self, sentence: &'a Sentence) -> impl Iterator<Item = Clause> + 'a {
        Clause::ALL
            .iter()
            .copied()
            .filter(move |clause| self.accepts(*clause, sentence))
    }

    /// The clauses of `document` and where they stand, in the document's order.
    #[must_use]
    pub fn find<'a>(&'a self, document: &'a Document) -> Found<'a> {
        let mut found = Found::new();
        for sentence in document.sentences() {
            for clause in self.read(sentence) {
                found.entry(clause).or_default().push(sentence);
            }
        }
        found
    }
}

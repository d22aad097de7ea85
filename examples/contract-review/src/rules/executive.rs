//! The executive reviewer reads for a few strategic terms, by their plainest wording only.

use crate::clause::{Clause, Rule};

/// The rules.
pub const RULES: &[Rule] = &[
    Rule::any(Clause::GoverningLaw, &["governed ... laws|law of"]),
    Rule::any(
        Clause::ChangeOfControl,
        &[
            "change of|in control",
            "merger|acquisition|sale .. all|substantially",
        ],
    ),
    Rule {
        clause: Clause::Exclusivity,
        any: &[
            "exclusive right|rights|license|licence|distributor|supplier|provider|territory|agent",
            "sole and exclusive right|license",
        ],
        with: &[],
        unless: &["non exclusive"],
    },
    Rule::any(
        Clause::NonCompete,
        &[
            "not ... compete",
            "competing|competitive product*|business*|service*",
        ],
    ),
    Rule::any(
        Clause::IpOwnershipAssignment,
        &[
            "assign|assigns .. all .. right*",
            "work*|works made for hire",
            "shall|will own ... right*",
        ],
    ),
    Rule {
        clause: Clause::TerminationForConvenience,
        any: &[
            "terminate .. agreement .. at any time",
            "terminat* ... without cause|convenience",
        ],
        with: &[],
        unless: &["breach*|default*"],
    },
    Rule::any(
        Clause::RenewalTerm,
        &["automatically .. renew*", "renewal term"],
    ),
    Rule {
        clause: Clause::UncappedLiability,
        any: &[
            "unlimited|uncapped",
            "limit* ... not apply",
            "nothing .. limit|exclude|limits|excludes",
        ],
        with: &["liab*"],
        unless: &[],
    },
    Rule {
        clause: Clause::CapOnLiability,
        any: &[
            "liability ... exceed",
            "liability .. limited to",
            "not|no|neither .. liable ... consequential|indirect",
        ],
        with: &[],
        unless: &[],
    },
    Rule::any(
        Clause::AuditRights,
        &["right to audit|inspect|examine", "audit*"],
    ),
    Rule {
        clause: Clause::MinimumCommitment,
        any: &["minimum .. purchase*|royalt*|guarantee*|commitment*|payment*|sales"],
        with: &[],
        unless: &["insur*"],
    },
    Rule::any(Clause::LiquidatedDamages, &["liquidated damages"]),
];

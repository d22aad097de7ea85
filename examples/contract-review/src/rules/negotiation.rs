//! The negotiation adviser reads for the commercial terms: what is promised, for how long, and what
//! it takes to leave.

use crate::clause::{Clause, Rule};

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        clause: Clause::Exclusivity,
        any: &[
            "exclusive .. right*|licens*|distribut*|supplier|provider|agent|territory|basis|franchise",
            "sole .. right*|licens*|distribut*|supplier|provider",
            "not ... appoint|grant .. other|another|third",
        ],
        with: &[],
        unless: &["non exclusive|exclusively"],
    },
    Rule::any(
        Clause::MostFavoredNation,
        &[
            "favorable|favourable|favored|favoured .. than|nation|customer*|terms",
            "lowest|lower price*",
        ],
    ),
    Rule {
        clause: Clause::MinimumCommitment,
        any: &[
            "minimum .. purchase*|order*|royalt*|sales|payment*|quantit*|guarantee*|volume|fee*|commitment*",
            "at least #",
        ],
        with: &["purchase*|order*|pay*|royalt*|sell|sales|minimum"],
        unless: &["insur*", "notice"],
    },
    Rule {
        clause: Clause::RevenueSharing,
        any: &[
            "royalt*|commission|commissions",
            "percent|percentage|share .. of .. revenue*|sales|profit*|proceeds",
            "net|gross sales|revenue*|profit*",
        ],
        with: &["pay|paid|payable|receive|share|equal|percent|percentage"],
        unless: &["minimum", "audit*"],
    },
    Rule {
        clause: Clause::TerminationForConvenience,
        any: &[
            "either|each|any party ... terminate .. agreement ... notice",
            "terminat* ... convenience|without cause|any reason",
        ],
        with: &[],
        unless: &["breach*|default*|insolven*|bankrupt*|renew*"],
    },
    Rule::any(
        Clause::RenewalTerm,
        &["renew*", "extended|extend .. term|period|additional"],
    ),
    Rule {
        clause: Clause::AntiAssignment,
        any: &[
            "not|neither|nor|no .. assign*",
            "assign*|transfer* ... without .. consent|approval",
        ],
        with: &[],
        unless: &[],
    },
    Rule {
        clause: Clause::LicenseGrant,
        any: &["grant|grants|granted .. license|licence|right*|exclusive|nonexclusive|non"],
        with: &["use|sell|make|distribute|market|display|operate|license|licence"],
        unless: &[],
    },
    Rule {
        clause: Clause::NonCompete,
        any: &[
            "not ... compete|competes|competing|competitive",
            "non compete|competition",
        ],
        with: &[],
        unless: &["price|prices"],
    },
    Rule {
        clause: Clause::CapOnLiability,
        any: &[
            "liability .. exceed|limited|greater",
            "liab* ... exceed ... paid|payable|received|dollars|amount|fees",
        ],
        with: &[],
        unless: &[],
    },
    Rule {
        clause: Clause::WarrantyDuration,
        any: &[
            "warrant* .. period|# .. days|months|years|year",
            "warranty .. of #",
        ],
        with: &[],
        unless: &[],
    },
    Rule {
        clause: Clause::PostTerminationServices,
        any: &[
            "sell off",
            "wind down",
            "transition|phase .. period|services|out",
            "after|following|upon .. terminat*|expir* ... continue .. provide|perform|sell|support|pay",
        ],
        with: &[],
        unless: &["survive*"],
    },
];

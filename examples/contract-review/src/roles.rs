//! The four readers: their weights, their facts, and from which score they advise what.

use crate::clause::Clause;
use crate::facts::{Attribute, FactRule, Pick};
use crate::numbers::Unit;
use crate::profile::{Concern, Role, Temper, Turn};
use crate::rules;
use crate::severity::Severity::{self, Critical, High, Info, Low, Medium};

const fn concern(clause: Clause, present: i32, missing: i32, severity: Severity) -> Concern {
    Concern {
        clause,
        present,
        missing,
        severity,
        turn: Turn::Never,
        severity_missing: None,
    }
}

impl Concern {
    const fn turn(self, turn: Turn) -> Self {
        Self { turn, ..self }
    }

    const fn missed(self, severity: Severity) -> Self {
        Self {
            severity_missing: Some(severity),
            ..self
        }
    }
}

const fn fact(attribute: Attribute, any: &'static [&'static str], pick: Pick) -> FactRule {
    FactRule {
        attribute,
        any,
        unless: &[],
        pick,
        unit: None,
    }
}

impl FactRule {
    const fn unit(self, unit: Unit) -> Self {
        Self {
            unit: Some(unit),
            ..self
        }
    }

    const fn unless(self, unless: &'static [&'static str]) -> Self {
        Self { unless, ..self }
    }
}

const MUTUAL: &[&str] = &[
    "either|each|both party|parties|side",
    "neither party",
    "by either|any",
];

/// The clause extractor reports what is there and does not judge.
pub const EXTRACTOR: Temper = Temper {
    role: Role::ClauseExtractor,
    rules: rules::strict::RULES,
    concerns: &[],
    facts: &[
        fact(
            Attribute::GoverningLaw,
            &["govern* .. laws|law", "accordance with .. laws|law"],
            Pick::First,
        ),
        fact(
            Attribute::NoticePeriod,
            &["terminate .. agreement ... notice"],
            Pick::First,
        )
        .unit(Unit::Days)
        .unless(&["breach*|default*"]),
        fact(
            Attribute::InitialTerm,
            &["initial term|period", "term of .. agreement|contract"],
            Pick::First,
        )
        .unit(Unit::Months),
        fact(
            Attribute::RenewalAutomatic,
            &["renew|renewed|renewal|renews"],
            Pick::First,
        ),
        fact(
            Attribute::EffectiveDate,
            &["effective date", "effective as of", "commence* .. on"],
            Pick::First,
        ),
        fact(
            Attribute::LiabilityCap,
            &["liab* ... exceed|limited"],
            Pick::First,
        )
        .unless(&["insurance"]),
    ],
    base: 0,
    ladder: [0, 0, 0],
    report_from: Severity::Critical,
    confidence: 0.75,
};

/// The risk assessor adds exposures and takes off protections, and takes the worst figure.
pub const RISK: Temper = Temper {
    role: Role::RiskAssessor,
    rules: rules::risk::RULES,
    concerns: &[
        concern(Clause::UncappedLiability, 18, 0, Critical)
            .turn(Turn::With(Clause::CapOnLiability, High)),
        concern(Clause::CapOnLiability, -12, 12, Low).missed(High),
        concern(Clause::LiquidatedDamages, 12, 0, High),
        concern(Clause::Insurance, -6, 4, Info),
        concern(Clause::ChangeOfControl, 8, 0, Medium).turn(Turn::Worded(&["terminat*"], High)),
        concern(Clause::Exclusivity, 10, 0, High)
            .turn(Turn::Without(Clause::MinimumCommitment, Medium)),
        concern(Clause::NonCompete, 10, 0, High),
        concern(Clause::TerminationForConvenience, 8, 0, High).turn(Turn::Worded(MUTUAL, Medium)),
        concern(Clause::MinimumCommitment, 10, 0, High)
            .turn(Turn::With(Clause::TerminationForConvenience, Medium)),
        concern(Clause::IpOwnershipAssignment, 8, 0, Medium)
            .turn(Turn::Worded(&["hereby|irrevocably .. assign*"], High)),
        concern(Clause::ThirdPartyBeneficiary, 6, 0, Medium),
        concern(Clause::WarrantyDuration, 4, 0, Low),
    ],
    facts: &[
        fact(Attribute::LiabilityCap, &["liab*|damages"], Pick::Most),
        fact(
            Attribute::NoticePeriod,
            &["terminat* ... notice", "notice ... terminat*"],
            Pick::Most,
        )
        .unit(Unit::Days),
        fact(
            Attribute::GoverningLaw,
            &["law|laws", "courts"],
            Pick::First,
        ),
    ],
    base: 28,
    ladder: [32, 56, 76],
    report_from: Severity::Medium,
    confidence: 0.62,
};

/// The negotiation adviser looks for what can be traded, and is the hardest to frighten.
pub const NEGOTIATION: Temper = Temper {
    role: Role::NegotiationAdvisor,
    rules: rules::negotiation::RULES,
    concerns: &[
        concern(Clause::Exclusivity, 12, 0, High)
            .turn(Turn::Without(Clause::MinimumCommitment, Medium)),
        concern(Clause::MostFavoredNation, 12, 0, High),
        concern(Clause::MinimumCommitment, 14, 0, High)
            .turn(Turn::With(Clause::TerminationForConvenience, Medium)),
        concern(Clause::RevenueSharing, 4, 0, Low),
        concern(Clause::TerminationForConvenience, -10, 4, High).turn(Turn::Worded(MUTUAL, Medium)),
        concern(Clause::RenewalTerm, 4, 0, Low).turn(Turn::Worded(&["automatic*"], Medium)),
        concern(Clause::AntiAssignment, 3, 0, Low)
            .turn(Turn::Worded(&["sole|absolute discretion"], Medium)),
        concern(Clause::LicenseGrant, -4, 2, Info),
        concern(Clause::NonCompete, 12, 0, High),
        concern(Clause::CapOnLiability, -8, 6, Low),
        concern(Clause::WarrantyDuration, 4, 0, Low),
        concern(Clause::PostTerminationServices, 5, 0, Medium),
    ],
    facts: &[
        fact(
            Attribute::NoticePeriod,
            &[
                "terminat*|cancel* ... notice",
                "notice ... terminat*|renew*",
            ],
            Pick::Least,
        ),
        fact(
            Attribute::InitialTerm,
            &[
                "term ... # .. years|months|year",
                "period of # .. years|months|year",
            ],
            Pick::Most,
        )
        .unit(Unit::Months),
        fact(
            Attribute::RenewalAutomatic,
            &["renew*", "extended"],
            Pick::Least,
        ),
        fact(
            Attribute::LiabilityCap,
            &["liability ... exceed"],
            Pick::Least,
        ),
    ],
    base: 22,
    ladder: [24, 54, 82],
    report_from: Severity::Medium,
    confidence: 0.6,
};

/// The executive reviewer sees little, weighs it heavily, and decides early.
pub const EXECUTIVE: Temper = Temper {
    role: Role::ExecutiveReviewer,
    rules: rules::executive::RULES,
    concerns: &[
        concern(Clause::ChangeOfControl, 16, 0, Medium)
            .turn(Turn::Worded(&["terminat*", "sole discretion"], High)),
        concern(Clause::Exclusivity, 16, 0, High)
            .turn(Turn::With(Clause::TerminationForConvenience, Medium)),
        concern(Clause::NonCompete, 18, 0, Critical)
            .turn(Turn::With(Clause::TerminationForConvenience, High)),
        concern(Clause::IpOwnershipAssignment, 12, 0, High).turn(Turn::Worded(MUTUAL, Medium)),
        concern(Clause::TerminationForConvenience, 4, 0, Medium),
        concern(Clause::RenewalTerm, 3, 0, Low),
        concern(Clause::UncappedLiability, 20, 0, Critical),
        concern(Clause::CapOnLiability, -8, 8, Info).missed(High),
        concern(Clause::AuditRights, 3, 0, Low),
        concern(Clause::MinimumCommitment, 10, 0, Medium)
            .turn(Turn::With(Clause::Exclusivity, High)),
        concern(Clause::LiquidatedDamages, 14, 0, Critical),
        concern(Clause::GoverningLaw, -2, 6, Info).missed(High),
    ],
    facts: &[
        fact(
            Attribute::GoverningLaw,
            &["govern*", "courts|jurisdiction|venue"],
            Pick::Last,
        ),
        fact(
            Attribute::InitialTerm,
            &["term|period ... # .. years|year|months"],
            Pick::First,
        )
        .unit(Unit::Years),
        fact(
            Attribute::EffectiveDate,
            &["effective|dated|commence*"],
            Pick::Least,
        ),
    ],
    base: 18,
    ladder: [24, 44, 66],
    report_from: Severity::Medium,
    confidence: 0.58,
};

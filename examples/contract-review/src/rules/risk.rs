//! The risk assessor reads widely: a mention of an exposure is enough to look into it.

use crate::clause::{Clause, Rule};

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        clause: Clause::CapOnLiability,
        any: &[
            "liab* ... exceed*|limited",
            "not|no|neither|none .. liable|liability ... damages|loss|profits",
            "limitation of liability",
        ],
        with: &[],
        unless: &["not apply|limit"],
    },
    Rule {
        clause: Clause::UncappedLiability,
        any: &[
            "except|excepting|excluding ... liab*",
            "limit*|cap ... not|inapplicable ... apply|limit",
            "gross negligence|willful|wilful|fraud ... liab*|limit*",
            "liab* ... gross negligence|willful|wilful|fraud",
        ],
        with: &["liab*|limit*"],
        unless: &["insurance"],
    },
    Rule::any(
        Clause::LiquidatedDamages,
        &[
            "liquidated",
            "penalty",
            "termination|cancellation|deficiency fee|payment|charge",
        ],
    ),
    Rule {
        clause: Clause::Insurance,
        any: &[
            "maintain|carry|procure|obtain ... insurance",
            "insurance .. policy|policies|coverage",
        ],
        with: &[],
        unless: &[],
    },
    Rule {
        clause: Clause::ChangeOfControl,
        any: &[
            "change of|in .. control|ownership",
            "merger|consolidation ... assign*|terminat*|consent",
        ],
        with: &[],
        unless: &["quality control"],
    },
    Rule {
        clause: Clause::Exclusivity,
        any: &[
            "exclusive|exclusively|exclusivity",
            "not .. grant|appoint|endorse .. other|another|third|anyone|any",
        ],
        with: &[],
        unless: &[
            "non exclusive|exclusively",
            "exclusive jurisdiction|venue|remedy|remedies|property|ownership",
            "exclusive of",
        ],
    },
    Rule {
        clause: Clause::NonCompete,
        any: &["not|neither|nor|no ... compet*", "non competition|compete"],
        with: &[],
        unless: &["unfair competition", "competent"],
    },
    Rule {
        clause: Clause::TerminationForConvenience,
        any: &[
            "terminat*|cancel* ... without cause|reason",
            "terminat*|cancel* ... for any reason|convenience",
            "terminat*|cancel* ... at any time",
            "terminat*|cancel* .. upon|by|with|on .. # .. days|months .. notice",
        ],
        with: &[],
        unless: &["breach*|default*|insolven*|bankrupt*"],
    },
    Rule {
        clause: Clause::MinimumCommitment,
        any: &[
            "minimum|minimums",
            "at least|not less than # ... units|purchase*|order*|sales",
        ],
        with: &[
            "purchase*|order*|pay*|royalt*|sales|sell|quantit*|commitment*|fee*|guarantee*|spend",
        ],
        unless: &["insur*"],
    },
    Rule {
        clause: Clause::IpOwnershipAssignment,
        any: &[
            "assign|assigns|assigned ... right* .. title|interest",
            "made for hire",
            "sole|exclusive property of",
        ],
        with: &[],
        unless: &[],
    },
    Rule::any(
        Clause::ThirdPartyBeneficiary,
        &["third party .. beneficiar*", "intended beneficiar*"],
    ),
    Rule {
        clause: Clause::WarrantyDuration,
        any: &[
            "warrant* ... # .. days|months|years|year",
            "warranty period",
        ],
        with: &[],
        unless: &[],
    },
];

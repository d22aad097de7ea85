//! What any reader of the panel accepts when a colleague puts a sentence before it.
//!
//! Wider than the strict definitions, because the reader knows what to look for, and narrower than
//! a mere mention, because a reader that accepted every sentence shown to it would only be polite.

use crate::clause::{Clause, Rule};

/// The rules.
pub const RULES: &[Rule] = &[
    Rule::any(
        Clause::GoverningLaw,
        &[
            "law|laws of ... apply|applicable|govern*|control*|accordance",
            "govern* ... law|laws|courts",
        ],
    ),
    Rule {
        clause: Clause::AntiAssignment,
        any: &[
            "assign*|transfer* ... consent|approval|void|prohibited",
            "not|neither|nor|no ... assign*|transfer*|delegate",
        ],
        with: &["agreement|contract|rights|obligations|franchise"],
        unless: &["right title and interest"],
    },
    Rule {
        clause: Clause::CapOnLiability,
        any: &[
            "no|not|neither|none ... liability|liable ... damages|loss|losses|profits|for",
            "liab*|damages|remedy|recover ... limited|exceed|maximum|only",
            "limitation|limitations .. liability|damages",
            "claim|claims|action ... within # .. days|months|years",
        ],
        with: &[],
        unless: &["not apply|limit", "fail* .. audit"],
    },
    Rule {
        clause: Clause::UncappedLiability,
        any: &[
            "except|excepting|excluding|other ... section*|article*|breach*|indemni*|negligence|misconduct|fraud ... liab*|damages",
            "limit* ... not|inapplicable|nothing ... apply|limit|limited|exclude|restrict",
            "nothing|not ... limit|exclude|restrict ... liab*|damages|remed*",
            "without limit",
        ],
        with: &["liab*|damages|limit*|responsib*"],
        unless: &["not limited to"],
    },
    Rule {
        clause: Clause::TerminationForConvenience,
        any: &[
            "terminat*|cancel* ... prior|written|advance notice",
            "terminat*|cancel*|revoke ... at any time|without cause|any reason|its discretion|convenience",
            "terminable ... notice",
        ],
        with: &[],
        unless: &[
            "breach*|default*|insolven*|bankrupt*|cure|fail*",
            "change of control",
        ],
    },
    Rule {
        clause: Clause::Exclusivity,
        any: &[
            "exclusive*|sole|solely ... right*|licens*|distribut*|supplier|provider|agent|territory|appoint*|franchise|purchase",
            "not ... grant|appoint|license|endorse|sponsor|engage ... other|another|third|anyone",
            "only .. supplier|distributor|provider|source",
        ],
        with: &[],
        unless: &[
            "non exclusive|exclusively",
            "exclusive jurisdiction|venue",
            "exclusive remedy|remedies",
        ],
    },
    Rule {
        clause: Clause::NonCompete,
        any: &[
            "not|neither|nor|no|prohibit* ... compet*",
            "not|neither|nor ... similar|same .. product*|business*|service*",
            "refrain ... compet*|similar",
        ],
        with: &[],
        unless: &["competent", "unfair competition", "competitive pric*"],
    },
    Rule::any(
        Clause::AuditRights,
        &[
            "audit|audits|audited|auditing|auditor|auditors",
            "inspect*|examin*|review|access ... book*|record*|premises|facilit*|account*|information",
        ],
    ),
    Rule::any(
        Clause::Insurance,
        &[
            "insurance ... maintain*|policy|policies|coverage|cover|limits|insured|insurer*",
            "insure|insured",
        ],
    ),
    Rule {
        clause: Clause::LicenseGrant,
        any: &[
            "licens*|licenc* ... use|sell|make|distribute|market|exploit|display",
            "grant*|authoriz*|permit* ... right* .. use|sell|operate|distribute|market|display",
        ],
        with: &[],
        unless: &["no license|licence|right", "not .. grant*"],
    },
    Rule {
        clause: Clause::ChangeOfControl,
        any: &[
            "change|transfer|sale|acqui* ... control|ownership|majority|stock|shares",
            "merger|merge|merged|consolidation ... terminat*|consent|notice|approval|transfer|assignment",
        ],
        with: &["terminat*|consent|notice|approv*|assign*|deemed"],
        unless: &["quality control"],
    },
    Rule::any(
        Clause::MostFavoredNation,
        &[
            "favorable|favourable|favored|favoured|favorably ... than|customer*|part*|terms",
            "lower|lowest|higher .. price*|fee*|rate*",
        ],
    ),
    Rule {
        clause: Clause::MinimumCommitment,
        any: &[
            "minimum|minimums ... purchase*|order*|pay*|sale*|sell|royalt*|units|volume|fee*|quot*|requirement*",
            "at least|not less|no less ... purchase*|order*|spend|pay|sell|deliver|units",
            "volume|annual commitment",
        ],
        with: &[],
        unless: &["insur*", "wage"],
    },
    Rule::any(
        Clause::LiquidatedDamages,
        &[
            "liquidated",
            "penalty|penalties .. of|equal|amount",
            "termination|cancellation|deficiency|exit .. fee|fees|payment|charge",
            "pay ... each|per .. day|unit .. late|delay|short*",
        ],
    ),
    Rule {
        clause: Clause::RevenueSharing,
        any: &[
            "royalt*|commission* ... pay*|paid|rate|equal|calculated",
            "percent|percentage|share|portion ... revenue*|sales|profit*|proceeds|fees|receipts",
            "# of ... revenue*|sales|profit*|proceeds|receipts",
        ],
        with: &[],
        unless: &["underpa*|understat*", "insur*"],
    },
    Rule {
        clause: Clause::IpOwnershipAssignment,
        any: &[
            "assign*|transfer*|vest* ... right*|title|interest|ownership",
            "own|owned|property|ownership ... invention*|improvement*|work*|intellectual|results|modification*",
            "made for hire",
        ],
        with: &[
            "invention*|improvement*|work*|intellectual|copyright*|patent*|trademark*|domain|technology|modification*|ip",
        ],
        unless: &["joint*", "consent"],
    },
    Rule::any(
        Clause::WarrantyDuration,
        &[
            "warrant* ... period|days|months|years",
            "days|months|years ... defect*|warranty|warranties",
            "defect*|nonconform*|conform ... days|months|years|period",
        ],
    ),
    Rule {
        clause: Clause::PostTerminationServices,
        any: &[
            "terminat*|expir*|resign* ... continue|assist*|cooperate|transition|transfer|sell|dispose|complete|return|period|remove",
            "phase out",
            "wind down",
            "sell off",
        ],
        with: &["upon|after|following|on|event|if"],
        unless: &["compete"],
    },
    Rule::any(
        Clause::RenewalTerm,
        &[
            "renew|renewed|renewal|renewals|renewable|renews",
            "extend*|extension* ... term|period|year|years",
        ],
    ),
    Rule::any(
        Clause::ThirdPartyBeneficiary,
        &[
            "beneficiary|beneficiaries|benefit ... third|person|enforce|other",
            "no|any person ... other than .. parties",
        ],
    ),
];

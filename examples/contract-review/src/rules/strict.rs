//! The clause extractor's definitions: the wording by which a clause type is known, no more.

use crate::clause::{Clause, Rule};

/// The rules.
pub const RULES: &[Rule] = &[
    Rule::any(
        Clause::GoverningLaw,
        &[
            "govern* .. law|laws",
            "construed|interpreted|enforced .. accordance with .. law|laws",
            "law|laws of .. shall|will govern|apply|control",
            "law|laws of ... govern|governs",
        ],
    ),
    Rule {
        clause: Clause::AntiAssignment,
        any: &[
            "not|neither|nor|no .. assign|assigned|assignable",
            "not|neither|nor|no .. transfer|transferred .. agreement|rights|obligations|interest|franchise",
            "assign|assigned|assignment|transfer ... without .. consent|approval|permission",
            "consent|approval .. required .. assign*",
        ],
        with: &["agreement|contract|right|rights|obligation|obligations|interest|interests|duties"],
        unless: &[
            "not .. unreasonably withhold .. duties",
            "right title and interest in",
        ],
    },
    Rule {
        clause: Clause::CapOnLiability,
        any: &[
            "liab* ... exceed|exceeds|exceeding",
            "liab* .. limited to",
            "not|no|neither .. liable|responsible ... indirect|consequential|incidental|punitive|special",
            "liable ... amount|amounts greater|in excess",
            "limit* of|on .. liability",
            "aggregate|total|maximum|entire liability",
            "sole|exclusive .. remedy",
        ],
        with: &[],
        unless: &["insurance ... limit*"],
    },
    Rule {
        clause: Clause::UncappedLiability,
        any: &[
            "except|other ... breach|breaches|indemni*|confidential*|misconduct ... not|no|neither|either .. liable|liability",
            "limit*|exclusion|exclusions|foregoing .. not apply|limit",
            "nothing .. limit|limits|exclude|excludes .. liability",
            "unlimited liability",
            "excep* .. under|pursuant|section|sections|article ... either|neither party .. liable",
        ],
        with: &["liab*|limitation|limitations|limit|damages"],
        unless: &[],
    },
    Rule {
        clause: Clause::TerminationForConvenience,
        any: &[
            "terminat* ... without cause",
            "terminat* ... for convenience",
            "terminat* .. at any time",
            "at any time .. terminate",
            "terminat* ... any|no reason",
            "terminate .. agreement .. upon|by|on|with|giving|at .. # .. days|months|day|month",
        ],
        with: &[],
        unless: &[
            "breach*|default*|insolven*|bankrupt*|cure",
            "change of control",
            "following .. termination",
            "upon termination|expiration",
        ],
    },
    Rule {
        clause: Clause::Exclusivity,
        any: &[
            "exclusive|exclusively right|rights|license|licence|distributor|distribut*|supplier|agent|territor*",
            "exclusive .. right|license|licence|basis|distributor|provider|sponsor",
            "sole and exclusive",
            "not .. appoint|authorize .. other|another|third|additional|any .. distributor*|agent*|supplier*|party|person",
            "not .. grant .. third|other|another|any .. party|person|provider|right",
            "exclusivity",
        ],
        with: &[],
        unless: &[
            "non exclusive|exclusively",
            "nonexclusive|nonexclusively",
            "exclusive jurisdiction",
            "exclusive remed*",
            "sole and exclusive remed*",
            "exclusive property",
            "exclusive owner*",
        ],
    },
    Rule {
        clause: Clause::NonCompete,
        any: &[
            "not ... compete",
            "not|neither|nor|no ... compet* .. product|products|business|businesses|service|services|with",
            "non competition|compete",
            "not|neither ... engage .. business .. similar|compet*",
        ],
        with: &[],
        unless: &[
            "unfair competition",
            "competent",
            "consumer|competitive pric*",
        ],
    },
    Rule {
        clause: Clause::AuditRights,
        any: &[
            "right|entitled|may|permit* ... audit|inspect|examine",
            "audit* .. books|records|accounts",
            "books|records .. available|open|inspection|audit*|examin*",
            "inspect|examine ... books|records|facilities|premises",
        ],
        with: &[],
        unless: &["right .. title .. interest"],
    },
    Rule {
        clause: Clause::Insurance,
        any: &[
            "maintain|carry|procure|obtain|provide|keep|purchase ... insurance",
            "insurance ... coverage|policy|policies|certificate|certificates|insured",
            "certificate* of insurance",
            "additional insured*",
        ],
        with: &[],
        unless: &[],
    },
    Rule {
        clause: Clause::LicenseGrant,
        any: &[
            "grant|grants|granted|granting ... license|licence|sublicense|licenses",
            "license|licence to use|distribute|sell|make|manufacture|market|reproduce",
            "hereby licenses|license",
            "grants .. right to use|distribute|sell|market|operate",
        ],
        with: &[],
        unless: &["not .. grant*", "no license|licence|right"],
    },
    Rule {
        clause: Clause::ChangeOfControl,
        any: &[
            "change|changes of|in .. control|ownership",
            "merger|consolidation .. shall|may ... terminate",
            "merger|consolidat*|acqui*|control ... deemed|constitute* .. assignment|transfer",
            "transfer*|sale|sells .. majority|controlling|control",
        ],
        with: &["terminat*|consent|notice|approval|deemed|constitute*"],
        unless: &[
            "quality control",
            "control of .. prosecution|defense",
            "assign* ... affiliate*|successor*",
        ],
    },
    Rule::any(
        Clause::MostFavoredNation,
        &[
            "most favor*|favour*",
            "no|not .. less favor*|favour*",
            "more favor*|favour* .. terms|pric*|conditions ... third|other|any",
            "lowest price*",
            "as favor*|favour* as",
        ],
    ),
    Rule {
        clause: Clause::MinimumCommitment,
        any: &[
            "minimum .. purchase*|order*|quantit*|commitment|payment*|royalt*|guarantee*|fee|amount|volume",
            "guaranteed minimum",
            "minimum .. annual|monthly|quarterly|sales",
            "purchase|order .. at least|minimum",
            "minimum of #",
            "fail* .. minimum",
            "shall|will|agrees .. purchase|order|spend|pay|deliver .. at least|not less|no less",
        ],
        with: &[],
        unless: &["insurance|insured|coverage"],
    },
    Rule::any(
        Clause::LiquidatedDamages,
        &[
            "liquidated damages",
            "not .. as .. penalty",
            "termination|cancellation fee|payment",
            "early termination",
        ],
    ),
    Rule {
        clause: Clause::RevenueSharing,
        any: &[
            "royalt* ... percent|#|net|gross|sales|revenue*",
            "percent|percentage .. of .. revenue*|sales|profit*|proceeds|receipts|income",
            "share|split|portion .. of .. revenue*|profit*|proceeds",
            "revenue|profit shar*",
            "commission* .. percent|# ... sales|revenue*|price",
            "pay .. royalt*|commission|commissions",
            "# of .. net|gross .. sales|revenue*|profit*|proceeds|receipts",
        ],
        with: &["pay*|paid|receive*|entitled|share*|remit*|retain*|split|equal"],
        unless: &["minimum", "underpa*|understat*|audit*"],
    },
    Rule {
        clause: Clause::IpOwnershipAssignment,
        any: &[
            "assign|assigns ... right title and interest",
            "hereby .. assign|assigns|transfers",
            "agrees to assign|transfer",
            "work*|works made for hire",
            "shall|will be .. owned .. by",
            "shall|will own ... invention*|improvement*|work*|intellectual|development*",
            "sole|exclusive property of",
        ],
        with: &[
            "invention*|improvement*|work|works|intellectual|copyright*|patent*|development*|developed|deliverable*|materials|technology|software|trademark*|domain",
        ],
        unless: &["jointly own*", "joint ownership"],
    },
    Rule {
        clause: Clause::WarrantyDuration,
        any: &[
            "warrant* ... period .. of .. # .. days|months|years|year|month|day",
            "warranty|warranties ... # .. days|months|years|year|month|day",
            "# .. days|months|years|year|month|day .. warranty|warranties|warrants",
            "warranty period",
            "notif*|notice|reject* ... # .. days ... defect*|nonconform*|conform*",
            "defect* ... # .. days|months",
        ],
        with: &["warrant*|defect*|conform*|nonconform*"],
        unless: &["exercis*", "represents and warrants", "escrow"],
    },
    Rule {
        clause: Clause::PostTerminationServices,
        any: &[
            "upon|after|following ... terminat*|expir* ... shall|will|may ... continue|return|assist|transfer|cooperate|provide|sell|cease|pay",
            "sell off",
            "wind down",
            "transition .. services|assistance|period",
            "# .. days|months|years .. after|following .. terminat*|expir*",
            "upon|after|on|following .. terminat*|expir* ... remaining|existing inventory|stock",
            "termination assistance",
        ],
        with: &["terminat*|expir*|transition|wind"],
        unless: &["survive* ... # .. years", "not ... compete|solicit"],
    },
    Rule::any(
        Clause::RenewalTerm,
        &[
            "automatically .. renew*|extend*|continue*",
            "renew* .. for|successive|consecutive|additional|term|terms|period|periods",
            "extend* .. for .. additional|successive|further",
            "renewal term|terms|period",
            "option to renew|extend",
        ],
    ),
    Rule::any(
        Clause::ThirdPartyBeneficiary,
        &[
            "third party .. beneficiar*",
            "rights|remedies .. person|entity|persons .. other than|not",
        ],
    ),
];

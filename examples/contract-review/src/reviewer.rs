//! The four agents: each is a role with its rules.

use crate::clause::Clause;
use crate::facts;
use crate::rules::{self, ClauseRule, EvidenceCheck, FactRule, Rules};
use crate::text::Sentence;
use crate::wording::Wording;

/// A role of the panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reports which clause types are present.
    ClauseExtractor,
    /// Weighs exposures against protections.
    RiskAssessor,
    /// Weighs the commercial terms.
    NegotiationAdvisor,
    /// Weighs a few strategic terms.
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

    /// The name of the role, which is also its agent id.
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

    /// The text of the rule file of this role.
    fn rules(self) -> &'static str {
        match self {
            Self::ClauseExtractor => include_str!("../rules/clause_extractor.toml"),
            Self::RiskAssessor => include_str!("../rules/risk_assessor.toml"),
            Self::NegotiationAdvisor => include_str!("../rules/negotiation_advisor.toml"),
            Self::ExecutiveReviewer => include_str!("../rules/executive_reviewer.toml"),
        }
    }
}

/// An agent of the panel with its rules, ready to review contracts.
#[derive(Debug, Clone)]
pub struct Reviewer {
    /// The role.
    pub role: Role,
    /// Its rules.
    pub rules: Rules,
    /// How contracts write numbers, dates and places.
    pub wording: Wording,
    evidence: EvidenceCheck,
}

impl Reviewer {
    /// Loads the rules that the program carries for `role`.
    ///
    /// # Errors
    ///
    /// If a rule file is not valid.
    pub fn load(role: Role) -> Result<Self, rules::Error> {
        Self::with_rules(role, role.rules())
    }

    /// Takes `text` in place of the rule file of `role`.
    ///
    /// # Errors
    ///
    /// If a rule file is not valid.
    pub fn with_rules(role: Role, text: &str) -> Result<Self, rules::Error> {
        let file = format!("{}.toml", role.name());
        let rules: Rules = rules::parse(&file, text)?;
        rules::check_unique(&file, &rules.clauses)?;
        let evidence: EvidenceCheck =
            rules::parse("evidence.toml", include_str!("../rules/evidence.toml"))?;
        rules::check_unique("evidence.toml", &evidence.clauses)?;
        let wording = rules::parse("wording.toml", include_str!("../rules/wording.toml"))?;
        Ok(Self {
            role,
            rules,
            wording,
            evidence,
        })
    }

    /// The rule for `clause`, if the reviewer knows this clause type.
    #[must_use]
    pub fn rule(&self, clause: Clause) -> Option<&ClauseRule> {
        self.rules.clauses.iter().find(|rule| rule.clause == clause)
    }

    /// The clause types that the reviewer knows, in the order of findings.
    pub fn known_clauses(&self) -> impl Iterator<Item = Clause> + '_ {
        let clauses = Clause::ALL.iter().copied();
        clauses.filter(|clause| self.rule(*clause).is_some())
    }

    /// Returns true if the reviewer accepts a quoted `sentence` as a `clause`.
    #[must_use]
    pub fn accepts_clause(&self, clause: Clause, sentence: &Sentence) -> bool {
        let mut rules = self.evidence.clauses.iter();
        rules.any(|rule| rule.clause == clause && rule.is_match(sentence))
    }

    /// Returns true if the reviewer accepts a quoted `sentence` as a statement of the fact of `rule`.
    #[must_use]
    pub fn accepts_fact(&self, rule: &FactRule, sentence: &Sentence) -> bool {
        let mut rules = self.evidence.facts.iter();
        rules.any(|check| check.fact == rule.fact && check.is_match(sentence))
            && !facts::stated(rule, &self.wording, sentence).is_empty()
    }
}

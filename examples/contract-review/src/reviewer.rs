//! The four agents: each is a role with its rules.

use crate::clause::Clause;
use crate::facts;
use crate::rules::{self, ClauseRule, Error, EvidenceCheck, FactRule, Rules};
use crate::text::Sentence;
use crate::wording::Wording;

/// The roles of the panel, each with the text of its rule file. The name of a role is its agent id.
pub const ROLES: [(&str, &str); 4] = [
    (
        "clause_extractor",
        include_str!("../rules/clause_extractor.toml"),
    ),
    ("risk_assessor", include_str!("../rules/risk_assessor.toml")),
    (
        "negotiation_advisor",
        include_str!("../rules/negotiation_advisor.toml"),
    ),
    (
        "executive_reviewer",
        include_str!("../rules/executive_reviewer.toml"),
    ),
];

/// An agent of the panel: its rules, and what all agents share. It is ready to review contracts.
#[derive(Debug, Clone)]
pub struct Reviewer {
    /// The rules of its role.
    pub(crate) rules: Rules,
    /// How contracts write numbers, dates and places.
    pub(crate) wording: Wording,
    evidence: EvidenceCheck,
}

impl Reviewer {
    /// Loads the rules that the program carries for `role`.
    ///
    /// # Errors
    ///
    /// If no role has this name, or if a rule file is not valid.
    pub fn load(role: &str) -> Result<Self, Error> {
        let found = ROLES.iter().find(|(name, _)| *name == role);
        let (name, text) = found.ok_or_else(|| Error::UnknownRole(role.to_owned()))?;
        Self::with_rules(&format!("{name}.toml"), text)
    }

    /// Takes the rules in `text`; `file` names them in errors.
    ///
    /// # Errors
    ///
    /// If a rule file is not valid.
    pub fn with_rules(file: &str, text: &str) -> Result<Self, Error> {
        let rules: Rules = rules::parse(file, text)?;
        rules::check_unique(file, &rules.clauses)?;
        rules::check_thresholds(file, &rules)?;
        let evidence: EvidenceCheck =
            rules::parse("evidence.toml", include_str!("../rules/evidence.toml"))?;
        rules::check_unique("evidence.toml", &evidence.clauses)?;
        let wording = rules::parse("wording.toml", include_str!("../rules/wording.toml"))?;
        Ok(Self {
            rules,
            wording,
            evidence,
        })
    }

    /// The rule for `clause`, if the reviewer knows this clause type.
    pub(crate) fn rule(&self, clause: Clause) -> Option<&ClauseRule> {
        self.rules.clauses.iter().find(|rule| rule.clause == clause)
    }

    /// The clause types that the reviewer knows, in the order of findings.
    pub(crate) fn known_clauses(&self) -> impl Iterator<Item = Clause> + '_ {
        let clauses = Clause::ALL.iter().copied();
        clauses.filter(|clause| self.rule(*clause).is_some())
    }

    /// Returns true if the reviewer accepts a quoted `sentence` as a `clause`.
    pub(crate) fn accepts_clause(&self, clause: Clause, sentence: &Sentence) -> bool {
        let mut rules = self.evidence.clauses.iter();
        rules.any(|rule| rule.clause == clause && rule.is_match(sentence))
    }

    /// Returns true if the reviewer accepts a quoted `sentence` as a statement of the fact of
    /// `rule`.
    pub(crate) fn accepts_fact(&self, rule: &FactRule, sentence: &Sentence) -> bool {
        let mut rules = self.evidence.facts.iter();
        rules.any(|check| check.fact == rule.fact && check.is_match(sentence))
            && !facts::stated(rule, &self.wording, sentence).is_empty()
    }
}

//! The review of one contract by one reviewer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::clause::Clause;
use crate::facts::{self, Fact, FactKind};
use crate::reviewer::Reviewer;
use crate::rules::{ClauseRule, Condition, Severity};
use crate::text::{Document, Sentence};

/// Quoted sentences that the reviewer had not counted and now accepts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted<'a> {
    /// Sentences accepted as a clause.
    pub(crate) clauses: Vec<(Clause, &'a Sentence)>,
    /// Sentences accepted as the statement of a fact.
    pub(crate) facts: Vec<(FactKind, &'a Sentence)>,
}

impl Accepted<'_> {
    /// Returns true if no sentence was accepted.
    pub(crate) fn is_empty(&self) -> bool {
        self.clauses.is_empty() && self.facts.is_empty()
    }
}

/// A point that is worth reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Point {
    /// The clause type, which is the topic of the point.
    pub(crate) clause: Clause,
    pub(crate) severity: Severity,
}

/// A contract as one reviewer sees it: the clauses and facts found. Scores and severities are
/// computed from these, so that a reviewer that accepts a new sentence applies the same rules as
/// before.
#[derive(Debug, Clone)]
pub(crate) struct Review<'a> {
    reviewer: &'a Reviewer,
    document: &'a Document,
    found: BTreeMap<Clause, Vec<&'a Sentence>>,
    facts: Vec<Fact<'a>>,
    accepted_facts: Vec<(FactKind, &'a Sentence)>,
}

impl<'a> Review<'a> {
    /// Reviews `document`.
    pub(crate) fn new(reviewer: &'a Reviewer, document: &'a Document) -> Self {
        let mut found: BTreeMap<Clause, Vec<&Sentence>> = BTreeMap::new();
        for rule in &reviewer.rules.clauses {
            let sentences = document.sentences().iter();
            let matching: Vec<&Sentence> = sentences
                .filter(|sentence| rule.is_match(sentence))
                .collect();
            if !matching.is_empty() {
                found.insert(rule.clause, matching);
            }
        }
        let mut review = Self {
            reviewer,
            document,
            found,
            facts: Vec::new(),
            accepted_facts: Vec::new(),
        };
        review.read_facts();
        review
    }

    /// The same review in which the `accepted` sentences count in addition to those found.
    pub(crate) fn with(&self, accepted: &Accepted<'a>) -> Self {
        let mut review = self.clone();
        for (clause, sentence) in &accepted.clauses {
            debug_assert!(
                self.document.sentences().contains(sentence),
                "an accepted sentence is not in the document"
            );
            let known = review.found.entry(*clause).or_default();
            if !known.contains(sentence) {
                known.push(sentence);
            }
        }
        if !accepted.facts.is_empty() {
            review.accepted_facts.extend(&accepted.facts);
            review.read_facts();
        }
        review
    }

    fn read_facts(&mut self) {
        let rules = self.reviewer.rules.facts.iter();
        let facts = rules.filter_map(|rule| {
            let sentences = self.document.sentences();
            facts::read(rule, &self.reviewer.wording, sentences, |sentence| {
                self.accepted_facts.contains(&(rule.fact, sentence))
            })
        });
        self.facts = facts.collect();
    }

    pub(crate) fn reviewer(&self) -> &'a Reviewer {
        self.reviewer
    }

    /// The clauses found, each with its sentences in the order of the document.
    pub(crate) fn found(&self) -> &BTreeMap<Clause, Vec<&'a Sentence>> {
        &self.found
    }

    /// The sentences in which `clause` was found.
    pub(crate) fn sentences(&self, clause: Clause) -> &[&'a Sentence] {
        self.found.get(&clause).map_or(&[], Vec::as_slice)
    }

    /// Returns true if `clause` was found.
    pub(crate) fn has(&self, clause: Clause) -> bool {
        self.found.contains_key(&clause)
    }

    pub(crate) fn facts(&self) -> &[Fact<'a>] {
        &self.facts
    }

    /// The fact that a conflict names like this: `<subject>/<attribute>`.
    pub(crate) fn fact(&self, name: &str) -> Option<&Fact<'a>> {
        self.facts.iter().find(|fact| fact.kind.is_named(name))
    }

    /// The risk score, 0 to 100. `None` if the reviewer gives no opinion.
    pub(crate) fn score(&self) -> Option<i32> {
        let assessment = self.reviewer.rules.assessment.as_ref()?;
        let clauses = self.reviewer.rules.clauses.iter();
        let points: i32 = clauses
            .map(|rule| match self.has(rule.clause) {
                true => rule.points.found,
                false => rule.points.missing,
            })
            .sum();
        Some((assessment.base_score + points).clamp(0, 100))
    }

    /// The recommendation that follows from the score: `sign`, `negotiate`, `escalate` or `reject`.
    /// `None` if the reviewer gives no opinion.
    pub(crate) fn recommendation(&self) -> Option<&'static str> {
        let score = self.score()?;
        let from = &self.reviewer.rules.assessment.as_ref()?.recommend_from;
        Some(if score >= from.reject {
            "reject"
        } else if score >= from.escalate {
            "escalate"
        } else if score >= from.negotiate {
            "negotiate"
        } else {
            "sign"
        })
    }

    /// The severity of `clause` in this contract, if the rules give it one.
    pub(crate) fn severity(&self, clause: Clause) -> Option<Severity> {
        let rule = self.reviewer.rule(clause)?;
        if self.has(clause) {
            self.changed_severity(rule).or(rule.severity.found)
        } else {
            rule.severity.missing
        }
    }

    fn changed_severity(&self, rule: &ClauseRule) -> Option<Severity> {
        let change = rule.severity_change.as_ref()?;
        let holds = match &change.when {
            Condition::Found(other) => self.has(*other),
            Condition::Missing(other) => !self.has(*other),
            Condition::Wording(patterns) => {
                let mut sentences = self.sentences(rule.clause).iter();
                sentences.any(|sentence| patterns.is_match(sentence))
            }
        };
        holds.then_some(change.to)
    }

    /// The points worth reporting, most severe first.
    pub(crate) fn points(&self) -> Vec<Point> {
        let Some(assessment) = &self.reviewer.rules.assessment else {
            return Vec::new();
        };
        let clauses = self.reviewer.rules.clauses.iter().map(|rule| rule.clause);
        let mut points: Vec<Point> = clauses
            .filter_map(|clause| {
                let severity = self.severity(clause)?;
                Some(Point { clause, severity })
            })
            .filter(|point| point.severity >= assessment.report_from)
            .collect();
        points.sort_by_key(|point| Reverse(point.severity));
        points
    }

    /// The confidence, 0 to 1: higher the more of the known clause types were found.
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are a few dozen clause types"
    )]
    pub(crate) fn confidence(&self) -> f64 {
        let known = self.reviewer.rules.clauses.len().max(1) as f64;
        let share = self.found.len() as f64 / known;
        let confidence = self.reviewer.rules.base_confidence + 0.3 * share;
        (confidence.clamp(0.0, 0.95) * 100.0).round() / 100.0
    }
}

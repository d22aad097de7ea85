//! What one reader makes of one contract.

use crate::clause::{Clause, Found};
use crate::facts::{Attribute, Fact};
use crate::pattern;
use crate::profile::{Concern, Profile, Turn};
use crate::severity::{Recommendation, Severity};
use crate::text::{Document, Sentence};

/// Sentences that a reader had missed and now accepts, each with what it accepts it for.
#[derive(Debug, Clone, Default)]
pub struct Admitted<'a> {
    /// Sentences accepted as a clause.
    pub clauses: Vec<(Clause, &'a Sentence)>,
    /// Sentences accepted as the statement of a fact.
    pub facts: Vec<(Attribute, &'a Sentence)>,
}

impl Admitted<'_> {
    /// Adds what `other` holds.
    pub fn extend(&mut self, other: &Self) {
        self.clauses.extend(other.clauses.iter().copied());
        self.facts.extend(other.facts.iter().copied());
    }

    /// Whether nothing was admitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty() && self.facts.is_empty()
    }
}

/// A point that a reader finds worth reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The clause, which names the topic.
    pub clause: Clause,
    /// How grave it is.
    pub severity: Severity,
    /// Whether the clause is there, or its absence is the point.
    pub present: bool,
}

/// A contract as one reader sees it. Everything else is computed from this, so that a reader who
/// accepts a new sentence judges by the same rules as before.
#[derive(Debug, Clone)]
pub struct Reading<'a> {
    profile: &'static Profile,
    found: Found<'a>,
    facts: Vec<Fact<'a>>,
}

impl<'a> Reading<'a> {
    /// Reads `document`, which may hold sentences that only count because they were `admitted`.
    #[must_use]
    pub fn new(profile: &'static Profile, document: &'a Document, admitted: &Admitted<'a>) -> Self {
        let mut found = Found::new();
        for sentence in document.sentences() {
            for clause in profile.recogniser.read(sentence) {
                found.entry(clause).or_default().push(sentence);
            }
        }
        for (clause, sentence) in &admitted.clauses {
            let sentences = found.entry(*clause).or_default();
            if !sentences.contains(sentence) {
                sentences.push(sentence);
            }
        }
        let facts = profile
            .facts
            .iter()
            .filter_map(|reader| {
                let is_admitted = |sentence: &Sentence| {
                    let mut facts = admitted.facts.iter();
                    facts.any(|(attribute, known)| {
                        *attribute == reader.attribute() && *known == sentence
                    })
                };
                reader.read(document.sentences().iter(), is_admitted)
            })
            .collect();
        Self {
            profile,
            found,
            facts,
        }
    }

    /// The reader.
    #[must_use]
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// The clauses found and where.
    #[must_use]
    pub fn found(&self) -> &Found<'a> {
        &self.found
    }

    /// The sentences in which `clause` was found.
    #[must_use]
    pub fn sentences(&self, clause: Clause) -> &[&'a Sentence] {
        self.found.get(&clause).map_or(&[], Vec::as_slice)
    }

    /// Whether `clause` was found.
    #[must_use]
    pub fn has(&self, clause: Clause) -> bool {
        self.found.contains_key(&clause)
    }

    /// The facts read.
    #[must_use]
    pub fn facts(&self) -> &[Fact<'a>] {
        &self.facts
    }

    /// Whether the reader judges at all.
    #[must_use]
    pub fn judges(&self) -> bool {
        !self.profile.temper.concerns.is_empty()
    }

    /// The risk, 0 to 100.
    #[must_use]
    pub fn score(&self) -> i32 {
        let temper = &self.profile.temper;
        let points: i32 = temper
            .concerns
            .iter()
            .map(|concern| {
                if self.has(concern.clause) {
                    concern.present
                } else {
                    concern.missing
                }
            })
            .sum();
        (temper.base + points).clamp(0, 100)
    }

    /// The advice that follows from the score.
    #[must_use]
    pub fn recommendation(&self) -> Recommendation {
        let score = self.score();
        let [negotiate, escalate, reject] = self.profile.temper.ladder;
        if score >= reject {
            Recommendation::Reject
        } else if score >= escalate {
            Recommendation::Escalate
        } else if score >= negotiate {
            Recommendation::Negotiate
        } else {
            Recommendation::Sign
        }
    }

    /// The gravity of `clause` in this contract, if the reader has a view of it.
    #[must_use]
    pub fn severity(&self, clause: Clause) -> Option<Severity> {
        let mut concerns = self.profile.temper.concerns.iter();
        let concern = concerns.find(|concern| concern.clause == clause)?;
        if !self.has(clause) {
            return concern.severity_missing;
        }
        Some(self.turned(concern).unwrap_or(concern.severity))
    }

    fn turned(&self, concern: &Concern) -> Option<Severity> {
        let (turns, severity) = match concern.turn {
            Turn::Never => return None,
            Turn::With(other, severity) => (self.has(other), severity),
            Turn::Without(other, severity) => (!self.has(other), severity),
            Turn::Worded(_, severity) => {
                let patterns = self.profile.turn_patterns(concern.clause);
                let mut sentences = self.sentences(concern.clause).iter();
                (
                    sentences.any(|sentence| pattern::any(patterns, sentence)),
                    severity,
                )
            }
        };
        turns.then_some(severity)
    }

    /// The points worth reporting, gravest first.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let temper = &self.profile.temper;
        let mut points: Vec<Point> = temper
            .concerns
            .iter()
            .filter_map(|concern| {
                Some(Point {
                    clause: concern.clause,
                    severity: self.severity(concern.clause)?,
                    present: self.has(concern.clause),
                })
            })
            .filter(|point| point.severity >= temper.report_from)
            .collect();
        points.sort_by_key(|point| std::cmp::Reverse(point.severity));
        points
    }

    /// How sure the reader is, 0 to 1: surer the more of the clauses it knows it has found.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are a few dozen clause types"
    )]
    pub fn confidence(&self) -> f64 {
        let known = self.profile.interests().count().max(1) as f64;
        let share = self.found.len() as f64 / known;
        let confidence = self.profile.temper.confidence + 0.3 * share;
        (confidence.clamp(0.0, 0.95) * 100.0).round() / 100.0
    }
}

//! How a reviewer answers colleagues who disagree.
//!
//! A reviewer changes its position for one reason: a colleague quotes a sentence of the contract
//! that the reviewer had not counted, and the sentence passes the check in `rules/evidence.toml`.
//! The reviewer then applies its own rules again, with this sentence. The confidence of a colleague
//! and the opinion of the majority count for nothing.

use serde::Serialize;
use serde_json::Value;

use crate::question::{Position, Question};
use crate::quotes;
use crate::review::{Accepted, Review};
use crate::reviewer::Reviewer;
use crate::subject::{self, Error, Subject, agree};
use crate::text::{Document, Sentence};

/// An answer in a debate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Reply {
    #[serde(skip)]
    changed: bool,
    /// The position of the reviewer now, in words.
    pub(crate) revised_position: String,
    /// The same in a form that can be compared.
    pub(crate) value: Value,
    /// The confidence, 0 to 1.
    pub(crate) confidence: f64,
    /// True if the reviewer now holds the position of a colleague.
    pub(crate) agrees_with_peer: bool,
    /// The id of this colleague.
    pub(crate) agrees_with: Option<String>,
    /// The reason of the answer.
    pub(crate) reasoning: String,
    /// Quotes from the contract.
    pub(crate) evidence: Vec<String>,
}

impl Reply {
    /// The type of the message that carries the answer: `agreement`, `revision` or `disagreement`.
    pub(crate) fn message_type(&self) -> &'static str {
        if self.agrees_with_peer {
            "agreement"
        } else if self.changed {
            "revision"
        } else {
            "disagreement"
        }
    }
}

/// Answers `question` as `reviewer`.
///
/// # Errors
///
/// If the conflict is about a clause type that the panel does not know.
pub(crate) fn reply(reviewer: &Reviewer, question: &Question) -> Result<Reply, Error> {
    let subject = Subject::of(&question.conflict)?;
    let own = question.your_position.evidence.iter();
    let peers = question.other_positions.iter();
    let others = peers.flat_map(|position| position.evidence.iter());
    // Without the contract, the quotes are all that can be read.
    let all_quotes = Document::new(own.clone().chain(others.clone()));
    let own_quotes = Document::new(own.clone());
    let task = question.task.as_ref();
    let contract = task.map(|task| Document::new(&task.input.sentences));
    let known = contract.as_ref().unwrap_or(&own_quotes);
    let document = contract.as_ref().unwrap_or(&all_quotes);

    // What the reviewer accepted in an earlier round is among its own quotes.
    let unaided = Review::new(reviewer, known);
    let accepted = accept(&unaided, &subject, known, own);
    let before = unaided.with(&accepted);
    let new = accept(&before, &subject, document, others);
    let after = match contract {
        Some(_) => before.with(&new),
        None => Review::new(reviewer, document).with(&accepted).with(&new),
    };
    Ok(Answer {
        question,
        subject: &subject,
        before: &before,
        after: &after,
        accepted: &new,
    }
    .write())
}

/// The sentences of `document` that are quoted, that `review` had not counted, and that pass the
/// check.
fn accept<'a, 'q>(
    review: &Review<'_>,
    subject: &Subject,
    document: &'a Document,
    quotes: impl Iterator<Item = &'q String>,
) -> Accepted<'a> {
    let reviewer = review.reviewer();
    let clauses = subject.clauses(reviewer);
    let mut accepted = Accepted::default();
    // A quote that is not in the contract proves nothing.
    for sentence in quotes.filter_map(|quote| document.find(quote)) {
        for clause in &clauses {
            let is_new = !review.sentences(*clause).contains(&sentence);
            if is_new && reviewer.accepts_clause(*clause, sentence) {
                accepted.clauses.push((*clause, sentence));
            }
        }
        let Subject::Fact(name) = subject else {
            continue;
        };
        for rule in &reviewer.rules.facts {
            let is_new = rule.fact.is_named(name) && !rule.is_match(sentence);
            if is_new && reviewer.accepts_fact(rule, sentence) {
                accepted.facts.push((rule.fact, sentence));
            }
        }
    }
    accepted
}

/// The inputs of an answer.
struct Answer<'a> {
    question: &'a Question,
    subject: &'a Subject,
    /// The review without the quotes of the colleagues.
    before: &'a Review<'a>,
    /// The review with those of their quotes that were accepted.
    after: &'a Review<'a>,
    /// The quotes that were accepted now.
    accepted: &'a Accepted<'a>,
}

impl Answer<'_> {
    fn write(&self) -> Reply {
        let own = &self.question.your_position;
        let value_before = self.subject.value(self.before);
        let value_after = self.subject.value(self.after);
        let changed = value_after != value_before
            && value_after
                .as_ref()
                .is_some_and(|value| !agree(value, &own.value));
        let value = match value_after {
            Some(value) if changed || own.value.is_null() => value,
            _ => own.value.clone(),
        };
        let peer = self.peer(&value, changed);
        let reasoning = self.reasoning(changed, peer);
        let kept = own.position.trim();
        let revised_position = if changed || kept.is_empty() {
            subject::in_words(&value)
        } else {
            kept.to_owned()
        };
        let limits = self.question.limits.as_ref();
        let budget = quotes::budget(limits.and_then(|limits| limits.max_tokens));
        let spent = reasoning.len() + revised_position.len();
        Reply {
            changed,
            revised_position,
            value,
            confidence: self.confidence(changed),
            agrees_with_peer: peer.is_some(),
            agrees_with: peer.map(|peer| peer.agent_id.clone()),
            reasoning,
            evidence: quotes::fit(self.relevant(), budget.saturating_sub(spent)),
        }
    }

    /// The colleague that holds this position. A reviewer that has not moved agrees only if all
    /// colleagues mean the same (30 days, one month): two of three that agreed from the start
    /// settle nothing.
    fn peer(&self, value: &Value, changed: bool) -> Option<&Position> {
        let others = &self.question.other_positions;
        let holds = |peer: &&Position| agree(value, &peer.value);
        if changed || others.iter().all(|peer| holds(&peer)) {
            others.iter().find(holds)
        } else {
            None
        }
    }

    /// The confidence in the answer. It falls by 0.1 with a new position, and by 0.02 if the
    /// reviewer keeps its position against evidence.
    fn confidence(&self, changed: bool) -> f64 {
        let given = self.question.your_position.confidence;
        let own = given.unwrap_or_else(|| self.before.confidence());
        let mut peers = self.question.other_positions.iter();
        let loss = if changed {
            0.1
        } else if peers.any(|peer| !peer.evidence.is_empty()) {
            0.02
        } else {
            0.0
        };
        ((own - loss).clamp(0.3, 0.99) * 100.0).round() / 100.0
    }

    fn reasoning(&self, changed: bool, peer: Option<&Position>) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (clause, _) in &self.accepted.clauses {
            if !names.contains(&clause.name()) {
                names.push(clause.name());
            }
        }
        match (changed, peer) {
            (true, _) if names.is_empty() => {
                "A quoted sentence that I had not counted states this; judged again with it.".to_owned()
            }
            (true, _) => format!(
                "I had missed the quoted wording on {}; judged again with it by my own weights.",
                names.join(", ")
            ),
            (false, Some(_)) => "We say the same in different words.".to_owned(),
            (false, None) if self.accepted.is_empty() => {
                "No quote shows me a sentence that I had missed and that meets my test; I keep my reading.".to_owned()
            }
            (false, None) => format!(
                "The quoted wording on {} is new to me but does not change my result.",
                if names.is_empty() { "this" } else { "it" }
            ),
        }
    }

    /// The sentences that support the answer: those just accepted, then the reviewer's own.
    fn relevant(&self) -> Vec<&Sentence> {
        let clauses = self.accepted.clauses.iter().map(|(_, sentence)| *sentence);
        let facts = self.accepted.facts.iter().map(|(_, sentence)| *sentence);
        let mut relevant: Vec<&Sentence> = clauses.chain(facts).collect();
        for clause in self.subject.clauses(self.after.reviewer()) {
            relevant.extend(self.after.sentences(clause).first());
        }
        if let Subject::Fact(name) = self.subject {
            relevant.extend(self.after.fact(name).map(|fact| fact.sentence));
        }
        relevant
    }
}

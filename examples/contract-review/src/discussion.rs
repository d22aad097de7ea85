//! How a reader answers when the others disagree.
//!
//! A reader changes its mind for one reason only: a colleague quotes a sentence of the contract that
//! the reader had missed, and the sentence passes the check in [`crate::rules::confirm`] (or, for a
//! fact, [`FactReader::confirms`](crate::facts::FactReader::confirms)). It then judges again by its
//! own rules, sentence included. That a colleague is confident, or that most are of one mind, counts
//! for nothing.

use serde::Serialize;
use serde_json::Value;

use crate::matter::{Error, Matter, agree, names, words};
use crate::profile::{self, Role};
use crate::question::{Position, Question};
use crate::quotes;
use crate::reading::{Admitted, Reading};
use crate::text::{Document, Sentence};

/// An answer in a debate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reply {
    #[serde(skip)]
    changed: bool,
    /// What the reader holds now, in words.
    pub revised_position: String,
    /// The same in a form that can be compared.
    pub value: Value,
    /// How sure it is.
    pub confidence: f64,
    /// Whether it now holds what a colleague holds.
    pub agrees_with_peer: bool,
    /// Which colleague.
    pub agrees_with: Option<String>,
    /// Why.
    pub reasoning: String,
    /// Quotes from the contract.
    pub evidence: Vec<String>,
}

impl Reply {
    /// The message that carries the answer: `agreement`, `revision` or `disagreement`.
    #[must_use]
    pub fn message_type(&self) -> &'static str {
        if self.agrees_with_peer {
            "agreement"
        } else if self.changed {
            "revision"
        } else {
            "disagreement"
        }
    }
}

/// Answers `question` as `role`.
///
/// # Errors
///
/// When the conflict is about a clause type that the panel does not know.
pub fn reply(role: Role, question: &Question) -> Result<Reply, Error> {
    let profile = role.profile();
    let matter = Matter::of(&question.conflict)?;
    let own = question.your_position.evidence.iter();
    let others = question
        .other_positions
        .iter()
        .flat_map(|position| position.evidence.iter());
    // Without the contract, the quotes are all there is to read.
    let quoted = Document::new(own.clone().chain(others.clone()));
    let own_quotes = Document::new(own.clone());
    let contract = question
        .task
        .as_ref()
        .map(|task| Document::new(&task.input.sentences));
    let known = contract.as_ref().unwrap_or(&own_quotes);
    let document = contract.as_ref().unwrap_or(&quoted);

    let unaided = Reading::new(profile, known, &Admitted::default());
    let mut admitted = admit(&unaided, &matter, known, own);
    let before = Reading::new(profile, known, &admitted);
    let news = admit(&before, &matter, document, others);
    admitted.extend(&news);
    let after = Reading::new(profile, document, &admitted);
    Ok(Answer {
        question,
        matter: &matter,
        before: &before,
        after: &after,
        admitted: &news,
    }
    .write())
}

/// The quotes that pass the check: sentences of `document` that `reading` had not counted.
fn admit<'a, 'q>(
    reading: &Reading<'_>,
    matter: &Matter,
    document: &'a Document,
    quotes: impl Iterator<Item = &'q String>,
) -> Admitted<'a> {
    let profile = reading.profile();
    let scope = matter.scope(profile);
    let mut admitted = Admitted::default();
    // A quote that is not in the contract proves nothing.
    for sentence in quotes.filter_map(|quote| document.find(quote)) {
        for clause in &scope {
            let is_new = !reading.sentences(*clause).contains(&sentence);
            if is_new && profile::confirm().accepts(*clause, sentence) {
                admitted.clauses.push((*clause, sentence));
            }
        }
        for reader in &profile.facts {
            let is_asked = *matter == Matter::Fact(names(reader.attribute()));
            if is_asked && !reader.accepts(sentence) && reader.confirms(sentence) {
                admitted.facts.push((reader.attribute(), sentence));
            }
        }
    }
    admitted
}

struct Answer<'a> {
    question: &'a Question,
    matter: &'a Matter,
    before: &'a Reading<'a>,
    after: &'a Reading<'a>,
    admitted: &'a Admitted<'a>,
}

impl Answer<'_> {
    fn write(&self) -> Reply {
        let own = &self.question.your_position;
        let was = self.matter.value(self.before);
        let is = self.matter.value(self.after);
        let changed =
            is.is_some() && is != was && !is.as_ref().is_some_and(|is| agree(is, &own.value));
        let value = match is {
            Some(is) if changed || own.value.is_null() => is,
            _ => own.value.clone(),
        };
        let peer = self.peer(&value, changed);
        let confidence = self.confidence(changed);
        let reasoning = self.reasoning(changed, peer);
        let revised_position = if changed {
            words(&value)
        } else {
            self.kept(&value)
        };
        let room = quotes::room(
            self.question
                .limits
                .as_ref()
                .and_then(|limits| limits.max_tokens),
        );
        let spent = reasoning.len() + revised_position.len();
        Reply {
            changed,
            revised_position,
            value,
            confidence,
            agrees_with_peer: peer.is_some(),
            agrees_with: peer.map(|peer| peer.agent_id.clone()),
            reasoning,
            evidence: quotes::fit(self.relevant(), room.saturating_sub(spent)),
        }
    }

    fn kept(&self, value: &Value) -> String {
        let words_kept = self.question.your_position.position.trim();
        if words_kept.is_empty() {
            words(value)
        } else {
            words_kept.to_owned()
        }
    }

    /// The colleague whose position this is now. A reader that has not moved agrees only when every
    /// colleague says the same in other words (30 days, one month): that two of three were of one
    /// mind from the start settles nothing.
    fn peer(&self, value: &Value, changed: bool) -> Option<&Position> {
        let others = &self.question.other_positions;
        let holds = |peer: &&Position| agree(value, &peer.value);
        if changed || others.iter().all(|peer| holds(&peer)) {
            others.iter().find(holds)
        } else {
            None
        }
    }

    /// A new view is held with less confidence than one's own; a view that met contrary evidence
    /// and stood is held with slightly less than before.
    fn confidence(&self, changed: bool) -> f64 {
        let own = self
            .question
            .your_position
            .confidence
            .unwrap_or_else(|| self.before.confidence());
        let met_evidence = self
            .question
            .other_positions
            .iter()
            .any(|peer| !peer.evidence.is_empty());
        let loss = if changed {
            0.1
        } else if met_evidence {
            0.02
        } else {
            0.0
        };
        ((own - loss).clamp(0.3, 0.99) * 100.0).round() / 100.0
    }

    fn reasoning(&self, changed: bool, peer: Option<&Position>) -> String {
        let names: Vec<&str> = self
            .admitted
            .clauses
            .iter()
            .map(|(clause, _)| clause.name())
            .fold(Vec::new(), |mut names, name| {
                if !names.contains(&name) {
                    names.push(name);
                }
                names
            });
        match (changed, peer) {
            (true, _) if names.is_empty() => {
                "A quoted sentence that I had not counted states this; judged again with it.".to_owned()
            }
            (true, _) => format!(
                "I had missed the quoted wording on {}; judged again with it by my own weights.",
                names.join(", ")
            ),
            (false, Some(_)) => "We say the same in different words.".to_owned(),
            (false, None) if self.admitted.is_empty() => {
                "No quote shows me a sentence that I had missed and that meets my test; I keep my reading.".to_owned()
            }
            (false, None) => format!(
                "The quoted wording on {} is new to me but does not change my result.",
                if names.is_empty() { "this" } else { "it" }
            ),
        }
    }

    /// The sentences that carry the answer: what was just accepted, then the reader's own.
    fn relevant(&self) -> Vec<&Sentence> {
        let mut relevant: Vec<&Sentence> = self
            .admitted
            .clauses
            .iter()
            .map(|(_, sentence)| *sentence)
            .collect();
        relevant.extend(self.admitted.facts.iter().map(|(_, sentence)| *sentence));
        for clause in self.matter.scope(self.after.profile()) {
            relevant.extend(self.after.sentences(clause).first());
        }
        if let Matter::Fact(name) = self.matter {
            let mut facts = self.after.facts().iter();
            relevant.extend(
                facts
                    .find(|fact| names(fact.attribute) == *name)
                    .map(|fact| fact.sentence),
            );
        }
        relevant
    }
}

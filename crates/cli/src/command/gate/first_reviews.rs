//! What the first of two reviewers has said, for the second.

use concord_domain::aggregates::case::CaseState;
use concord_wire::payload::{Review, ReviewAction};
use concord_wire::{AgentId, DebateId};
use serde::Serialize;

use crate::shared::output::one_line;

/// At most so many characters of a position in words.
const POSITION: usize = 200;

/// A review that counts when a second reviewer says the same.
#[derive(Debug, Serialize)]
pub(super) struct FirstReview<'a> {
    pub(super) by: &'a AgentId,
    #[serde(flatten)]
    pub(super) review: &'a Review,
}

/// The reviews of a case that wait for a second one.
pub(super) fn all(state: &CaseState) -> Vec<FirstReview<'_>> {
    let first = state.first_reviews.iter();
    first
        .map(|(by, review)| FirstReview { by, review })
        .collect()
}

/// Those about a debate, or about passing the gate.
pub(super) fn about<'a>(
    first: &'a [FirstReview<'a>],
    debate: Option<&'a DebateId>,
) -> impl Iterator<Item = &'a FirstReview<'a>> {
    first
        .iter()
        .filter(move |one| one.review.debate_id.as_ref() == debate)
}

/// What the reviewer would do.
pub(super) fn in_words(review: &Review) -> String {
    match review.action {
        ReviewAction::Confirm => "would confirm it".to_owned(),
        ReviewAction::Redebate => "would have it debated again".to_owned(),
        ReviewAction::Pass => "would let the case pass".to_owned(),
        ReviewAction::Override => {
            let position = one_line(review.position.as_deref().unwrap_or("-"), POSITION);
            let value = review.value.as_ref();
            let value = value.map_or(String::new(), |value| {
                format!(" [{}]", one_line(&value.to_string(), POSITION))
            });
            format!("would put {position}{value} in its place")
        }
    }
}

//! What the first of two reviewers has said, for the second.

use concord_domain::aggregates::case::{CaseState, may_review_still};
use concord_domain::aggregates::person::PersonMachine;
use concord_wire::payload::{Review, ReviewAction};
use concord_wire::{AgentId, DebateId};
use serde::Serialize;

use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::one_line;

/// At most so many characters of a position in words.
const POSITION: usize = 200;
/// At most so many of a reason: as many as it may have, for a second reviewer must be able to read all of it.
const REASON: usize = 4_096;

/// A review that counts when a second reviewer says the same.
#[derive(Debug, Serialize)]
pub(super) struct FirstReview<'a> {
    pub(super) by: &'a AgentId,
    /// Whether they may review it still; what they have said does not count otherwise. Absent for whoever may not read of people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) may_review: Option<bool>,
    #[serde(flatten)]
    pub(super) review: &'a Review,
}

/// The reviews of a case that wait for a second one.
pub(super) async fn all<'a>(
    source: &EventSource,
    state: &'a CaseState,
) -> Result<Vec<FirstReview<'a>>, Failure> {
    let mut first = Vec::new();
    for (by, review) in &state.first_reviews {
        let now = match source.aggregate::<PersonMachine>(&by.token()).await {
            Ok((person, _)) => Some(person.authority()),
            // Operators and auditors read of people, and reviewers do not.
            Err(_) if matches!(source, EventSource::Services(_)) => None,
            Err(failure) => return Err(failure),
        };
        first.push(FirstReview {
            by,
            may_review: now.map(|now| may_review_still(state, review, (by, &now))),
            review,
        });
    }
    Ok(first)
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

impl FirstReview<'_> {
    /// Whether it is one that a second reviewer can make count, as far as is known.
    pub(super) fn counts(&self) -> bool {
        self.may_review != Some(false)
    }

    /// Whether it counts, in words.
    pub(super) fn standing(&self) -> String {
        let by = self.by;
        match self.may_review {
            Some(true) => "it counts when a second reviewer says the same".to_owned(),
            Some(false) => {
                format!("it does not count any more, because {by} may not review now")
            }
            None => format!(
                "it counts when a second reviewer says the same while {by} may still review"
            ),
        }
    }

    /// Why another review did not count with this one.
    pub(super) fn difference(&self, other: &Review) -> String {
        let (by, earlier) = (self.by, self.review);
        let asks = |review: &Review| (review.action, review.debate_id.clone());
        let seen = earlier.digest.as_ref().zip(other.digest.as_ref());
        let has_changed = seen.is_some_and(|(one, other)| one != other);
        // Overriding may be with something else; everything else that asks for the same, about the same, is the same.
        let is_same = asks(earlier) == asks(other) && other.action != ReviewAction::Override;
        match self.may_review {
            _ if is_same && has_changed => {
                format!("what {by} has said was about what stood before, which has changed since")
            }
            Some(false) => {
                format!(
                    "what {by} has said does not count any more, because {by} may not review now"
                )
            }
            None if is_same => {
                format!("what {by} has said does not count any more: {by} may not review now")
            }
            None if asks(earlier) == asks(other) => format!(
                "what {by} has said is not the same, or {by} may not review now: {}",
                in_words(earlier)
            ),
            _ => format!("what {by} has said is not the same: {}", in_words(earlier)),
        }
    }
}

/// What the reviewer would do, and why.
pub(super) fn in_words(review: &Review) -> String {
    let quoted = |label: &str, text: Option<&str>| {
        let text = one_line(text.unwrap_or_default(), REASON);
        match text.is_empty() {
            true => text,
            false => format!(", {label} {text:?}"),
        }
    };
    let context = quoted("adding", review.context.as_deref());
    let reason = quoted("because", Some(&review.rationale));
    format!("{}{context}{reason}", action(review))
}

fn action(review: &Review) -> String {
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

//! A message with what was said before it.

use super::{PREVIOUS_SHARE, Query, SHORT_WORDS};
use crate::activation::ngram::{self, Profile};
use crate::activation::vector;

/// The vector and the profile of a message, with a share of the previous one: "yes, at six" says
/// too little by itself.
pub(super) fn blended(query: &Query<'_>) -> (Option<Vec<f32>>, Profile) {
    let profile = Profile::of([query.text], ngram::MESSAGE_NGRAMS_MAX);
    let Some(previous) = query.previous else {
        return (query.vector.and_then(vector::direction), profile);
    };
    let words = ngram::words(ngram::cut(query.text)).count();
    let share = PREVIOUS_SHARE * SHORT_WORDS as f32 / words.max(SHORT_WORDS) as f32;
    let vector = query.vector.and_then(|message| match previous.vector {
        Some(previous) => {
            vector::blended(message, previous, share).or_else(|| vector::direction(message))
        }
        None => vector::direction(message),
    });
    (
        vector,
        profile.blended(
            &Profile::of([previous.text], ngram::MESSAGE_NGRAMS_MAX),
            share,
        ),
    )
}

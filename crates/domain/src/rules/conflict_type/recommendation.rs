//! Opposing recommendations.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use concord_events::ReceivedFinding;
use concord_wire::payload::{Conflict, ConflictType, Position};
use concord_wire::policy::{NameKind, Policy};
use serde_json::{Value, json};

use super::{ConflictRule, Found, Held, RECOMMENDATION, compared};
use crate::rules::canonical::{Canonical, normalise};

/// What is longer is no recommendation but a text.
const WORDS_BYTES_MAX: usize = 200;

/// Opposing recommendations.
pub(super) struct Recommendation;

impl ConflictRule for Recommendation {
    fn find<'a>(
        &self,
        _: &Policy,
        findings: &[&'a ReceivedFinding],
        offer: &mut dyn FnMut(Found<'a>),
    ) {
        let given: Vec<(&ReceivedFinding, String)> = findings
            .iter()
            .filter_map(|received| {
                let recommendation = normalise(received.finding.recommendation.as_deref()?);
                (!recommendation.is_empty()).then_some((*received, recommendation))
            })
            .collect();
        let different: BTreeSet<&str> = given
            .iter()
            .map(|(_, recommendation)| recommendation.as_str())
            .collect();
        if different.len() < 2 {
            return;
        }
        let topic = format!(
            "Different recommendations: {}",
            different.into_iter().collect::<Vec<_>>().join(", ")
        );
        let positions = given.iter().map(|(received, recommendation)| {
            Held::new(received, recommendation, &json!(recommendation), vec![])
        });
        offer(Found {
            kind: ConflictType::RecommendationConflict,
            topic,
            subject: RECOMMENDATION.into(),
            stake: 1.0,
            held: positions.collect(),
        });
    }

    fn is_about_the_result(&self) -> bool {
        true
    }

    /// Recommendations that the policy's vocabulary takes for one word are the same.
    fn comparable(&self, policy: &Policy, position: &Position) -> Canonical {
        match compared(position) {
            Canonical::Text(words) => Canonical::Text(word(policy, &words)),
            other => other,
        }
    }

    fn value_in_words(&self, policy: &Policy, _: &Conflict, words: &str) -> Option<Value> {
        let word = word(policy, without_name(words));
        (!word.is_empty() && word.len() <= WORDS_BYTES_MAX).then(|| json!(word))
    }

    /// A recommendation that the policy knows or somebody holds. Other words may be a reason.
    fn plain_words(&self, policy: &Policy, conflict: &Conflict, words: &str) -> Option<Value> {
        let said = word(policy, without_name(words));
        let held = conflict.positions.iter();
        let held = held.filter_map(|held| held.value.as_ref()?.as_str());
        let mut known = policy.caution_order.iter().map(String::as_str).chain(held);
        known
            .any(|known| word(policy, known) == said)
            .then(|| json!(said))
    }

    fn wanted_instead(&self, value: &Value) -> Option<&'static str> {
        let words = value.as_str().map(normalise).unwrap_or_default();
        words.is_empty().then_some("a recommendation, as text")
    }

    /// The more cautious one stands earlier in the policy's `caution_order`.
    fn compare_caution(&self, policy: &Policy, a: &Value, b: &Value) -> Option<Ordering> {
        Some(rank(policy, b).cmp(&rank(policy, a)))
    }

    fn caution_in_words(&self, policy: &Policy) -> Option<String> {
        Some(format!(
            "recommendations in the order {}",
            policy.caution_order.join(", ")
        ))
    }
}

/// What may stand before a recommendation, up to a colon: `Recommendation: reject`, `our final recommendation: sign`.
const NAME_WORDS: [&str; 6] = ["recommendation", "my", "our", "the", "final", "revised"];

/// The words of a recommendation without its name.
fn without_name(words: &str) -> &str {
    let named = words.split_once([':', '=']).filter(|(name, rest)| {
        let name = normalise(name);
        let is_name = name.split(' ').all(|word| NAME_WORDS.contains(&word));
        is_name && name.contains(RECOMMENDATION) && !normalise(rest).is_empty()
    });
    named.map_or(words, |(_, recommendation)| recommendation)
}

/// A recommendation in the words of the policy's vocabulary, in the form in which texts are compared.
pub(crate) fn word(policy: &Policy, recommendation: &str) -> String {
    let word = policy
        .vocabulary
        .word(NameKind::Recommendation, recommendation);
    normalise(word.unwrap_or(recommendation))
}

/// What recommends nothing: whoever says so abstains. A word of the policy's `caution_order` is a recommendation all the same.
const ABSTENTIONS: [&str; 15] = [
    "abstain",
    "abstention",
    "can't say",
    "can't tell",
    "cannot say",
    "cannot tell",
    "do not know",
    "don't know",
    "n/a",
    "no opinion",
    "no recommendation",
    "not sure",
    "undecided",
    "unknown",
    "unsure",
];

/// Whether somebody who recommends this recommends nothing.
pub(crate) fn is_abstention(policy: &Policy, recommendation: &str) -> bool {
    let said = word(policy, without_name(recommendation));
    let mut known = policy.caution_order.iter();
    ABSTENTIONS.contains(&said.replace('\u{2019}', "'").as_str())
        && !known.any(|known| word(policy, known) == said)
}

/// The place in the policy's order, 0 for the most cautious.
fn rank(policy: &Policy, value: &Value) -> usize {
    let name = value
        .as_str()
        .map(|recommendation| word(policy, recommendation))
        .unwrap_or_default();
    policy
        .caution_order
        .iter()
        .position(|other| word(policy, other) == name)
        .unwrap_or(usize::MAX)
}

//! How far precedents can be relied on, in sentences: what they have in common with a debate, and why it may turn out otherwise.

use std::collections::BTreeSet;

use concord_wire::payload::{Credibility, NAME_BYTES_MAX, Precedent, PrecedentMatter, SuccessRate};

use crate::rules::canonical::normalise;
use crate::rules::size_budget::json_bytes;
use crate::rules::size_budget::truncate;

/// Most positions of which it is said how often they proved right.
pub(super) const POSITIONS_MAX: usize = 8;
/// Most bytes of a sentence.
const LINE_BYTES_MAX: usize = 256;
/// Fewer known outcomes than this are few.
const FEW: u32 = 5;

/// Whether a matter is small enough to be kept; names of people's making are short where they are checked, which old policies are not.
pub(super) fn fits(matter: &PrecedentMatter) -> bool {
    json_bytes(matter) <= 4 * NAME_BYTES_MAX
}

/// The circumstances by name: the regime, and the dimensions of the context but the metric, which the subject says.
fn circumstances(matter: &PrecedentMatter) -> Vec<(&'static str, Option<String>)> {
    let known = &matter.circumstances;
    let dimensions = known.context.dimensions().into_iter();
    let dimensions = dimensions.filter(|(name, _)| *name != "metric");
    std::iter::once(("regime", known.regime.as_deref()))
        .chain(dimensions)
        .map(|(name, value)| (name, value.map(normalise)))
        .collect()
}

/// What a debate has in common with all of the earlier ones.
pub(super) fn conditions(matter: &PrecedentMatter, like: &[&Precedent]) -> Vec<String> {
    let mut lines = vec![
        format!("type {}", matter.kind.as_str()),
        format!("policy {}", matter.policy),
    ];
    lines.extend(
        matter
            .domain
            .iter()
            .map(|domain| format!("domain {domain}")),
    );
    for (place, (name, value)) in circumstances(matter).into_iter().enumerate() {
        let Some(value) = value else { continue };
        let has_it = |one: &&Precedent| {
            let seen = one.matter.as_ref().map(circumstances);
            let seen = seen.and_then(|seen| seen.into_iter().nth(place)?.1);
            seen.as_ref() == Some(&value)
        };
        if like.iter().all(has_it) {
            lines.push(format!("{name} {value}"));
        }
    }
    cut(lines)
}

/// Why a debate may turn out otherwise than the earlier ones.
pub(super) fn risks(
    matter: &PrecedentMatter,
    like: &[&Precedent],
    chosen: &SuccessRate,
) -> Vec<String> {
    let mut lines = Vec::new();
    if chosen.known < FEW {
        let found = like.len();
        lines.push(format!(
            "The outcome is known of {} of {found} only.",
            chosen.known
        ));
    }
    let wrong = chosen.known - chosen.right.min(chosen.known);
    if wrong > 0 {
        lines.push(format!(
            "What was chosen proved wrong in {wrong} of {}.",
            chosen.known
        ));
    }
    for (place, (name, value)) in circumstances(matter).into_iter().enumerate() {
        let Some(value) = value else { continue };
        let seen: BTreeSet<String> = like
            .iter()
            .filter_map(|one| {
                circumstances(one.matter.as_ref()?)
                    .into_iter()
                    .nth(place)?
                    .1
            })
            .filter(|seen| *seen != value)
            .collect();
        if !seen.is_empty() {
            let others: Vec<String> = seen.into_iter().collect();
            lines.push(format!(
                "The {name} is {value}; it was {} in others.",
                others.join(", ")
            ));
        }
    }
    cut(lines)
}

fn cut(lines: Vec<String>) -> Vec<String> {
    let cut = |line: String| truncate::line(&line, LINE_BYTES_MAX);
    lines.into_iter().map(cut).collect()
}

/// What there is to say about a claim, in a sentence.
pub(super) fn remark(
    known: &SuccessRate,
    credibility: Option<&Credibility>,
    rate_is_off: bool,
    accuracy_is_off: bool,
) -> String {
    let rate = match (known.known, rate_is_off) {
        (0, _) => "No outcome of a debate like this one is known here.".to_owned(),
        (all, true) => format!(
            "Here the position proved right in {} of {all}, which the claimed rate does not fit.",
            known.right
        ),
        (all, false) => format!(
            "Here the position proved right in {} of {all}.",
            known.right
        ),
    };
    let own = match (credibility, accuracy_is_off) {
        (None, _) => " Its own accuracy is not known here.".to_owned(),
        (Some(known), true) => format!(
            " Its own record has {:.2}, which the claimed accuracy does not fit.",
            known.score
        ),
        (Some(known), false) => format!(" Its own record has {:.2}.", known.score),
    };
    rate + &own
}

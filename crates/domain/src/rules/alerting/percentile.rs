//! Whether a number has been beyond what was usual, for longer than a time.

use super::{Number, rounded};

/// When a number is beyond what was usual.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) above: f64,
    pub(super) below: f64,
    pub(super) longer_than_ms: u64,
    pub(super) observations_min: usize,
}

/// On which side, the percentile itself, of how many numbers it is, and the version since which every number is beyond it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Beyond {
    is_above: bool,
    bound: f64,
    of: usize,
    since: u64,
}

/// In words, and with the last number that was not beyond it, what makes the number one that has been beyond the percentile for longer than the time, and was not yet at the number
/// before. `series` are the numbers before, the oldest first; `told` is the version that was last told of. It is not told of twice while it
/// lasts, wherever older numbers have been thinned since.
pub(super) fn newly_beyond(
    series: &[Number],
    number: &Number,
    terms: &Terms,
    told: u64,
) -> Option<(String, f64)> {
    let found = beyond(series, number, terms)?;
    let before = series
        .split_last()
        .and_then(|(last, earlier)| beyond(earlier, last, terms));
    let was_before = before.is_some_and(|before| before.is_above == found.is_above);
    if was_before || told >= found.since {
        return None;
    }
    let (side, share) = match found.is_above {
        true => ("above", terms.above),
        false => ("below", terms.below),
    };
    let (bound, percentile) = (rounded(found.bound), rounded(share * 100.0));
    let (days, of) = (
        rounded(terms.longer_than_ms as f64 / 86_400_000.0),
        found.of,
    );
    let is_usual = |one: &&Number| match found.is_above {
        true => one.value <= found.bound,
        false => one.value >= found.bound,
    };
    let before = series.iter().rev().find(is_usual)?;
    let because = format!(
        "it has been {side} {bound}, the percentile {percentile} of the {of} numbers before, for longer than {days} days"
    );
    Some((because, before.value))
}

/// What was usual are the numbers before those of the time that is asked for; every number since is to be beyond it, the last one
/// before the time began, too.
fn beyond(series: &[Number], number: &Number, terms: &Terms) -> Option<Beyond> {
    let is_before = |one: &Number| number.at.millis_since(one.at) > terms.longer_than_ms;
    let start = series.iter().rposition(is_before)?;
    let (usual, since) = series.split_at_checked(start)?;
    if usual.len() < terms.observations_min {
        return None;
    }
    let mut sorted: Vec<f64> = usual.iter().map(|one| one.value).collect();
    sorted.sort_by(f64::total_cmp);
    let (high, low) = (
        nearest_rank(&sorted, terms.above)?,
        nearest_rank(&sorted, terms.below)?,
    );
    let mut all = since.iter().chain([number]);
    let of = usual.len();
    let since = since.first().map_or(number.version, |first| first.version);
    let beyond = |is_above, bound| {
        Some(Beyond {
            is_above,
            bound,
            of,
            since,
        })
    };
    if all.clone().all(|one| one.least > high) {
        beyond(true, high)
    } else if all.all(|one| one.greatest < low) {
        beyond(false, low)
    } else {
        None
    }
}

/// The smallest of the numbers that at least this share of them does not exceed.
fn nearest_rank(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64 - 1e-9).ceil().max(1.0);
    // At most 640 numbers.
    let place = (rank as usize).min(sorted.len()).checked_sub(1)?;
    sorted.get(place).copied()
}

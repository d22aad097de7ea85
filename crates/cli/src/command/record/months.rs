//! How often an agent was right, month by month.

use std::collections::BTreeMap;

use concord_domain::aggregates::track_record::TrackRecordState;
use concord_domain::rules::canonical::normalise;
use concord_domain::rules::precedent;
use concord_wire::payload::SuccessRate;
use serde::Serialize;

/// How often an agent was right in one month.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Month {
    /// The month in UTC, for example `2026-11`.
    pub(super) month: String,
    /// How often it was right, of how many observations.
    #[serde(flatten)]
    pub(super) rate: SuccessRate,
}

/// The months with observations of a domain, the oldest first. Each observation counts alike, whatever its age and whosever case it was.
pub(super) fn months(record: &TrackRecordState, domain: &str) -> Vec<Month> {
    let asked = normalise(domain);
    let mut by_month: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for one in record.observations() {
        if normalise(&one.domain) == asked {
            let month = one.at.to_string().chars().take("2026-11".len()).collect();
            by_month.entry(month).or_default().push(one.correct);
        }
    }
    let rated = |(month, outcomes): (String, Vec<bool>)| Month {
        month,
        rate: precedent::rate(outcomes.into_iter()),
    };
    by_month.into_iter().map(rated).collect()
}

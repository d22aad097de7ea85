//! The share of a track record that the cases of one opener can have.
//!
//! Whoever opens cases chooses what agents are asked, and with it who has the occasion to be right. So the observations of
//! one opener's cases weigh at most as much as all others together, once they weigh more than [`FREE_POINTS`]:
//! `w <= max(20, others)`. What is above is held back: each of these observations counts as the same part of one. A part
//! of an observation is not a lighter observation; it adds to the effective size as it adds to the sum of weights, so
//! that thousands of them are not surer than the points that they count for.
//!
//! Others are taken with their full weight. Only somebody who outweighs all others is held back, so it is one opener at
//! most, and the order in which openers are looked at means nothing. Observations without an opener are nobody's: they are
//! never held back, and count among the others.

use std::collections::BTreeMap;

use concord_wire::AgentId;
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::HeldBack;

use super::Weighed;

/// The points that the cases of one opener may always have, as many as others have or not.
///
/// It is the fifteen that decide anything ([`super::DATA_POINTS_MIN`]) and a third more, so that an installation with a
/// single opener can use its records, and does not lose them when they are a year old: twenty points of that age are
/// fourteen.
pub const FREE_POINTS: f64 = 20.0;

/// Sums of the same weights in another order differ by less.
const ROUNDING: f64 = 1e-9;

/// An observation, and who opened the case that it comes from; nobody where it comes from none, or that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attributed<'a> {
    /// The observation.
    pub observation: &'a Observation,
    /// Who opened the case.
    pub opened_by: Option<&'a AgentId>,
}

impl<'a> From<&'a Observation> for Attributed<'a> {
    fn from(observation: &'a Observation) -> Self {
        Self {
            observation,
            opened_by: None,
        }
    }
}

/// Holds back what one opener weighs above its share, and says whose and how much it is.
pub(super) fn hold_back(weighed: &mut [Weighed<'_>]) -> Option<HeldBack> {
    let (mut all, mut openers) = (0.0, BTreeMap::<&AgentId, f64>::new());
    for w in weighed.iter() {
        all += w.weight * w.count;
        if let Some(opener) = w.opened_by {
            *openers.entry(opener).or_default() += w.weight * w.count;
        }
    }
    let most = |points: f64| FREE_POINTS.max(all - points);
    let too_heavy = |(_, points): &(&AgentId, f64)| *points > most(*points) + ROUNDING;
    let (opener, points) = openers.into_iter().find(too_heavy)?;
    let counting = most(points);
    for w in weighed.iter_mut().filter(|w| w.opened_by == Some(opener)) {
        w.count *= counting / points;
    }
    debug_assert!(
        0.0 < counting && counting < points,
        "{opener} is held back to {counting} of {points} points"
    );
    Some(HeldBack {
        opened_by: Some(opener.clone()),
        points,
        held: points - counting,
    })
}

//! What of a track record does not count, as text.

use concord_domain::rules::credibility::FREE_POINTS;
use concord_wire::payload::track_record::HeldBack;

/// One sentence: how much of whose cases is held back, and why.
pub(crate) fn held_back(one: &HeldBack) -> String {
    let HeldBack {
        opened_by,
        points,
        held,
    } = one;
    let whose = opened_by.as_ref().map_or("one opener", |who| who.as_str());
    let tenths = |points: &f64| (points * 10.0).round() / 10.0;
    let (held, points) = (tenths(held), tenths(points));
    format!(
        "{held} of {points} points of {whose}'s cases are held back: above {FREE_POINTS} points, no opener's cases \
         weigh more than all others together"
    )
}

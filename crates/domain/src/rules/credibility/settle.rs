//! Whether the credibility of two sides settles a debate.

use concord_wire::payload::Credibility;
use concord_wire::payload::track_record::{Settlement, SettlementReason, Side};

use super::rounded;

/// The smallest gap that settles a debate.
pub const GAP_MIN: f64 = 0.25;
/// The data points that each side needs.
pub const DATA_POINTS_MIN: f64 = 15.0;

/// Compares two sides. The more credible side wins when the gap is above 0.25 and above the sum of
/// the intervals' half-widths, and both sides have 15 data points; otherwise no side wins. A gap
/// equal to the threshold settles nothing.
pub fn settle(a: &Credibility, b: &Credibility) -> Settlement {
    // Rounded, because 0.95 - 0.7 in binary must not exceed 0.25 by its last bit.
    let gap = rounded((a.score - b.score).abs());
    let threshold = rounded(GAP_MIN.max(a.interval.half_width() + b.interval.half_width()));
    let reason = if a.data_points < DATA_POINTS_MIN || b.data_points < DATA_POINTS_MIN {
        SettlementReason::InsufficientData
    } else if gap > threshold {
        SettlementReason::GapExceedsThreshold
    } else {
        SettlementReason::GapTooSmall
    };
    let better = if a.score > b.score { Side::A } else { Side::B };
    Settlement {
        gap,
        threshold,
        data_points_a: a.data_points,
        data_points_b: b.data_points,
        winner: (reason == SettlementReason::GapExceedsThreshold).then_some(better),
        reason,
    }
}

//! The weight of a vote that follows from how often the voter is right.

/// No voter counts as more reliable than this. Fifteen right answers of fifteen are compatible with
/// 80%; without a limit such a record would outvote everyone for ever.
pub const LOG_ODDS_P_MAX: f64 = 0.99;

/// The optimal weight of an independent voter who is right with probability `p` among `options`:
/// ln((K-1)p / (1-p)) (Nitzan and Paroush 1982 for two options).
///
/// `p` is limited to between 1 - [`LOG_ODDS_P_MAX`] and [`LOG_ODDS_P_MAX`]. A voter who is no
/// better than a guess has the weight 0, not a negative one: a record of mistakes is no reason to
/// believe the opposite. Fewer than two options count as two.
pub fn log_odds(p: f64, options: usize) -> f64 {
    let p = p.clamp(1.0 - LOG_ODDS_P_MAX, LOG_ODDS_P_MAX);
    let others = options.max(2) - 1;
    // `max` also turns the weight of a probability that is not a number into 0.
    (others as f64 * p / (1.0 - p)).ln().max(0.0)
}

//! Domains and their sub-domains.

/// What stands between a domain and its sub-domain: `valuation.revenue` is a part of `valuation`.
pub const SEPARATOR: char = '.';

/// How much an observation of a domain counts for its direct sub-domain; for a sub-domain of that
/// one, this share of this share.
///
/// There is no data to fit it to, so it is the one share that favours neither: with a half, thirty
/// observations of the wider domain are the fifteen data points of the domain itself that are
/// needed to decide anything, and somebody with a record in both is judged by two observations of
/// the wider domain as much as by one of the domain itself. It is also what two years of age leave
/// of an observation.
pub const SHARE_PER_LEVEL: f64 = 0.5;

/// How much an observation of the domain `seen` counts for the domain `asked`: 1 in the same
/// domain, less in a wider one, `None` in any other. What was observed in a part says nothing of
/// the whole. Both names are normalised.
pub fn share_for(asked: &str, seen: &str) -> Option<f64> {
    let below = asked.strip_prefix(seen)?;
    if below.is_empty() {
        return Some(1.0);
    }
    if seen.is_empty() || !below.starts_with(SEPARATOR) {
        return None;
    }
    let levels = i32::try_from(below.matches(SEPARATOR).count()).unwrap_or(i32::MAX);
    Some(SHARE_PER_LEVEL.powi(levels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_domain_counts_half_for_each_level() {
        for (asked, seen, share) in [
            ("valuation", "valuation", Some(1.0)),
            ("valuation.revenue", "valuation", Some(0.5)),
            ("valuation.revenue.growth", "valuation", Some(0.25)),
            ("valuation.revenue.growth", "valuation.revenue", Some(0.5)),
            ("valuation", "valuation.revenue", None),
            ("valuation.margin", "valuation.revenue", None),
            ("valuations", "valuation", None),
            ("valuation.revenue", "revenue", None),
            (".revenue", "", None),
        ] {
            assert_eq!(share_for(asked, seen), share, "{asked} from {seen}");
        }
    }
}

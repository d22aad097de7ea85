//! What was granted of a provider's minute, and whether there is room for more. Pure: the time is an argument.
//!
//! A grant is a *lease*: so many requests and tokens, to be used within [`LEASE_MS`]. It is counted for a whole minute after
//! the last moment at which it can be used, so that in no span of 60 seconds, wherever it begins, more is used than the limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The span that limits are stated for.
pub(crate) const MINUTE_MS: i64 = 60_000;
/// How long what was granted can be used.
pub(crate) const LEASE_MS: i64 = 2_000;
/// By how much the clocks of replicas may differ.
const SKEW_MS: i64 = 1_000;
/// How long a grant counts.
const COUNTS_MS: i64 = MINUTE_MS + LEASE_MS + SKEW_MS;
/// Grants are noted to the second, so that there are never more notes than seconds that count.
const NOTE_MS: i64 = 1_000;
/// A lease is at least this part of a minute, so that a busy provider does not need a message on the broker for each call.
const PARTS: u64 = 60;

/// Requests and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Amount {
    /// Requests.
    pub(crate) requests: u64,
    /// Tokens.
    pub(crate) tokens: u64,
}

/// What may be used in a minute; none is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) requests: Option<u64>,
    pub(crate) tokens: Option<u64>,
}

/// What was granted in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Grant {
    /// Its end, in milliseconds since 1970.
    at: i64,
    #[serde(flatten)]
    amount: Amount,
}

/// What all replicas were granted, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Granted {
    grants: Vec<Grant>,
}

/// What was granted and will not be used, by where it is noted.
pub(crate) type Unused = BTreeMap<i64, Amount>;

/// What becomes of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrantDecision {
    /// So much may be used until then, once this is stored. It is noted at a time by which what is not used is given back.
    Lease {
        amount: Amount,
        until: i64,
        noted: i64,
        granted: Granted,
    },
    /// Not before then, and perhaps not even then.
    Wait(i64),
    /// It is more than a whole minute's.
    Never,
}

impl Limits {
    pub(crate) fn fits(self, amount: Amount) -> bool {
        self.requests.is_none_or(|most| amount.requests <= most)
            && self.tokens.is_none_or(|most| amount.tokens <= most)
    }
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }

    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Granted {
    fn sum(&self) -> Amount {
        self.grants
            .iter()
            .fold(Amount::default(), |sum, grant| sum.plus(grant.amount))
    }

    /// The same without what will not be used. What counts no more already is passed over.
    pub(crate) fn without(&self, unused: &Unused) -> Self {
        let less = |grant: &Grant| Grant {
            amount: grant
                .amount
                .minus(unused.get(&grant.at).copied().unwrap_or_default()),
            ..*grant
        };
        Self {
            grants: self
                .grants
                .iter()
                .map(less)
                .filter(|grant| !grant.amount.is_nothing())
                .collect(),
        }
    }

    /// Grants at least `wish`, if there is room.
    pub(crate) fn grant(&self, now: i64, limits: Limits, wish: Amount) -> GrantDecision {
        if !limits.fits(wish) {
            return GrantDecision::Never;
        }
        let mut rest = Self {
            grants: self
                .grants
                .iter()
                .copied()
                .filter(|grant| grant.at + COUNTS_MS > now)
                .collect(),
        };
        rest.grants.sort_by_key(|grant| grant.at);
        let used = rest.sum();
        if !limits.fits(used.plus(wish)) {
            return GrantDecision::Wait(rest.room_at(limits, wish));
        }
        let amount = Amount {
            requests: share(limits.requests, used.requests, wish.requests),
            tokens: share(limits.tokens, used.tokens, wish.tokens),
        };
        let at = now.div_euclid(NOTE_MS) * NOTE_MS + NOTE_MS;
        match rest.grants.iter_mut().find(|grant| grant.at == at) {
            Some(grant) => grant.amount = grant.amount.plus(amount),
            None => rest.grants.push(Grant { at, amount }),
        }
        GrantDecision::Lease {
            amount,
            until: now + LEASE_MS,
            noted: at,
            granted: rest,
        }
    }

    /// When enough of the grants, the oldest first, count no more.
    fn room_at(&self, limits: Limits, wish: Amount) -> i64 {
        let mut left = self.grants.clone();
        while !left.is_empty() {
            let oldest = left.remove(0);
            if limits.fits(
                Self {
                    grants: left.clone(),
                }
                .sum()
                .plus(wish),
            ) {
                return oldest.at + COUNTS_MS;
            }
        }
        // With nothing granted it fits, which the caller has made sure of.
        0
    }
}

/// What is leased of one kind: the wish, or a part of the minute where there is room for that.
fn share(limit: Option<u64>, used: u64, wish: u64) -> u64 {
    // What nobody counts is not leased either.
    let Some(limit) = limit else { return wish };
    if wish == 0 {
        return 0;
    }
    wish.max((limit / PARTS).min(limit.saturating_sub(used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Limits = Limits {
        requests: Some(30),
        tokens: Some(6_000),
    };

    fn amount(requests: u64, tokens: u64) -> Amount {
        Amount { requests, tokens }
    }

    #[test]
    fn thirty_calls_fit_into_a_minute_and_the_next_waits() {
        let mut granted = Granted::default();
        for place in 0..30 {
            let GrantDecision::Lease {
                amount: leased,
                until,
                granted: next,
                ..
            } = granted.grant(place * 100, FREE, amount(1, 100))
            else {
                panic!("call {place} does not fit")
            };
            assert_eq!((leased, until), (amount(1, 100), place * 100 + LEASE_MS));
            granted = next;
        }
        assert!(
            granted.grants.len() <= 4,
            "noted to the second: {granted:?}"
        );
        assert_eq!(
            granted.grant(3_000, FREE, amount(1, 1)),
            GrantDecision::Wait(1_000 + COUNTS_MS)
        );
        assert!(matches!(
            granted.grant(1_000 + COUNTS_MS, FREE, amount(1, 1)),
            GrantDecision::Lease { .. }
        ));
    }

    #[test]
    fn the_table_of_wishes() {
        let full = |at, requests, tokens| Granted {
            grants: vec![Grant {
                at,
                amount: amount(requests, tokens),
            }],
        };
        for (granted, wish, expected) in [
            (Granted::default(), amount(31, 0), GrantDecision::Never),
            (Granted::default(), amount(1, 6_001), GrantDecision::Never),
            (full(0, 30, 0), amount(1, 0), GrantDecision::Wait(COUNTS_MS)),
            (
                full(0, 1, 6_000),
                amount(1, 1),
                GrantDecision::Wait(COUNTS_MS),
            ),
            (
                full(0, 1, 5_950),
                amount(1, 51),
                GrantDecision::Wait(COUNTS_MS),
            ),
        ] {
            assert_eq!(
                granted.grant(10, FREE, wish),
                expected,
                "{granted:?} {wish:?}"
            );
        }
        // A busy provider's lease is a sixtieth of its minute, or what is left.
        let busy = Limits {
            requests: Some(6_000),
            tokens: None,
        };
        for (granted, requests) in [
            (Granted::default(), 100),
            (full(0, 5_950, 0), 50),
            (full(0, 5_999, 0), 1),
        ] {
            let GrantDecision::Lease { amount: leased, .. } =
                granted.grant(10, busy, amount(1, 70))
            else {
                panic!()
            };
            assert_eq!(leased, amount(requests, 70));
        }
        // Old grants go.
        let GrantDecision::Lease { granted, .. } =
            full(0, 30, 6_000).grant(COUNTS_MS, FREE, amount(1, 0))
        else {
            panic!()
        };
        assert_eq!(granted.grants.len(), 1);
    }

    #[test]
    fn what_is_given_back_is_there_again() {
        let busy = Limits {
            requests: Some(600),
            tokens: Some(6_000),
        };
        let GrantDecision::Lease {
            amount: leased,
            noted,
            granted,
            ..
        } = Granted::default().grant(10, busy, amount(1, 500))
        else {
            panic!()
        };
        assert_eq!((leased, noted), (amount(10, 500), 1_000));
        let rest = granted.without(&Unused::from([
            (noted, amount(9, 400)),
            (0, amount(600, 6_000)),
        ]));
        assert_eq!(
            rest.sum(),
            amount(1, 100),
            "what is noted elsewhere is not touched"
        );
        // Nothing is given back twice, and nothing remains of what was not used at all.
        assert_eq!(
            rest.without(&Unused::from([(noted, amount(1_000, 1_000))])),
            Granted::default()
        );
    }
}

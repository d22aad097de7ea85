//! The lease of one replica: what it may still use of a budget, and what it has not used of earlier leases. Pure: the time is
//! an argument.

use super::window::{Amount, Limits, Unused};

/// The lease of this replica.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    pub(super) left: Amount,
    until: i64,
    /// The time under which the lease is noted.
    noted: i64,
    /// The unused parts of earlier leases, which came back too late to be used here.
    unused: Unused,
    /// Tokens that were used beyond what was asked for. The next lease also covers these.
    pub(super) owed: u64,
}

/// The part of the lease that one call may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge {
    tokens: u64,
    noted: i64,
}

impl Lease {
    /// Takes the wish from the lease. None where the lease is over or not large enough.
    pub(crate) fn use_of(&mut self, now: i64, limits: Limits, wish: Amount) -> Option<Charge> {
        let enough = (limits.requests.is_none() || self.left.requests >= wish.requests)
            && (limits.tokens.is_none() || self.left.tokens >= wish.tokens);
        if now >= self.until || !enough {
            return None;
        }
        self.left.requests = self.left.requests.saturating_sub(wish.requests);
        self.left.tokens = self.left.tokens.saturating_sub(wish.tokens);
        Some(Charge {
            tokens: wish.tokens,
            noted: self.noted,
        })
    }

    /// Corrects the lease by the tokens that a call has really used.
    pub(crate) fn settle(&mut self, charge: Charge, used: u64) {
        match used.checked_sub(charge.tokens) {
            None => {
                let back = Amount {
                    requests: 0,
                    tokens: charge.tokens - used,
                };
                if self.noted == charge.noted {
                    self.left = self.left.plus(back);
                } else {
                    self.keep([(charge.noted, back)].into());
                }
            }
            Some(more) => {
                let here = more.min(self.left.tokens);
                self.left.tokens -= here;
                self.owed = self.owed.saturating_add(more - here);
            }
        }
    }

    /// Gives up all that is not used, for others to have it.
    pub(crate) fn give_up(&mut self) -> Unused {
        let left = std::mem::take(&mut self.left);
        self.keep([(self.noted, left)].into());
        std::mem::take(&mut self.unused)
    }

    /// Takes back what could not be given up.
    pub(crate) fn keep(&mut self, unused: Unused) {
        for (noted, amount) in unused
            .into_iter()
            .filter(|(_, amount)| !amount.is_nothing())
        {
            let kept = self.unused.entry(noted).or_default();
            *kept = kept.plus(amount);
        }
    }

    /// A new lease of `amount`, some of whose tokens are for what was owed.
    pub(crate) fn renew(&mut self, amount: Amount, until: i64, noted: i64, for_owed: u64) {
        debug_assert!(
            for_owed <= amount.tokens,
            "a lease does not cover the tokens that it is for"
        );
        // What a call gave back while the new lease was stored.
        self.keep([(self.noted, self.left)].into());
        self.left = Amount {
            tokens: amount.tokens.saturating_sub(for_owed),
            ..amount
        };
        self.owed = self.owed.saturating_sub(for_owed);
        (self.until, self.noted) = (until, noted);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::window::{GrantDecision, Granted, LEASE_MS, MINUTE_MS};
    use super::*;

    fn amount(requests: u64, tokens: u64) -> Amount {
        Amount { requests, tokens }
    }

    /// Asks as a replica does: of its lease, else of the note that all share.
    fn take(
        lease: &mut Lease,
        granted: &mut Granted,
        now: i64,
        limits: Limits,
        tokens: u64,
    ) -> Option<Charge> {
        let wish = amount(1, tokens);
        if let Some(charge) = lease.use_of(now, limits, wish) {
            return Some(charge);
        }
        let rest = granted.without(&lease.give_up());
        match rest.grant(now, limits, wish) {
            GrantDecision::Lease {
                amount,
                until,
                noted,
                granted: next,
            } => {
                *granted = next;
                lease.renew(amount, until, noted, 0);
                lease.use_of(now, limits, wish)
            }
            GrantDecision::Wait(_) | GrantDecision::Never => {
                *granted = rest;
                None
            }
        }
    }

    #[test]
    fn replicas_that_call_now_and_then_are_granted_what_the_provider_allows() {
        // Ten replicas, each a call in 2.1 seconds: 285 of the 600 calls that are allowed in a minute.
        let limits = Limits {
            requests: Some(600),
            tokens: None,
        };
        let (mut granted, mut replicas) = (Granted::default(), Vec::new());
        replicas.resize_with(10, Lease::default);
        for place in 0..1_000 {
            let lease = &mut replicas[place % 10];
            let taken = take(lease, &mut granted, place as i64 * 210, limits, 0);
            assert!(taken.is_some(), "call {place} of 285 a minute");
        }
    }

    #[test]
    fn tokens_that_a_call_has_not_used_are_for_others_though_its_lease_is_over() {
        // Each call asks for 1,000 tokens, uses 300 and takes three seconds.
        let limits = Limits {
            requests: None,
            tokens: Some(6_000),
        };
        let (mut granted, mut replicas) =
            (Granted::default(), [Lease::default(), Lease::default()]);
        let mut calls = 0;
        for second in (0..60).step_by(3) {
            for lease in &mut replicas {
                if let Some(charge) = take(lease, &mut granted, second * 1_000, limits, 1_000) {
                    lease.settle(charge, 300);
                    calls += 1;
                }
            }
        }
        // Of twenty that fit, less the tokens that are asked for and not yet given back.
        assert!((16..=20).contains(&calls), "{calls}");
    }

    #[test]
    fn what_was_used_too_much_is_owed_and_what_comes_back_late_is_given_up() {
        let limits = Limits {
            requests: Some(100),
            tokens: Some(6_000),
        };
        let mut lease = Lease::default();
        lease.renew(amount(1, 500), LEASE_MS, 1_000, 0);
        let charge = lease.use_of(0, limits, amount(1, 400)).expect("a charge");
        assert!(
            lease.use_of(0, limits, amount(1, 50)).is_none()
                && lease.use_of(0, limits, amount(0, 101)).is_none()
        );
        lease.settle(charge, 700);
        assert_eq!((lease.left.tokens, lease.owed), (0, 200));
        lease.renew(amount(2, 900), 9_000, 8_000, 200);
        assert_eq!((lease.left, lease.owed), (amount(2, 700), 0));
        assert!(
            lease.use_of(9_000, limits, amount(1, 1)).is_none(),
            "a lease ends"
        );
        lease.settle(charge, 300);
        assert_eq!(
            lease.give_up(),
            Unused::from([(1_000, amount(0, 100)), (8_000, amount(2, 700))])
        );
        assert_eq!(lease.give_up(), Unused::new());
    }

    proptest! {
        /// Several replicas whose clocks differ, each using its leases as late as it may and giving back what it has not used:
        /// in no span of 60 seconds more is used than the limit.
        #[test]
        fn no_minute_has_more_than_the_limit(
            wishes in proptest::collection::vec((0_usize..4, 0_i64..3_000, 1_u64..900, 0_u64..900, any::<bool>()), 1..300),
            skews in proptest::array::uniform4(-500_i64..500),
            limit in 5_u64..200,
        ) {
            let limits = Limits { requests: Some(limit), tokens: Some(limit * 100) };
            let (mut granted, mut now, mut used) = (Granted::default(), 0, Vec::new());
            let mut replicas: [Lease; 4] = Default::default();
            // Calls that are under way: of whom, and what they use in the end.
            let mut under_way: Vec<(usize, Charge, u64)> = Vec::new();
            for (of, wait, tokens, uses, at_once) in wishes {
                now += wait;
                if let Some(charge) = take(&mut replicas[of], &mut granted, now + skews[of], limits, tokens) {
                    let uses = uses.min(tokens);
                    used.push((now, amount(1, uses)));
                    under_way.push((of, charge, uses));
                }
                if at_once {
                    for (of, charge, uses) in under_way.drain(..) {
                        replicas[of].settle(charge, uses);
                    }
                }
            }
            for (from, _) in &used {
                let of_span = used.iter().filter(|(at, _)| (*from..*from + MINUTE_MS).contains(at));
                let sum = of_span.fold(Amount::default(), |sum, (_, amount)| sum.plus(*amount));
                prop_assert!(limits.fits(sum), "{sum:?} in the minute from {from}");
            }
        }
    }
}

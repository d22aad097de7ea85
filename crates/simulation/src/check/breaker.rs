//! The breaker of each process, told again from the record of its calls: by the rules as they are written in the settings,
//! and without a look at the breaker itself.

use std::collections::{BTreeMap, BTreeSet};

use concord_domain::resilience::breaker::{End, Rules};

use crate::executor::Incarnation;
use crate::hosted::world::{What, World};
use crate::report::HostedCounts;

/// How it must stand.
enum State {
    Closed {
        failures: u32,
    },
    Broken {
        until: u64,
        successes: u32,
        /// The one call under way, and when it makes way for another.
        probe: Option<(u64, u64)>,
    },
}

struct Account {
    rules: Rules,
    state: State,
    openings: u32,
    /// Which calls say something while it is closed: those that were sent since it closed.
    current: BTreeSet<u64>,
    opened: u64,
    probes: u64,
    closed: u64,
}

impl Account {
    fn new(rules: Rules) -> Self {
        let state = State::Closed { failures: 0 };
        Self {
            rules,
            state,
            openings: 0,
            current: BTreeSet::new(),
            opened: 0,
            probes: 0,
            closed: 0,
        }
    }

    fn sent(&mut self, at: u64, call: u64) -> Option<String> {
        match &mut self.state {
            State::Closed { .. } => {
                self.current.insert(call);
                None
            }
            State::Broken { until, probe, .. } => {
                let wrong = if at < *until {
                    Some(format!(
                        "call {call} is sent while it is open until {until}"
                    ))
                } else {
                    let under_way = probe.filter(|(_, gives_way)| at < *gives_way);
                    under_way.map(|(other, _)| {
                        format!("call {call} is sent beside call {other} while it is half-open")
                    })
                };
                *probe = Some((call, at + self.rules.probe_ms));
                self.probes += 1;
                wrong
            }
        }
    }

    fn ended(&mut self, at: u64, call: u64, end: End) {
        match (&mut self.state, end) {
            (State::Closed { failures }, End::Success) if self.current.contains(&call) => {
                *failures = 0
            }
            (State::Closed { failures }, End::Failure) if self.current.contains(&call) => {
                *failures += 1;
                if *failures >= self.rules.failures_max {
                    self.open(at);
                }
            }
            (
                State::Broken {
                    successes, probe, ..
                },
                end,
            ) if probe.is_some_and(|(one, _)| one == call) => {
                *probe = None;
                match end {
                    End::Success if *successes + 1 >= self.rules.successes_min => {
                        self.state = State::Closed { failures: 0 };
                        self.openings = 0;
                        self.closed += 1;
                    }
                    End::Success => *successes += 1,
                    End::Failure => self.open(at),
                    End::Unknown => {}
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, at: u64) {
        let doubled =
            (0..self.openings).fold(self.rules.open_ms, |stays, _| stays.saturating_mul(2));
        let until = at + doubled.min(self.rules.open_max_ms);
        self.state = State::Broken {
            until,
            successes: 0,
            probe: None,
        };
        self.openings += 1;
        self.opened += 1;
        self.current.clear();
    }

    fn refused(&self, at: u64) -> Option<String> {
        match self.state {
            State::Closed { .. } => Some("it refuses a call although it is closed".into()),
            State::Broken { until, probe, .. } => {
                let rightly = at < until || probe.is_some_and(|(_, gives_way)| at < gives_way);
                (!rightly)
                    .then(|| format!("it refuses a call although its time was over at {until}"))
            }
        }
    }
}

/// While it is open nothing is sent; while it is half-open one call at a time; and nothing else is refused.
pub(super) fn check(world: &World, violations: &mut Vec<String>) -> HostedCounts {
    let mut accounts: BTreeMap<Incarnation, Account> = BTreeMap::new();
    for entry in &world.record {
        let account = accounts
            .entry(entry.incarnation)
            .or_insert_with(|| Account::new(world.setup.rules));
        let wrong = match entry.what {
            What::Sent { call } => account.sent(entry.at, call),
            What::Refused => account.refused(entry.at),
            What::Ended { call, end } => {
                account.ended(entry.at, call, end);
                None
            }
            What::Load { .. } | What::Full | What::Killed => None,
        };
        let Incarnation { replica, number } = entry.incarnation;
        violations.extend(
            wrong.map(|wrong| format!("breaker of {replica} ({number}) at {}: {wrong}", entry.at)),
        );
    }
    let sum = |of: fn(&Account) -> u64| accounts.values().map(of).sum();
    HostedCounts {
        opened: sum(|account| account.opened),
        probes: sum(|account| account.probes),
        closed: sum(|account| account.closed),
        ..HostedCounts::default()
    }
}

//! What the machine did besides the measurement, from /proc/stat.

use anyhow::Context;
use serde::Serialize;

use super::numbers::round;

/// A larger share of steal than this disturbs a measurement.
const STEAL_MAX: f64 = 0.03;
/// A larger share of other processes than this disturbs a measurement.
const OTHERS_MAX: f64 = 0.10;

/// Processor time of the whole machine until now, in hundredths of a second, added up over its processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostTimes {
    /// All time, idle or not.
    total: u64,
    /// Time in which programs ran.
    busy: u64,
    /// Time in which a program could have run and the host ran another machine.
    steal: u64,
}

/// Where the machine's processor time went during a measurement, as shares of all that there was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct HostReport {
    /// The measured processes.
    pub(super) measured: f64,
    /// Other processes of this machine.
    pub(super) others: f64,
    /// Taken away by the host of this virtual machine.
    pub(super) steal: f64,
    /// Whether others or the host took so much that the rates are too low.
    pub(super) disturbed: bool,
}

impl HostTimes {
    /// The times until now.
    pub(super) fn now() -> anyhow::Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        Self::parse(&text).context("/proc/stat has no line of all processors")
    }

    /// Reads the first line, of all processors: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = *fields.as_slice() else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(Self {
            total: busy + idle + iowait + steal,
            busy,
            steal,
        })
    }

    /// What happened from `self` to `after`, in which the measured processes used `measured_seconds`.
    pub(super) fn until(self, after: Self, measured_seconds: f64) -> HostReport {
        let between = |before: u64, after: u64| after.saturating_sub(before) as f64 / 100.0;
        let total = between(self.total, after.total).max(0.01);
        let busy = between(self.busy, after.busy);
        let (steal, others) = (
            between(self.steal, after.steal) / total,
            (busy - measured_seconds).max(0.0) / total,
        );
        HostReport {
            measured: round(measured_seconds / total),
            others: round(others),
            steal: round(steal),
            disturbed: steal > STEAL_MAX || others > OTHERS_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_others_and_the_host_took_is_seen() {
        let before = HostTimes::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3").unwrap();
        let after = HostTimes::parse("cpu  190 10 150 830 0 0 0 20 0 0\n").unwrap();
        let report = before.until(after, 1.0);
        let expected = HostReport {
            measured: 0.5,
            others: 0.25,
            steal: 0.1,
            disturbed: true,
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn a_machine_of_ones_own_is_not_disturbed() {
        let before = HostTimes::parse("cpu  0 0 0 0 0 0 0 0").unwrap();
        let after = HostTimes::parse("cpu  90 0 60 50 0 0 0 0").unwrap();
        assert!(!before.until(after, 1.45).disturbed);
        assert_eq!(HostTimes::parse("intr 5"), None);
    }
}

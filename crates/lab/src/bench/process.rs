//! Processor time and memory of a process, from /proc.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

/// A rate of messages, and the processor time of each.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Rate {
    /// The number of messages a second.
    pub(super) per_second: f64,
    /// Processor time of each message, in microseconds, by process.
    pub(super) cpu_us: BTreeMap<String, f64>,
}

impl Rate {
    pub(super) fn new(messages: usize, took: Duration, before: &Times, after: &Times) -> Self {
        let used = after
            .0
            .iter()
            .map(|(name, seconds)| (name, seconds - before.0.get(name).unwrap_or(&0.0)));
        let cpu_us = used
            .map(|(name, seconds)| ((*name).to_owned(), seconds * 1e6 / messages as f64))
            .collect();
        Self {
            per_second: messages as f64 / took.as_secs_f64(),
            cpu_us,
        }
    }
}

/// Processor time that processes have used until now, in seconds.
pub(super) struct Times(BTreeMap<&'static str, f64>);

impl Times {
    pub(super) fn of(processes: [(&'static str, u32); 2]) -> anyhow::Result<Self> {
        let times = processes
            .into_iter()
            .map(|(name, pid)| Ok((name, cpu_seconds(pid)?)));
        Ok(Self(times.collect::<anyhow::Result<_>>()?))
    }
}

/// Processor time that a process has used until now, in seconds.
pub(super) fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .context("reading the process's times")?;
    // Fields follow the name, which stands in parentheses and may itself hold spaces.
    let after = stat
        .rsplit_once(") ")
        .map(|(_, after)| after)
        .unwrap_or_default();
    let ticks = |field: usize| {
        after
            .split(' ')
            .nth(field)
            .and_then(|ticks| ticks.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    // utime and stime are fields 14 and 15 of proc(5), in hundredths of a second on Linux.
    Ok((ticks(11) + ticks(12)) / 100.0)
}

/// Resident memory of a process, in megabytes.
pub(super) fn resident_mb(pid: u32) -> anyhow::Result<f64> {
    status_mb(pid, "VmRSS:")
}

/// The most memory that a process has had resident, in megabytes.
pub(super) fn peak_mb(pid: u32) -> anyhow::Result<f64> {
    status_mb(pid, "VmHWM:")
}

fn status_mb(pid: u32, field: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .context("reading the process's memory")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap_or("0 kB");
    let kilobytes: f64 = line
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse()
        .context("reading the process's memory")?;
    Ok(kilobytes / 1_024.0)
}

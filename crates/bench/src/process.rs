//! What the operating system says of a process.

use anyhow::Context;

/// Processor time that a process has used until now, in seconds.
pub fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("reading the process's times")?;
    // Fields follow the name, which stands in parentheses and may itself hold spaces.
    let after = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
    let ticks = |field: usize| after.split(' ').nth(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    // utime and stime are fields 14 and 15 of proc(5), in hundredths of a second on Linux.
    Ok((ticks(11) + ticks(12)) / 100.0)
}

/// Resident memory of a process, in megabytes.
pub fn resident_mb(pid: u32) -> anyhow::Result<f64> {
    status_mb(pid, "VmRSS:")
}

/// The most memory that a process has had resident, in megabytes.
pub fn peak_mb(pid: u32) -> anyhow::Result<f64> {
    status_mb(pid, "VmHWM:")
}

fn status_mb(pid: u32, field: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("reading the process's memory")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0 kB");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse().context("reading the process's memory")?;
    Ok(kilobytes / 1_024.0)
}

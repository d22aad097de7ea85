//! Measurements as text.

use super::deadlines::{DeadlinesReport, Lateness};
use super::flood::{AnswerTimes, FloodReport};
use super::measurements::Report;

pub(super) fn report(report: &Report) {
    anstream::println!("{} cores, {} in flight", report.cores, report.in_flight);
    anstream::println!(
        "raw broker            {:>9.0} a second",
        report.raw_per_second
    );
    let share = report.step_share_of_raw * 100.0;
    anstream::println!(
        "facilitator step      {:>9.0} a second, {share:.0}% of the raw broker",
        report.step_per_second
    );
    if let Some(round) = report.median_round() {
        for (what, rate) in [("raw", &round.raw), ("a step", &round.step)] {
            for (process, microseconds) in &rate.cpu_us {
                anstream::println!(
                    "    {process:<20} {microseconds:>6.1} us of processor time a message, {what}"
                );
            }
        }
    }
    for cases in &report.cases {
        anstream::println!(
            "{:>3} cases at once     {:>9.1} cases a second, p50 {:.0} ms, p99 {:.0} ms, {:.0} stored a case{}",
            cases.concurrency,
            cases.per_second,
            cases.p50_ms,
            cases.p99_ms,
            cases.stored_per_case,
            if cases.hear_answers {
                ", the parties hear each other"
            } else {
                ""
            }
        );
        for (process, milliseconds) in &cases.cpu_ms_per_case {
            anstream::println!("    {process:<20} {milliseconds:>6.2} ms of processor time a case");
        }
    }
    anstream::println!(
        "a case alone          {:>9.1} ms p50, {:.1} ms p99",
        report.lone_p50_ms,
        report.lone_p99_ms
    );
    for (service, megabytes) in &report.memory.resident_mb {
        anstream::println!(
            "{service:<20}  {megabytes:>9.1} MB resident, {} cases open",
            report.memory.open_cases
        );
    }
    deadlines(&report.deadlines);
}

pub(super) fn flood(report: &FloodReport) {
    let FloodReport {
        quiet_agents,
        messages,
        unread_per_second,
        flooded,
        flooded_per_second,
        limited,
        attacks,
        ..
    } = report;
    anstream::println!(
        "{quiet_agents} agents, ten messages a second each, {messages} in all; every one was answered"
    );
    let line = |what: &str,
                AnswerTimes {
                    p50_ms,
                    p99_ms,
                    max_ms,
                }: AnswerTimes| {
        anstream::println!(
            "{what:<34} {p50_ms:>8.1} ms p50, {p99_ms:>8.1} ms p99, {max_ms:>8.1} ms at most"
        );
    };
    line("    alone", report.alone);
    line("    beside a stream nobody reads", report.unread);
    line("    while another agent floods", report.during);
    anstream::println!(
        "{:<34} {:>8.1} x  p50, {:>8.1} x  p99",
        "    to alone",
        report.p50_ratio,
        report.p99_ratio
    );
    anstream::println!(
        "{:<34} {:>25.1} x  p99",
        "    to beside a stream nobody reads",
        report.p99_ratio_to_unread
    );
    anstream::println!(
        "into the stream that nobody reads: {unread_per_second:.0} messages a second\n\
         the flood: {flooded} messages, {flooded_per_second:.0} a second; {limited} errors told it the limit meanwhile"
    );
    super::attacks::print(attacks);
}

pub(super) fn deadlines(report: &DeadlinesReport) {
    let DeadlinesReport {
        debates, spread_ms, ..
    } = report;
    anstream::println!(
        "{debates} debates, each with a deadline at one instant (within {spread_ms} ms)"
    );
    let line = |what: &str,
                Lateness {
                    p50_ms,
                    p99_ms,
                    max_ms,
                }: Lateness| {
        anstream::println!(
            "{what:<34} {p50_ms:>6} ms p50, {p99_ms:>6} ms p99, {max_ms:>6} ms at most"
        );
    };
    line("    bare schedules of the broker", report.broker);
    line("    deadline delivered", report.delivered);
    line("    deadline elapsed stored", report.elapsed);
    line("    new level stored", report.escalated);
    for (service, resident) in &report.resident_mb {
        let peak = report.peak_mb.get(service).copied().unwrap_or_default();
        anstream::println!("    {service:<20} {resident:>6.1} MB resident, {peak:.1} MB at most");
    }
    for (process, seconds) in &report.cpu_seconds {
        anstream::println!("    {process:<20} {seconds:>6.2} s of processor time");
    }
}

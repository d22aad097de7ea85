//! Measurements as text.

use concord_cli::shared::output::{self, Cell, Table};

use super::aims::Aim;
use super::alerts::AlertsReport;
use super::cases::CasesReport;
use super::deadlines::{DeadlinesReport, Lateness};
use super::flood::FloodReport;
use super::long::LongReport;
use super::measurements::Report;
use super::meter::{BROKER, Usage};
use super::quiet::AnswerTimes;
use super::snapshots::SnapshotsReport;
use super::takeover::{Blow, TakeoverReport};

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
    anstream::println!(
        "a case alone          {:>9.1} ms p50, {:.1} ms p99",
        report.lone_p50_ms,
        report.lone_p99_ms
    );
    cases(report);
    if let Some(memory) = &report.memory {
        for (service, megabytes) in &memory.resident_mb {
            anstream::println!(
                "{service:<20}  {megabytes:>9.1} MB resident, {} cases open",
                memory.open_cases
            );
        }
    }
    report.deadlines.iter().for_each(deadlines);
    aims(&report.aims);
}

const HEADINGS: [&str; 15] = [
    "whole cases",
    "at once",
    "replicas",
    "a second",
    "p50 ms",
    "p99 ms",
    "CPU ms",
    "in",
    "out",
    "stored",
    "KB",
    "reloads",
    "lost locks",
    "others",
    "steal",
];

/// Whole cases, a row for each measurement.
fn cases(report: &Report) {
    let mut table = Table::new(HEADINGS);
    let mut by_process = String::new();
    let mut row =
        |name: &str, at_once, times: (f64, f64), own: Option<&CasesReport>, usage: &Usage| {
            let of = |value: fn(&CasesReport) -> f64| {
                own.map_or_else(String::new, |own| format!("{:.2}", value(own)))
            };
            table.row([
                Cell::text(name),
                Cell::number(at_once),
                Cell::number(own.map_or_else(String::new, |own| own.replicas.to_string())),
                Cell::number(format!("{:.1}", usage.per_second)),
                Cell::number(format!("{:.1}", times.0)),
                Cell::number(format!("{:.1}", times.1)),
                Cell::number(format!("{:.2}", usage.cpu_ms_per_case)),
                Cell::number(format!("{:.1}", usage.broker_in_per_case)),
                Cell::number(format!("{:.1}", usage.broker_out_per_case)),
                Cell::number(of(|own| own.stored_per_case)),
                Cell::number(of(|own| own.stored_bytes_per_case / 1_000.0)),
                Cell::number(of(|own| own.reloads_per_case)),
                Cell::number(of(|own| own.conflicts_per_case)),
                percent(usage.host.others),
                percent(usage.host.steal),
            ]);
            let processes = usage.cpu_ms_by_process.iter();
            let processes: Vec<String> =
                processes.map(|(of, ms)| format!("{of} {ms:.2}")).collect();
            by_process.push_str(&format!(
                "    {name}, {at_once} at once: {}\n",
                processes.join(", ")
            ));
        };
    let mut concord = |name: &str, own: &CasesReport| {
        row(
            name,
            own.concurrency,
            (own.p50_ms, own.p99_ms),
            Some(own),
            &own.usage,
        );
    };
    for own in report.cases.iter().chain(&report.replicas) {
        concord(
            if own.hear_answers {
                "they hear each other"
            } else {
                "Concord"
            },
            own,
        );
    }
    for beside in &report.by_hand {
        concord("Concord", &beside.concord);
    }
    let by_hand = report.by_hand.iter().flat_map(|beside| {
        [
            ("by hand", &beside.by_hand),
            ("by hand, stored", &beside.by_hand_stored),
        ]
    });
    for (name, own) in by_hand {
        let times = (own.p50_ms, own.p99_ms);
        row(name, own.concurrency, times, None, &own.usage);
    }
    anstream::println!(
        "\n{table}\nEverything but rates and shares is a case's. Processor time of a case in ms, by process, replicas added up:\n\
         {by_process}"
    );
}

fn percent(share: f64) -> Cell {
    Cell::number(format!("{:.0}%", share * 100.0))
}

pub(super) fn long(report: &LongReport) {
    let mut table = Table::new([
        "cases",
        "a second",
        "p50 ms",
        "p99 ms",
        "CPU ms a case",
        "broker MB",
        "largest service MB",
        "others",
        "steal",
    ]);
    for tenth in &report.tenths {
        let resident = |is_wanted: fn(&str) -> bool| {
            let wanted = tenth
                .resident_mb
                .iter()
                .filter(|(process, _)| is_wanted(process));
            let largest = wanted.map(|(_, megabytes)| *megabytes).fold(0.0, f64::max);
            Cell::number(format!("{largest:.1}"))
        };
        table.row([
            Cell::number(tenth.cases),
            Cell::number(format!("{:.1}", tenth.usage.per_second)),
            Cell::number(format!("{:.1}", tenth.p50_ms)),
            Cell::number(format!("{:.1}", tenth.p99_ms)),
            Cell::number(format!("{:.2}", tenth.usage.cpu_ms_per_case)),
            resident(|process| process == BROKER),
            resident(|process| process != BROKER),
            percent(tenth.usage.host.others),
            percent(tenth.usage.host.steal),
        ]);
    }
    anstream::println!("{table}");
    aims(&report.aims);
}

pub(super) fn aims(aims: &[Aim]) {
    let mut table = Table::new(["aim", "value", "wanted", "", ""]);
    for aim in aims {
        let (result, style) = match aim.met {
            Some(true) => ("met", output::GOOD),
            Some(false) => ("not met", output::ERROR),
            None => ("not measured", output::FAINT),
        };
        table.row([
            Cell::text(&aim.aim),
            Cell::number(
                aim.value
                    .map_or_else(String::new, |value| value.to_string()),
            ),
            Cell::text(&aim.wanted),
            Cell::text(result).with(style),
            Cell::text(aim.note.as_deref().unwrap_or_default()),
        ]);
    }
    anstream::println!("{table}");
}

fn times(what: &str, times: AnswerTimes) {
    let AnswerTimes {
        p50_ms,
        p99_ms,
        max_ms,
    } = times;
    anstream::println!(
        "{what:<34} {p50_ms:>8.1} ms p50, {p99_ms:>8.1} ms p99, {max_ms:>8.1} ms at most"
    );
}

pub(super) fn alerts(report: &AlertsReport) {
    let AlertsReport {
        alerts, waiting, ..
    } = report;
    anstream::println!("{alerts} alerts, one after the other; {waiting} messages waited");
    times("    heard by the agent they wait for", report.busy);
    times("    heard by another", report.idle);
}

pub(super) fn snapshots(report: &SnapshotsReport) {
    let SnapshotsReport {
        debates,
        concurrency,
        silent,
        ..
    } = report;
    anstream::println!(
        "{debates} debates, {concurrency} cases at once; {silent} parties were silent"
    );
    times("    a party holds what it writes", report.held);
}

pub(super) fn takeover(report: &TakeoverReport) {
    anstream::println!("after {} cases of one opener", report.cases);
    for own in &report.blows {
        let what = match own.blow {
            Blow::Killed => "killed",
            Blow::Frozen => "frozen",
        };
        anstream::println!(
            "the coordinator that works of {} is {what}, {} times; of {} messages sent after that {} came again, because it had been \
             given them",
            report.replicas,
            own.times,
            own.given_to_it + own.others,
            own.given_to_it
        );
        times("    the first answer", own.first_answer);
        times("    answers to what came again", own.given_to_it_answered);
        times("    answers to all others", own.others_answered);
        times("    a case that is opened then", own.case);
    }
    aims(&report.aims);
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
    times("    alone", report.alone);
    times("    beside a stream nobody reads", report.unread);
    times("    while another agent floods", report.during);
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

pub(super) fn deadlines_only(report: &DeadlinesReport) {
    deadlines(report);
    aims(&report.aims);
}

fn deadlines(report: &DeadlinesReport) {
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

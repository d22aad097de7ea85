//! What is wanted of the measurements, and whether it is so.

use serde::Serialize;

use super::agents::Transport;
use super::by_hand::ByHandReport;
use super::cases::CasesReport;
use super::deadlines::DeadlinesReport;
use super::long::LongReport;
use super::measurements::{Beside, Report};
use super::memory::MemoryReport;
use super::meter::BROKER;
use super::numbers::{median, round};
use super::takeover::{Blow, BlowReport};
use super::tasks::TasksReport;

/// Cases at once with which Concord is measured beside an orchestrator written by hand.
pub(super) const BESIDE_BY_HAND: [usize; 2] = [32, 128];

/// Something that is wanted, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Aim {
    /// What is wanted.
    pub(super) aim: String,
    /// What was measured; none where this run did not measure it.
    pub(super) value: Option<f64>,
    /// The bound, for example `>= 0.8`.
    pub(super) wanted: String,
    /// Whether the value keeps to the bound; none without a value.
    pub(super) met: Option<bool>,
    /// What belongs beside the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    Above(f64),
    AtMost(f64),
}

impl Aim {
    fn new(aim: impl Into<String>, value: Option<f64>, bound: Bound) -> Self {
        let value = value.filter(|value| value.is_finite());
        let (sign, than) = match bound {
            Bound::AtLeast(than) => (">=", than),
            Bound::Above(than) => (">", than),
            Bound::AtMost(than) => ("<=", than),
        };
        let met = value.map(|value| match bound {
            Bound::AtLeast(than) => value >= than,
            Bound::Above(than) => value > than,
            Bound::AtMost(than) => value <= than,
        });
        Self {
            aim: aim.into(),
            // Rounded for people after it was compared.
            value: value.map(|value| (value * 1_000.0).round() / 1_000.0),
            wanted: format!("{sign} {than}"),
            met,
            note: None,
        }
    }

    fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }
}

/// What is wanted of a run of everything but many cases.
pub(super) fn of_report(report: &Report) -> Vec<Aim> {
    let heard = report.cases.iter().find(|cases| cases.hear_answers);
    let mut aims = of_broker(report);
    let beside = &report.by_hand;
    aims.extend(
        BESIDE_BY_HAND.map(|concurrency| of_by_hand(beside, Transport::Plain, concurrency)),
    );
    aims.extend(
        BESIDE_BY_HAND.map(|concurrency| of_by_hand(beside, Transport::Stored, concurrency)),
    );
    aims.extend(of_replicas(&report.replicas));
    aims.extend(of_storage(&report.replicas, heard));
    aims.push(Aim::new(
        "a lone case of instant agents, p50, ms",
        Some(report.lone_p50_ms),
        Bound::AtMost(10.0),
    ));
    aims.extend(report.memory.iter().flat_map(of_memory));
    aims.extend(report.deadlines.iter().map(of_deadlines));
    aims
}

/// The median of what was measured with so many processes of each service; none where it was not measured.
fn middle(
    reports: &[CasesReport],
    replicas: usize,
    value: impl Fn(&CasesReport) -> f64,
) -> Option<f64> {
    let of_these = reports.iter().filter(|report| report.replicas == replicas);
    let mut values = of_these.map(value).peekable();
    values.peek()?;
    Some(median(values))
}

fn of_broker(report: &Report) -> Vec<Aim> {
    let stored = |single: &CasesReport| report.raw_per_second / single.stored_per_case;
    let of_raw = middle(&report.replicas, 1, |single| {
        single.usage.per_second / stored(single)
    });
    vec![
        Aim::new(
            "the step's share of the raw broker's rate",
            Some(report.step_share_of_raw),
            Bound::AtLeast(0.8),
        ),
        Aim::new(
            "cases a second / (raw steps a second / stored a case)",
            of_raw,
            Bound::AtLeast(0.6),
        ),
    ]
}

fn of_by_hand(beside: &[Beside], transport: Transport, concurrency: usize) -> Aim {
    let found = beside
        .iter()
        .find(|beside| beside.by_hand.concurrency == concurrency);
    let (by_hand, whose): (fn(&Beside) -> &ByHandReport, _) = match transport {
        Transport::Plain => (|beside| &beside.by_hand, ""),
        Transport::Stored => (
            |beside| &beside.by_hand_stored,
            " whose messages are stored",
        ),
    };
    let rate = |beside: &Beside| {
        (
            beside.concord.usage.per_second,
            by_hand(beside).usage.per_second,
        )
    };
    let rates = found.map(rate);
    Aim::new(
        format!(
            "cases a second / those of an orchestrator written by hand{whose}, {concurrency} at once"
        ),
        rates.map(|(concord, by_hand)| concord / by_hand),
        Bound::Above(1.0),
    )
    .with_note(rates.map(|(concord, by_hand)| format!("{concord} and {by_hand} a second")))
}

fn of_replicas(reports: &[CasesReport]) -> Vec<Aim> {
    let ratio = |replicas, value: fn(&CasesReport) -> f64| {
        let one = middle(reports, 1, value);
        let of = middle(reports, replicas, value);
        of.zip(one).map(|(of, one)| of / one)
    };
    let rate = |report: &CasesReport| report.usage.per_second;
    let more_reads = middle(reports, 4, reads)
        .zip(middle(reports, 1, reads))
        .map(|(four, one)| format!("{} more than with one", round(four - one)));
    vec![
        Aim::new(
            "cases a second, 2 replicas / 1",
            ratio(2, rate),
            Bound::AtLeast(0.9),
        ),
        Aim::new(
            "cases a second, 4 replicas / 1",
            ratio(4, rate),
            Bound::AtLeast(0.75),
        ),
        Aim::new(
            "processor time a case, 4 replicas / 1",
            ratio(4, |report| report.usage.cpu_ms_per_case),
            Bound::AtMost(1.35),
        ),
        Aim::new(
            "reads of an aggregate a case, the first as well, 4 replicas",
            middle(reports, 4, reads),
            Bound::AtMost(0.05),
        )
        .with_note(more_reads),
        Aim::new(
            "lost locks a case, 4 replicas",
            middle(reports, 4, |four| four.conflicts_per_case),
            Bound::AtMost(0.02),
        ),
    ]
}

fn reads(report: &CasesReport) -> f64 {
    report.reloads_per_case
}

fn of_memory(report: &MemoryReport) -> Vec<Aim> {
    let resident = report.resident_mb.iter();
    let aim = |(service, megabytes): (&String, &f64)| {
        Aim::new(
            format!(
                "{service}'s resident memory, {} cases open, MB",
                report.open_cases
            ),
            Some(*megabytes),
            Bound::AtMost(60.0),
        )
    };
    resident.map(aim).collect()
}

/// What is wanted of deadlines at one instant.
pub(super) fn of_deadlines(report: &DeadlinesReport) -> Aim {
    Aim::new(
        format!("{} deadlines at one instant, p99, ms", report.debates),
        Some(report.escalated.p99_ms as f64),
        Bound::AtMost(1_000.0),
    )
    .with_note(Some(format!(
        "bare schedules of the broker {} ms",
        report.broker.p99_ms
    )))
}

fn of_storage(replicas: &[CasesReport], heard: Option<&CasesReport>) -> Vec<Aim> {
    let messages = |report: &CasesReport| report.stored_per_case;
    let kilobytes = |report: &CasesReport| report.stored_bytes_per_case / 1_000.0;
    let single = |value: fn(&CasesReport) -> f64| middle(replicas, 1, value);
    let adds = |value: fn(&CasesReport) -> f64| {
        let (single, heard) = single(value).zip(heard)?;
        Some(format!(
            "hear_answers adds {}",
            round(value(heard) - single)
        ))
    };
    vec![
        Aim::new(
            "messages stored a case",
            single(messages),
            Bound::AtMost(38.0),
        )
        .with_note(adds(messages)),
        Aim::new("KB stored a case", single(kilobytes), Bound::AtMost(32.0))
            .with_note(adds(kilobytes)),
    ]
}

/// What is wanted of a run of many cases.
pub(super) fn of_long(report: &LongReport) -> Vec<Aim> {
    let (first, last) = (report.tenths.first(), report.tenths.last());
    let cpu = first
        .zip(last)
        .map(|(first, last)| last.usage.cpu_ms_per_case / first.usage.cpu_ms_per_case);
    let resident = last.map(|last| &last.resident_mb);
    let mut aims = vec![
        Aim::new(
            "processor time a case, last tenth / first tenth",
            cpu,
            Bound::AtMost(1.1),
        ),
        Aim::new(
            "broker's resident memory at the end, MB",
            resident.and_then(|resident| resident.get(BROKER).copied()),
            Bound::AtMost(1_536.0),
        )
        .with_note(Some(format!(
            "grows by {} KB a case",
            report.broker_kb_per_case
        ))),
    ];
    for (process, megabytes) in resident.into_iter().flatten() {
        if process != BROKER {
            aims.push(Aim::new(
                format!("{process}'s resident memory at the end, MB"),
                Some(*megabytes),
                Bound::AtMost(96.0),
            ));
        }
    }
    aims
}

/// What is wanted of tasks.
pub(super) fn of_tasks(report: &TasksReport) -> Vec<Aim> {
    let by_turns = report
        .strategies
        .iter()
        .find(|own| own.strategy == "round_robin");
    let difference = by_turns.and_then(|own| own.most_minus_fewest);
    let matching = &report.matching;
    vec![
        Aim::new(
            "tasks a second by round robin",
            by_turns.map(|own| own.per_second),
            Bound::AtLeast(1_000.0),
        )
        .with_note(
            by_turns.map(|own| format!("{} ms of processor time each", own.cpu_ms_per_task)),
        ),
        Aim::new(
            "most tasks of an agent - fewest, by round robin",
            difference.map(|difference| difference as f64),
            Bound::AtMost(1.0),
        ),
        Aim::new(
            "find_agents by skill, p99, ms",
            Some(matching.by_skill.p99_ms),
            Bound::AtMost(20.0),
        ),
        Aim::new(
            "find_agents by text, p99, ms",
            Some(matching.by_text.p99_ms),
            Bound::AtMost(20.0),
        ),
    ]
}

/// What is wanted of another replica's taking over. What the one that was struck had been given comes again, and is compared apart.
pub(super) fn of_takeover(blows: &[BlowReport]) -> Vec<Aim> {
    let aims = |own: &BlowReport| {
        let (what, most) = match own.blow {
            Blow::Killed => ("killed", 1_000.0),
            Blow::Frozen => ("frozen", 2_000.0),
        };
        let most = Bound::AtMost(most);
        let all = own.given_to_it + own.others;
        let aim = format!("the longest wait after a replica was {what}, ms");
        let others = Aim::new(&*aim, Some(own.others_answered.max_ms), most);
        let again = format!("{aim}, for what it had been given");
        let given = (own.given_to_it > 0).then_some(own.given_to_it_answered.max_ms);
        let note = format!("{} of {all} messages", own.given_to_it);
        [others, Aim::new(again, given, most).with_note(Some(note))]
    };
    blows.iter().flat_map(aims).collect()
}

#[cfg(test)]
mod tests;

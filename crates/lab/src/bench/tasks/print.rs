//! The measurement of tasks as text.

use concord_cli::shared::output::{Cell, Table};

use super::super::print::aims;
use super::{Found, TasksReport};

pub(in super::super) fn tasks(report: &TasksReport) {
    anstream::println!(
        "{} cores; {} tasks by each strategy, {} at once, over {} agents on one connection of the driver; processes of each service: {}",
        report.cores,
        report.tasks,
        report.concurrency,
        report.agents,
        report.replicas
    );
    anstream::println!("raw broker: {:.0} messages a second", report.raw_per_second);
    for (process, microseconds) in &report.raw_cpu_us {
        anstream::println!("    {process:<20} {microseconds:>6.1} us of processor time a message");
    }
    strategies(report);
    let line = |what: &str, found: Found| {
        let Found {
            p50_ms,
            p99_ms,
            agents,
        } = found;
        anstream::println!(
            "{what:<40} {p50_ms:>7.2} ms p50, {p99_ms:>7.2} ms p99, {agents:.1} agents found"
        );
    };
    let matching = &report.matching;
    line("find_agents by skill", matching.by_skill);
    line("find_agents by text", matching.by_text);
    line("    the matching alone, by skill", matching.alone_by_skill);
    line("    the matching alone, by text", matching.alone_by_text);
    aims(&report.aims);
}

fn strategies(report: &TasksReport) {
    let mut table = Table::new([
        "strategy", "CPU ms", "given", "in", "a second", "p50 ms", "p99 ms", "others", "steal",
    ]);
    let mut by_process = String::new();
    let percent = |share: f64| Cell::number(format!("{:.0}%", share * 100.0));
    for own in &report.strategies {
        table.row([
            Cell::text(own.strategy),
            Cell::number(format!("{:.2}", own.cpu_ms_per_task)),
            Cell::number(format!("{:.2}", own.assignments_per_task)),
            Cell::number(format!("{:.1}", own.broker_in_per_task)),
            Cell::number(format!("{:.1}", own.per_second)),
            Cell::number(format!("{:.1}", own.p50_ms)),
            Cell::number(format!("{:.1}", own.p99_ms)),
            percent(own.host.others),
            percent(own.host.steal),
        ]);
        let processes = own.cpu_ms_by_process.iter();
        let processes: Vec<String> = processes.map(|(of, ms)| format!("{of} {ms:.2}")).collect();
        by_process.push_str(&format!("    {}: {}\n", own.strategy, processes.join(", ")));
    }
    anstream::println!(
        "\n{table}\nEverything but rates and shares is a task's. Processor time of a task in ms, by process:\n{by_process}"
    );
}

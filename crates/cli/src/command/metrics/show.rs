//! The five metrics as a table.

use concord_domain::coordination_metrics::{Feedbacks, Measure};

use super::Printed;
use crate::shared::output::{BAD, Cell, FAINT, GOOD, NAMED, PLAIN, Table, count, styled};

/// Writes a value as text.
type Form = fn(f64) -> String;

pub(super) fn text(printed: &Printed) -> String {
    let report = &printed.report;
    let mut table = Table::new(["METRIC", "VALUE", "TARGET", "", "OF"]);
    table.row(row(
        "messages through the lead",
        &report.lead_share,
        percent,
        through_lead(printed),
    ));
    table.row(row(
        "response time of peer help",
        &report.peer_help_seconds,
        seconds,
        peer_help(printed),
    ));
    let matched = feedback(
        &report.matches,
        report.matches.accepted,
        "answered",
        "agents that a match woke",
    );
    table.row(row(
        "matching accuracy",
        &report.matching_accuracy,
        percent,
        matched,
    ));
    let wakes = feedback(
        &report.wakes,
        report.wakes.declined,
        "declined",
        "agents that were woken",
    );
    table.row(row("false wake-ups", &report.false_wakes, percent, wakes));
    let sessions = format!(
        "{} in {}",
        count(report.collaboration_events, "event"),
        count(report.sessions, "session")
    );
    table.row(row(
        "collaboration events a session",
        &report.events_per_session,
        number,
        sessions,
    ));
    let mut text = table.to_string();
    let leads: Vec<&str> = printed.leads.iter().map(AsRef::as_ref).collect();
    let unreadable = match printed.unreadable {
        0 => String::new(),
        unreadable => format!("; {} could not be read", count(unreadable, "message")),
    };
    let archived = match printed.archived_cases {
        0 => String::new(),
        cases => format!("; not counted: {}", count(cases as u64, "archived case")),
    };
    let counted = format!("leads: {}{unreadable}{archived}", leads.join(", "));
    text.push_str(&format!("{}\n", styled(FAINT, counted)));
    text
}

fn row(name: &str, measure: &Measure, form: Form, of: String) -> [Cell; 5] {
    let (met, style) = match measure.met {
        Some(true) => ("met", GOOD),
        Some(false) => ("missed", BAD),
        None => ("", PLAIN),
    };
    let value = measure.value.map_or_else(|| "no data".to_owned(), form);
    let target = format!(
        "{} {}",
        if measure.above { ">" } else { "<" },
        form(measure.target)
    );
    [
        Cell::text(name).with(NAMED),
        Cell::number(value),
        Cell::number(target),
        Cell::text(met).with(style),
        Cell::text(of),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

fn number(number: f64) -> String {
    format!("{number:.1}")
}

fn through_lead(printed: &Printed) -> String {
    let report = &printed.report;
    format!(
        "{} of {} between agents",
        report.messages_through_lead,
        count(report.messages, "message")
    )
}

fn peer_help(printed: &Printed) -> String {
    let help = &printed.report.peer_help;
    let times = match (help.p50_ms, help.p95_ms) {
        (Some(p50), Some(p95)) => format!("; p50 {p50} ms, p95 {p95} ms"),
        _ => String::new(),
    };
    format!(
        "{} answered of {} asked{times}; {} unanswered, {} waiting",
        help.answered, help.asked, help.unanswered, help.waiting
    )
}

fn feedback(of: &Feedbacks, part: u64, what: &str, who: &str) -> String {
    let answered = of.accepted + of.declined;
    format!(
        "{part} {what} of {answered} {who} and spoke; {} silent, {} waiting",
        of.silent, of.waiting
    )
}

#[cfg(test)]
mod tests {
    use concord_domain::coordination_metrics::{Countable, Feedback, Tally, Waiting};
    use concord_wire::AgentId;

    use super::*;

    fn shown(counted: &[Countable]) -> String {
        let mut tally = Tally::default();
        counted.iter().for_each(|what| tally.add(*what));
        let printed = Printed {
            since: None,
            case_id: None,
            leads: [AgentId::fixed("coordinator"), AgentId::fixed("lea")].into(),
            window_ms: 1,
            unreadable: 1,
            archived_cases: 3,
            report: tally.report(&Waiting {
                asks: 1,
                wakes: 2,
                matches: 1,
            }),
        };
        anstream::adapter::strip_str(&text(&printed)).to_string()
    }

    #[test]
    fn values_stand_beside_their_targets_and_no_data_is_said_to_be_none() {
        let nothing = shown(&[]);
        assert_eq!(nothing.matches("no data").count(), 5, "{nothing}");
        assert!(
            !nothing.contains("met") && !nothing.contains("missed"),
            "{nothing}"
        );
        let feedback = |feedback| Countable::Feedback {
            matched: true,
            feedback,
        };
        let text = shown(&[
            Countable::Message { through_lead: true },
            Countable::Message {
                through_lead: false,
            },
            Countable::Message {
                through_lead: false,
            },
            Countable::Session,
            Countable::Asked,
            Countable::Asked,
            Countable::Helped { after_ms: 1_500 },
            feedback(Feedback::Accepted),
            feedback(Feedback::Declined),
            feedback(Feedback::Silent),
        ]);
        let squeezed: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            squeezed,
            [
                "METRIC VALUE TARGET OF",
                "messages through the lead 33.3 % < 50.0 % met 1 of 3 messages between agents",
                "response time of peer help 1.500 s < 2.000 s met 1 answered of 2 asked; p50 1500 ms, p95 1500 ms; 0 \
                 unanswered, 1 waiting",
                "matching accuracy 50.0 % > 80.0 % missed 1 answered of 2 agents that a match woke and spoke; 1 silent, 1 \
                 waiting",
                "false wake-ups 50.0 % < 10.0 % missed 1 declined of 2 agents that were woken and spoke; 1 silent, 2 waiting",
                "collaboration events a session 0.0 > 5.0 missed 0 events in 1 session",
                "leads: coordinator, lea; 1 message could not be read; not counted: 3 archived cases",
            ]
        );
    }
}

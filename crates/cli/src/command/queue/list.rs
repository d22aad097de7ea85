//! `concord queue`: the debates that experts have, and those that wait.

use clap::Args;
use concord_domain::aggregates::debate::{DebateMachine, DebateState};
use concord_domain::aggregates::review_queue::{QueueState, QueuedDebate};
use concord_events::names;
use concord_runtime::service::clock;
use concord_wire::payload::DebatePriority;
use concord_wire::{AgentId, CaseId, DebateId, Timestamp};
use serde::Serialize;

use super::state;
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{
    BAD, Cell, DOUBTFUL, FAINT, NAMED, PLAIN, STRONG, Table, ago, count, one_line, span, styled,
};

/// Arguments of `concord queue` without a verb.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// At most so many debates that wait; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    json: JsonArg,
}

/// A debate in the queue.
#[derive(Debug, Serialize)]
struct Row {
    debate_id: DebateId,
    case_id: CaseId,
    priority: DebatePriority,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// Who opened its case; openers take turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_by: Option<AgentId>,
    topic: String,
    /// The expert that has it; none while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    expert: Option<AgentId>,
    /// The time since which it needs a person.
    entered_at: Timestamp,
    /// The time since which the expert has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    assigned_at: Option<Timestamp>,
    /// The time until which a ruling counts.
    due: Timestamp,
    /// True while an operator holds its deadlines.
    held: bool,
}

/// The queue as it is printed.
#[derive(Debug, Serialize)]
struct Shown {
    /// The debates that experts have, by expert.
    assigned: Vec<Row>,
    /// The debates that wait, in the order in which they are assigned.
    waiting: Vec<Row>,
    /// The number of further debates that wait.
    not_shown: usize,
    experts: usize,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &ListArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let queue = state(&source).await?;
    let shown = shown(&source, &queue, args.limit).await?;
    args.json.print(&shown, text)?;
    Ok(0)
}

async fn shown(source: &EventSource, queue: &QueueState, limit: usize) -> Result<Shown, Failure> {
    let (mut assigned, mut waiting) = (Vec::new(), Vec::new());
    for expert in queue.experts.keys() {
        for debate in queue.held_by(expert) {
            assigned.push(row(source, debate).await?);
        }
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    for debate in queue.in_order().take(limit) {
        waiting.push(row(source, debate).await?);
    }
    let not_shown = queue.waiting.len().saturating_sub(waiting.len());
    Ok(Shown {
        assigned,
        waiting,
        not_shown,
        experts: queue.experts.len(),
    })
}

/// A debate of the queue, with its topic and deadline from the debate itself.
async fn row(source: &EventSource, debate: &QueuedDebate) -> Result<Row, Failure> {
    let id = debate.entry.debate_id.token();
    let (state, _) = source.aggregate::<DebateMachine>(&id).await?;
    Ok(new_row(debate, &state))
}

fn new_row(debate: &QueuedDebate, state: &DebateState) -> Row {
    let entry = debate.entry.clone();
    let deadlines = state.ladder.as_ref().map(|ladder| match &ladder.held {
        Some((held, _)) => (held, true),
        None => (&ladder.waits_for, false),
    });
    let person = |name: &str| name == names::PERSON;
    let due = deadlines.and_then(|(all, _)| {
        all.iter()
            .find(|one| person(one.name.as_str()))
            .map(|one| one.due)
    });
    Row {
        debate_id: entry.debate_id,
        case_id: entry.case_id,
        priority: entry.priority,
        domain: entry.domain,
        opened_by: entry.opened_by,
        topic: state
            .opened
            .as_ref()
            .map(|opened| opened.conflict.topic.clone())
            .unwrap_or_default(),
        expert: debate.holder.as_ref().map(|holder| holder.expert.clone()),
        entered_at: entry.entered_at,
        assigned_at: debate.holder.as_ref().map(|holder| holder.since),
        due: due.unwrap_or(entry.due),
        held: deadlines.is_some_and(|(_, held)| held),
    }
}

fn text(shown: &Shown) -> String {
    if shown.assigned.is_empty() && shown.waiting.is_empty() {
        let experts = count(shown.experts as u64, "expert");
        let advice = if shown.experts == 0 {
            "; see concord person register --help"
        } else {
            ""
        };
        return format!("No debate waits for a person ({experts} registered{advice}).\n");
    }
    let mut text = String::new();
    if !shown.assigned.is_empty() {
        let mut table = Table::new([
            "EXPERT", "DEBATE", "PRIORITY", "SINCE", "UNTIL", "LEFT", "OPENER", "CASE", "TOPIC",
        ])
        .indented("  ");
        for row in &shown.assigned {
            let expert = row
                .expert
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let since = row.assigned_at.map(ago).unwrap_or_default();
            table.row(cells(
                row,
                Cell::text(expert).with(NAMED),
                Cell::text(format!("{since} ago")),
            ));
        }
        text.push_str(&format!("{}\n{table}", styled(STRONG, "Experts have")));
    }
    if !shown.waiting.is_empty() {
        let mut table = Table::new([
            "NO", "DEBATE", "PRIORITY", "SINCE", "UNTIL", "LEFT", "OPENER", "CASE", "TOPIC",
        ])
        .indented("  ");
        for (place, row) in shown.waiting.iter().enumerate() {
            table.row(cells(
                row,
                Cell::number(place + 1),
                Cell::text(format!("{} ago", ago(row.entered_at))),
            ));
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!(
            "{gap}{}\n{table}",
            styled(STRONG, "Waiting, the next first")
        ));
    }
    if shown.not_shown > 0 {
        let note = format!("{} more; --limit 0 lists all", shown.not_shown);
        text.push_str(&format!("  {}\n", styled(FAINT, note)));
    }
    if shown.experts == 0 {
        let note = "Nobody is registered who could rule; see concord person register --help";
        text.push_str(&format!("{}\n", styled(DOUBTFUL, note)));
    }
    text
}

fn cells(row: &Row, first: Cell, since: Cell) -> [Cell; 9] {
    let left = row.due.millis_since(clock::now());
    let (left, style) = match (row.held, left) {
        (true, _) => ("held".to_owned(), DOUBTFUL),
        (false, 0) => ("overdue".to_owned(), BAD),
        (false, left) => (span(left), PLAIN),
    };
    [
        first,
        Cell::text(&row.debate_id),
        Cell::text(row.priority.as_str()).with(priority_style(row.priority)),
        since,
        Cell::text(row.due),
        Cell::text(left).with(style),
        Cell::text(
            row.opened_by
                .as_ref()
                .map_or("-".into(), ToString::to_string),
        ),
        Cell::text(&row.case_id),
        Cell::text(one_line(&row.topic, 50)),
    ]
}

fn priority_style(priority: DebatePriority) -> anstyle::Style {
    match priority {
        DebatePriority::CriticalPath => BAD,
        DebatePriority::Valuation => PLAIN,
        DebatePriority::Supporting => FAINT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, expert: Option<&str>) -> Row {
        Row {
            debate_id: DebateId::new(id).unwrap(),
            case_id: CaseId::new("c-1").unwrap(),
            priority: DebatePriority::CriticalPath,
            domain: None,
            opened_by: None,
            topic: "Price target".into(),
            expert: expert.map(|expert| AgentId::new(expert).unwrap()),
            entered_at: clock::now(),
            assigned_at: expert.map(|_| clock::now()),
            due: clock::now().plus_millis(7_200_000 + 59_000),
            held: id == "d-3",
        }
    }

    #[test]
    fn the_queue_is_shown_in_its_order() {
        let shown = Shown {
            assigned: vec![row("d-1", Some("eva"))],
            waiting: vec![row("d-2", None), row("d-3", None)],
            not_shown: 4,
            experts: 1,
        };
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[2].starts_with("  eva     d-1     critical-path") && lines[2].contains("2 h"),
            "{text}"
        );
        assert!(
            lines[6].starts_with("   1  d-2") && lines[7].contains("held"),
            "{text}"
        );
        assert!(lines[8].contains("4 more") && lines.len() == 9, "{text}");
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["waiting"][0]["priority"], "critical-path");
        let nobody = Shown {
            assigned: vec![],
            waiting: vec![],
            not_shown: 0,
            experts: 0,
        };
        assert!(
            super::text(&nobody)
                .starts_with("No debate waits for a person (0 experts registered; see")
        );
    }
}

//! `concord gate list`: the gates of a case, passed and ahead.

use concord_domain::aggregates::case::{
    CaseState, PassedGate, Phase, digest_of_shown, gates_passed,
};
use concord_events::{CaseEvent, StoredEvent};
use concord_wire::{AgentId, CaseId};
use serde::Serialize;

use super::first_reviews::FirstReview;
use super::waits_for;
use crate::shared::debate_file::{both, pass_reasons};
use crate::shared::output::{Cell, DOUBTFUL, FAINT, GOOD, STRONG, Table, one_line, styled};

/// At most so many characters of a reason: all of it.
const REASON: usize = 4_096;
/// At most so many characters of the name of a gate before a reason.
const GATE: usize = 80;

/// The gates of a case.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
    case_id: &'a CaseId,
    gates: Vec<Row<'a>>,
    /// Provisional decisions that require review at the gate ahead.
    requires_review: usize,
    /// Reviews that wait for a second one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    first_reviews: Vec<FirstReview<'a>>,
    /// The digest that a review that lets the case pass the gate ahead may name.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl Shown<'_> {
    /// Whether somebody has to review something at the gate ahead, or was the first to.
    fn is_waited_for(&self) -> bool {
        self.requires_review > 0 || self.first_reviewers().next().is_some()
    }

    /// Who was the first of two, and may review still.
    fn first_reviewers(&self) -> impl Iterator<Item = &AgentId> {
        let mut first = self.first_reviews.iter();
        std::iter::from_fn(move || first.find(|one| one.counts()).map(|one| one.by))
    }
}

/// The place of a gate in the way of its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum GateStatus {
    Passed,
    /// The next one to be passed.
    Ahead,
    /// After the one ahead.
    Later,
    /// The case was cancelled before it.
    NotReached,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    gate: &'a str,
    standing: GateStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<PassedGate>,
}

pub(super) fn shown<'a>(
    case_id: &'a CaseId,
    state: &'a CaseState,
    events: &[StoredEvent<CaseEvent>],
    first_reviews: Vec<FirstReview<'a>>,
) -> Shown<'a> {
    let mut passed = gates_passed(events).into_iter();
    let gates = state
        .opened
        .as_ref()
        .map(|opened| opened.gates.as_slice())
        .unwrap_or_default();
    let rows = gates.iter().enumerate().map(|(place, gate)| {
        let standing = match place.cmp(&state.gates_passed) {
            std::cmp::Ordering::Less => GateStatus::Passed,
            _ if state.phase == Phase::Cancelled => GateStatus::NotReached,
            std::cmp::Ordering::Equal => GateStatus::Ahead,
            std::cmp::Ordering::Greater => GateStatus::Later,
        };
        // Gates are passed in their order, so the events are in that order too.
        let passed = if standing == GateStatus::Passed {
            passed.next()
        } else {
            None
        };
        Row {
            gate,
            standing,
            passed,
        }
    });
    Shown {
        case_id,
        gates: rows.collect(),
        requires_review: state.unreviewed().count(),
        first_reviews,
        digest: digest_of_shown(state, None),
    }
}

pub(super) fn text(shown: &Shown<'_>) -> String {
    if shown.gates.is_empty() {
        return format!(
            "Case {} has no gates; they are named in `gates` when a case is opened.\n",
            shown.case_id
        );
    }
    let mut table = Table::new(["NO", "GATE", "", "BY", "AT", ""]);
    for (place, row) in shown.gates.iter().enumerate() {
        let (standing, style) = match row.standing {
            GateStatus::Passed => ("passed", GOOD),
            GateStatus::Ahead => ("ahead", STRONG),
            GateStatus::Later => ("later", FAINT),
            GateStatus::NotReached => ("not reached", FAINT),
        };
        let unreviewed = row
            .passed
            .as_ref()
            .map_or(0, |passed| passed.unreviewed.len());
        let note = match (row.standing, unreviewed) {
            (GateStatus::Ahead, _) if shown.is_waited_for() => {
                waits_for(shown.requires_review, shown.first_reviewers())
            }
            (_, 0) => String::new(),
            (_, number) => format!("with {number} unreviewed"),
        };
        table.row([
            Cell::number(place + 1),
            Cell::text(row.gate),
            Cell::text(standing).with(style),
            Cell::text(row.passed.as_ref().map_or(String::new(), |passed| {
                both(passed.first_reviewer.as_ref(), &passed.by)
            })),
            Cell::text(
                row.passed
                    .as_ref()
                    .map_or(String::new(), |passed| passed.at.to_string()),
            ),
            Cell::text(note).with(DOUBTFUL),
        ]);
    }
    let mut text = table.to_string();
    for passed in shown.gates.iter().filter_map(|row| row.passed.as_ref()) {
        for reason in pass_reasons(passed, REASON) {
            let gate = styled(FAINT, format!("{}:", one_line(&passed.gate, GATE)));
            text.push_str(&format!("{gate} {reason}\n"));
        }
    }
    let all_passed = shown
        .gates
        .iter()
        .all(|row| row.standing == GateStatus::Passed);
    let note = if all_passed {
        format!("{}\n", styled(FAINT, "Every gate is passed."))
    } else {
        String::new()
    };
    text + &note
}

#[cfg(test)]
mod tests {
    use concord_wire::{DebateId, Timestamp};

    use super::*;

    #[test]
    fn gates_are_passed_ahead_or_later() {
        let case = CaseId::new("c-1").unwrap();
        let row = |gate, standing| Row {
            gate,
            standing,
            passed: None,
        };
        let passed = PassedGate {
            gate: "model".into(),
            at: Timestamp::from_unix_millis(0),
            by: AgentId::fixed("eva"),
            rationale: "seen".into(),
            first_reviewer: Some(AgentId::fixed("gail")),
            first_rationale: Some("the model holds".into()),
            unreviewed: vec![DebateId::new("d-1").unwrap()],
        };
        let gates = vec![
            Row {
                passed: Some(passed),
                ..row("model", GateStatus::Passed)
            },
            row("valuation", GateStatus::Ahead),
            row("report", GateStatus::Later),
        ];
        let shown = Shown {
            case_id: &case,
            gates,
            requires_review: 2,
            first_reviews: vec![],
            digest: None,
        };
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            " 1  model      passed  gail and eva  1970-01-01T00:00:00.000Z  with 1 unreviewed"
        );
        assert!(
            lines[2].ends_with("2 provisional decisions require review")
                && lines[3].ends_with("later"),
            "{text}"
        );
        assert_eq!(
            lines[4..],
            ["model: gail: the model holds", "model: eva: seen"]
        );
        let printed = serde_json::to_value(&shown).unwrap();
        assert_eq!(printed["gates"][1]["standing"], "ahead");
        assert_eq!(printed["gates"][0]["passed"]["first_reviewer"], "gail");
    }
}

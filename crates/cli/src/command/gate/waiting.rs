//! `concord gate list` without a case: the cases that wait at a gate for a reviewer.

use std::collections::BTreeSet;

use concord_domain::aggregates::case::{CaseState, Phase};
use concord_runtime::Broker;
use concord_wire::{AgentId, CaseId, Timestamp};
use serde::Serialize;

use super::first_reviews::{self, FirstReview};
use super::waits_for;
use crate::shared::case_file;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, DOUBTFUL, NAMED, Table, ago, one_line};

/// A case that waits at a gate.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    case_id: CaseId,
    /// The gate ahead.
    gate: String,
    /// Provisional decisions that require review there; with none the case only waits to pass.
    requires_review: usize,
    /// Who has reviewed first, where a second reviewer must say the same.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    first_reviewers: BTreeSet<AgentId>,
    /// When the case was decided; none while debates of it go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Timestamp>,
    title: String,
}

impl Row {
    /// None for a case of which nothing waits for a reviewer now.
    fn new(case_id: CaseId, state: &CaseState, first: &[FirstReview<'_>]) -> Option<Self> {
        let gate = state.gate().filter(|_| state.phase != Phase::Cancelled)?;
        let requires_review = state.unreviewed().count();
        let waits = requires_review > 0 || state.phase == Phase::Decided;
        let title = state
            .opened
            .as_ref()
            .map(|opened| opened.task.title.clone());
        waits.then(|| Self {
            case_id,
            gate: gate.to_owned(),
            requires_review,
            first_reviewers: first
                .iter()
                .filter(|one| one.counts())
                .map(|one| one.by.clone())
                .collect(),
            decided_at: state.decided_at,
            title: title.unwrap_or_default(),
        })
    }
}

/// The cases that wait at a gate, the oldest first: those with something to review, then those that only wait to pass.
pub(super) async fn read(broker: &Broker) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let source = EventSource::new(broker).await?;
    for id in case_file::opened(broker).await? {
        let Some(state) = case_file::state_of_several(broker, &id).await? else {
            continue;
        };
        let first = first_reviews::all(&source, &state).await?;
        rows.extend(Row::new(id, &state, &first));
    }
    // The sort is stable, so each of the two groups stays in the order in which its cases were opened.
    rows.sort_by_key(|row| row.requires_review == 0);
    Ok(rows)
}

pub(super) fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No case waits at a gate.\n".to_owned();
    }
    let mut table = Table::new(["CASE", "GATE", "DECIDED", "", "TITLE"]);
    for row in rows {
        let waits = waits_for(row.requires_review, &row.first_reviewers);
        let decided = row
            .decided_at
            .map_or_else(|| "not yet".to_owned(), |at| format!("{} ago", ago(at)));
        table.row([
            Cell::text(&row.case_id).with(NAMED),
            Cell::text(&row.gate),
            Cell::text(decided),
            Cell::text(waits).with(DOUBTFUL),
            Cell::text(one_line(&row.title, 50)),
        ]);
    }
    table.to_string()
}

//! Everybody who fits does it; the result is what most of them say, if enough say it.
//!
//! Results are compared as canonical JSON ([`super::same`]): the order of fields does not matter, and numbers may differ by the
//! task's tolerance. Of two results that equally many give, the first in the order of values counts.

use concord_wire::AgentId;
use serde_json::{Value, json};

use super::{Next, Progress, TaskStrategy, all_failed, no_quorum, same, too_late};

pub(super) struct Consensus;

impl TaskStrategy for Consensus {
    fn after(&self, progress: &Progress<'_>) -> Next {
        if progress.is_active() {
            return Next::Wait;
        }
        if progress.results().next().is_none() {
            return Next::Fail(all_failed(progress));
        }
        counted(progress)
    }

    fn at_deadline(&self, progress: &Progress<'_>) -> Next {
        match counted(progress) {
            _ if progress.results().next().is_none() => Next::Fail(too_late(progress)),
            Next::Complete { result, by, .. } => Next::Complete {
                result,
                by,
                partial: true,
            },
            other => other,
        }
    }
}

fn counted(progress: &Progress<'_>) -> Next {
    let mut results: Vec<(&AgentId, &Value)> = progress.results().collect();
    results.sort_by(|a, b| same::order(a.1, b.1));
    let mut groups: Vec<(&Value, Vec<AgentId>)> = Vec::new();
    for (agent, result) in &results {
        let tolerance = progress.terms.tolerance;
        let mut known = groups.iter_mut();
        match known.find(|(first, _)| same::same(first, result, tolerance)) {
            Some((_, by)) => by.push((*agent).clone()),
            None => groups.push((result, vec![(*agent).clone()])),
        }
    }
    let quorum = progress.quorum(progress.parts.len());
    // The first of the largest ones: `max_by_key` would give the last.
    let largest = groups.into_iter().rev().max_by_key(|(_, by)| by.len());
    match largest {
        Some((result, by)) if by.len() >= quorum => Next::Complete {
            result: json!({ "result": result, "votes": by.len(), "of": progress.parts.len() }),
            by,
            partial: false,
        },
        largest => {
            let most = largest.map_or(0, |(_, by)| by.len());
            let (of, answered) = (progress.parts.len(), results.len());
            Next::Fail(no_quorum(
                format!(
                    "Of {of} asked {answered} have answered, and at most {most} agree; {quorum} must."
                ),
                "Ask more agents, lower the quorum, or allow a tolerance for numbers.",
            ))
        }
    }
}

//! Everybody who fits does it; the result is what most of them say, if enough say it.
//!
//! Results are compared as canonical JSON ([`super::same`]): the order of fields does not matter, and numbers may differ by the
//! task's tolerance. Of two results that equally many give, the first in the order of values counts that agrees with none before it.

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
    let quorum = progress.quorum(progress.parts.len());
    let largest = most_agreed(&results, progress.terms.tolerance);
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

/// The result with which most of those agree that come from it on in the order of values. Of numbers these are the most of which the
/// least and the greatest agree, so each agrees with each.
fn most_agreed<'a>(
    results: &[(&AgentId, &'a Value)],
    tolerance: f64,
) -> Option<(&'a Value, Vec<AgentId>)> {
    let mut begun: Vec<&Value> = Vec::new();
    let mut most: Option<((usize, bool), &Value, Vec<AgentId>)> = None;
    for (place, (_, result)) in results.iter().enumerate() {
        let agrees = |other: &Value| same::same(result, other, tolerance);
        let is_first = !begun.iter().any(|before| agrees(before));
        if is_first {
            begun.push(result);
        }
        let with = results
            .iter()
            .skip(place)
            .filter(|(_, other)| agrees(other));
        let by: Vec<AgentId> = with.map(|(agent, _)| (*agent).clone()).collect();
        // Of equally many those count that begin where no group before them ends.
        let rank = (by.len(), is_first);
        if most.as_ref().is_none_or(|(best, ..)| rank > *best) {
            most = Some((rank, result, by));
        }
    }
    most.map(|(_, result, by)| (result, by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_numbers_those_count_that_agree_with_each_other() {
        let named: Vec<AgentId> = (0..7)
            .map(|one| AgentId::new(format!("a-{one}")).unwrap())
            .collect();
        for (results, tolerance, expected) in [
            (json!([]), 0.0, None),
            (json!([100, 104, 108, 109]), 0.05, Some((104, 3))),
            (json!([100, 103, 104]), 0.05, Some((100, 3))),
            // Of equally many the first.
            (json!([100, 104, 108, 112]), 0.05, Some((100, 2))),
            // 104 begins three as well, but agrees with 100, which is before it.
            (json!([100, 104, 108, 109, 113]), 0.05, Some((108, 3))),
            (json!([7, 100, 100]), 0.0, Some((100, 2))),
            (json!([7, 7, 100, 100]), 0.0, Some((7, 2))),
            (json!([1, 2, 3, 4, 5, 6, 7]), 1.0, Some((1, 7))),
        ] {
            let values = results.as_array().unwrap();
            let given: Vec<(&AgentId, &Value)> = named.iter().zip(values).collect();
            let found = most_agreed(&given, tolerance);
            let found = found.map(|(result, by)| (result.as_i64().unwrap(), by.len()));
            assert_eq!(found, expected, "{results}");
        }
    }
}

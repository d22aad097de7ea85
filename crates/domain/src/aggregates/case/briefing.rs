//! What somebody must know who comes to a case late, or comes back to it.

use concord_events::CaseOpened;
use concord_wire::AgentId;
use concord_wire::payload::{SessionBriefing, Task};
use serde_json::Value;

use super::joining::SharedNow;
use super::state::{CaseState, Phase};
use crate::aggregates::board::BoardState;
use crate::aggregates::commitment::CommitmentState;
use crate::rules::size_budget::{json_bytes, truncate};

/// Most bytes of the input of a task that is given whole.
const INPUT_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of its beginning where it is larger.
const EXCERPT_BYTES_MAX: usize = 32 * 1024;

/// Most bytes of the recommendation of a decision.
const RECOMMENDATION_BYTES_MAX: usize = 1024;

/// Most bytes of the board and the commitments in a briefing that is sent.
const SHARED_BYTES_MAX: usize = 64 * 1024;

/// The briefing about a case; `None` where it was never opened. What participants have found is not in it: while findings are
/// collected nobody sees those of others.
pub fn briefing(
    case: &CaseState,
    board: &BoardState,
    commitments: &CommitmentState,
) -> Option<SessionBriefing> {
    let opened = case.opened.as_ref()?;
    let awaited = match case.phase {
        Phase::Collecting => case.awaited(opened, None),
        _ => Vec::new(),
    };
    let shared = SharedNow {
        board: board.listings(),
        leases: commitments.leases.values().cloned().collect(),
    };
    Some(brief(case, opened, awaited, &shared))
}

/// The briefing about a case that is open.
pub(super) fn brief(
    case: &CaseState,
    opened: &CaseOpened,
    awaited: Vec<AgentId>,
    shared: &SharedNow,
) -> SessionBriefing {
    SessionBriefing {
        so_far: so_far(case, opened.participants.len(), awaited.len()),
        case_id: case.case_id.clone(),
        task: Some(shown(&opened.task)),
        phase: serde_json::to_value(case.phase)
            .ok()
            .and_then(|phase| phase.as_str().map(str::to_owned)),
        opened_by: Some(opened.opened_by.clone()),
        participants: opened.participants.clone(),
        awaited,
        findings_due: Some(opened.findings_due),
        case_due: Some(opened.case_due),
        debates: case.open_debates().cloned().collect(),
        board: shared.board.clone(),
        commitments: shared.leases.clone(),
    }
}

/// The same with no more of the board and the commitments than an event has room for.
pub(super) fn shortened(mut briefing: SessionBriefing) -> SessionBriefing {
    let mut is_shortened = false;
    for kept in [64, 16, 0] {
        if json_bytes(&(&briefing.board, &briefing.commitments)) <= SHARED_BYTES_MAX {
            break;
        }
        briefing.board.truncate(kept);
        briefing.commitments.truncate(kept);
        is_shortened = true;
    }
    if is_shortened {
        briefing.so_far.push_str(
            " There is more on the board, and there are more commitments, than stands here: the verb `briefing` gives all of it.",
        );
    }
    briefing
}

/// The task as a briefing gives it.
pub(super) fn shown(task: &Task) -> Task {
    if json_bytes(&task.input) <= INPUT_BYTES_MAX {
        return task.clone();
    }
    let text = task.input.to_string();
    Task {
        input: Value::String(truncate::excerpt(&text, EXCERPT_BYTES_MAX)),
        ..task.clone()
    }
}

fn so_far(case: &CaseState, participants: usize, awaited: usize) -> String {
    let open = case.open_debates().count();
    let settled = case.outcomes.len();
    match case.phase {
        Phase::Collecting => {
            let given = participants.saturating_sub(awaited);
            format!("{given} of {participants} findings are there.")
        }
        Phase::Detecting => "Findings are closed, and conflicts are looked for.".to_owned(),
        Phase::Deliberating => format!("{open} debates go on, {settled} are settled."),
        Phase::Decided => decided(case),
        Phase::New | Phase::Cancelled => "The case was cancelled.".to_owned(),
    }
}

/// The decision in words, for whoever was away when it was told.
fn decided(case: &CaseState) -> String {
    let mut said = "The case has its decision".to_owned();
    if let Some(decision) = &case.decision {
        let outcome = &decision.outcome;
        let recommendation = outcome.recommendation.as_ref();
        let parts = [
            recommendation.map(|one| {
                let words = truncate::excerpt(one, RECOMMENDATION_BYTES_MAX);
                format!("recommendation {words}")
            }),
            outcome
                .severity
                .map(|one| format!("severity {}", one.as_str())),
            outcome.risk_score.map(|one| format!("risk score {one}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        said.push_str(&format!(" ({})", decision.reason));
        if !parts.is_empty() {
            said.push_str(&format!(": {}", parts.join(", ")));
        }
        let unfinished = decision.open.len() + decision.provisional.len();
        if unfinished > 0 {
            said.push_str(&format!(
                "; not final yet, {unfinished} of its debates are open or provisional"
            ));
        }
    }
    said.push('.');
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::aggregates::case::{CaseInput, CaseMachine};
    use crate::fixtures::*;

    #[test]
    fn a_briefing_says_where_the_case_is_and_nothing_of_what_others_found() {
        let (board, commitments) = (BoardState::default(), CommitmentState::default());
        let brief = |case: &CaseState| briefing(case, &board, &commitments);
        assert_eq!(brief(&CaseState::default()), None);
        let mut story = Story::<CaseMachine>::of("c-1");
        story.hears(&said("m-1", 0), &open_case(&["ann", "ben"], policy()));
        let found = received(
            "ann",
            "m-2",
            0.9,
            json!({ "summary": "a secret until then" }),
        );
        story.hears(&said("m-2", 1), &CaseInput::Finding(Box::new(found)));
        let given = brief(story.state()).unwrap();
        assert_eq!(given.so_far, "1 of 2 findings are there.");
        assert_eq!(given.phase.as_deref(), Some("collecting"));
        assert_eq!(given.awaited, [agent("ben")]);
        assert!(!serde_json::to_string(&given).unwrap().contains("secret"));
    }

    #[test]
    fn a_briefing_says_what_was_decided() {
        let (board, commitments) = (BoardState::default(), CommitmentState::default());
        let mut story = Story::<CaseMachine>::of("c-1");
        story.hears(&said("m-1", 0), &open_case(&["ann"], policy()));
        let found = json!({ "summary": "Seen.", "risk_score": 40, "recommendation": "sign" });
        let found = received("ann", "m-2", 0.9, found);
        story.hears(&said("m-2", 1), &CaseInput::Finding(Box::new(found)));
        let detected = detected(vec![], vec![]);
        assert_eq!(story.hears(&happened("e", 2), &detected), "decided");
        let given = briefing(story.state(), &board, &commitments).unwrap();
        let expected =
            "The case has its decision (no_conflict): recommendation sign, risk score 40.";
        assert_eq!(given.so_far, expected);
    }

    #[test]
    fn a_large_input_is_shortened() {
        let task = Task {
            kind: "k".into(),
            title: String::new(),
            input: json!("i".repeat(600_000)),
        };
        assert!(json_bytes(&shown(&task).input) <= EXCERPT_BYTES_MAX + 8);
        let small = Task {
            input: json!({ "a": 1 }),
            ..task
        };
        assert_eq!(shown(&small), small);
    }
}

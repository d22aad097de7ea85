//! The messages that follow from the events of a question: one answer or one error to whoever asked, and what the others are told.

use concord_events::{QuestionEnd, QuestionEvent, QuestionOutcome, QuestionStep};
use concord_wire::payload::ErrorReport;
use concord_wire::payload::notification::StandDown;
use serde_json::Value;

use crate::effect::Effect;

pub(super) fn effects(event: &QuestionEvent) -> Vec<Effect> {
    let asked = event.next().and_then(|next: &QuestionStep| {
        let asked = next.synthesise.as_ref()?;
        Some(Effect::AskSynthesiser {
            asked: Box::new(asked.clone()),
        })
    });
    let ended = event.end().into_iter().flat_map(end);
    asked.into_iter().chain(ended).collect()
}

fn end(end: &QuestionEnd) -> impl Iterator<Item = Effect> {
    let (to, request_id) = (end.asker.clone(), end.message_id.clone());
    let told = match &end.outcome {
        QuestionOutcome::Answered(answer) => Effect::Respond {
            to,
            request_id,
            // A type of ours can always be written.
            result: serde_json::to_value(answer).unwrap_or(Value::Null),
        },
        QuestionOutcome::Failed {
            code,
            why,
            advice,
            details,
        } => Effect::FailRequest {
            to,
            request_id,
            report: Box::new(ErrorReport {
                error_code: *code,
                error_message: why.clone(),
                details: details.clone(),
                recovery_suggestions: vec![advice.clone()],
            }),
        },
    };
    let others = end.stand_down.iter().map(|agent| {
        let data = StandDown {
            question: end.message_id.clone(),
            asker: end.asker.clone(),
            why: why(&end.outcome).to_owned(),
        };
        Effect::tell(agent.clone(), data)
    });
    std::iter::once(told).chain(others)
}

/// Why an agent that has not answered need not any more.
fn why(outcome: &QuestionOutcome) -> &'static str {
    match outcome {
        QuestionOutcome::Answered(answer) if answer.timed_out => {
            "The time for answers is over; others have answered."
        }
        QuestionOutcome::Answered(_) => "Another agent has answered first.",
        QuestionOutcome::Failed { .. } => "The question has ended without an answer.",
    }
}

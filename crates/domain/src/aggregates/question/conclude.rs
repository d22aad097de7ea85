//! What follows from the answers so far: nothing, a synthesis, or the end; and which answer is primary.

use concord_events::{QuestionEnd, QuestionOpened, QuestionOutcome, QuestionStep, SynthesisAsked};
use concord_wire::payload::{
    AnswerMode, AnswererRecord, Credibility, GivenAnswer, GroupAnswer, Synthesis, SynthesisStatus,
    Synthesise,
};
use concord_wire::policy::VoteRule;
use concord_wire::{AgentId, ErrorCode};
use serde_json::{Map, Value, json};

use crate::rules::credibility::DATA_POINTS_MIN;
use crate::rules::vote;

/// Confidence of an answer that states none: neither sure nor unsure.
const CONFIDENCE_UNSTATED: f64 = 0.5;
/// An answer is right or it is not.
const OPTIONS: usize = 2;

/// The answer with its weight: by the rule by which votes are weighed that know track records. Where the agent has a record of
/// [`DATA_POINTS_MIN`] points in the domain, that decides; else its stated confidence does, on ReConcile's scale.
pub fn weigh(answer: GivenAnswer, credibility: Option<&Credibility>) -> GivenAnswer {
    let confidence = answer.confidence.unwrap_or(CONFIDENCE_UNSTATED);
    let weight = vote::calibrated_weight(VoteRule::Credibility, confidence, credibility, OPTIONS);
    let known = credibility.filter(|known| known.data_points >= DATA_POINTS_MIN);
    GivenAnswer {
        record: known.map(|known| AnswererRecord {
            score: known.score,
            data_points: known.data_points,
        }),
        // The last bits of a logarithm differ between machines.
        weight: (weight * 1e9).round() / 1e9,
        ..answer
    }
}

/// Why a question ends without an answer.
pub(super) struct Failure {
    pub(super) code: ErrorCode,
    pub(super) why: String,
    pub(super) advice: String,
}

pub(super) fn nobody_woken() -> Failure {
    Failure {
        code: ErrorCode::AgentUnavailable,
        why: "The question wakes nobody: it fits nobody's skill clearly enough, and names nobody."
            .into(),
        advice: "Ask in other words, name an agent with @, or look with `concord agents` who is there and with `concord wake explain` \
                 how near each was."
            .into(),
    }
}

/// What follows from these answers. `is_over` says that the time for answers is over.
pub(super) fn after(
    opened: &QuestionOpened,
    answers: &[GivenAnswer],
    is_over: bool,
) -> QuestionStep {
    let has_answered = |agent: &AgentId| answers.iter().any(|answer| answer.by == *agent);
    let have_all = opened.asked.iter().all(|asked| has_answered(&asked.agent));
    let is_first = opened.terms.mode == AnswerMode::FirstResponder
        && answers.iter().any(|answer| !answer.declines);
    if !(have_all || is_first || is_over) {
        return QuestionStep::default();
    }
    let (given, _) = ranked(opened, answers);
    match &opened.terms.synthesiser {
        Some(to) if !given.is_empty() => QuestionStep {
            synthesise: Some(SynthesisAsked {
                to: to.clone(),
                due: opened.due,
                synthesise: Synthesise {
                    question: opened.message_id.clone(),
                    asker: opened.asker.clone(),
                    text: opened.text.clone(),
                    answers: given,
                },
            }),
            end: None,
        },
        _ => ended(end(opened, answers, None)),
    }
}

/// The end after the synthesiser has answered or declined, or has missed its time.
pub(super) fn synthesised(
    opened: &QuestionOpened,
    answers: &[GivenAnswer],
    status: SynthesisStatus,
    answer: Option<GivenAnswer>,
) -> QuestionStep {
    ended(end(opened, answers, Some((status, answer))))
}

fn ended(end: QuestionEnd) -> QuestionStep {
    QuestionStep {
        synthesise: None,
        end: Some(end),
    }
}

/// The answers, the one to go by first, and apart those who have none.
fn ranked(
    opened: &QuestionOpened,
    answers: &[GivenAnswer],
) -> (Vec<GivenAnswer>, Vec<GivenAnswer>) {
    let (declined, mut given): (Vec<GivenAnswer>, Vec<GivenAnswer>) =
        answers.iter().cloned().partition(|answer| answer.declines);
    given.sort_by_key(|answer| answer.at);
    if opened.terms.mode != AnswerMode::FirstResponder {
        // Stable: of two of the same weight and confidence, the earlier.
        let stated = |answer: &GivenAnswer| answer.confidence.unwrap_or(CONFIDENCE_UNSTATED);
        given.sort_by(|a, b| {
            let by_weight = b.weight.total_cmp(&a.weight);
            by_weight.then_with(|| stated(b).total_cmp(&stated(a)))
        });
    }
    (given, declined)
}

fn silent(opened: &QuestionOpened, answers: &[GivenAnswer]) -> Vec<AgentId> {
    let asked = opened.asked.iter().map(|asked| &asked.agent);
    asked
        .filter(|agent| answers.iter().all(|answer| answer.by != **agent))
        .cloned()
        .collect()
}

fn end(
    opened: &QuestionOpened,
    answers: &[GivenAnswer],
    synthesis: Option<(SynthesisStatus, Option<GivenAnswer>)>,
) -> QuestionEnd {
    let (given, declined) = ranked(opened, answers);
    let silent = silent(opened, answers);
    let made = synthesis
        .as_ref()
        .and_then(|(status, answer)| answer.clone().filter(|_| *status == SynthesisStatus::Done));
    let mut all = made.into_iter().chain(given);
    let Some(primary) = all.next() else {
        return failed(opened, answers, without_answer(opened, &silent));
    };
    let by = opened.terms.synthesiser.clone();
    let is_first = opened.terms.mode == AnswerMode::FirstResponder;
    let answered = GroupAnswer {
        question: opened.message_id.clone(),
        mode: opened.terms.mode,
        primary,
        supplementary: all.collect(),
        declined,
        timed_out: !is_first && !silent.is_empty(),
        asked: opened.asked.clone(),
        synthesis: by
            .zip(synthesis)
            .map(|(by, (status, _))| Synthesis { by, status }),
        silent: silent.clone(),
    };
    QuestionEnd {
        asker: opened.asker.clone(),
        message_id: opened.message_id.clone(),
        outcome: QuestionOutcome::Answered(answered),
        stand_down: silent,
    }
}

fn without_answer(opened: &QuestionOpened, silent: &[AgentId]) -> Failure {
    let asked = opened.asked.len();
    if silent.is_empty() {
        return Failure {
            code: ErrorCode::AgentUnavailable,
            why: format!("Everyone who was asked ({asked}) has said that it has no answer."),
            advice: "Ask in other words, or ask an agent of which you know that it can answer."
                .into(),
        };
    }
    let waited_ms = opened.answers_due.millis_since(opened.asked_at);
    Failure {
        code: ErrorCode::Timeout,
        why: format!("Nobody of those who were asked ({asked}) has answered within {waited_ms} ms."),
        advice: "Look with `concord agents` whether they are there, and ask again with a later deadline."
            .into(),
    }
}

/// The end of a question that nobody answers.
pub(super) fn failed(
    opened: &QuestionOpened,
    answers: &[GivenAnswer],
    failure: Failure,
) -> QuestionEnd {
    let silent = silent(opened, answers);
    let declined: Vec<&AgentId> = answers.iter().map(|answer| &answer.by).collect();
    let mut details = Map::<String, Value>::new();
    details.insert("message_id".into(), json!(opened.message_id));
    details.insert("mode".into(), json!(opened.terms.mode));
    details.insert("asked".into(), json!(opened.asked));
    details.insert("declined".into(), json!(declined));
    details.insert("silent".into(), json!(silent));
    let Failure { code, why, advice } = failure;
    QuestionEnd {
        asker: opened.asker.clone(),
        message_id: opened.message_id.clone(),
        outcome: QuestionOutcome::Failed {
            code,
            why,
            advice,
            details,
        },
        stand_down: silent,
    }
}

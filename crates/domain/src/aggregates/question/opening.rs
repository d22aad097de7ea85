//! Opening a question: who is asked, and until when answers count.

use concord_events::{QuestionEvent, QuestionOpened, QuestionTerms, WakeDecided};
use concord_wire::payload::AskedAgent;
use concord_wire::{Recipient, Timestamp};

use super::conclude::{self, Failure};
use super::{Asking, QuestionState};
use crate::activation::Reason;
use crate::aggregates::request::Refusal;
use crate::aggregates::request::admissibility::{impossible_deadline, refusal_of};
use crate::machine::{Decision, Ignored};

/// Most agents whose answers to one question are awaited: the first that are woken.
pub const ASKED_MAX: usize = 64;
/// The share of the time in which those who are asked answer, where a synthesiser comes after them: parts of 3.
pub const ANSWERS_SHARE: u64 = 2;
/// Most bytes of all answers that are repeated to whoever asked, as JSON: an event can hold them twice.
const ANSWERS_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of one of them.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

pub(super) fn ask(state: &QuestionState, asking: &Asking) -> Decision<QuestionEvent> {
    let Asking {
        decided, sender, ..
    } = asking;
    let Some(terms) = &decided.question else {
        return Decision::Ignore(Ignored::AlreadyDone);
    };
    if let Some(opened) = &state.opened {
        let is_another = opened.message_id != decided.said.message_id;
        if !(state.is_ended && is_another && decided.said.message_id.is_derived()) {
            return Decision::Ignore(Ignored::Repetition);
        }
    }
    let said = &decided.said;
    let usual = said.at.plus_millis(asking.bounds.answer_ms);
    let due = terms.deadline.unwrap_or(usual);
    let refusal = sender.check_active(&said.from).err().map(refusal_of);
    let refusal =
        refusal.or_else(|| impossible_deadline(due, said.at, asking.bounds.answer_ms_max));
    let mut opened = opened(decided, terms, due);
    if let Some(refusal) = refusal {
        let Refusal {
            code,
            why,
            suggestion,
            ..
        } = refusal;
        let failure = Failure {
            code,
            why,
            advice: suggestion,
        };
        opened.end = Some(conclude::failed(&opened, &[], failure));
    } else if opened.asked.is_empty() {
        opened.end = Some(conclude::failed(&opened, &[], conclude::nobody_woken()));
    }
    Decision::Append(QuestionEvent::Opened(opened))
}

fn opened(decided: &WakeDecided, terms: &QuestionTerms, due: Timestamp) -> QuestionOpened {
    let said = &decided.said;
    let addressee = match &said.to {
        Recipient::Agent(to) => Some(AskedAgent {
            agent: to.clone(),
            reason: Reason::DirectTarget.to_string(),
        }),
        Recipient::Any | Recipient::All => None,
    };
    let woken = decided.woken.iter().map(|one| AskedAgent {
        agent: one.agent_id.clone(),
        reason: one.reason.clone(),
    });
    let woken = woken.filter(|one| said.to.as_str() != one.agent.as_str());
    // Whoever is addressed has the question, also where it is not registered and so cannot be woken.
    let asked: Vec<AskedAgent> = addressee.into_iter().chain(woken).take(ASKED_MAX).collect();
    let whole_ms = due.millis_since(said.at);
    let answers_due = match terms.synthesiser {
        Some(_) => said
            .at
            .plus_millis(whole_ms.saturating_mul(ANSWERS_SHARE) / 3),
        None => due,
    };
    QuestionOpened {
        asker: said.from.clone(),
        message_id: said.message_id.clone(),
        case_id: decided.case_id.clone(),
        text: said.text.clone(),
        terms: terms.clone(),
        answer_bytes_max: (ANSWERS_BYTES_MAX / asked.len().max(1)).min(ANSWER_BYTES_MAX),
        asked,
        asked_at: said.at,
        answers_due,
        due,
        end: None,
    }
}

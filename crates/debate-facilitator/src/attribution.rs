//! Answers that name neither the question nor its debate: specification 1 prints some without `replyTo`. Where its sender can have meant one
//! question alone, that one is answered.

use std::collections::BTreeMap;

use concord_domain::aggregates::debate::DebateState;
use concord_domain::effect::source_of;
use concord_runtime::Ports;
use concord_runtime::codec::message_lookup::SearchStart;
use concord_runtime::delivery::HandleError;
use concord_runtime::ports::Search;
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{DebateId, Envelope, MessageId, MessageType, Recipient};

use crate::stores::Stores;

/// The last question of a debate that an agent was asked: the event that asked it, and the message.
type LastAsked = (u64, MessageId);

/// Whether a message is an answer that names neither the question nor its debate.
pub fn names_no_question(message: &Envelope) -> bool {
    use MessageType::{Agreement, Disagreement, Revision};
    matches!(message.message_type, Agreement | Disagreement | Revision)
        && message.reply_to.is_none()
        && message.correlation_id.is_none()
}

/// The message, naming the question that it answers where it names none and there is one alone that it can answer.
pub(crate) async fn attributed<P: Ports>(
    stores: &Stores<P>,
    message: Envelope,
) -> Result<Envelope, HandleError> {
    if !names_no_question(&message) {
        return Ok(message);
    }
    let mut meant = Vec::new();
    for (debate, (sequence, question)) in asked(stores, &message).await? {
        let state = stores.debates.load(&debate.token()).await?.state;
        let id = (message.message_id.clone(), message.from_agent.clone());
        // It was handled before, and is delivered again.
        if state.seen.contains_key(&id) {
            meant = vec![question];
            break;
        }
        if is_open(&state, sequence, &message) {
            meant.push(question);
        }
    }
    let Ok([question]) = <[MessageId; 1]>::try_from(meant) else {
        return Ok(message);
    };
    let reply_to = Some(question.to_string());
    Ok(Envelope {
        reply_to,
        ..message
    })
}

/// The last question of each debate that the sender of a message was asked in its case.
async fn asked<P: Ports>(
    stores: &Stores<P>,
    message: &Envelope,
) -> Result<BTreeMap<DebateId, LastAsked>, HandleError> {
    let mut asked = BTreeMap::<DebateId, LastAsked>::new();
    let Some(case) = &message.case_id else {
        return Ok(asked);
    };
    for lane in Lane::ALL {
        let filter = stores.ports.subjects().build(&Subject::Message {
            lane,
            case: Some(case.clone()),
            from: Service::DebateFacilitator.agent_id(),
            to: Recipient::Agent(message.from_agent.clone()),
            kind: MessageType::Question.token(),
        });
        let mut search = Search::new(lane, &filter, SearchStart::Sequence(1));
        while let Some(stored) = search.next(&stores.ports).await? {
            let Some(question) = stored.envelope.filter(|one| is_of_round(one, message)) else {
                continue;
            };
            let Some((debate, sequence)) = source_of(question.message_id.as_str()) else {
                continue;
            };
            let Ok(debate) = DebateId::new(debate) else {
                continue;
            };
            let last = (sequence, question.message_id.clone());
            let known = asked.entry(debate).or_insert_with(|| last.clone());
            if known.0 < sequence {
                *known = last;
            }
        }
    }
    Ok(asked)
}

/// Whether an answer may be one to a question by its round, where both name one.
fn is_of_round(question: &Envelope, answer: &Envelope) -> bool {
    match (question.round, answer.round) {
        (Some(asked), Some(answered)) => asked == answered,
        _ => true,
    }
}

/// Whether the debate still waits for the answer of a message's sender to the question of an event.
fn is_open(state: &DebateState, sequence: u64, message: &Envelope) -> bool {
    let by = &message.from_agent;
    let is_of_round = state.ladder.is_none()
        && state.round_sequence == sequence
        && state.asked.contains(by)
        && !state.answers.iter().any(|one| one.agent_id == *by);
    // On the ladder it is asked what no round asks.
    let is_of_ladder = state.ladder.is_some() && sequence > state.round_sequence;
    state.outcome.is_none() && (is_of_round || is_of_ladder)
}

//! Reads the answers of hosted agents, in any dialect, into messages.

use concord_wire::dialect::{self, AnswerContext};
use concord_wire::envelope::Metadata;
use concord_wire::payload::{ErrorReport, Response};
use concord_wire::subject::Service;
use concord_wire::{
    AgentId, Dialect, Envelope, Extensions, Fault, MessageId, MessageType, Priority, Recipient,
    Timestamp,
};
use serde_json::value::RawValue;

use crate::hosted_agent::callback::token::AnswerTarget;
use crate::hosted_agent::failure::Failure;
use crate::hosted_agent::openai::ModelAnswer;

/// Where an answer says its type.
pub(crate) const MESSAGE_TYPE: &str = "/message_type";

/// An answer as it came.
pub(crate) struct RawAnswer<'a> {
    pub(crate) body: &'a [u8],
    /// The dialect that the header `Concord-Dialect` names, where there is one.
    pub(crate) dialect: Option<&'a str>,
    /// The dialect of the agent's card.
    pub(crate) card_dialect: Dialect,
}

/// Reads an answer. None for `{}`, by which an agent says that it has nothing to say.
pub(crate) fn parse_answer(
    raw: &RawAnswer<'_>,
    target: &AnswerTarget,
    now: Timestamp,
    took_ms: Option<u64>,
) -> Result<Option<Envelope>, Fault> {
    let declared = Dialect::declared(raw.dialect)?;
    let AnswerTarget {
        agent,
        from,
        case_id,
        expected,
        of_task,
        ..
    } = target;
    let answering = AnswerContext {
        from: agent,
        to: from,
        case: case_id.as_ref(),
        dialect: raw.card_dialect,
    };
    let read = dialect::read_answer(raw.body, declared, &answering, |answer| {
        answer.answered(|payload| Ok(expected.kind(payload)))
    })?;
    let Some(Envelope {
        mut message_type,
        mut payload,
        metadata,
        extensions,
        reply_to,
        ..
    }) = read.map(in_its_own_form)
    else {
        return Ok(None);
    };
    if reply_to.is_some_and(|named| named != target.message_id.as_str()) {
        return Err(Fault::invalid(
            "/reply_to",
            "The answer names another message than the one that was asked.",
            "Answer each message before the next is read, or leave reply_to out.",
        ));
    }
    if let Some(asked) = of_task
        && let Some(answer) = asked.replaced(&message_type, &payload, metadata.confidence)?
    {
        (message_type, payload) = answer;
    }
    if let Some(asked) = target.asked
        && !asked.may_be_answered_by(&message_type)
    {
        return Err(Fault::invalid(
            MESSAGE_TYPE,
            format!("The message is not answered by the type {message_type}."),
            format!("It is answered by {}.", asked.named()),
        ));
    }
    let metadata = Metadata {
        processing_time_ms: metadata.processing_time_ms.or(took_ms),
        ..metadata
    };
    Ok(Some(Envelope {
        extensions,
        ..answer(target, now, message_type, payload, metadata)
    }))
}

/// A finding, an answer in a debate and the like in their own form, also of an agent that knows responses alone and has put them into one.
fn in_its_own_form(answer: Envelope) -> Envelope {
    use MessageType as T;
    match answer.message_type {
        T::Finding | T::FindingWithPrecedent | T::Clarification | T::Evidence => {
            answer.without_response_form()
        }
        T::Agreement | T::Disagreement | T::Revision => answer.without_response_form(),
        _ => answer,
    }
}

/// The message with a model's answer.
pub(crate) fn model_message(
    model: ModelAnswer,
    agent: &AgentId,
    incoming: &Envelope,
    now: Timestamp,
    took_ms: u64,
) -> Envelope {
    let metadata = Metadata {
        confidence: model.confidence,
        processing_time_ms: Some(took_ms),
        ..Metadata::default()
    };
    answer(
        &AnswerTarget::of(incoming, agent, now),
        now,
        model.message_type,
        model.payload,
        metadata,
    )
}

/// The message with the answer to a batch.
pub(crate) fn batch_message(
    response: &Response,
    target: &AnswerTarget,
    now: Timestamp,
    took_ms: u64,
) -> Result<Envelope, serde_json::Error> {
    let metadata = Metadata {
        processing_time_ms: Some(took_ms),
        ..Metadata::default()
    };
    let payload = serde_json::value::to_raw_value(response)?;
    Ok(answer(
        target,
        now,
        MessageType::Response,
        payload,
        metadata,
    ))
}

/// What the sender of a message is told in place of an answer.
pub(crate) fn error_report(failure: &Failure, agent: &AgentId) -> ErrorReport {
    let fault = Fault::new(
        failure.verdict.code,
        "",
        format!("{agent} gave no answer: {}.", failure.why),
        "",
    );
    ErrorReport {
        recovery_suggestions: failure.suggestions(),
        ..ErrorReport::from(&fault)
    }
}

/// The error that its sender is sent in place of an answer.
pub(crate) fn error_message(
    failure: &Failure,
    agent: &AgentId,
    incoming: &Envelope,
    now: Timestamp,
) -> Result<Envelope, serde_json::Error> {
    let payload = serde_json::value::to_raw_value(&error_report(failure, agent))?;
    Ok(answer(
        &AnswerTarget::of(incoming, agent, now),
        now,
        MessageType::Error,
        payload,
        Metadata::default(),
    ))
}

fn answer(
    target: &AnswerTarget,
    now: Timestamp,
    message_type: MessageType,
    payload: Box<RawValue>,
    metadata: Metadata,
) -> Envelope {
    let AnswerTarget {
        agent,
        message_id,
        from,
        case_id,
        correlation_id,
        round,
        ..
    } = target;
    // Whoever told the news: the coordinator has the findings.
    let to_agent = match target.is_news && message_type == MessageType::Confirmation {
        true => Service::Coordinator.agent_id(),
        false => from.clone(),
    };
    Envelope {
        // The same whichever replica answers, so that an answer given twice is stored once.
        message_id: MessageId::of_answer(message_id, agent),
        timestamp: now,
        from_agent: agent.clone(),
        to_agent: Recipient::Agent(to_agent),
        message_type,
        case_id: case_id.clone(),
        correlation_id: correlation_id
            .clone()
            .or_else(|| Some(message_id.to_string())),
        reply_to: Some(message_id.to_string()),
        round: *round,
        priority: Priority::Normal,
        requires_response: false,
        deadline: None,
        payload,
        metadata: Metadata {
            version: Some("1.0".into()),
            ..metadata
        },
        extensions: Extensions::default(),
    }
}

#[cfg(test)]
mod tests;

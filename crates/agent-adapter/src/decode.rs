//! From what an agent answers, in whatever dialect, to a message.

use concord_wire::dialect::{self, AnswerContext};
use concord_wire::envelope::Metadata;
use concord_wire::payload::ErrorReport;
use concord_wire::{
    AgentId, Dialect, Envelope, Extensions, Fault, MessageId, MessageType, Priority, Recipient,
    Timestamp,
};
use serde_json::value::RawValue;

use crate::callback::token::Asked;
use crate::failure::Failure;
use crate::openai;

/// What an agent answered, as it came.
pub(crate) struct Said<'a> {
    pub(crate) body: &'a [u8],
    /// What the header `Concord-Dialect` names, where there is one.
    pub(crate) dialect: Option<&'a str>,
    /// The dialect of the agent's card.
    pub(crate) speaks: Dialect,
}

/// The message that an answer stands for; none for `{}`, which says nothing.
pub(crate) fn message(
    said: &Said<'_>,
    asked: &Asked,
    now: Timestamp,
    took_ms: Option<u64>,
) -> Result<Option<Envelope>, Fault> {
    let declared = Dialect::declared(said.dialect)?;
    let Asked {
        agent,
        from,
        case_id,
        expected,
        ..
    } = asked;
    let answering = AnswerContext {
        from: agent,
        to: from,
        case: case_id.as_ref(),
        dialect: said.speaks,
    };
    let read = dialect::read_answer(said.body, declared, &answering, |payload| {
        expected.kind(payload)
    })?;
    let Some(Envelope {
        message_type,
        payload,
        metadata,
        extensions,
        reply_to,
        ..
    }) = read
    else {
        return Ok(None);
    };
    if reply_to.is_some_and(|named| named != asked.message_id.as_str()) {
        return Err(Fault::invalid(
            "/reply_to",
            "The answer names another message than the one that was asked.",
            "Answer each message before the next is read, or leave reply_to out.",
        ));
    }
    let metadata = Metadata {
        processing_time_ms: metadata.processing_time_ms.or(took_ms),
        ..metadata
    };
    Ok(Some(Envelope {
        extensions,
        ..answer(asked, now, message_type, payload, metadata)
    }))
}

/// The message of a model.
pub(crate) fn of_model(
    said: openai::Said,
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
    took_ms: u64,
) -> Envelope {
    let metadata = Metadata {
        confidence: said.confidence,
        processing_time_ms: Some(took_ms),
        ..Metadata::default()
    };
    answer(
        &Asked::of(asked, agent, now),
        now,
        said.message_type,
        said.payload,
        metadata,
    )
}

/// The error that is sent in place of an answer that the agent did not give.
pub(crate) fn failure(
    failure: &Failure,
    agent: &AgentId,
    asked: &Envelope,
    now: Timestamp,
) -> Result<Envelope, serde_json::Error> {
    let fault = Fault::new(
        failure.verdict.code,
        "",
        format!("{agent} gave no answer: {}.", failure.why),
        "",
    );
    let report = ErrorReport {
        recovery_suggestions: failure.suggestions(),
        ..ErrorReport::from(&fault)
    };
    let payload = serde_json::value::to_raw_value(&report)?;
    Ok(answer(
        &Asked::of(asked, agent, now),
        now,
        MessageType::Error,
        payload,
        Metadata::default(),
    ))
}

fn answer(
    asked: &Asked,
    now: Timestamp,
    message_type: MessageType,
    payload: Box<RawValue>,
    metadata: Metadata,
) -> Envelope {
    let Asked {
        agent,
        message_id,
        from,
        case_id,
        correlation_id,
        round,
        ..
    } = asked;
    Envelope {
        // The same whichever replica answers, so that an answer given twice is stored once.
        message_id: MessageId::of_answer(message_id, agent),
        timestamp: now,
        from_agent: agent.clone(),
        to_agent: Recipient::Agent(from.clone()),
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

//! Which messages and facts are inputs for which debate.

use concord_domain::debate::{DebateInput, GivenAnswer};
use concord_domain::effect;
use concord_protocol::event::{self, DeadlineEvent, Record};
use concord_protocol::payload::{Answer, Request};
use concord_protocol::subject::{Aggregate, Service};
use concord_protocol::{DebateId, Envelope, ErrorCode, Fault, MessageType, Token};
use concord_runtime::Routed;
use concord_runtime::route::{digest_of, unknown_type};

/// A message addressed to the debate facilitator.
pub fn from_message(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    match &envelope.message_type {
        MessageType::Agreement | MessageType::Disagreement | MessageType::Revision => answer(envelope),
        MessageType::Request => request(envelope),
        MessageType::Unknown(name) => Err(unknown_type(name)),
        _ => Ok(Routed::Ignored("other_type")),
    }
}

fn answer(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let answer: Answer = envelope.payload()?;
    answer.check()?;
    let question = envelope.reply_to.as_deref().and_then(effect::source_of);
    let debate = match (&envelope.correlation_id, question) {
        (Some(debate), _) => debate.as_str(),
        (None, Some((debate, _))) => debate,
        (None, None) => return Err(no_debate("The answer does not say which question it answers.")),
    };
    let id = DebateId::new(debate).map_err(|_| no_debate("The answer names no debate."))?;
    let given = GivenAnswer {
        agent_id: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        digest: digest_of(envelope),
        question_sequence: question.filter(|(debate, _)| *debate == id.as_str()).map(|(_, sequence)| sequence),
        round: envelope.round,
        is_agreement: envelope.message_type == MessageType::Agreement,
        confidence: envelope.metadata.confidence,
        answer,
    };
    Ok(Routed::Step { id: id.token(), input: DebateInput::Answer(Box::new(given)) })
}

fn no_debate(message: &str) -> Fault {
    Fault::invalid(
        "/reply_to",
        message,
        "Set reply_to to the question's message_id, or correlation_id to the question's debate_id.",
    )
}

fn request(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let request: Request = envelope.payload()?;
    if request.action != effect::OPEN_DEBATE {
        return Err(Fault::invalid(
            "/payload/action",
            format!("The debate facilitator does not do {:?}.", request.action),
            "Debates are opened by the conflict detector; open a case to have findings debated.",
        ));
    }
    if envelope.from_agent != Service::ConflictDetector.agent_id() {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            "Only the conflict detector opens debates.",
            "Open a case with the coordinator; conflicts among its findings are debated.",
        ));
    }
    let open = effect::read_open_debate(&request)?;
    let id: Token = open.conflict.conflict_id.token();
    Ok(Routed::Step { id, input: DebateInput::Open(Box::new(open)) })
}

/// A fact of another service.
pub fn from_fact(aggregate: Aggregate, bytes: &[u8], sequence: u64) -> Result<Routed<DebateInput>, event::Error> {
    if aggregate != Aggregate::Deadline {
        return Ok(Routed::Ignored("other_fact"));
    }
    let DeadlineEvent::Elapsed(elapsed) = Record::<DeadlineEvent>::decode(bytes, sequence)?.event;
    if elapsed.aggregate != Aggregate::Debate {
        return Ok(Routed::Ignored("other_deadline"));
    }
    Ok(Routed::Step { id: elapsed.id.clone(), input: DebateInput::Elapsed(elapsed) })
}

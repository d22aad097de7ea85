//! Which messages and events are inputs for which debate.

use concord_domain::aggregates::debate::{
    AnswerMessage, DebateInput, LadderMessage, MessageBody, Opening, OutcomeMessage,
};
use concord_domain::aggregates::person::Authority;
use concord_domain::effect;
use concord_runtime::delivery::route::{digest_of, not_acted_on};
use concord_runtime::{Routed, signing};
use concord_wire::envelope::from_json;
use concord_wire::payload::{
    Acknowledgement, Answer, Clarification, Evidence, OutcomeReport, Request, Ruling, action_of,
};
use concord_wire::subject::Service;
use concord_wire::{DebateId, Envelope, ErrorCode, Fault, MessageType, Token};

mod follow_ups;

pub use follow_ups::{FollowUp, follow_ups};

/// A message addressed to the debate facilitator.
pub fn from_message(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    match &envelope.message_type {
        MessageType::Agreement | MessageType::Disagreement | MessageType::Revision => {
            answer(envelope)
        }
        MessageType::Request => request(envelope),
        MessageType::Acknowledgement | MessageType::Clarification | MessageType::Evidence => {
            spoken(envelope)
        }
        MessageType::Ruling => ruling(envelope),
        MessageType::Outcome => outcome(envelope),
        other => not_acted_on(Service::DebateFacilitator, other),
    }
}

fn answer(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let answer = envelope.answered(|payload| match envelope.message_type {
        MessageType::Revision => Answer::read_revision(payload, envelope.metadata.confidence),
        _ => Answer::read(payload),
    })?;
    check_own(&answer, envelope)?;
    let question = effect::question_of(envelope);
    let id = debate_of(envelope)?;
    let given = AnswerMessage {
        agent_id: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        digest: digest_of(envelope),
        case_id: envelope.case_id.clone(),
        question_sequence: question
            .filter(|(debate, _)| *debate == id.as_str())
            .map(|(_, sequence)| sequence),
        round: envelope.round,
        is_agreement: envelope.message_type == MessageType::Agreement,
        is_disagreement: envelope.message_type == MessageType::Disagreement,
        confidence: envelope.metadata.confidence,
        snapshot: envelope.metadata.memory_snapshot,
        answer,
    };
    Ok(Routed::Step {
        id: id.token(),
        input: DebateInput::Answer(Box::new(given)),
    })
}

/// Nobody answers for another party.
fn check_own(answer: &Answer, envelope: &Envelope) -> Result<(), Fault> {
    match &answer.answered_by {
        Some(other) if *other != envelope.from_agent => Err(Fault::new(
            ErrorCode::Unauthorized,
            "/payload/answered_by",
            format!("{} has sent the answer of {other}.", envelope.from_agent),
            "Leave answered_by out: the sender is who has answered.",
        )),
        _ => Ok(()),
    }
}

/// The debate that a message belongs to: the one it names, else the one whose question it answers.
fn debate_of(envelope: &Envelope) -> Result<DebateId, Fault> {
    let debate = effect::debate_of(envelope)
        .ok_or_else(|| no_debate("The answer does not say which question it answers."))?;
    DebateId::new(debate).map_err(|_| no_debate("The answer names no debate."))
}

/// What parties and the mediator say on the ladder.
fn spoken(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let body = match &envelope.message_type {
        MessageType::Acknowledgement => {
            let acknowledgement: Acknowledgement = envelope.payload()?;
            MessageBody::Acknowledgement {
                commit_by: acknowledgement.commit_by,
            }
        }
        MessageType::Clarification => {
            let clarification = envelope.answered(|payload| {
                let said: Clarification = from_json(payload.get().as_bytes(), "/payload")?;
                said.check().map(|()| said)
            })?;
            MessageBody::Clarification {
                text: clarification.text,
            }
        }
        _ => {
            let evidence = envelope.answered(|payload| {
                let given: Evidence = from_json(payload.get().as_bytes(), "/payload")?;
                given.check().map(|()| given)
            })?;
            MessageBody::Evidence(evidence)
        }
    };
    Ok(said(debate_of(envelope)?, envelope, body))
}

fn ruling(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let ruling: Ruling = envelope.payload()?;
    ruling.check()?;
    let (by, message_id) = (&envelope.from_agent, &envelope.message_id);
    let signed_for = envelope.case_id.clone().filter(|case| {
        let signature = ruling.signature.as_ref();
        signature.is_some_and(|one| signing::fits(one, &ruling.signed_text(by, case, message_id)))
    });
    let id = ruling.debate_id.token();
    let body = MessageBody::Ruling(Box::new(ruling));
    let said = LadderMessage {
        signed_for,
        ..ladder_message(envelope, body)
    };
    Ok(Routed::Step {
        id,
        input: DebateInput::Message(Box::new(said)),
    })
}

fn outcome(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let report: OutcomeReport = envelope.payload()?;
    report.check()?;
    let id = report.debate_id.token();
    let told = OutcomeMessage {
        agent_id: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        digest: digest_of(envelope),
        case_id: envelope.case_id.clone(),
        report,
        sender: Authority::default(),
        opened_case: false,
    };
    Ok(Routed::Step {
        id,
        input: DebateInput::Outcome(Box::new(told)),
    })
}

fn ladder_message(envelope: &Envelope, body: MessageBody) -> LadderMessage {
    LadderMessage {
        agent_id: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        digest: digest_of(envelope),
        case_id: envelope.case_id.clone(),
        body,
        snapshot: envelope.metadata.memory_snapshot,
        sender: Authority::default(),
        signed_for: None,
    }
}

fn said(debate: DebateId, envelope: &Envelope, body: MessageBody) -> Routed<DebateInput> {
    let said = ladder_message(envelope, body);
    Routed::Step {
        id: debate.token(),
        input: DebateInput::Message(Box::new(said)),
    }
}

fn no_debate(message: &str) -> Fault {
    Fault::invalid(
        "/reply_to",
        message,
        "Set reply_to to the question's message_id, or correlation_id to the question's debate_id.",
    )
}

fn request(envelope: &Envelope) -> Result<Routed<DebateInput>, Fault> {
    let action = action_of(envelope)?;
    if action != concord_wire::payload::OPEN_DEBATE {
        return Err(Fault::invalid(
            "/payload/action",
            format!("The debate facilitator does not do {action:?}."),
            "Debates are opened by the conflict detector; open a case to have findings debated.",
        ));
    }
    let openers = [Service::ConflictDetector, Service::Coordinator];
    if !openers
        .iter()
        .any(|service| service.agent_id() == envelope.from_agent)
    {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/from_agent",
            "Only the conflict detector and the coordinator open debates.",
            "Open a case with the coordinator; conflicts among its findings are debated, and you can challenge a finding.",
        ));
    }
    let open = effect::read_open_debate(&envelope.payload::<Request>()?)?;
    let id: Token = open.conflict.conflict_id.token();
    Ok(Routed::Step {
        id,
        input: DebateInput::Open(Box::new(Opening::of(open))),
    })
}

//! Which messages and events are inputs for which case.

use std::collections::BTreeMap;

use concord_domain::aggregates::case::{
    CaseInput, Noted, OpenRequest, ReceivedAddition, ReceivedChallenge, ReceivedConfirmation,
    ReceivedReview, SharedNow,
};
use concord_domain::aggregates::person::Authority;
use concord_domain::aggregates::policy::KnownPolicies;
use concord_events::Aggregate;
use concord_events::{
    self, DeadlineElapsed, DeadlineEvent, DebateEvent, DetectionEvent, Heard, MemoryEvent,
    ReceivedFinding, StoredEvent, TaskEvent,
};
use concord_runtime::delivery::route::{digest_of, not_acted_on};
use concord_runtime::{Routed, signing};
use concord_wire::payload::{
    ADD_PARTICIPANT, AddParticipant, Challenge, Estimate, Finding, OPEN_CASE, OpenCase, Review,
    action_of, parameters_of,
};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Envelope, ErrorCode, Fault, MessageType, Token};
use serde::Deserialize;

pub mod exchange;
pub mod question;
pub mod register;
pub mod shared;
pub mod task;

/// Confidence of a finding that states none: neither sure nor unsure.
const CONFIDENCE_UNSTATED: f64 = 0.5;

/// A message addressed to the coordinator.
pub fn from_message(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    match &envelope.message_type {
        MessageType::Finding | MessageType::FindingWithPrecedent => finding(envelope),
        MessageType::Request => request(envelope),
        MessageType::Challenge => challenge(envelope),
        MessageType::Confirmation => confirmation(envelope),
        MessageType::Review => review(envelope),
        other => not_acted_on(Service::Coordinator, other),
    }
}

fn finding(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    let case = envelope.case_id.as_ref().ok_or_else(no_case)?;
    let finding = envelope.answered(Finding::read)?;
    let received = ReceivedFinding {
        agent_id: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        digest: digest_of(envelope),
        confidence: envelope.metadata.confidence.unwrap_or(CONFIDENCE_UNSTATED),
        finding,
    };
    Ok(Routed::Step {
        id: case.token(),
        input: CaseInput::Finding(Box::new(received)),
    })
}

fn heard(envelope: &Envelope) -> Heard {
    Heard {
        agent_id: envelope.from_agent.clone(),
        message_id: envelope.message_id.clone(),
        digest: digest_of(envelope),
    }
}

fn challenge(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    let case = envelope.case_id.as_ref().ok_or_else(no_case)?;
    let challenge: Challenge = envelope.payload()?;
    challenge.check()?;
    if challenge.challenger != envelope.from_agent {
        return Err(Fault::new(
            ErrorCode::Unauthorized,
            "/payload/challenger",
            format!(
                "{} challenges in the name of {}.",
                envelope.from_agent, challenge.challenger
            ),
            "Name yourself as the challenger.",
        ));
    }
    let confidence = envelope.metadata.confidence.unwrap_or(CONFIDENCE_UNSTATED);
    let received = ReceivedChallenge {
        heard: heard(envelope),
        confidence,
        challenge,
        sender: Authority::default(),
    };
    Ok(Routed::Step {
        id: case.token(),
        input: CaseInput::Challenge(Box::new(received)),
    })
}

fn confirmation(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    let case = envelope.case_id.as_ref().ok_or_else(no_case)?;
    let received = ReceivedConfirmation {
        heard: heard(envelope),
        confidence: envelope.metadata.confidence.unwrap_or(CONFIDENCE_UNSTATED),
        confirmation: envelope.payload()?,
    };
    Ok(Routed::Step {
        id: case.token(),
        input: CaseInput::Confirm(Box::new(received)),
    })
}

/// What a participant has written into shared memory in a case, for that case.
pub(crate) fn noted(record: &StoredEvent<MemoryEvent>) -> Option<(Token, CaseInput)> {
    let MemoryEvent::Put(put) = &record.event;
    let case_id = put.case_id.as_ref()?;
    let noted = Noted {
        agent: put.heard.agent_id.clone(),
        topic: put.entry.topic.clone(),
        version: put.version,
        estimate: Estimate::of_value(&put.entry.value),
    };
    Some((case_id.token(), CaseInput::Note(Box::new(noted))))
}

fn review(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    let case = envelope.case_id.as_ref().ok_or_else(no_case)?;
    let review: Review = envelope.payload()?;
    review.check()?;
    let (by, message_id) = (&envelope.from_agent, &envelope.message_id);
    let is_signed = review
        .signature
        .as_ref()
        .is_some_and(|one| signing::fits(one, &review.signed_text(by, case, message_id)));
    let received = ReceivedReview {
        heard: heard(envelope),
        review,
        sender: Authority::default(),
        first: BTreeMap::new(),
        is_signed,
    };
    Ok(Routed::Step {
        id: case.token(),
        input: CaseInput::Review(Box::new(received)),
    })
}

fn no_case() -> Fault {
    Fault::invalid(
        "/case_id",
        "A finding, a challenge, a confirmation and a review belong to a case.",
        "Publish on the msg subject of the case, with the case id of your task assignment.",
    )
}

fn request(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    let action = action_of(envelope)?;
    if action == ADD_PARTICIPANT {
        return addition(envelope);
    }
    if action != OPEN_CASE {
        return Err(Fault::invalid(
            "/payload/action",
            format!("The coordinator does not do {action:?}."),
            format!(
                "Ask for {:?}, or for one of add_participant, open_task, cancel_task, join_task, leave_task, find_agents, board_put, memory_put, report_alert, publish_analysis, \
                 register_agent, update_agent, deregister_agent.",
                OPEN_CASE
            ),
        ));
    }
    let open: OpenCase = parameters_of(envelope)?;
    let (id, input) = open_case(envelope, open)?;
    Ok(Routed::Step {
        id: id.token(),
        input,
    })
}

fn addition(envelope: &Envelope) -> Result<Routed<CaseInput>, Fault> {
    let case = envelope.case_id.as_ref().ok_or_else(|| {
        Fault::invalid(
            "/case_id",
            "An agent joins a case, and none is named.",
            "Publish on the msg subject of the case.",
        )
    })?;
    let AddParticipant { agent_id } = parameters_of(envelope)?;
    let received = ReceivedAddition {
        by: envelope.from_agent.clone(),
        request: Some(heard(envelope)),
        agent_id,
        sender: Authority::default(),
        shared: SharedNow::default(),
        sent_bytes: 0,
    };
    Ok(Routed::Step {
        id: case.token(),
        input: CaseInput::Add(Box::new(received)),
    })
}

/// `add_participant`, asked by an operator.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    case_id: CaseId,
    agent_id: AgentId,
    by: AgentId,
}

/// The case and the input of an operator's request that an agent joins.
pub(crate) fn read_addition(request: &[u8]) -> Result<(Token, CaseInput), Fault> {
    let Order {
        case_id,
        agent_id,
        by,
    } = concord_wire::envelope::from_json(request, "")?;
    let received = ReceivedAddition {
        by,
        request: None,
        agent_id,
        sender: Authority::of_installation(),
        shared: SharedNow::default(),
        sent_bytes: 0,
    };
    Ok((case_id.token(), CaseInput::Add(Box::new(received))))
}

/// The id and the input of a request to open a case.
pub fn open_case(envelope: &Envelope, request: OpenCase) -> Result<(CaseId, CaseInput), Fault> {
    let case = match &request.case_id {
        Some(case) => case.clone(),
        None => CaseId::derived(&format!("{}/{}", envelope.from_agent, envelope.message_id)),
    };
    if envelope
        .case_id
        .as_ref()
        .is_some_and(|stated| *stated != case)
    {
        return Err(Fault::new(
            ErrorCode::InvalidRequest,
            "/case_id",
            "The envelope names another case than the one to be opened.",
            "Leave case_id out of the envelope, or make both equal.",
        ));
    }
    let (opened_by, request_id) = (envelope.from_agent.clone(), envelope.message_id.clone());
    Ok((
        case,
        CaseInput::Open(Box::new(OpenRequest {
            opened_by,
            request_id,
            request,
            policy_pointer: "/payload/parameters/policy",
            known: KnownPolicies::default(),
            sender: Authority::default(),
        })),
    ))
}

fn step_for(input: Option<(Token, CaseInput)>) -> Routed<CaseInput> {
    input.map_or(Routed::Ignored("other_fact"), |(id, input)| Routed::Step {
        id,
        input,
    })
}

/// The step of a case for the conflicts that were detected in it.
pub(crate) fn of_detection(event: &DetectionEvent) -> Routed<CaseInput> {
    let DetectionEvent::Completed(detected) = event;
    Routed::Step {
        id: detected.case_id.token(),
        input: CaseInput::Detected(detected.clone()),
    }
}

/// The step of a case for what has become of one of its debates.
pub(crate) fn of_debate(event: &DebateEvent) -> Routed<CaseInput> {
    let (case_id, outcome) = match event {
        DebateEvent::Resolved(resolved) => (&resolved.case_id, &resolved.outcome),
        DebateEvent::FellBack(fell) => (&fell.case_id, &fell.outcome),
        _ => return Routed::Ignored("other_fact"),
    };
    Routed::Step {
        id: case_id.token(),
        input: CaseInput::Resolved(Box::new(outcome.clone())),
    }
}

/// The step of a case for a deadline that has passed, where it is one of cases.
pub(crate) fn of_deadline(elapsed: DeadlineElapsed) -> Routed<CaseInput> {
    if elapsed.aggregate != Aggregate::Case {
        return Routed::Ignored("other_deadline");
    }
    Routed::Step {
        id: elapsed.id.clone(),
        input: CaseInput::Elapsed(elapsed),
    }
}

/// An event of another service, or one of memory, whose effects the coordinator follows itself.
pub fn from_event(
    aggregate: Aggregate,
    bytes: &[u8],
    sequence: u64,
) -> Result<Routed<CaseInput>, concord_events::Error> {
    Ok(match aggregate {
        Aggregate::Detection => {
            of_detection(&StoredEvent::<DetectionEvent>::decode(bytes, sequence)?.event)
        }
        Aggregate::Debate => of_debate(&StoredEvent::<DebateEvent>::decode(bytes, sequence)?.event),
        Aggregate::Deadline => of_deadline(
            StoredEvent::<DeadlineEvent>::decode(bytes, sequence)?
                .event
                .into_elapsed(),
        ),
        Aggregate::Case => Routed::Ignored("own_fact"),
        Aggregate::Task => {
            let record = StoredEvent::<TaskEvent>::decode(bytes, sequence)?;
            step_for(task::case_input(&record).map(|input| (record.meta.id.clone(), input)))
        }
        Aggregate::Memory => step_for(noted(&StoredEvent::decode(bytes, sequence)?)),
        Aggregate::TrackRecord
        | Aggregate::Precedent
        | Aggregate::ReviewQueue
        | Aggregate::Agent
        | Aggregate::Person
        | Aggregate::Policy
        | Aggregate::Opener
        | Aggregate::Request
        | Aggregate::Question
        | Aggregate::Worklist
        | Aggregate::Rotation
        | Aggregate::Board
        | Aggregate::Commitment
        | Aggregate::Impact
        | Aggregate::Synthesis
        | Aggregate::Alert
        | Aggregate::Watch
        | Aggregate::Wake
        | Aggregate::Head
        | Aggregate::Archive => Routed::Ignored("other_fact"),
    })
}

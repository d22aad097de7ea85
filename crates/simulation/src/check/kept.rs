//! What became of every single message, by its place in the stream and not by the id that its sender chose.

use std::collections::BTreeSet;

use concord_coordinator::route;
use concord_coordinator::route::shared::SharedInput;
use concord_debate_facilitator::names_no_question;
use concord_domain::aggregates::alert::AlertInput;
use concord_domain::aggregates::board::BoardInput;
use concord_domain::aggregates::case::CaseInput;
use concord_domain::aggregates::commitment::CommitmentInput;
use concord_domain::aggregates::debate::DebateInput;
use concord_domain::aggregates::debate::MessageBody;
use concord_domain::aggregates::memory::MemoryInput;
use concord_events::{
    AlertEvent, BoardEvent, CaseEvent, CommitmentEvent, DebateEvent, Heard, ImpactEvent,
    MemoryEvent,
};
use concord_runtime::Routed;
use concord_runtime::delivery::route::digest_of;
use concord_wire::subject::{Lane, Service, Subject};
use concord_wire::{Envelope, MessageId, MessageType, Recipient, Token};

use super::Message;
use super::archive::Archive;
use crate::process::SHARED;

/// Contents of a message, in the aggregate they are for: id and digest of who said what.
type Said = (Token, MessageId, String);

/// What a message must lead to.
enum Fate {
    /// Nothing.
    Free,
    /// It is refused.
    Dead,
    /// An event about it in this aggregate, which may be that of an identical message; or it is refused.
    Recorded(Said),
    /// An event about it in the debate whose question it was taken to answer; or it is refused.
    Attributed(MessageId, String),
    /// This aggregate exists; or it is refused.
    Opened(Token),
}

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let recorded = recorded(archive);
    let opened = archive.opened();
    for message in &archive.messages {
        let fate = fate(message);
        let dead = archive.dead.get(&message.sequence);
        if dead.is_some() {
            told(archive, message, violations);
        }
        let kept = match &fate {
            Fate::Free => true,
            Fate::Dead => dead.is_some(),
            Fate::Recorded(said) => dead.is_some() || recorded.contains(said),
            Fate::Attributed(id, digest) => {
                let same = |(_, of, what): &Said| of == id && what == digest;
                dead.is_some() || recorded.iter().any(same)
            }
            Fate::Opened(id) => dead.is_some() || opened.contains(id),
        };
        if !kept {
            let what = message
                .subject
                .as_ref()
                .map(|subject| format!("{subject:?}"))
                .unwrap_or_default();
            violations.push(format!(
                "kept: the message at {} is neither used nor dead: {what}",
                message.sequence
            ));
        }
        if let (Fate::Recorded((id, ..)), Some(pointer)) = (&fate, dead) {
            known_when_refused(archive, message, id, pointer, violations);
        }
    }
}

/// "There is no such case" must not be said of a case that there was when the message was stored.
fn known_when_refused(
    archive: &Archive,
    message: &Message,
    id: &Token,
    pointer: &str,
    violations: &mut Vec<String>,
) {
    let born = match pointer {
        "/case_id" => archive.born(&archive.cases, id),
        "/reply_to" | "/payload/debate_id" => archive.born(&archive.debates, id),
        _ => None,
    };
    if born.is_some_and(|born| born < message.at) {
        violations.push(format!(
            "refused: the message at {} is about {id}, which there was",
            message.sequence
        ));
    }
}

fn fate(message: &Message) -> Fate {
    let Some(Subject::Message {
        to: Recipient::Agent(to),
        ..
    }) = &message.subject
    else {
        // Only a subject under a service's name is read by anyone if it is malformed, and all of ours are.
        return if message.subject.is_none() {
            Fate::Dead
        } else {
            Fate::Free
        };
    };
    let service = Service::parse(to.as_str());
    let Ok(service @ (Service::Coordinator | Service::DebateFacilitator)) = service else {
        return Fate::Free;
    };
    match (&message.envelope, service) {
        (None, _) => Fate::Dead,
        (Some(envelope), Service::Coordinator) => of_case(envelope),
        (Some(envelope), _) => of_debate(envelope),
    }
}

fn of_case(envelope: &Envelope) -> Fate {
    // That each of them is used or dead is what the auditor looks at.
    match route::task::from_message(envelope) {
        Err(_) => return Fate::Dead,
        Ok(Some(_)) => return Fate::Free,
        Ok(None) => {}
    }
    match route::shared::from_message(envelope, SHARED) {
        Err(_) => return Fate::Dead,
        Ok(Some(SharedInput::Board(id, BoardInput::Put(received)))) => {
            return heard(id.token(), received.heard);
        }
        Ok(Some(SharedInput::Commitment(id, CommitmentInput::Said(received)))) => {
            return heard(id, received.heard);
        }
        Ok(Some(SharedInput::Analysis(received))) => {
            return heard(received.case_id.token(), received.heard);
        }
        Ok(Some(SharedInput::Memory(MemoryInput::Put(received)))) => {
            return heard(received.heard.agent_id.token(), received.heard);
        }
        Ok(Some(SharedInput::Alert(id, AlertInput::Report(received)))) => {
            return heard(id, received.heard);
        }
        Ok(_) => {}
    }
    // What is about the register leads to an event about an agent, or is refused; the auditor looks for it.
    match route::register::from_message(envelope) {
        Err(_) => return Fate::Dead,
        Ok(Some(_)) => return Fate::Free,
        Ok(None) => {}
    }
    match route::from_message(envelope) {
        Err(_) => Fate::Dead,
        Ok(Routed::Step {
            id,
            input: CaseInput::Finding(received),
        }) => Fate::Recorded((id, received.message_id, received.digest)),
        Ok(Routed::Step {
            id,
            input: CaseInput::Challenge(received),
        }) => heard(id, received.heard),
        Ok(Routed::Step {
            id,
            input: CaseInput::Review(received),
        }) => heard(id, received.heard),
        Ok(Routed::Step { id, .. }) => Fate::Opened(id),
        Ok(Routed::Ignored(_)) => Fate::Free,
    }
}

fn heard(id: Token, heard: Heard) -> Fate {
    Fate::Recorded((id, heard.message_id, heard.digest))
}

fn of_debate(envelope: &Envelope) -> Fate {
    if names_no_question(envelope) {
        return Fate::Attributed(envelope.message_id.clone(), digest_of(envelope));
    }
    match concord_debate_facilitator::route::from_message(envelope) {
        Err(_) => Fate::Dead,
        Ok(Routed::Step {
            id,
            input: DebateInput::Answer(given),
        }) => Fate::Recorded((id, given.message_id, given.digest)),
        Ok(Routed::Step {
            id,
            input: DebateInput::Outcome(told),
        }) => Fate::Recorded((id, told.message_id, told.digest)),
        Ok(Routed::Step {
            id,
            input: DebateInput::Message(said),
        }) => match said.body {
            MessageBody::Ruling(_) => Fate::Recorded((id, said.message_id, said.digest)),
            // What is so already needs no event: a second acknowledgement, a second opinion.
            _ => Fate::Opened(id),
        },
        Ok(Routed::Step { id, .. }) => Fate::Opened(id),
        Ok(Routed::Ignored(_)) => Fate::Free,
    }
}

/// Contents that an event is about.
fn recorded(archive: &Archive) -> BTreeSet<Said> {
    let mut recorded = BTreeSet::new();
    for record in archive.cases.values().flatten() {
        let received = match &record.event {
            CaseEvent::FindingRecorded(recorded) => Some(&recorded.received),
            CaseEvent::FindingSetAside(aside) => Some(&aside.received),
            CaseEvent::FindingsClosed(closed) => closed.last.as_ref(),
            _ => None,
        };
        recorded.extend(received.map(|r| {
            (
                record.meta.id.clone(),
                r.message_id.clone(),
                r.digest.clone(),
            )
        }));
        let heard = match &record.event {
            CaseEvent::Challenged(challenged) => Some(&challenged.heard),
            CaseEvent::ReviewRecorded(recorded) => Some(&recorded.heard),
            CaseEvent::GateReviewed(reviewed) => Some(&reviewed.heard),
            CaseEvent::GatePassed(passed) => Some(&passed.heard),
            _ => None,
        };
        recorded.extend(heard.map(|h| {
            (
                record.meta.id.clone(),
                h.message_id.clone(),
                h.digest.clone(),
            )
        }));
    }
    recorded.extend(shared(archive));
    for record in archive.debates.values().flatten() {
        let id = record.meta.id.clone();
        if let DebateEvent::AnswerSetAside(aside) = &record.event {
            recorded.insert((id, aside.message_id.clone(), aside.digest.clone()));
            continue;
        }
        let received = record.event.answer();
        recorded.extend(received.map(|r| (id.clone(), r.message_id.clone(), r.digest.clone())));
        let heard = on_ladder(&record.event);
        recorded.extend(heard.map(|h| (id, h.message_id.clone(), h.digest.clone())));
    }
    recorded
}

/// The messages about boards, commitments, analyses and memory, and reports.
fn shared(archive: &Archive) -> impl Iterator<Item = Said> {
    let boards = archive.boards.values().flatten();
    let puts = boards.map(|record| match &record.event {
        BoardEvent::Put(put) => (&record.meta.id, Some(&put.heard)),
    });
    let commitments = archive.commitments.values().flatten();
    let said = commitments.map(|record| match &record.event {
        CommitmentEvent::Granted(one) | CommitmentEvent::Renewed(one) => {
            (&record.meta.id, Some(&one.heard))
        }
        CommitmentEvent::Ended(ended) => (&record.meta.id, ended.heard.as_ref()),
    });
    let analyses = archive.analyses.values().flatten();
    let published = analyses.map(|record| match &record.event {
        ImpactEvent::Published(one) => (&record.meta.id, Some(&one.heard)),
        ImpactEvent::Assessed(_)
        | ImpactEvent::Estimated(_)
        | ImpactEvent::RerunStarted(_)
        | ImpactEvent::RerunStepEnded(_) => (&record.meta.id, None),
    });
    let memories = archive.memories.values().flatten();
    let remembered = memories.map(|record| match &record.event {
        MemoryEvent::Put(put) => (&record.meta.id, Some(&put.heard)),
    });
    let alerts = archive.alerts.values().flatten();
    let reported = alerts.map(|record| match &record.event {
        AlertEvent::Reported(one) => (&record.meta.id, Some(&one.heard)),
        AlertEvent::Raised(_) | AlertEvent::ReportMissed(_) => (&record.meta.id, None),
    });
    let all = puts.chain(said).chain(published).chain(remembered);
    let all = all.chain(reported);
    all.filter_map(|(id, heard)| {
        let heard = heard?;
        Some((id.clone(), heard.message_id.clone(), heard.digest.clone()))
    })
}

/// The message of the ladder that an event is about.
fn on_ladder(event: &DebateEvent) -> Option<&Heard> {
    match event {
        DebateEvent::Flushed(flushed) => Some(&flushed.heard),
        DebateEvent::Synced(synced) => synced.last.as_ref(),
        DebateEvent::Acknowledged(acknowledged) => Some(&acknowledged.heard),
        DebateEvent::Clarified(clarified) => Some(&clarified.heard),
        DebateEvent::EvidenceGiven(given) => Some(&given.heard),
        DebateEvent::OpinionGiven(given) => Some(&given.heard),
        DebateEvent::Escalated(escalated) => escalated.heard.as_ref(),
        DebateEvent::RulingSetAside(aside) => Some(&aside.heard),
        DebateEvent::OutcomeKnown(known) => Some(&known.heard),
        DebateEvent::Resolved(resolved) => resolved.heard.as_ref(),
        _ => None,
    }
}

/// Who challenges, rules or reviews and is refused, is told so.
fn told(archive: &Archive, message: &Message, violations: &mut Vec<String>) {
    let kind = message
        .envelope
        .as_ref()
        .map(|envelope| &envelope.message_type);
    if !matches!(
        kind,
        Some(MessageType::Challenge | MessageType::Ruling | MessageType::Review)
    ) {
        return;
    }
    let refusal = MessageId::of_refusal(Lane::Normal.as_str(), message.sequence);
    if archive.said_under(&refusal).next().is_none() {
        violations.push(format!(
            "told: nobody has told the sender that the message at {} is refused",
            message.sequence
        ));
    }
}

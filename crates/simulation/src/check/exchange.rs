//! Every request between agents ends in one answer or one error: in an answer if whoever was asked gave one in time.

use std::collections::BTreeMap;

use concord_coordinator::route::exchange::{
    RequestPosition, is_between_agents, read_answer, read_request,
};
use concord_domain::aggregates::request::{Reply, id_of, is_asked};
use concord_events::{RequestEvent, RequestOpened, StoredEvent};
use concord_wire::{MessageType, Token};

use super::archive::Archive;
use crate::world::instant;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for (id, request) in asked(archive) {
        let none = Vec::new();
        let facts = archive.requests.get(&id).unwrap_or(&none);
        let ends: Vec<&StoredEvent<RequestEvent>> =
            facts.iter().filter(|record| ends(&record.event)).collect();
        let [end] = ends.as_slice() else {
            violations.push(format!(
                "request: {} has {} ends",
                request.request_id,
                ends.len()
            ));
            continue;
        };
        if let RequestEvent::Answered(answered) = &end.event
            && answered.answer.at > answered.request.due
        {
            violations.push(format!(
                "request: {} counts an answer that came late",
                request.request_id
            ));
        }
        if let RequestEvent::Failed(failed) = &end.event
            && failed.error_code == concord_wire::ErrorCode::Timeout
            && answered_in_time(archive, &id, &failed.request)
        {
            violations.push(format!(
                "request: {} was answered in time and failed",
                request.request_id
            ));
        }
    }
}

/// How many requests have ended.
pub(super) fn ended(archive: &Archive) -> u64 {
    archive
        .requests
        .values()
        .flatten()
        .filter(|record| ends(&record.event))
        .count() as u64
}

fn ends(event: &RequestEvent) -> bool {
    matches!(event, RequestEvent::Answered(_) | RequestEvent::Failed(_))
}

/// The requests that were stored, and not refused, the first of each id.
fn asked(archive: &Archive) -> BTreeMap<Token, RequestOpened> {
    let mut asked = BTreeMap::new();
    for message in &archive.messages {
        let (Some(subject), Some(envelope)) = (&message.subject, &message.envelope) else {
            continue;
        };
        if envelope.message_type != MessageType::Request || !is_between_agents(subject) {
            continue;
        }
        let position = RequestPosition {
            sequence: message.sequence,
            urgent: false,
            at: instant(message.at),
        };
        let Ok((opened, _)) = read_request(envelope, &position) else {
            continue;
        };
        if !archive.dead.contains_key(&message.sequence) {
            asked
                .entry(id_of(&opened.from, opened.request_id.as_str()))
                .or_insert(opened);
        }
    }
    asked
}

fn answered_in_time(archive: &Archive, id: &Token, request: &RequestOpened) -> bool {
    // What answers an earlier copy of a request that was sent again is not looked for.
    let mut later = archive
        .messages
        .iter()
        .filter(|message| message.sequence > request.sequence);
    later.any(|message| {
        let Some(envelope) = &message.envelope else { return false };
        let said = read_answer(envelope, instant(message.at));
        matches!(said, Ok(Some((of, Reply::Answer(answer)))) if of == *id && answer.at <= request.due)
            && is_asked(request, &envelope.from_agent)
    })
}

//! The design's invariants, checked over everything that the broker holds.

use std::time::{SystemTime, UNIX_EPOCH};

use concord_domain::assurance::audit::{
    Auditor, Content, Dead, Ending, RawEvent, Report, StoredMessage,
};
use concord_events::dead_letter::header;
use concord_events::non_event::{COPIED_FROM, NonEvent};
use concord_events::subject::SystemSubject;
use concord_events::topology::StreamKind;
use concord_wire::header::DIALECT;
use concord_wire::subject::{Lane, Service};
use concord_wire::{Dialect, Timestamp};

use crate::stored::{Stored, layout, stored};

/// Checks the invariants. To be asked when nothing is under way: what is missing then is lost.
pub async fn audit(client: &async_nats::Client) -> Result<Report, String> {
    let subjects = layout().subjects;
    let mut auditor = Auditor::new();
    for fact in stored(client, StreamKind::Events, ">").await? {
        if let Some(foreign) = NonEvent::of(!fact.header(COPIED_FROM).is_empty(), &fact.payload) {
            auditor.foreign(fact.sequence, &fact.subject, foreign);
            continue;
        }
        match subjects.parse(&fact.subject) {
            Ok(SystemSubject::Event {
                aggregate,
                id,
                event: name,
            }) => {
                let bytes = &fact.payload;
                auditor.event(&RawEvent {
                    sequence: fact.sequence,
                    aggregate,
                    id: &id,
                    event: &name,
                    bytes,
                });
            }
            _ => return Err(format!("{} is not the subject of a fact", fact.subject)),
        }
    }
    for (kind, lane) in [
        (StreamKind::Messages, Lane::Normal),
        (StreamKind::Urgent, Lane::Urgent),
    ] {
        for message in stored(client, kind, ">").await? {
            match subjects.parse(&message.subject) {
                Ok(subject) => auditor.message(&StoredMessage {
                    sequence: message.sequence,
                    subject: &subject,
                    declared: Dialect::parse(message.header(DIALECT)),
                    content: Content::Bytes(&message.payload),
                }),
                Err(_) if is_for_a_service(&message.subject) => {
                    auditor.malformed_message(lane, message.sequence)
                }
                // Addressed to nobody: part of the transcript, and nothing else.
                Err(_) => {}
            }
        }
    }
    for letter in stored(client, StreamKind::Dead, ">").await? {
        let subject = subjects.parse(letter.header(header::SUBJECT)).ok();
        auditor.dead(&Dead {
            subject: subject.as_ref(),
            position: position(&letter),
            message_id: None,
        });
    }
    Ok(auditor.finish(&Ending::quiescent(now())))
}

/// True when a subject, well formed or not, matches the inbox of a service.
fn is_for_a_service(subject: &str) -> bool {
    let listening = [Service::Coordinator, Service::DebateFacilitator];
    // <prefix>.v1.<lane>.<case>.<from>.<to>.<type>
    let mut rest = subject.split('.').skip(5);
    rest.next()
        .is_some_and(|to| listening.iter().any(|service| service.as_str() == to))
        && rest.next().is_some()
}

fn position(letter: &Stored) -> Option<(Lane, u64)> {
    let stream = letter.header(header::STREAM);
    let lane = [
        (StreamKind::Messages, Lane::Normal),
        (StreamKind::Urgent, Lane::Urgent),
    ]
    .into_iter()
    .find(|(kind, _)| layout().stream_name(*kind) == stream)?;
    Some((lane.1, letter.header(header::SEQUENCE).parse().ok()?))
}

/// The present time.
pub fn now() -> Timestamp {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    Timestamp::from_unix_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

//! What was stored before a deadline counts: once a deadline has changed a case or a debate, nothing that those who are asked in it had said
//! before the deadline was due changes it any more.

use std::collections::BTreeMap;

use concord_domain::aggregates::case::{CaseMachine, heard_in_time};
use concord_domain::aggregates::debate::{DebateMachine, DebateState};
use concord_domain::machine::Machine;
use concord_events::AggregateEvent;
use concord_wire::subject::{Service, Subject};
use concord_wire::{AgentId, MessageId, Recipient, Timestamp};

use super::Message;
use super::archive::{Archive, Histories};
use crate::world::instant;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let said = said_to(archive, Service::Coordinator);
    after_deadlines::<CaseMachine>(archive, (&archive.cases, &said), heard_in_time, violations);
    let said = said_to(archive, Service::DebateFacilitator);
    let heard = DebateState::heard_in_time;
    after_deadlines::<DebateMachine>(archive, (&archive.debates, &said), heard, violations);
}

/// Who has said something, and when it was stored.
type Said = BTreeMap<MessageId, (AgentId, Timestamp)>;

fn after_deadlines<M: Machine>(
    archive: &Archive,
    (histories, said): (&Histories<M::Event>, &Said),
    heard: impl Fn(&M::State) -> Vec<AgentId>,
    violations: &mut Vec<String>,
) {
    let aggregate = M::Event::AGGREGATE;
    for (id, records) in histories {
        let elapsed = archive.deadlines.values().flatten().filter_map(|record| {
            let elapsed = record.event.clone().into_elapsed();
            let is_own = elapsed.aggregate == aggregate && elapsed.id == *id;
            is_own.then_some((&record.meta.event_id, elapsed.due))
        });
        let due: BTreeMap<&MessageId, Timestamp> = elapsed.collect();
        let mut state = M::State::default();
        let mut passed = Vec::new();
        for record in records {
            let cause = &record.meta.cause;
            if let Some(due) = due.get(cause) {
                passed.push((*due, heard(&state)));
            }
            if let Some((by, at)) = said.get(cause)
                && let Some((due, _)) = passed
                    .iter()
                    .find(|(due, heard)| at <= due && heard.contains(by))
            {
                violations.push(format!(
                    "in time: {cause} was stored at {at}, and changed {aggregate}/{id} ({}) after the deadline of {due}",
                    record.event.name()
                ));
            }
            M::apply(&mut state, record.clone());
        }
    }
}

/// What was said to a service; of what was said several times, the last time. Without what it has refused: delivered again, that may be
/// accepted of somebody who was let in meanwhile, and was read all the same.
fn said_to(archive: &Archive, service: Service) -> Said {
    let to_service = Recipient::Agent(service.agent_id());
    let mut said = Said::new();
    let is_kept = |message: &&Message| !archive.dead.contains_key(&message.sequence);
    let is_kept_urgently = |message: &&Message| !archive.dead_urgent.contains(&message.sequence);
    let normal = archive.messages.iter().filter(is_kept);
    let urgent = archive.urgent.iter().filter(is_kept_urgently);
    for message in normal.chain(urgent) {
        let (Some(Subject::Message { to, .. }), Some(envelope)) =
            (&message.subject, &message.envelope)
        else {
            continue;
        };
        if *to == to_service {
            let (id, by) = (&envelope.message_id, &envelope.from_agent);
            let stored = (by.clone(), instant(message.at));
            said.insert(MessageId::of_sender(id, by), stored.clone());
            said.insert(id.clone(), stored);
        }
    }
    said
}

//! Who joins a case later is briefed once, is given the task once where findings are still collected, and is then awaited like the
//! others: when findings are closed its finding is there, or it is missing by name.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{CaseEvent, StoredEvent};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, MessageType, Recipient, Token};

use super::archive::Archive;

/// What the coordinator has sent to one agent in one case, by type: the ids of the messages.
type Sent<'a> = BTreeMap<(&'a str, &'a AgentId, &'static str), BTreeSet<&'a MessageId>>;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let sent = sent(archive);
    for (id, records) in &archive.cases {
        awaited(id, records, violations);
        for record in records {
            let CaseEvent::Joined(joined) = &record.event else {
                continue;
            };
            let agent = &joined.agent_id;
            let times = |kind| {
                sent.get(&(id.as_str(), agent, kind))
                    .map_or(0, BTreeSet::len)
            };
            let briefed = times(BRIEFING);
            if briefed != 1 {
                violations.push(format!(
                    "joining: {agent} was briefed {briefed} times of {id}"
                ));
            }
            let (asked, expected) = (times(ASSIGNMENT), usize::from(joined.assignment.is_some()));
            if asked != expected {
                violations.push(format!(
                    "joining: {agent} was given the task of {id} {asked} times, not {expected}"
                ));
            }
        }
    }
}

/// How many agents have joined a case.
pub(super) fn count(archive: &Archive) -> u64 {
    let events = archive.cases.values().flatten();
    let joined = events.filter(|record| matches!(record.event, CaseEvent::Joined(_)));
    joined.count() as u64
}

/// Whoever was given the task before findings were closed has a finding, or is missing.
fn awaited(id: &Token, records: &[StoredEvent<CaseEvent>], violations: &mut Vec<String>) {
    let mut asked = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for record in records {
        match &record.event {
            CaseEvent::Joined(joined) if joined.assignment.is_some() => {
                asked.insert(&joined.agent_id);
            }
            CaseEvent::FindingRecorded(recorded) => {
                answered.insert(&recorded.received.agent_id);
            }
            CaseEvent::FindingsClosed(closed) => {
                answered.extend(closed.last.iter().map(|last| &last.agent_id));
                answered.extend(&closed.missing);
                for agent in asked.difference(&answered) {
                    violations.push(format!(
                        "joining: {agent} was asked in {id} and not awaited"
                    ));
                }
                return;
            }
            _ => {}
        }
    }
}

const BRIEFING: &str = "session_briefing";
const ASSIGNMENT: &str = "task_assignment";

fn sent(archive: &Archive) -> Sent<'_> {
    let coordinator = Service::Coordinator.agent_id();
    let mut sent = Sent::new();
    for message in &archive.messages {
        let Some(envelope) = &message.envelope else {
            continue;
        };
        let kind = match envelope.message_type {
            MessageType::SessionBriefing => BRIEFING,
            MessageType::TaskAssignment => ASSIGNMENT,
            _ => continue,
        };
        let (Some(case), Recipient::Agent(to)) = (&envelope.case_id, &envelope.to_agent) else {
            continue;
        };
        if envelope.from_agent == coordinator {
            let ids = sent.entry((case.as_str(), to, kind)).or_default();
            ids.insert(&envelope.message_id);
        }
    }
    sent
}

//! What senders may do, for deciding again: what is read of others is read a little earlier, so whatever somebody was allowed
//! at some time before an event may have led to it.

use concord_domain::Machine;
use concord_domain::aggregates::case::CaseInput;
use concord_domain::aggregates::debate::{DebateInput, MessageBody};
use concord_domain::aggregates::person::{Authority, PersonMachine, PersonState};
use concord_events::CaseEvent;
use concord_wire::AgentId;

use super::archive::Archive;

/// What somebody was allowed at the times before the event at `before`.
fn earlier(archive: &Archive, before: u64, name: &AgentId) -> Vec<Authority> {
    let mut state = PersonState::default();
    let mut known = vec![state.authority()];
    let events = archive.people.get(&name.token()).into_iter().flatten();
    for event in events.take_while(|event| event.sequence < before) {
        PersonMachine::apply(&mut state, event.clone());
        known.push(state.authority());
    }
    known
}

/// An input of a case, with each of the authorities that its sender may have had.
pub(super) fn of_case(archive: &Archive, before: u64, input: CaseInput) -> Vec<CaseInput> {
    let from = match &input {
        CaseInput::Open(asked) => &asked.opened_by,
        CaseInput::Challenge(received) => &received.heard.agent_id,
        CaseInput::Review(received) => &received.heard.agent_id,
        _ => return vec![input],
    };
    let with = |sender: Authority| {
        let mut input = input.clone();
        match &mut input {
            CaseInput::Open(asked) => asked.sender = sender,
            CaseInput::Challenge(received) => received.sender = sender,
            CaseInput::Review(received) => received.sender = sender,
            _ => {}
        }
        input
    };
    earlier(archive, before, from)
        .into_iter()
        .map(with)
        .collect()
}

/// The same for an input of a debate.
pub(super) fn of_debate(archive: &Archive, before: u64, input: DebateInput) -> Vec<DebateInput> {
    let from = match &input {
        DebateInput::Outcome(told) => &told.agent_id,
        DebateInput::Message(said) if matches!(said.body, MessageBody::Ruling(_)) => &said.agent_id,
        _ => return vec![input],
    };
    let with = |sender: Authority| {
        let mut input = input.clone();
        match &mut input {
            DebateInput::Outcome(told) => {
                told.opened_case = has_opened(archive, told.case_id.as_ref(), &told.agent_id);
                told.sender = sender;
            }
            DebateInput::Message(said) => said.sender = sender,
            _ => {}
        }
        input
    };
    earlier(archive, before, from)
        .into_iter()
        .map(with)
        .collect()
}

fn has_opened(archive: &Archive, case: Option<&concord_wire::CaseId>, name: &AgentId) -> bool {
    let first = case.and_then(|case| archive.cases.get(&case.token())?.first());
    first.is_some_and(|record| match &record.event {
        CaseEvent::Opened(opened) => opened.opened_by == *name,
        _ => false,
    })
}

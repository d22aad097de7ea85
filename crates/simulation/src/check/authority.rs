//! What senders may do, for deciding again: what is read of others is read a little earlier, so whatever somebody was allowed
//! at some time before an event may have led to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_domain::Machine;
use concord_domain::aggregates::case::{CaseInput, OpenRequest, ReceivedReview};
use concord_domain::aggregates::debate::{DebateInput, MessageBody};
use concord_domain::aggregates::person::{Authority, PersonMachine, PersonState};
use concord_domain::aggregates::policy::{KnownPolicies, PolicyMachine, PolicyState, id_of};
use concord_events::CaseEvent;
use concord_wire::AgentId;
use concord_wire::id::PolicyName;
use concord_wire::policy::PolicyRequest;

use super::archive::Archive;

/// What somebody was allowed at the times before the event at `before`.
pub(super) fn earlier(archive: &Archive, before: u64, name: &AgentId) -> Vec<Authority> {
    let mut state = PersonState::default();
    let mut known = vec![state.authority()];
    let events = archive.people.get(&name.token()).into_iter().flatten();
    for event in events.take_while(|event| event.sequence < before) {
        PersonMachine::apply(&mut state, event.clone());
        known.push(state.authority());
    }
    known
}

/// What was stored under the name of the policy that a request asks for, at the times before the event at `before`.
fn earlier_policies(archive: &Archive, before: u64, asked: &OpenRequest) -> Vec<Arc<PolicyState>> {
    let mut state = Arc::<PolicyState>::default();
    let mut known = vec![Arc::clone(&state)];
    let requested = PolicyRequest::parse(&asked.request.policy, "").ok();
    let name = requested.and_then(|requested| PolicyName::parse(requested.name()).ok());
    let events = name.and_then(|name| archive.policies.get(&id_of(&name)));
    let events = events.into_iter().flatten();
    for event in events.take_while(|event| event.sequence < before) {
        PolicyMachine::apply(Arc::make_mut(&mut state), event.clone());
        known.push(Arc::clone(&state));
    }
    known
}

/// What each person was allowed at the times before the event at `before`.
fn everybody_earlier(archive: &Archive, before: u64) -> Vec<BTreeMap<AgentId, Authority>> {
    let events = archive.people.values().flatten();
    let mut events: Vec<_> = events.filter(|event| event.sequence < before).collect();
    events.sort_by_key(|event| event.sequence);
    let mut states: BTreeMap<AgentId, PersonState> = BTreeMap::new();
    let mut known = vec![BTreeMap::new()];
    for event in events {
        let Ok(name) = AgentId::new(event.meta.id.as_str()) else {
            continue;
        };
        PersonMachine::apply(states.entry(name).or_default(), event.clone());
        let now = states.iter();
        known.push(
            now.map(|(name, state)| (name.clone(), state.authority()))
                .collect(),
        );
    }
    known
}

/// A review, with what may have been read of who was the first of two reviewers.
fn of_review(archive: &Archive, before: u64, received: &ReceivedReview) -> Vec<CaseInput> {
    let known = everybody_earlier(archive, before).into_iter();
    let with = known.map(|first| {
        CaseInput::Review(Box::new(ReceivedReview {
            first,
            ..received.clone()
        }))
    });
    with.collect()
}

/// A request to open a case, with each of the authorities that its sender may have had, and each state of the policy.
fn of_opening(archive: &Archive, before: u64, asked: &OpenRequest) -> Vec<CaseInput> {
    let policies = earlier_policies(archive, before, asked);
    let with = |sender: Authority| {
        let asked = asked.clone();
        policies.iter().map(move |stored| {
            let known = KnownPolicies {
                stored: Arc::clone(stored),
                names: Vec::new(),
            };
            CaseInput::Open(Box::new(OpenRequest {
                sender: sender.clone(),
                known,
                ..asked.clone()
            }))
        })
    };
    let senders = earlier(archive, before, &asked.opened_by);
    senders.into_iter().flat_map(with).collect()
}

/// An input of a case that follows from an event: with each state of the policy, where it is opened.
pub(super) fn with_policies(archive: &Archive, before: u64, input: CaseInput) -> Vec<CaseInput> {
    let CaseInput::Open(asked) = &input else {
        return vec![input];
    };
    let policies = earlier_policies(archive, before, asked).into_iter();
    let with = policies.map(|stored| {
        let mut asked = asked.clone();
        asked.known.stored = stored;
        CaseInput::Open(asked)
    });
    with.collect()
}

/// An input of a case, with each of the authorities that its sender may have had.
pub(super) fn of_case(archive: &Archive, before: u64, input: CaseInput) -> Vec<CaseInput> {
    let from = match &input {
        CaseInput::Open(asked) => return of_opening(archive, before, asked),
        CaseInput::Challenge(received) => &received.heard.agent_id,
        CaseInput::Review(received) => &received.heard.agent_id,
        CaseInput::Add(received) => &received.by,
        _ => return vec![input],
    };
    let with = |sender: Authority| {
        let mut input = input.clone();
        match &mut input {
            CaseInput::Challenge(received) => received.sender = sender,
            CaseInput::Review(received) => received.sender = sender,
            CaseInput::Add(received) => received.sender = sender,
            _ => {}
        }
        input
    };
    let inputs = earlier(archive, before, from).into_iter().map(with);
    let inputs = inputs.flat_map(|input| match &input {
        CaseInput::Review(received) => of_review(archive, before, received),
        _ => vec![input],
    });
    inputs.collect()
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

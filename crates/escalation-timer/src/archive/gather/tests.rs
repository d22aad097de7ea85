use concord_domain::aggregates::commitment::{CommitmentInput, ReceivedCommitment, id_of};
use concord_domain::{Context, Decision};
use concord_events::{Heard, LeaseBounds};
use concord_wire::payload::Commitment;
use concord_wire::{AgentId, MessageId};
use serde_json::json;

use super::*;

/// A commitment in the case, or outside cases, as it is stored.
fn granted(id: &Token, number: u64, case_id: Option<CaseId>) -> ArchivedMessage {
    let message_id = MessageId::new(format!("m-{number}")).unwrap();
    let said: Commitment = serde_json::from_value(json!({ "resource": "task/42" })).unwrap();
    let input = CommitmentInput::Said(Box::new(ReceivedCommitment {
        heard: Heard {
            agent_id: AgentId::new("ann").unwrap(),
            message_id: message_id.clone(),
            digest: String::new(),
        },
        case_id,
        said,
        bounds: LeaseBounds::default(),
    }));
    let context = Context::of_message(Timestamp::from_unix_millis(0), message_id);
    let empty = Versioned::<CommitmentMachine>::default();
    let Decision::Append(event) = CommitmentMachine::decide(&empty.state, &context, &input) else {
        panic!("it is granted");
    };
    ArchivedMessage {
        stream: StreamKind::Events,
        sequence: number,
        at: context.now,
        subject: String::new(),
        headers: Vec::new(),
        payload: empty.record(id, &context, event).encode().unwrap().into(),
    }
}

#[test]
fn what_is_committed_to_outside_cases_is_not_archived_with_a_case_that_was_given_its_id() {
    let id = id_of(None, "task/42");
    let case = CaseId::new(id.as_str()).unwrap();
    for (places, is_archived) in [
        (vec![Some(&case), Some(&case)], true),
        (vec![None, Some(&case)], false),
        (vec![Some(&case), None], false),
        (vec![None], false),
    ] {
        let events = (1..).zip(&places);
        let events = events.map(|(number, place)| granted(&id, number, place.cloned()));
        let mut gathered = Gathered::default();
        let kept = (Aggregate::Commitment, id.clone());
        gathered.events.insert(kept.clone(), events.collect());
        gathered.leave_outside();
        let is_there = gathered.events.contains_key(&kept);
        assert_eq!(is_there, is_archived, "{places:?}");
    }
}

//! The queue of people, audited.

use concord_events::{Assigned, Enqueued, ExpertRegistered, ReviewQueueEvent, StoredEvent};
use concord_wire::payload::{DebatePriority, Expert};
use concord_wire::{DebateId, Timestamp};

use super::super::*;
use crate::aggregates::review_queue::{self, Enqueue, QueueInput, ReviewQueueMachine};
use crate::fixtures::*;

/// eva has one debate, and a capacity of one; another waits.
fn told() -> Story<ReviewQueueMachine> {
    let mut story = Story::of(review_queue::id().as_str());
    let expert = Expert {
        agent_id: agent("eva"),
        name: None,
        domains: vec![],
        contact: Default::default(),
        capacity: 1,
    };
    let registered = ExpertRegistered {
        follows: 0,
        expert,
        by: agent("eva"),
    };
    story.hears(
        &said("m-eva", 0),
        &QueueInput::Register(Box::new(registered)),
    );
    for name in ["d-1", "d-2"] {
        let entry = Enqueued {
            debate_id: DebateId::new(name).unwrap(),
            case_id: case_id(),
            priority: DebatePriority::CriticalPath,
            opened_by: None,
            opener_waiting_max: 0,
            domain: None,
            excluded: vec![],
            entered_at: start(),
            due: after(60_000),
        };
        let enqueue = Enqueue {
            entry,
            overflow: Default::default(),
            queue_max: 9,
        };
        story.hears(
            &happened(&format!("e-{name}"), 1),
            &QueueInput::Enqueue(Box::new(enqueue)),
        );
    }
    assert_eq!(
        story.hears(&happened("e-1", 2), &QueueInput::Advance),
        "assigned"
    );
    story
}

fn audit(records: &[StoredEvent<ReviewQueueEvent>]) -> Report {
    let mut auditor = Auditor::new();
    for record in records {
        let (id, event, bytes) = (
            &record.meta.id,
            token(record.event.name()),
            record.encode().unwrap(),
        );
        let (sequence, aggregate) = (record.sequence, Aggregate::ReviewQueue);
        auditor.event(&RawEvent {
            sequence,
            aggregate,
            id,
            event: &event,
            bytes: &bytes,
        });
    }
    auditor.finish(&Ending::quiescent(Timestamp::default()))
}

#[test]
fn one_debate_more_than_an_expert_can_take_is_found() {
    let mut story = told();
    let report = audit(&story.records);
    assert!(report.holds(), "{report:#?}");
    assert_eq!(report.of(Invariant::Capacity).unwrap().examined, 1);
    let one_more = Assigned {
        debate_id: DebateId::new("d-2").unwrap(),
        case_id: case_id(),
        expert: agent("eva"),
        contact: Default::default(),
        waited_ms: 0,
    };
    let mut record = story.versioned.record(
        &story.id.clone(),
        &happened("e-2", 3),
        ReviewQueueEvent::Assigned(one_more),
    );
    record.sequence = story.sequence + 1;
    story.records.push(record);
    let report = audit(&story.records);
    let found: Vec<_> = report
        .violations()
        .map(|(checked, first)| (checked.number, first.what.as_str()))
        .collect();
    assert_eq!(
        found,
        [(6, "It gives d-2 to eva, who has 1 with a capacity of 1.")]
    );
    assert_eq!(report.of(Invariant::Capacity).unwrap().examined, 2);
}

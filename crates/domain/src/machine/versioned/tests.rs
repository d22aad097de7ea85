//! Events that carry the state: whoever begins with it knows what whoever reads all events knows.

use concord_events::{
    Admitted, ChallengeAdmitted, QuotaKind, QuotaReached, Quotas, TaskAdmitted, WorkTaken,
};
use concord_wire::{CaseId, Priority};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::aggregates::opener::{OpenerInput, OpenerMachine};
use crate::aggregates::rotation::{RotationMachine, Turn};
use crate::aggregates::worklist::{WorklistInput, WorklistMachine};
use crate::assurance::replay;
use crate::event_chain::from_state;
use crate::fixtures::*;
use crate::machine::Decision;
use crate::rules::size_budget::json_bytes;

mod standing;

type Records<M> = Vec<StoredEvent<<M as Machine>::Event>>;

/// What becomes of these inputs, where an event carries the state after `every` events. Each event is stored some places after
/// the one before it.
fn life<M: Machine>(inputs: &[M::Input], every: usize) -> (Versioned<M>, Records<M>) {
    let (mut versioned, mut records) = (Versioned::<M>::default(), Vec::new());
    for (number, input) in (1..).zip(inputs) {
        let context = said(&format!("m-{number}"), number);
        if let Decision::Append(event) = M::decide(&versioned.state, &context, input) {
            let mut record = versioned.record(&token("a"), &context, event);
            versioned.carry(&mut record, every);
            record.sequence = number * 3;
            // As it comes back from the broker.
            let bytes = record.encode().unwrap();
            let stored = StoredEvent::decode(&bytes, record.sequence).unwrap();
            assert_eq!(stored, record);
            versioned.apply(record);
            records.push(stored);
        }
    }
    (versioned, records)
}

/// Catches up by all of them; false where one cannot be used.
fn catch_up<M: Machine>(versioned: &mut Versioned<M>, records: Records<M>) -> bool {
    records.into_iter().all(|record| versioned.catch_up(record))
}

fn form<M: Machine>() -> Option<u32> {
    M::CARRY.as_ref().map(|carry| carry.form)
}

fn check<M: Machine>(inputs: &[M::Input], every: usize, known: usize) -> Result<(), TestCaseError> {
    let (versioned, records) = life::<M>(inputs, every);
    prop_assert_eq!(replay::rebuild::<M>(&records).1, vec![]);
    let long = records
        .iter()
        .position(|record| record.meta.earlier.len() > every);
    prop_assert_eq!(
        long,
        None,
        "no event names more than there are from the last state on"
    );
    let carrying = records
        .iter()
        .filter(|record| record.meta.state.is_some())
        .count();
    prop_assert_eq!(carrying, records.len().saturating_sub(1) / every);
    // One that knows nothing, and one that knows some and has heard of nothing since.
    for known in [0, known.min(records.len())] {
        let mut other = Versioned::<M>::default();
        prop_assert!(catch_up(&mut other, records[..known].to_vec()));
        let after = other.sequence();
        let new = records.iter().filter(|record| record.sequence > after);
        let new = from_state(new.cloned().collect(), form::<M>());
        prop_assert!(new.len() <= every.max(1));
        prop_assert!(catch_up(&mut other, new));
        prop_assert_eq!(&other.state, &versioned.state);
        prop_assert_eq!(other.named(), versioned.named());
        prop_assert_eq!(other.sequence(), versioned.sequence());
    }
    Ok(())
}

fn opener_input() -> impl Strategy<Value = OpenerInput> {
    let case = |number: u8| CaseId::new(format!("c-{number}")).unwrap();
    let quotas = Quotas {
        open_cases: 3,
        gates: 4,
        challenges: 2,
        open_tasks: 2,
    };
    (0..6u8, 0..4u8, 0..3u8).prop_map(move |(kind, one, other)| match kind {
        0 => OpenerInput::Admit(Admitted {
            opener: agent("opal"),
            case_id: case(one),
            gates: u32::from(other),
            quotas,
        }),
        1 => OpenerInput::Challenge(ChallengeAdmitted {
            case_id: case(one),
            message_id: message(&format!("m-{other}")),
            quota: quotas.challenges,
        }),
        2 => OpenerInput::Release(case(one)),
        3 => OpenerInput::AdmitTask(TaskAdmitted {
            opener: agent("opal"),
            task_id: token(&format!("t-{one}")),
            quota: quotas.open_tasks,
        }),
        4 => OpenerInput::ReleaseTask(token(&format!("t-{one}"))),
        _ => OpenerInput::Tell(QuotaReached {
            opener: agent("opal"),
            quota: [
                QuotaKind::OpenCases,
                QuotaKind::Gates,
                QuotaKind::Challenges,
            ][usize::from(other)],
            limit: 1,
            case_id: Some(case(one)),
            task_id: None,
        }),
    })
}

fn worklist_input() -> impl Strategy<Value = WorklistInput> {
    (0..3u8, 0..5u8, 0..3u8).prop_map(|(kind, task, other)| {
        let task_id = token(&format!("t-{task}"));
        match kind {
            0 => WorklistInput::Release {
                task_id,
                done: [None, Some(true), Some(false)][usize::from(other)],
            },
            _ => WorklistInput::Take(WorkTaken {
                task_id,
                priority: [Priority::Low, Priority::Normal, Priority::High][usize::from(other)],
                capacity: Some(1 + u32::from(task % 2)),
            }),
        }
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    (0..40u8, 1..4u8).prop_map(|(task, agents)| Turn {
        task_id: token(&format!("t-{task}")),
        eligible: (0..agents)
            .map(|number| agent(&format!("a-{number}")))
            .collect(),
    })
}

/// States of these few events are larger than the events, so as many are let through as tests need.
const EVERY: std::ops::Range<usize> = 8..20;

proptest! {
    #[test]
    fn an_opener_is_known_from_its_last_state(inputs in vec(opener_input(), 0..150), every in EVERY, known in 0..60usize) {
        check::<OpenerMachine>(&inputs, every, known)?;
    }

    #[test]
    fn a_worklist_is_known_from_its_last_state(inputs in vec(worklist_input(), 0..150), every in EVERY, known in 0..60usize) {
        check::<WorklistMachine>(&inputs, every, known)?;
    }

    #[test]
    fn a_rotation_is_known_from_its_last_state(inputs in vec(turn(), 0..150), every in EVERY, known in 0..60usize) {
        check::<RotationMachine>(&inputs, every, known)?;
    }
}

/// An opener of ten cases, one after the other.
fn ten_cases() -> (Versioned<OpenerMachine>, Records<OpenerMachine>) {
    let of = |number: u32| {
        let case_id = CaseId::new(format!("c-{number}")).unwrap();
        let admit = OpenerInput::Admit(Admitted {
            opener: agent("opal"),
            case_id: case_id.clone(),
            gates: 0,
            quotas: Quotas::default(),
        });
        [admit, OpenerInput::Release(case_id)]
    };
    let inputs: Vec<OpenerInput> = (0..10).flat_map(of).collect();
    life::<OpenerMachine>(&inputs, 7)
}

#[test]
fn a_state_that_the_events_do_not_lead_to_is_found() {
    let (_, mut records) = ten_cases();
    assert_eq!(replay::rebuild::<OpenerMachine>(&records).1, []);
    let carried = records[14].meta.state.as_mut().unwrap();
    carried.value["cases"] = json!({});
    carried.value["tasks"] = json!({ "t-1": "2026-11-21T20:15:00.000Z" });
    let found = replay::rebuild::<OpenerMachine>(&records).1;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].sequence, records[14].sequence);
    assert!(found[0].what.contains("another state"), "{}", found[0].what);
}

#[test]
fn of_a_state_that_cannot_be_read_the_events_are() {
    let (versioned, records) = ten_cases();
    let mut new = from_state(records.clone(), form::<OpenerMachine>());
    assert_eq!(new.len(), 6);
    new[0].meta.state.as_mut().unwrap().value = json!({ "cases": "many" });
    let mut other = Versioned::<OpenerMachine>::default();
    assert!(!catch_up(&mut other, new));
    assert_eq!(other.sequence(), 0, "nothing is taken of them");
    assert!(catch_up(&mut other, records.clone()));
    assert_eq!(other.state, versioned.state);
    // A state in another form is read by nobody else, and leaves nothing out.
    assert_eq!(from_state(records.clone(), Some(77)), records);
    assert_eq!(from_state(records.clone(), None), records);
}

#[test]
fn what_earlier_versions_store_after_a_state_is_right() {
    let (versioned, mut records) = ten_cases();
    let last = records.last_mut().unwrap();
    last.meta.earlier = versioned.sequences[..19].to_vec();
    assert_eq!(replay::rebuild::<OpenerMachine>(&records).1, []);
    records.last_mut().unwrap().meta.earlier.remove(3);
    assert_eq!(replay::rebuild::<OpenerMachine>(&records).1.len(), 1);
}

#[test]
fn a_state_takes_no_more_room_than_the_events_that_need_not_be_read() {
    let admit = |number: u32| {
        OpenerInput::Admit(Admitted {
            opener: agent("opal"),
            case_id: CaseId::new(format!("{number}-{}", "x".repeat(50))).unwrap(),
            gates: 0,
            quotas: Quotas {
                open_cases: 0,
                ..Quotas::default()
            },
        })
    };
    let inputs: Vec<OpenerInput> = (0..4_000).map(admit).collect();
    let (_, records) = life::<OpenerMachine>(&inputs, 64);
    let states = records
        .iter()
        .filter_map(|record| record.meta.state.as_ref());
    let bytes: Vec<usize> = states.map(json_bytes).collect();
    // Some 120 bytes a case: with every 64th event at first, then more and more rarely, until there are more than fit.
    let first: Vec<usize> = bytes.iter().map(|bytes| bytes / 1_000).take(6).collect();
    assert_eq!(first, [7, 15, 22, 30, 46, 61]);
    assert!(
        bytes.len() < 15 && bytes.iter().all(|bytes| *bytes <= 256 << 10),
        "{bytes:?}"
    );
    assert_eq!(records[3_999].meta.earlier.len(), EARLIER_MAX);
    assert_eq!(replay::rebuild::<OpenerMachine>(&records).1, []);
}

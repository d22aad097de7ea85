//! The decision log, audited.

use concord_events::{DebateSettled, StoredEvent};
use concord_wire::payload::{ConflictType, LogEntry, Status};
use serde_json::json;

use super::super::*;
use crate::aggregates::case::CaseInput;
use crate::fixtures::*;

type Told = Vec<StoredEvent<CaseEvent>>;

/// A case whose three debates were settled, the last of them by its decision.
fn told() -> Told {
    let mut story = Story::<CaseMachine>::of("c-1");
    story.hears(&said("m-open", 0), &open_by_anybody(&["ann", "ben"]));
    story.hears(
        &said("m-a", 1),
        &finding("ann", "m-a", json!({ "summary": "a" })),
    );
    story.hears(
        &said("m-b", 2),
        &finding("ben", "m-b", json!({ "summary": "b" })),
    );
    let held: [(&str, serde_json::Value, f64); 2] =
        [("ann", json!(20), 0.6), ("ben", json!(80), 0.9)];
    let ids = ["d-1", "d-2", "d-3"];
    let conflicts = ids.map(|id| conflict(id, ConflictType::RiskScoreDisagreement, id, &held));
    story.hears(
        &happened("e-detected", 3),
        &detected(conflicts.to_vec(), vec![]),
    );
    for (place, one) in conflicts.iter().enumerate() {
        let resolved = CaseInput::Resolved(Box::new(outcome(one, Status::Vote, Some(json!(80)))));
        story.hears(&happened(&format!("e-{place}"), 4), &resolved);
    }
    story.records
}

fn audit(records: &[StoredEvent<CaseEvent>]) -> (u64, Vec<String>) {
    let mut counts = Counts::default();
    let mut logs = Logs::default();
    let mut faults = Vec::new();
    for record in records {
        logs.event(&mut counts, record);
        let checked = counts.checked(&Settled::ALL);
        faults.extend(
            checked
                .iter()
                .find(|one| one.violations > 0)
                .and_then(|one| one.first.clone()),
        );
    }
    let checked = counts.checked(&Settled::ALL);
    let log = checked
        .iter()
        .find(|one| one.number == Invariant::DecisionLog.number())
        .unwrap();
    faults.truncate(1);
    (
        log.examined,
        faults
            .into_iter()
            .map(|fault| format!("{} {}", fault.place, fault.what))
            .collect(),
    )
}

fn settled(records: &mut Told, place: usize) -> &mut DebateSettled {
    let mut all = records
        .iter_mut()
        .filter_map(|record| match &mut record.event {
            CaseEvent::DebateSettled(settled) => Some(settled),
            _ => None,
        });
    all.nth(place).unwrap()
}

fn entry(records: &mut Told, place: usize) -> &mut LogEntry {
    settled(records, place).entry.as_deref_mut().unwrap()
}

/// A change of the log, and what is said of it.
type Planted = (fn(&mut Told), &'static str);

const PLANTED: [Planted; 8] = [
    (
        |told| entry(told, 1).first_reviewer = Some(agent("gail")),
        "case/c-1 c-1-2: It names another first reviewer than the outcome.",
    ),
    (
        |told| entry(told, 1).topic.push('!'),
        "case/c-1 c-1-2: Its hash is not that of its contents.",
    ),
    (
        |told| {
            let changed = entry(told, 1);
            changed.topic.push('!');
            *changed = changed.clone().sealed();
        },
        "case/c-1 c-1-3: It does not name the hash of the entry before.",
    ),
    (
        |told| {
            let place = told
                .iter()
                .position(|record| matches!(record.event, CaseEvent::DebateSettled(_)));
            told.remove(place.unwrap());
        },
        "case/c-1 c-1-2: It has the number 2 and comes after number 0.",
    ),
    (
        |told| {
            let changed = entry(told, 0);
            changed.number = 5;
            *changed = changed.clone().sealed();
        },
        "case/c-1 c-1-1: It has the number 5 and comes after number 0.",
    ),
    (
        |told| settled(told, 1).entry = None,
        "case/c-1 A debate has ended without an entry.",
    ),
    (
        |told| settled(told, 1).outcome.status = Status::Unresolved,
        "case/c-1 c-1-2: It is not about the debate that ended.",
    ),
    (
        |told| {
            let last = told
                .iter_mut()
                .rev()
                .find_map(|record| match &mut record.event {
                    CaseEvent::Decided(decided) => decided.entry.as_deref_mut(),
                    _ => None,
                });
            last.unwrap().confidence = Some(1.0);
        },
        "case/c-1 c-1-3: Its hash is not that of its contents.",
    ),
];

#[test]
fn a_changed_or_missing_entry_is_found() {
    assert_eq!(audit(&told()), (3, vec![]));
    for (plant, said) in PLANTED {
        let mut told = told();
        plant(&mut told);
        assert_eq!(audit(&told).1, [said]);
    }
}

#[test]
fn a_case_that_was_cancelled_has_ended() {
    let mut story = Story::<CaseMachine>::of("c-1");
    story.hears(&said("m-open", 0), &open_by_anybody(&["ann", "ben"]));
    let cancel = CaseInput::Cancel {
        by: agent("olga"),
        why: "the deal is off".into(),
    };
    assert_eq!(story.hears(&said("m-cancel", 1), &cancel), "cancelled");
    let mut auditor = Auditor::new();
    for record in &story.records {
        let (id, event, bytes) = (
            &record.meta.id,
            token(record.event.name()),
            record.encode().unwrap(),
        );
        let (sequence, aggregate) = (record.sequence, Aggregate::Case);
        auditor.event(&RawEvent {
            sequence,
            aggregate,
            id,
            event: &event,
            bytes: &bytes,
        });
    }
    let report = auditor.finish(&Ending::under_load(after(2)));
    assert!(report.holds(), "{report:#?}");
}

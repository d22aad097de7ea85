//! Aggregates that live for years: every event is held against the last predecessors there are.

use concord_events::{EARLIER_MAX, TrackRecordEvent};
use concord_wire::payload::Observation;
use concord_wire::payload::track_record::{Context, Source};

use super::super::*;
use crate::aggregates::track_record::{Observe, TrackRecordMachine};
use crate::fixtures::*;

const EVENTS_TOTAL: usize = 2 * EARLIER_MAX + 40;

fn life() -> Story<TrackRecordMachine> {
    let mut story = Story::of("ann");
    for n in 0..EVENTS_TOTAL {
        let observation = Observation {
            at: after(0),
            correct: true,
            domain: "valuation".into(),
            regime: None,
            context: Context::default(),
            source: Source::Outcome,
            overridden: false,
        };
        let input = Observe {
            observation,
            debate_id: None,
            case_id: None,
            opened_by: None,
            by: agent("olga"),
            imported: None,
            tell: None,
        };
        assert_eq!(
            story.hears(&happened(&format!("e-{n}"), 1), &input),
            "observed"
        );
    }
    story
}

fn replay_violations(records: &[StoredEvent<TrackRecordEvent>]) -> u64 {
    let mut auditor = Auditor::new();
    for record in records {
        let (id, event, bytes) = (token("ann"), token("observed"), record.encode().unwrap());
        let (sequence, aggregate) = (record.sequence, Aggregate::TrackRecord);
        auditor.event(&RawEvent {
            sequence,
            aggregate,
            id: &id,
            event: &event,
            bytes: &bytes,
        });
    }
    let report = auditor.finish(&Ending::quiescent(after(0)));
    let replay = report.of(Invariant::Replay).unwrap();
    assert_eq!(
        (report.violations().count() > 0, replay.examined),
        (replay.violations > 0, records.len() as u64)
    );
    replay.violations
}

#[test]
fn what_an_event_names_is_complete_at_any_age() {
    let records = life().records;
    assert_eq!(replay_violations(&records), 0);
    for place in [1, EARLIER_MAX, EARLIER_MAX + 1, EVENTS_TOTAL - 1] {
        let mut forgets = records.clone();
        forgets[place].meta.earlier.remove(0);
        assert_eq!(
            replay_violations(&forgets),
            1,
            "event {place} leaves one out"
        );
        let mut cut = records.clone();
        cut[place].meta.earlier.clear();
        assert_eq!(
            replay_violations(&cut),
            1,
            "at event {place} the chain ends"
        );
    }
    let mut lost = records;
    lost.remove(100);
    assert_eq!(
        replay_violations(&lost),
        EARLIER_MAX as u64,
        "each event that names the lost one says so"
    );
}

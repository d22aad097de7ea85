use concord_events::subject::SystemSubject;
use concord_events::{CaseEvent, Deadline, DeadlineEvent, DebateEvent};
use concord_wire::payload::Status;
use concord_wire::{Envelope, MessageId};
use serde_json::json;

use super::*;
use crate::fixtures::{after, agent, message, token};

mod capacity;
mod hall;
mod log;
mod long;
mod planted;
mod signatures;

use hall::{Hall, Until};

const CASE_DUE: u64 = 900_000;

/// What the first violation of an invariant says.
fn first(hall: &Hall, invariant: Invariant) -> String {
    let report = hall.report(&Ending::quiescent(after(20_000)));
    let first = report
        .of(invariant)
        .and_then(|checked| checked.first.clone())
        .expect("violated");
    format!("{}: {}", first.place, first.what)
}

#[test]
fn a_case_that_went_well_violates_nothing() {
    let report = Hall::told(Until::End).report(&Ending::quiescent(after(2 * CASE_DUE)));
    assert_eq!(report.violations().count(), 0, "{report:#?}");
    assert!(report.holds());
    let examined: Vec<(u8, u64)> = report
        .invariants
        .iter()
        .map(|checked| (checked.number, checked.examined))
        .collect();
    // 3: a case and a debate. 2: three findings and that of a stranger. 5: one deadline fired.
    assert_eq!(
        examined,
        [
            (1, 2),
            (2, 4),
            (3, 2),
            (4, 26),
            (5, 1),
            (6, 0),
            (7, 13),
            (8, 9),
            (9, 1),
            (10, 1),
            (11, 1),
            (12, 0),
        ]
    );
    assert_eq!((report.events, report.dead), (13, 2));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["invariants"][0]["name"], "nothing_stuck");
    assert!(report.invariants.iter().all(|checked| checked.complete));
}

#[test]
fn a_case_under_way_violates_nothing_before_its_deadlines() {
    for until in [Until::FindingsClosed, Until::RoundDue, Until::Decided] {
        assert_eq!(
            Hall::told(until).violated(after(10_000)),
            [0; 0],
            "{until:?}"
        );
    }
}

#[test]
fn what_is_stuck_is_found() {
    let hall = Hall::told(Until::FindingsClosed);
    assert_eq!(hall.violated(after(CASE_DUE)), [0; 0]);
    assert_eq!(
        hall.violated(after(CASE_DUE + 1)),
        [1, 5],
        "the deadline did not fire, and nobody decided"
    );
    let graceful = Ending {
        grace_ms: 1,
        ..Ending::quiescent(after(CASE_DUE + 1))
    };
    assert!(hall.report(&graceful).holds());
    let hall = Hall::told(Until::RoundDue);
    assert_eq!(hall.violated(after(10_001)), [1, 5]);
    let stuck = first(&hall, Invariant::NothingStuck);
    assert!(
        stuck.starts_with("debate/d-") && stuck.contains("2026-11-21T20:00:10.000Z"),
        "{stuck}"
    );
}

#[test]
fn what_waits_for_nothing_is_found_even_under_load() {
    let mut hall = Hall::told(Until::RoundDue);
    let place = hall.place_of::<DebateEvent>("opened");
    hall.events.remove(place);
    let report = hall.report(&Ending::under_load(after(0)));
    let stuck = report.of(Invariant::NothingStuck).unwrap();
    assert!(
        stuck
            .first
            .as_ref()
            .unwrap()
            .what
            .contains("waits for nothing"),
        "{stuck:?}"
    );
    assert!(!stuck.complete);
}

/// Anybody can keep something under way; what is older than that is judged.
#[test]
fn what_is_settled_is_judged_also_under_load() {
    let mut hall = Hall::told(Until::Decided);
    hall.drop_message("c-1-1-2");
    let unread = hall.messages.len() as u64;
    hall.malformed.push(unread);
    let until = |events, messages| Ending {
        settled: Settled {
            events,
            messages,
            urgent: 0,
        },
        ..Ending::under_load(after(0))
    };
    for (ending, expected) in [
        (Ending::under_load(after(0)), &[][..]),
        (until(0, unread - 1), &[]),
        (until(1, 0), &[4]),
        (until(0, unread), &[8]),
        (until(1, unread), &[4, 8]),
    ] {
        let report = hall.report(&ending);
        let violated: Vec<u8> = report.violations().map(|(one, _)| one.number).collect();
        assert_eq!(violated, expected, "{:?}", ending.settled);
        assert!(!report.of(Invariant::MessagesKept).unwrap().complete);
    }
}

#[test]
fn a_deadline_that_is_settled_and_overdue_is_found_also_under_load() {
    let hall = Hall::told(Until::RoundDue);
    let last = hall.events.len() as u64;
    for (events, now, expected) in [
        (last, 10_001, &[1, 5][..]),
        (last, 9_999, &[]),
        (0, 10_001, &[]),
    ] {
        let ending = Ending {
            settled: Settled {
                events,
                ..Settled::NONE
            },
            ..Ending::under_load(after(now))
        };
        let report = hall.report(&ending);
        let violated: Vec<u8> = report.violations().map(|(one, _)| one.number).collect();
        assert_eq!(violated, expected, "{events} {now}");
    }
}

#[test]
fn a_deadline_that_fired_and_was_not_acted_on_is_found() {
    let mut hall = Hall::told(Until::Decided);
    let fired = hall.place_of::<DeadlineEvent>("debate_elapsed");
    hall.events.truncate(fired + 1);
    let found = first(&hall, Invariant::Deadlines);
    assert!(
        found.contains("/round-1: It elapsed") && found.contains("still open"),
        "{found}"
    );
}

#[test]
fn what_is_repeated_or_already_so_is_no_violation() {
    let mut hall = Hall::told(Until::End);
    hall.messages.extend(hall.messages.clone());
    // Asked again under another id: the case is open already.
    let open = json!({"action": "open_case", "parameters": {"case_id": "c-1"}});
    hall.say("olga", Service::Coordinator, "request", "m-open-2", open);
    assert_eq!(hall.violated(after(20_000)), [0; 0]);
    let other = json!({"action": "open_case", "parameters": {"case_id": "c-7"}});
    hall.say("olga", Service::Coordinator, "request", "m-open-3", other);
    assert_eq!(hall.violated(after(20_000)), [8]);
}

/// The answer of the coordinator to what was too much, from one place in the stream to another.
fn too_many(hall: &mut Hall, to: &str, first: u64, last: Option<u64>) {
    let mut refusal: Envelope = serde_json::from_slice(&hall.messages[0].bytes).unwrap();
    refusal.message_id = MessageId::of_refusal("msg", first);
    refusal.from_agent = Service::Coordinator.agent_id();
    refusal.to_agent = concord_wire::Recipient::Agent(agent(to));
    refusal.message_type = MessageType::Error;
    let fault = Fault::new(
        concord_wire::ErrorCode::CapacityExceeded,
        "",
        "Too many.",
        "Send fewer.",
    );
    let mut report = concord_wire::payload::ErrorReport::from(&fault);
    report
        .details
        .insert("limit".into(), json!(concord_wire::payload::RATE_LIMIT));
    report.details.insert("sequence".into(), json!(first));
    report
        .details
        .extend(last.map(|last| ("last_sequence".to_owned(), json!(last))));
    refusal.payload = serde_json::value::to_raw_value(&report).unwrap();
    hall.post(&refusal);
}

#[test]
fn what_was_too_much_is_kept_in_its_stream_and_needs_no_letter() {
    let mut hall = Hall::told(Until::End);
    let mut places = Vec::new();
    for (from, id) in [
        ("ann", "m-1"),
        ("ann", "m-2"),
        ("ben", "m-3"),
        ("ann", "m-4"),
    ] {
        hall.say(
            from,
            Service::Coordinator,
            "finding",
            id,
            json!({"summary": "again"}),
        );
        places.push(hall.messages.last().unwrap().sequence);
    }
    assert_eq!(hall.violated(after(20_000)), [2, 8]);
    too_many(&mut hall, "ann", places[0], Some(places[3]));
    assert_eq!(hall.violated(after(20_000)), [2, 8], "ben was told nothing");
    too_many(&mut hall, "ben", places[2], None);
    assert_eq!(hall.violated(after(20_000)), [0; 0]);
}

#[test]
fn what_nobody_acts_on_is_not_held_against_anyone() {
    let mut hall = Hall::told(Until::End);
    hall.say("ann", Service::Coordinator, "status", "m-1", json!({}));
    assert_eq!(hall.violated(after(20_000)), [0; 0]);
    // A request waits for an answer, whoever it is sent to.
    hall.say("ann", Service::EscalationTimer, "request", "m-2", json!({}));
    assert_eq!(hall.violated(after(20_000)), [8]);
}

#[test]
fn under_load_nothing_is_missing_yet() {
    let mut hall = Hall::told(Until::End);
    hall.say(
        "ann",
        Service::Coordinator,
        "finding",
        "m-new",
        json!({"summary": "news"}),
    );
    hall.drop_message("c-1-1-2");
    hall.dead.clear();
    let report = hall.report(&Ending::under_load(after(2 * CASE_DUE)));
    assert!(report.holds(), "{report:#?}");
    let complete: Vec<u8> = report
        .invariants
        .iter()
        .filter(|checked| checked.complete)
        .map(|checked| checked.number)
        .collect();
    assert_eq!(complete, [3, 6, 7, 9, 11, 12]);
    assert_eq!(hall.violated(after(20_000)), [2, 4, 8]);
}

#[test]
fn effects_of_facts_older_than_the_messages_kept_may_be_gone() {
    let mut hall = Hall::told(Until::End);
    hall.drop_message("c-1-1-2");
    for (since, expected) in [(0, false), (1, true)] {
        let ending = Ending {
            messages_since: Some(after(since)),
            ..Ending::quiescent(after(20_000))
        };
        assert_eq!(hall.report(&ending).holds(), expected, "since {since}");
    }
}

/// Whether a finding that nobody uses is kept by this letter.
fn is_kept(stored: &hall::Stored, letter: &Dead<'_>) -> bool {
    let mut auditor = Auditor::new();
    auditor.message(&StoredMessage {
        sequence: stored.sequence,
        subject: &stored.subject,
        declared: None,
        content: Content::Bytes(&stored.bytes),
    });
    auditor.dead(letter);
    auditor.finish(&Ending::quiescent(after(0))).holds()
}

#[test]
fn a_dead_letter_is_known_by_whatever_is_known_of_it() {
    let mut hall = Hall::default();
    hall.say("zoe", Service::Coordinator, "finding", "m-zoe", json!({}));
    hall.messages[0].bytes = b"hello".to_vec();
    let stored = hall.messages[0].clone();
    let mut other = stored.subject.clone();
    let Subject::Message { kind, .. } = &mut other else {
        panic!("{other:?}")
    };
    *kind = token("revision");
    let by_position = |lane| Dead {
        position: Some((lane, stored.sequence)),
        ..Dead::default()
    };
    let by_subject = |subject| Dead {
        subject: Some(subject),
        ..Dead::default()
    };
    let unknown = message("m-x");
    let by_id = Dead {
        message_id: Some(&unknown),
        subject: Some(&stored.subject),
        ..Dead::default()
    };
    for (letter, expected) in [
        (by_position(Lane::Normal), true),
        (by_subject(&stored.subject), true),
        (by_position(Lane::Urgent), false),
        (by_subject(&other), false),
        (by_id, false),
    ] {
        assert_eq!(is_kept(&stored, &letter), expected, "{letter:?}");
    }
}

#[test]
fn what_a_service_does_not_act_on_is_dead_or_lost_and_news_may_be_let_pass() {
    let asked: [(&str, Service, bool); 8] = [
        ("agreement", Service::Coordinator, true),
        ("finding", Service::DebateFacilitator, true),
        ("request", Service::AgentAdapter, true),
        ("task_result", Service::DebateFacilitator, true),
        ("gossip", Service::ConflictDetector, true),
        ("ruling", Service::DebateFacilitator, true),
        ("error", Service::Coordinator, false),
        ("notification", Service::AgentAdapter, false),
    ];
    for (kind, to, is_lost) in asked {
        let mut hall = Hall::default();
        hall.say("zoe", to, kind, "m-zoe", json!({}));
        let expected: &[u8] = if is_lost { &[8] } else { &[] };
        assert_eq!(hall.violated(after(0)), expected, "{kind} to {to}");
        hall.dead.push(Ok("m-zoe".into()));
        assert!(hall.violated(after(0)).is_empty(), "{kind} to {to}");
    }
}

#[test]
fn an_envelope_that_was_read_already_is_taken_as_it_is() {
    let mut hall = Hall::default();
    hall.say("zoe", Service::Coordinator, "finding", "m-zoe", json!({}));
    let stored = &hall.messages[0];
    let envelope = Envelope::decode(&stored.bytes, &stored.subject).unwrap();
    let mut auditor = Auditor::new();
    let content = Content::Envelope(&envelope);
    auditor.message(&StoredMessage {
        sequence: 1,
        subject: &stored.subject,
        declared: None,
        content,
    });
    let report = auditor.finish(&Ending::quiescent(after(0)));
    assert_eq!(report.of(Invariant::MessagesKept).unwrap().violations, 1);
    assert_eq!(report.of(Invariant::FindingsKept).unwrap().violations, 1);
}

#[test]
fn more_can_be_fed_after_a_report() {
    let hall = Hall::told(Until::End);
    let mut auditor = Auditor::new();
    for stored in &hall.events {
        let SystemSubject::Event {
            aggregate,
            id,
            event,
        } = &stored.subject
        else {
            panic!()
        };
        let (sequence, bytes) = (stored.sequence, &stored.bytes);
        auditor.event(&RawEvent {
            sequence,
            aggregate: *aggregate,
            id,
            event,
            bytes,
        });
        assert!(
            auditor.finish(&Ending::under_load(after(0))).holds(),
            "after {sequence}"
        );
    }
    let missing = auditor.finish(&Ending::quiescent(after(20_000)));
    assert_eq!(
        missing.of(Invariant::EffectsPublished).unwrap().violations,
        13,
        "no message was fed"
    );
}

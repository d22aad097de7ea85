use super::*;

fn reminded(contact: &str, due: &str) -> StoredEvent<DebateEvent> {
    let bytes = format!(
        r#"{{"fact":"reminded","aggregate":"debate","event_id":"e","id":"d-1","cause":"m","at":"2026-01-01T00:00:00.000Z",
        "data":{{"case_id":"c-1","topic":"t","expert":"eva",{contact}"percent":50,"due":"{due}","waits_for":[]}}}}"#
    );
    StoredEvent::decode(bytes.as_bytes(), 7).unwrap()
}

/// The only notice of an event.
fn only(event: StoredEvent<DebateEvent>) -> Notice {
    let [notice] = <[Notice; 1]>::try_from(Notice::of(event)).unwrap();
    notice
}

#[test]
fn a_reminder_is_for_the_expert_and_events_without_a_contact_are_read() {
    let due = "2026-01-01T01:00:00.000Z";
    let notice = only(reminded(r#""contact":{"email":"e@x.org"},"#, due));
    assert_eq!(
        (notice.kind(), notice.id("concord", "email")),
        ("debate.reminded", "concord-d-1-7-email".to_owned())
    );
    let Audience::Expert { contact, .. } = notice.to else {
        panic!("{notice:?}")
    };
    assert_eq!(contact.email.as_deref(), Some("e@x.org"));
    let Audience::Expert { contact, .. } = only(reminded("", due)).to else {
        panic!()
    };
    assert!(contact.is_empty());
}

#[test]
fn who_had_a_debate_that_somebody_else_is_given_is_told() {
    let bytes = r#"{"fact":"assigned","aggregate":"debate","event_id":"e","id":"d-1","cause":"m","at":"2026-01-01T00:00:00.000Z",
        "data":{"case_id":"c-1","contact":{"email":"f@x.org"},"instead_of":{"expert":"eva","contact":{"email":"e@x.org"}},"waits_for":[],
        "briefed":{"expert":"fay","digest":"abc","due":"2026-01-01T01:00:00.000Z",
        "brief":{"debate_id":"d-1","case_id":"c-1","topic":"t","priority":"valuation","positions":[]}}}}"#;
    let notices = Notice::of(StoredEvent::decode(bytes.as_bytes(), 7).unwrap());
    let told: Vec<_> = notices
        .iter()
        .map(|notice| (notice.kind(), notice.id("concord", "email")))
        .collect();
    assert_eq!(
        told,
        [
            ("debate.assigned", "concord-d-1-7-email".to_owned()),
            ("debate.unassigned", "concord-d-1-7-eva-email".to_owned()),
        ]
    );
}

#[test]
fn whoever_is_no_expert_any_more_is_told_that_the_debate_is_with_others() {
    let bytes = r#"{"fact":"unassigned","aggregate":"debate","event_id":"e","id":"d-1","cause":"m","at":"2026-01-01T00:00:00.000Z",
        "data":{"case_id":"c-1","topic":"t","expert":"eva","contact":{"email":"e@x.org"}}}"#;
    let notice = only(StoredEvent::decode(bytes.as_bytes(), 7).unwrap());
    assert_eq!(notice.kind(), "debate.unassigned");
    let text = crate::notify::text::body(&notice);
    assert!(text.starts_with("You are no expert any more"), "{text}");
}

#[test]
fn what_is_late_or_old_is_stale() {
    let notice = only(reminded("", "2026-01-03T00:00:00.000Z"));
    let day = 86_400_000;
    for (hours, why) in [
        (1, None),
        (24, None),
        (25, Some("it is too old")),
        (48, Some("its time is over")),
    ] {
        assert_eq!(
            notice.stale(notice.at.plus_millis(hours * 3_600_000), day),
            why,
            "{hours} h"
        );
    }
}

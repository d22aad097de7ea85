use super::*;

fn request(text: &str) -> EventsRequest {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_service_gives_the_events_of_the_aggregates_that_it_owns() {
    for (text, service, pointer) in [
        (r#"{"aggregate": "case"}"#, Service::Coordinator, None),
        (
            r#"{"aggregate": "case"}"#,
            Service::DebateFacilitator,
            Some("/aggregate"),
        ),
        (
            r#"{"aggregate": "case", "facts": ["opened", "decided"]}"#,
            Service::Coordinator,
            None,
        ),
        (
            r#"{"aggregate": "case", "facts": ["opened", "escalated"]}"#,
            Service::Coordinator,
            Some("/facts/1"),
        ),
    ] {
        let found = request(text).check(service);
        assert_eq!(found.err().map(|fault| fault.pointer).as_deref(), pointer);
    }
    let mut many = request(r#"{"aggregate": "case"}"#);
    many.names = vec![Token::fixed("opened"); NAMES_MAX + 1];
    assert!(many.check(Service::Coordinator).is_err());
}

#[test]
fn events_are_named_by_their_subjects() {
    let subjects = SubjectSpace::default();
    for (text, expected) in [
        (
            r#"{"aggregate": "case"}"#,
            &["concord.v1.event.case.*.*"][..],
        ),
        (
            r#"{"aggregate": "case", "facts": ["opened", "decided"]}"#,
            &[
                "concord.v1.event.case.*.opened",
                "concord.v1.event.case.*.decided",
            ],
        ),
        (
            r#"{"aggregate": "debate", "id": "d-1"}"#,
            &["concord.v1.event.debate.d-1.*"],
        ),
        (
            r#"{"aggregate": "debate", "id": "d-1", "facts": ["opened"]}"#,
            &["concord.v1.event.debate.d-1.opened"],
        ),
    ] {
        assert_eq!(request(text).filters(&subjects), expected);
    }
    for wrong in [
        r#"{"aggregate": "case", "id": "*"}"#,
        r#"{"aggregate": "case", "facts": [">"]}"#,
        r#"{"aggregate": "case", "id": "c.1"}"#,
    ] {
        assert!(
            serde_json::from_str::<EventsRequest>(wrong).is_err(),
            "{wrong}"
        );
    }
}

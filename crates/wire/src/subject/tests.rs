use super::*;
use proptest::prelude::*;

fn token_text() -> impl Strategy<Value = String> {
    "[A-Za-z0-9-][A-Za-z0-9_-]{0,63}"
}

fn any_subject() -> impl Strategy<Value = Subject> {
    let t = || token_text().prop_map(|s| Token::new(s).unwrap());
    let a = || token_text().prop_map(|s| AgentId::new(s).unwrap());
    let case = prop_oneof![
        Just(None),
        token_text().prop_map(|s| Some(CaseId::new(s).unwrap()))
    ];
    let to = prop_oneof![
        Just(Recipient::All),
        Just(Recipient::Any),
        a().prop_map(Recipient::Agent)
    ];
    let lane = prop_oneof![Just(Lane::Normal), Just(Lane::Urgent)];
    let service = || proptest::sample::select(Service::ALL);
    prop_oneof![
        (lane, case, a(), to, t()).prop_map(|(lane, case, from, to, kind)| Subject::Message {
            lane,
            case,
            from,
            to,
            kind
        }),
        (a(), t()).prop_map(|(agent, topic)| Subject::Memory { agent, topic }),
        a().prop_map(|agent| Subject::Beat { agent }),
        (service(), t(), proptest::option::of(a())).prop_map(|(service, verb, caller)| {
            Subject::Api {
                service,
                verb,
                caller,
            }
        }),
    ]
}

proptest! {
    #[test]
    fn the_parser_is_the_inverse_of_the_builder(subject in any_subject(), prefix in token_text()) {
        let space = SubjectSpace::new(&Token::new(prefix).unwrap());
        prop_assert_eq!(space.parse(&space.build(&subject)), Ok(subject));
    }

    #[test]
    fn any_text_parses_or_is_refused_and_what_parses_is_rebuilt_exactly(text in "(concord\\.v1\\.)?[a-z._*> -]{0,60}") {
        let space = SubjectSpace::default();
        if let Ok(subject) = space.parse::<Subject>(&text) {
            prop_assert_eq!(space.build(&subject), text);
        }
    }
}

#[test]
fn hostile_subjects_are_refused_and_their_sender_is_known_where_it_can_be() {
    let space = SubjectSpace::default();
    let long = "x".repeat(70);
    for (text, sender) in [
        (
            format!("concord.v1.msg.c-1.alice.coordinator.{long}"),
            Some("alice"),
        ),
        (
            "concord.v1.msg.c-1.alice.coordinator.finding.extra".into(),
            Some("alice"),
        ),
        (
            "concord.v1.msg._x.alice.coordinator.finding".into(),
            Some("alice"),
        ),
        ("concord.v1.msg.c-1._alice.coordinator.finding".into(), None),
        ("concord.v2.msg.c-1.alice.coordinator.finding".into(), None),
    ] {
        assert!(space.parse::<Subject>(&text).is_err(), "{text}");
        assert_eq!(
            space.sender_of(&text).as_ref().map(AgentId::as_str),
            sender,
            "{text}"
        );
    }
}

#[test]
fn a_filter_can_be_narrowed_to_one_sender_one_case_or_what_is_outside_of_cases() {
    let subjects = SubjectSpace::default();
    let ann = AgentId::new("ann").unwrap();
    for (filter, of_ann, outside) in [
        (
            subjects.service_inbox(Lane::Normal, Service::Coordinator),
            "concord.v1.msg.*.ann.coordinator.>",
            "concord.v1.msg._.*.coordinator.>",
        ),
        (
            subjects.of_type(Lane::Urgent, &Token::fixed("request")),
            "concord.v1.urgent.*.ann.*.request",
            "concord.v1.urgent._.*.*.request",
        ),
        (
            subjects.inbox(Lane::Normal, &Recipient::Any),
            "concord.v1.msg.*.ann._any.*",
            "concord.v1.msg._.*._any.*",
        ),
        ("another.thing".to_owned(), "another.thing", "another.thing"),
    ] {
        assert_eq!(subjects.only_from(&filter, &ann), of_ann);
        assert_eq!(subjects.outside_cases(&filter), outside);
        let in_case = outside.replacen("._.", ".c-1.", 1);
        assert_eq!(
            subjects.in_case(&filter, &CaseId::new("c-1").unwrap()),
            in_case
        );
    }
}

#[test]
fn every_service_name_is_an_agent_id() {
    for service in Service::ALL {
        assert_eq!(AgentId::new(service.as_str()), Ok(service.agent_id()));
    }
}

use concord_wire::ErrorCode;
use concord_wire::payload::{Role, RoleGrant};

use super::*;
use crate::fixtures::*;

fn register(name: &str, roles: &[Role]) -> PersonInput {
    PersonInput::Register {
        person: Box::new(person(name, roles)),
        by: agent("olga"),
    }
}

fn suspend(why: &str) -> PersonInput {
    PersonInput::Suspend {
        name: agent("eva"),
        by: agent("olga"),
        why: why.into(),
    }
}

fn resume() -> PersonInput {
    PersonInput::Resume {
        name: agent("eva"),
        by: agent("olga"),
        why: String::new(),
    }
}

#[test]
fn a_person_is_registered_suspended_and_resumed() {
    let mut story = Story::<PersonMachine>::of("eva");
    let mut at = 0;
    for (input, expected) in [
        (suspend("why"), "refused: /name"),
        (resume(), "refused: /name"),
        (register("eva", &[]), "refused: /person/roles"),
        (register("eva", &[Role::Arbiter]), "registered"),
        (resume(), "ignored: already_done"),
        (suspend(" "), "refused: /why"),
        (suspend(&"x".repeat(2_000)), "refused: /why"),
        (suspend("on leave"), "suspended"),
        (suspend("on leave"), "ignored: already_done"),
        (register("eva", &[Role::Auditor]), "refused: /person/name"),
        (resume(), "resumed"),
        (register("eva", &[Role::Auditor]), "registered"),
    ] {
        at += 1;
        let context = said(&format!("m-{at}"), at);
        assert_eq!(story.hears(&context, &input), expected, "{input:?}");
    }
    let was_arbiter = |event: &PersonEvent| match event {
        PersonEvent::Registered(one) => one.was_arbiter,
        PersonEvent::Suspended(one) => one.was_arbiter,
        PersonEvent::Resumed(_) => false,
    };
    let told: Vec<bool> = story
        .records
        .iter()
        .map(|record| was_arbiter(&record.event))
        .collect();
    assert_eq!(told, [false, true, false, true]);
    assert!(!story.state().authority().holds(Role::Arbiter));
}

/// The acts that a role permits, each with no limits: open, challenge from outside, rule, review,
/// tell an outcome, the same of a case that one has opened.
fn permitted(authority: &Authority) -> [bool; 6] {
    let who = agent("eva");
    let tells = |opened| Act::TellOutcome {
        domain: "tax",
        opened,
        sources: &[],
    };
    let acts = [
        Act::Open,
        Act::Challenge { participant: false },
        Act::Rule,
        Act::Review {
            gate: "valuation",
            domain: Some("tax"),
        },
        tells(false),
        tells(true),
    ];
    acts.map(|act| match authority.allow(&who, &act) {
        Ok(()) => true,
        Err(fault) => {
            assert_eq!(fault.code, ErrorCode::Unauthorized);
            assert!(!fault.advice.is_empty(), "{act:?} does not say whom to ask");
            false
        }
    })
}

#[test]
fn each_role_permits_what_the_table_says() {
    const Y: bool = true;
    const N: bool = false;
    for (roles, expected) in [
        (&[][..], [Y, N, N, N, N, N]),
        (&[Role::Opener], [Y, Y, N, N, N, Y]),
        (&[Role::Arbiter], [Y, Y, Y, N, N, N]),
        (&[Role::Reviewer], [Y, Y, N, Y, Y, Y]),
        (&[Role::Operator], [Y, Y, N, N, Y, Y]),
        (&[Role::Auditor], [Y, N, N, N, N, N]),
        (&[Role::OutcomeSource], [Y, Y, N, N, Y, Y]),
    ] {
        let holder = authority("eva", roles);
        assert_eq!(permitted(&holder), expected, "{roles:?}");
        let suspended = Authority {
            suspended: Some("on leave".into()),
            ..holder
        };
        assert_eq!(permitted(&suspended), [N; 6], "{roles:?}, suspended");
    }
    assert_eq!(permitted(&Authority::default()), [Y, N, N, N, N, N]);
}

#[test]
fn a_source_of_outcomes_is_heard_in_its_domains_and_where_the_policy_names_it() {
    let mut record = person("feed", &[]);
    record.roles.push(RoleGrant {
        domains: vec!["Credit  Risk".into()],
        ..RoleGrant::of(Role::OutcomeSource)
    });
    let feed = Authority {
        person: Some(record),
        suspended: None,
    };
    let (own, other) = ([agent("feed")], [agent("archive")]);
    for (domain, sources, heard) in [
        ("credit risk", &[][..], true),
        ("tax", &[], false),
        ("credit risk", &own, true),
        ("credit risk", &other, false),
    ] {
        let act = Act::TellOutcome {
            domain,
            opened: false,
            sources,
        };
        assert_eq!(feed.allow(&agent("feed"), &act).is_ok(), heard, "{domain}");
    }
}

#[test]
fn a_domain_of_a_role_is_one_however_it_is_spelled() {
    for (limit, domain, may) in [
        ("Operating Margin", Some("operating_margin"), true),
        ("operating-margin", Some("Operating  margin"), true),
        ("ACME/operating margin", Some("acme operating_margin"), true),
        ("operating margin", Some("gross_margin"), false),
        ("operating margin", Some("operatingmargin"), false),
        ("operating margin", None, false),
    ] {
        for role in [Role::Reviewer, Role::OutcomeSource] {
            let mut record = person("rita", &[]);
            record.roles.push(RoleGrant {
                domains: vec![limit.into()],
                ..RoleGrant::of(role)
            });
            let rita = Authority {
                person: Some(record),
                suspended: None,
            };
            let act = match role {
                Role::Reviewer => Act::Review {
                    gate: "valuation",
                    domain,
                },
                _ => Act::TellOutcome {
                    domain: domain.unwrap_or("nothing"),
                    opened: false,
                    sources: &[],
                },
            };
            let allowed = rita.allow(&agent("rita"), &act).is_ok();
            assert_eq!(allowed, may, "{limit} {domain:?} {role}");
        }
    }
}

#[test]
fn a_gate_that_cannot_be_copied_is_left_out_of_the_advice() {
    let ben = agent("ben");
    for (gate, given) in [
        ("valuation", true),
        ("v$(touch x)", false),
        ("--all", false),
    ] {
        let act = Act::Review { gate, domain: None };
        let fault = Authority::default().allow(&ben, &act).unwrap_err();
        assert_eq!(fault.advice.contains("--gate"), given, "{fault}");
    }
}

#[test]
fn a_verb_is_answered_to_those_with_its_role() {
    let eva = agent("eva");
    for (verb, role, expected) in [
        ("status", Role::Auditor, true),
        ("status", Role::Operator, true),
        ("open_case", Role::Opener, true),
        ("open_case", Role::Operator, true),
        ("open_case", Role::Reviewer, false),
        ("register_person", Role::Operator, true),
        ("register_person", Role::Opener, false),
        ("register_person", Role::Auditor, false),
        ("cancel_debate", Role::Arbiter, false),
        ("events", Role::OutcomeSource, true),
        ("messages", Role::Reviewer, true),
        ("messages", Role::OutcomeSource, false),
        ("unheard_of", Role::Auditor, false),
        ("unheard_of", Role::Operator, true),
    ] {
        let checked = check_verb(&authority("eva", &[role]), &eva, verb);
        assert_eq!(checked.is_ok(), expected, "{verb} by {role}");
        let named = verbs_of(&[role]).is_none_or(|verbs| verbs.contains(&verb));
        assert_eq!(named, expected, "{verb} by {role}");
    }
    let nobody = check_verb(&Authority::default(), &eva, "status").unwrap_err();
    assert_eq!(nobody.code, ErrorCode::Unauthorized);
    for why in ["left the firm", "left the firm."] {
        let suspended = Authority {
            suspended: Some(why.into()),
            ..authority("eva", &[Role::Operator])
        };
        let fault = check_verb(&suspended, &eva, "status").unwrap_err();
        assert_eq!(fault.message, "eva is suspended: left the firm.");
    }
}

/// The advice is followed without a thought: it must not let a reader alert everybody.
#[test]
fn whoever_may_not_ask_is_advised_the_role_that_changes_least() {
    let eva = agent("eva");
    for (verb, role) in [
        ("events", "auditor"),
        ("messages", "auditor"),
        ("quotas", "auditor"),
        ("open_case", "opener"),
        ("register_person", "operator"),
    ] {
        let fault = check_verb(&Authority::default(), &eva, verb).unwrap_err();
        let advised = format!("concord person register eva --role {role}");
        assert!(fault.advice.ends_with(&advised), "{verb}: {}", fault.advice);
    }
    let known = authority("eva", &[Role::OutcomeSource]);
    let fault = check_verb(&known, &eva, "messages").unwrap_err();
    let keeping =
        "--role auditor --keep, with the roles there are, which these replace: outcome_source";
    assert!(fault.advice.ends_with(keeping), "{}", fault.advice);
}

/// Registering replaces roles, so whoever does what is advised would take those away that it does not name.
#[test]
fn the_advice_to_register_somebody_names_the_roles_that_they_have() {
    let told = |known: Authority| {
        let fault = known.allow(&agent("eve"), &Act::Rule).unwrap_err();
        fault.advice
    };
    let command = "An operator registers arbiters: concord person register eve --role arbiter";
    assert_eq!(told(Authority::default()), command);
    assert_eq!(
        told(authority("eve", &[Role::Operator, Role::Auditor])),
        format!(
            "{command} --keep, with the roles there are, which these replace: operator, auditor"
        )
    );
}

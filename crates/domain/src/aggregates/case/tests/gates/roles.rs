//! Who may challenge and review.

use concord_wire::ErrorCode;
use concord_wire::payload::{RoleGrant, RuledBy};

use super::*;
use crate::aggregates::case::{FINDINGS, ReceivedAddition, SharedNow};
use crate::aggregates::person::Authority;
use crate::fixtures::person;
use crate::machine::{Context, Decision, Machine};

/// A reviewer of these gates and domains; everywhere where none are named.
pub(super) fn reviewer(name: &str, gates: &[&str], domains: &[&str]) -> Authority {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let mut record = person(name, &[]);
    record.roles.push(RoleGrant {
        role: Role::Reviewer,
        gates: texts(gates),
        domains: texts(domains),
    });
    Authority {
        person: Some(record),
        suspended: None,
    }
}

fn with_sender(input: CaseInput, sender: Authority) -> CaseInput {
    match input {
        CaseInput::Review(received) => CaseInput::Review(Box::new(ReceivedReview {
            sender,
            ..*received
        })),
        CaseInput::Challenge(received) => CaseInput::Challenge(Box::new(ReceivedChallenge {
            sender,
            ..*received
        })),
        other => other,
    }
}

/// What is said to the sender of an input that is refused.
fn refusal(
    story: &Story<CaseMachine>,
    context: &Context,
    input: &CaseInput,
) -> concord_wire::Fault {
    match CaseMachine::decide(story.state(), context, input) {
        Decision::Reject(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn in_domain(domain: Option<&str>) -> Policy {
    let mut policy = policy();
    policy.ladder.domain = domain.map(str::to_owned);
    policy
}

#[test]
fn only_reviewers_of_the_gate_and_the_domain_review() {
    let suspended = Authority {
        suspended: Some("left the firm".into()),
        ..reviewer("gail", &[], &[])
    };
    let others = [Role::Opener, Role::Arbiter, Role::Operator, Role::Auditor];
    for (sender, domain, accepted) in [
        (Authority::default(), None, false),
        (authority("gail", &others), None, false),
        (suspended, None, false),
        (reviewer("gail", &[], &[]), None, true),
        (reviewer("gail", &[], &[]), Some("tax"), true),
        (reviewer("gail", &["valuation"], &[]), Some("tax"), true),
        (reviewer("gail", &["release"], &[]), None, false),
        (reviewer("gail", &[], &["Tax "]), Some("tax"), true),
        (reviewer("gail", &[], &["credit"]), Some("tax"), false),
        (reviewer("gail", &[], &["tax"]), None, false),
        (reviewer("gail", &["release"], &["tax"]), Some("tax"), false),
    ] {
        let what = format!("{sender:?} in {domain:?}");
        let (mut story, debate) = at_gate(in_domain(domain));
        let confirms = reviews(
            "gail",
            "m-r",
            "valuation",
            ReviewAction::Confirm,
            Some(&debate),
        );
        let confirms = with_sender(confirms, sender.clone());
        let expected = if accepted {
            "gate_reviewed"
        } else {
            "refused: /from_agent"
        };
        assert_eq!(story.hears(&said("m-r", 60), &confirms), expected, "{what}");
        if accepted {
            continue;
        }
        let passes = reviews("gail", "m-p", "valuation", ReviewAction::Pass, None);
        let fault = refusal(&story, &said("m-p", 61), &with_sender(passes, sender));
        assert_eq!(fault.code, ErrorCode::Unauthorized, "{what}");
    }
}

#[test]
fn who_challenges_does_not_choose_the_domain_where_the_policy_states_one() {
    for (of_policy, of_challenge, of_reviewer, accepted) in [
        (Some("valuation"), "tax", "tax", false),
        (Some("valuation"), "tax", "valuation", true),
        (None, "tax", "tax", true),
        (None, "tax", "valuation", false),
    ] {
        let what = format!("{of_policy:?} {of_challenge} {of_reviewer}");
        let mut challenge = challenges("strategy", "m-c", "finance");
        if let CaseInput::Challenge(received) = &mut challenge {
            received.challenge.domain = Some(of_challenge.to_owned());
        }
        let (mut story, debate) = at_gate_with(in_domain(of_policy), &challenge);
        let asked = &story.state().asked[&debate].terms.domain;
        let expected = of_policy.unwrap_or(of_challenge);
        assert_eq!(asked.as_deref(), Some(expected), "{what}");
        let action = ReviewAction::Override;
        let overrides = reviews("gail", "m-r", "valuation", action, Some(&debate));
        let overrides = with_sender(overrides, reviewer("gail", &[], &[of_reviewer]));
        let expected = match accepted {
            true => "gate_reviewed",
            false => "refused: /from_agent",
        };
        let heard = story.hears(&said("m-r", 60), &overrides);
        assert_eq!(heard, expected, "{what}");
    }
}

#[test]
fn who_is_no_reviewer_is_told_whom_to_ask() {
    let (story, debate) = at_gate(policy());
    let review = reviews(
        "ben",
        "m-r",
        "valuation",
        ReviewAction::Override,
        Some(&debate),
    );
    let review = with_sender(review, Authority::default());
    let fault = refusal(&story, &said("m-r", 60), &review);
    assert_eq!(
        (fault.message.as_str(), fault.advice.as_str()),
        (
            "ben is not a reviewer of the gate \"valuation\".",
            "An operator registers reviewers: concord person register ben --role reviewer --gate valuation"
        )
    );
}

#[test]
fn nobody_reviews_what_they_argued_or_decided() {
    let (mut story, debate) = at_gate(policy());
    for party in ["finance", "strategy"] {
        let own = reviews(
            party,
            "m-r",
            "valuation",
            ReviewAction::Confirm,
            Some(&debate),
        );
        assert_eq!(
            story.hears(&said("m-r", 60), &own),
            "refused: /from_agent",
            "{party}"
        );
    }
    // Somebody who takes no part has challenged.
    let challenge = challenges("nina", "m-n", "finance");
    assert_eq!(story.hears(&said("m-n", 61), &challenge), "challenged");
    let hers = story.state().debated[1].conflict_id.clone();
    let own = reviews(
        "nina",
        "m-r",
        "valuation",
        ReviewAction::Confirm,
        Some(&debate),
    );
    assert_eq!(story.hears(&said("m-r", 62), &own), "refused: /from_agent");

    // Eve had that debate when the time was over, and reviews another one only.
    let mut fallen = ended(&story, &hers, Status::Provisional);
    if let Some(provisional) = &mut fallen.provisional {
        provisional.expert = Some(agent("eve"));
    }
    story.hears(&happened("e-2", 63), &CaseInput::Resolved(Box::new(fallen)));
    let own = reviews(
        "eve",
        "m-e",
        "valuation",
        ReviewAction::Confirm,
        Some(&hers),
    );
    assert_eq!(story.hears(&said("m-e", 64), &own), "refused: /from_agent");
    let other = reviews(
        "eve",
        "m-o",
        "valuation",
        ReviewAction::Confirm,
        Some(&debate),
    );
    assert_eq!(story.hears(&said("m-o", 65), &other), "gate_reviewed");
}

#[test]
fn nobody_is_kept_from_reviewing_by_being_let_into_the_case() {
    for speaks in [false, true] {
        let (mut story, debate) = at_gate(policy());
        let opener = story.state().opened.as_ref().unwrap().opened_by.clone();
        let lets_in = CaseInput::Add(Box::new(ReceivedAddition {
            by: opener,
            request: None,
            agent_id: agent("gail"),
            sender: Authority::default(),
            shared: SharedNow::default(),
            sent_bytes: 0,
        }));
        assert_eq!(story.hears(&said("m-add", 61), &lets_in), "joined");
        if speaks {
            let late = finding("gail", "m-late", json!({ "risk_score": 10 }));
            assert_eq!(story.hears(&said("m-late", 62), &late), "finding_set_aside");
        }
        let action = ReviewAction::Confirm;
        let review = reviews("gail", "m-r", "valuation", action, Some(&debate));
        let expected = ["gate_reviewed", "refused: /from_agent"][usize::from(speaks)];
        assert_eq!(story.hears(&said("m-r", 63), &review), expected);
    }
}

/// Whoever opens a case names whom they wish; it does not leave them the choice who reviews.
#[test]
fn nobody_is_kept_from_reviewing_by_being_named_among_the_participants() {
    for speaks in [false, true] {
        let mut story = Story::<CaseMachine>::of("c-1");
        let mut request = open_request(&["finance", "strategy", "gail"], policy());
        request.request.gates = gate_names(&["valuation"]);
        story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
        let found = |who, id| finding(who, id, json!({ "risk_score": 20 }));
        story.hears(&said("m-1", 1), &found("finance", "m-1"));
        story.hears(&said("m-2", 1), &found("strategy", "m-2"));
        let challenge = challenges("strategy", "m-c", "finance");
        assert_eq!(story.hears(&said("m-c", 2), &challenge), "challenged");
        if speaks {
            story.hears(&said("m-3", 3), &found("gail", "m-3"));
        } else {
            let due = story.state().opened.as_ref().unwrap().findings_due;
            story.hears(&happened("e-due", 30_000), &case_due(FINDINGS, due));
        }
        story.hears(&happened("e-d", 30_001), &detected(vec![], vec![]));
        let debate = story.state().debated[0].conflict_id.clone();
        let decided = ends(&mut story, "e-1", &debate, Status::Provisional);
        assert_eq!(decided, "decided");
        let expected = match speaks {
            false => ["gate_reviewed", "gate_passed"],
            true => ["refused: /from_agent"; 2],
        };
        for (action, of, expected) in [
            (ReviewAction::Confirm, Some(&debate), expected[0]),
            (ReviewAction::Pass, None, expected[1]),
        ] {
            let id = format!("m-{action:?}");
            let review = reviews("gail", &id, "valuation", action, of);
            assert_eq!(story.hears(&said(&id, 60_000), &review), expected);
        }
    }
}

#[test]
fn who_has_ruled_in_a_case_does_not_let_it_pass() {
    let (mut story, debate) = at_gate(policy());
    let fallen = ended(&story, &debate, Status::Provisional);
    let ruled = ConflictOutcome {
        level: Some(Level::Person),
        status: Status::Ruling,
        provisional: None,
        ruled_by: Some(RuledBy {
            expert: agent("rita"),
            first_reviewer: None,
            first_rationale: None,
            rationale: "Seen.".into(),
            digest: None,
            key: None,
        }),
        ..fallen
    };
    story.hears(&happened("e-3", 66), &CaseInput::Resolved(Box::new(ruled)));
    let passes = |by: &str| reviews(by, "m-p", "valuation", ReviewAction::Pass, None);
    let refused = refusal(&story, &said("m-p", 67), &passes("rita"));
    assert_eq!(refused.code, ErrorCode::Unauthorized, "{refused}");
    // Reviewers may not read who is registered.
    assert!(!refused.advice.contains("person list"), "{refused}");
}

#[test]
fn participants_and_registered_people_challenge_each_so_often() {
    let mut rules = policy();
    rules.ladder.challenges_per_challenger = 1;
    let mut story = opened(&["valuation"], rules);
    let found = finding("finance", "m-1", json!({"risk_score": 20}));
    story.hears(&said("m-1", 1), &found);
    let suspended = Authority {
        suspended: Some("on leave".into()),
        ..authority("nina", &[Role::Opener])
    };
    for (from, id, sender, expected) in [
        ("nosy", "m-a", Authority::default(), "refused: /from_agent"),
        ("nina", "m-b", suspended, "refused: /from_agent"),
        (
            "anna",
            "m-c",
            authority("anna", &[Role::Auditor]),
            "refused: /from_agent",
        ),
        ("strategy", "m-d", Authority::default(), "challenged"),
        ("strategy", "m-e", Authority::default(), "refused: "),
        (
            "nina",
            "m-f",
            authority("nina", &[Role::Arbiter]),
            "challenged",
        ),
    ] {
        let input = with_sender(challenges(from, id, "finance"), sender);
        assert_eq!(story.hears(&said(id, 5), &input), expected, "{from} {id}");
    }
}

#[test]
fn somebody_who_is_suspended_opens_no_case() {
    let mut request = open_request(&["finance"], policy());
    request.sender = Authority {
        suspended: Some("left the firm".into()),
        ..authority("olga", &[Role::Opener])
    };
    let mut story = Story::<CaseMachine>::of("c-1");
    assert_eq!(
        story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request))),
        "refused: /from_agent"
    );
}

use concord_events::{Aggregate, DeadlineElapsed};
use concord_wire::ErrorCode;
use concord_wire::payload::CommitmentAct;
use proptest::prelude::*;

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;

const BOUNDS: LeaseBounds = LeaseBounds {
    lease_ms: 5_000,
    lease_max_ms: 20_000,
    per_agent: 2,
};

fn said_by(
    from: &str,
    id: &str,
    act: CommitmentAct,
    resource: &str,
    lease_ms: Option<u64>,
) -> CommitmentInput {
    let said = Commitment {
        act,
        resource: resource.to_owned(),
        lease_ms,
        why: String::new(),
    };
    CommitmentInput::Said(Box::new(ReceivedCommitment {
        heard: Heard {
            agent_id: agent(from),
            message_id: message(id),
            digest: crate::digest(format!("{from} {said:?}").as_bytes()),
        },
        case_id: Some(case_id()),
        said,
        bounds: BOUNDS,
    }))
}

fn passes(due: u64) -> CommitmentInput {
    CommitmentInput::Elapsed(DeadlineElapsed {
        ..elapsed(Aggregate::Commitment, &token("c-1"), LEASE, after(due))
    })
}

#[test]
fn the_table_of_commitments() {
    use CommitmentAct::{Commit, Release, Renew};
    let mut story = Story::<CommitmentMachine>::of("c-1");
    let held = "refused: /payload/resource";
    for (n, (at, from, act, resource, lease_ms, expected)) in [
        (0, "ann", Renew, "build", None, held),
        (0, "ann", Release, "build", None, held),
        (
            0,
            "ann",
            Commit,
            "build",
            Some(99_000),
            "refused: /payload/lease_ms",
        ),
        (
            0,
            "ann",
            Commit,
            "build",
            Some(u64::MAX),
            "refused: /payload/lease_ms",
        ),
        (0, "ann", Commit, "build", None, "granted"),
        (1, "ben", Commit, "build", None, held),
        (1, "ben", Renew, "build", None, held),
        (1, "ben", Release, "build", None, held),
        (1, "ben", Commit, "task/t-7", Some(2_000), "granted"),
        (2, "ann", Commit, "docs", None, "granted"),
        (3, "ann", Commit, "third", None, held),
        (4, "ann", Renew, "build", Some(9_000), "renewed"),
        (5, "ann", Commit, "build", None, "renewed"),
        (6, "ann", Release, "docs", None, "ended"),
        (7, "ben", Commit, "docs", None, "granted"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("m-{n}");
        let input = said_by(from, &id, act, resource, lease_ms);
        assert_eq!(story.hears(&said(&id, at), &input), expected, "{id}");
    }
    let twice = said_by("ben", "m-14", Commit, "docs", None);
    assert_eq!(story.hears(&said("m-14", 8), &twice), "ignored: repetition");
    let other = said_by("ben", "m-14", Commit, "other", None);
    assert_eq!(
        story.hears(&said("m-14", 8), &other),
        "refused: /message_id"
    );
    // An id is its sender's own.
    let of_eve = said("m-14", 8).of_sender(agent("eve"));
    let docs = said_by("eve", "m-14", Commit, "docs", None);
    assert_eq!(story.hears(&of_eve, &docs), held);
    let free = said_by("eve", "m-14", Commit, "free", None);
    assert_eq!(story.hears(&of_eve, &free), "granted");
    assert_eq!(story.hears(&of_eve, &free), "ignored: repetition");
    assert!(story.has_one_id_each());
    let build = &story.state().leases["build"];
    assert_eq!(
        (build.term, build.until),
        (1, after(9_004)),
        "not shortened"
    );
    assert_eq!(
        story.state().leases["docs"].term,
        4,
        "a term is never given again"
    );
}

#[test]
fn a_conflicting_commitment_is_refused_with_who_holds_it() {
    let mut story = Story::<CommitmentMachine>::of("c-1");
    let commit = |from, id| said_by(from, id, CommitmentAct::Commit, "build", None);
    story.hears(&said("m-1", 0), &commit("ann", "m-1"));
    let release = said_by("ben", "m-2", CommitmentAct::Release, "build", None);
    for (input, code) in [
        (commit("ben", "m-2"), ErrorCode::InvalidRequest),
        (release, ErrorCode::Unauthorized),
    ] {
        let decided = CommitmentMachine::decide(story.state(), &said("m-2", 1), &input);
        let Decision::Reject(fault) = decided else {
            panic!("{decided:?}");
        };
        assert_eq!(fault.code, code);
        assert!(
            fault.message.starts_with("ann holds \"build\" until"),
            "{fault}"
        );
    }
}

#[test]
fn a_lease_passes_at_its_deadline_and_not_at_one_that_a_renewal_has_moved() {
    let mut story = Story::<CommitmentMachine>::of("c-1");
    let say = |id: &str, act, resource| said_by("ann", id, act, resource, None);
    story.hears(&said("m-1", 0), &say("m-1", CommitmentAct::Commit, "build"));
    story.hears(
        &said("m-2", 100),
        &say("m-2", CommitmentAct::Commit, "docs"),
    );
    story.hears(
        &said("m-3", 4_000),
        &say("m-3", CommitmentAct::Renew, "build"),
    );
    let not_open = "ignored: deadline_not_open";
    assert_eq!(
        story.hears(&happened("e-1", 5_000), &passes(5_000)),
        not_open
    );
    assert_eq!(
        story.hears(&happened("e-2", 5_100), &passes(5_100)),
        "ended"
    );
    assert_eq!(story.state().leases.len(), 1);
    assert_eq!(
        story.hears(&happened("e-2", 5_100), &passes(5_100)),
        not_open
    );
    // The deadline is late: nobody else gets it, and the holder can still renew.
    let late = said_by("ben", "m-4", CommitmentAct::Commit, "build", None);
    assert_eq!(
        story.hears(&said("m-4", 30_000), &late),
        "refused: /payload/resource"
    );
    let renewed = say("m-5", CommitmentAct::Renew, "build");
    assert_eq!(story.hears(&said("m-5", 30_001), &renewed), "renewed");
    assert_eq!(
        story.hears(&happened("e-3", 30_002), &passes(9_000)),
        not_open
    );
    assert_eq!(
        story.hears(&happened("e-4", 35_001), &passes(35_001)),
        "ended"
    );
    assert_eq!(story.state().leases.len(), 0);
}

#[test]
fn who_is_gone_what_is_done_and_what_is_over_has_no_commitments() {
    for (input, left) in [
        (CommitmentInput::Gone(agent("ann")), 1),
        (CommitmentInput::Done(agent("ben"), "task/t-7".into()), 2),
        (CommitmentInput::CaseOver, 0),
    ] {
        let mut story = Story::<CommitmentMachine>::of("c-1");
        let nothing = story.hears(&happened("e-0", 0), &input);
        assert_eq!(nothing, "ignored: already_done");
        for (id, from, resource) in [
            ("m-1", "ann", "build"),
            ("m-2", "ann", "docs"),
            ("m-3", "ben", "task/t-7"),
        ] {
            let commit = said_by(from, id, CommitmentAct::Commit, resource, None);
            story.hears(&said(id, 0), &commit);
        }
        assert_eq!(story.hears(&happened("e-1", 1), &input), "ended");
        assert_eq!(story.state().leases.len(), left);
        let told = crate::effect::messages::<CommitmentMachine>(story.last()).unwrap();
        let ended = 3 - left;
        assert_eq!(told.len(), 2 * ended, "each holder, and everybody");
        let again = story.hears(&happened("e-2", 2), &input);
        assert_eq!(again, "ignored: already_done");
    }
}

#[test]
fn a_case_has_no_more_commitments_than_one_event_can_end() {
    let mut story = Story::<CommitmentMachine>::of("c-1");
    for n in 0..LEASES_MAX {
        let (id, name) = (format!("m-{n}"), format!("{n}-{}", "r".repeat(250)));
        let from = format!("a-{n}");
        let input = said_by(&from, &id, CommitmentAct::Commit, &name, None);
        assert_eq!(story.hears(&said(&id, 0), &input), "granted");
    }
    let more = said_by("eve", "m-x", CommitmentAct::Commit, "more", None);
    assert_eq!(
        story.hears(&said("m-x", 1), &more),
        "refused: /payload/resource"
    );
    assert_eq!(
        story.hears(&happened("e-1", 2), &CommitmentInput::CaseOver),
        "ended"
    );
}

fn step() -> impl Strategy<Value = (usize, u32, u8, usize, u64)> {
    (0usize..3, 0u32..30, 0u8..7, 0usize..3, 0u64..12_000)
}

proptest! {
    #[test]
    fn nothing_is_held_by_two_and_time_frees_everything(
        steps in proptest::collection::vec(step(), 0..60)
    ) {
        let mut story = Story::<CommitmentMachine>::of("c-1");
        let mut now = 0;
        for (place, (who, id, what, resource, time)) in steps.into_iter().enumerate() {
            now += time / 4;
            let (who, resource) = (["ann", "ben", "cyd"][who], ["build", "docs", "task/t-1"][resource]);
            let id = format!("m-{id}");
            let input = match what {
                0..3 => said_by(who, &id, CommitmentAct::Commit, resource, None),
                3 => said_by(who, &id, CommitmentAct::Renew, resource, Some(time + 1)),
                4 => said_by(who, &id, CommitmentAct::Release, resource, None),
                5 => CommitmentInput::Gone(agent(who)),
                _ => passes(time),
            };
            let before = story.state().clone();
            let context = match &input {
                CommitmentInput::Said(_) => said(&id, now),
                _ => happened(&format!("e-{place}"), now),
            };
            if story.hears(&context, &input) == "granted" {
                prop_assert!(!before.leases.contains_key(resource), "it was free");
            }
            for (resource, lease) in &story.state().leases {
                if let Some(earlier) = before.leases.get(resource) {
                    prop_assert_eq!(&earlier.holder, &lease.holder, "it was never handed on");
                    prop_assert!(lease.until >= earlier.until);
                }
            }
        }
        for _ in 0..3 {
            let open = CommitmentMachine::deadlines(story.state());
            prop_assert!(open.len() <= 1);
            let Some(first) = open.first() else { break };
            let due = first.due.millis_since(start());
            prop_assert_eq!(story.hears(&happened(&format!("t-{due}"), due), &passes(due)), "ended");
        }
        prop_assert_eq!(story.state().leases.len(), 0);
        let (again, differences) = replay::rebuild::<CommitmentMachine>(&story.records);
        prop_assert_eq!(differences, []);
        prop_assert_eq!(&*again.state, story.state());
    }
}

#[test]
fn of_two_leases_that_have_passed_the_later_may_be_heard_of_first() {
    let mut story = Story::<CommitmentMachine>::of("c-1");
    let commit =
        |id, resource, lease| said_by("ann", id, CommitmentAct::Commit, resource, Some(lease));
    story.hears(&said("m-1", 0), &commit("m-1", "build", 2_000));
    story.hears(&said("m-2", 0), &commit("m-2", "docs", 3_000));
    assert_eq!(story.hears(&said("e-1", 3_500), &passes(3_000)), "ended");
    assert!(story.state().leases.is_empty(), "both have passed");
    let late = story.hears(&said("e-2", 3_600), &passes(2_000));
    assert!(late.starts_with("ignored"), "{late}");
}

/// The same said outside cases.
fn outside(input: CommitmentInput) -> CommitmentInput {
    match input {
        CommitmentInput::Said(received) => CommitmentInput::Said(Box::new(ReceivedCommitment {
            case_id: None,
            ..*received
        })),
        other => other,
    }
}

#[test]
fn a_case_whose_id_is_that_of_a_resource_outside_cases_leaves_it_alone() {
    use CommitmentAct::{Commit, Release, Renew};
    let say = |place, id, act| match place {
        "outside" => outside(said_by("ann", id, act, "task/42", Some(9_000))),
        _ => said_by("mallory", id, act, "task/42", Some(2_000)),
    };
    let orders = [("outside", "in the case"), ("in the case", "outside")];
    for ((first, second), ends_by) in orders
        .into_iter()
        .flat_map(|order| [(order, CommitmentInput::CaseOver), (order, passes(2_000))])
    {
        let mut story = Story::<CommitmentMachine>::of(id_of(None, "task/42").as_str());
        for (id, place) in [("m-1", first), ("m-2", second)] {
            let committed = story.hears(&said(id, 0), &say(place, id, Commit));
            assert_eq!(committed, "granted", "{place} after {first}");
        }
        let theirs = outside(said_by("mallory", "m-3", Release, "task/42", None));
        let refused = story.hears(&said("m-3", 1), &theirs);
        assert_eq!(refused, "refused: /payload/resource");
        assert_eq!(story.hears(&happened("e-1", 2_000), &ends_by), "ended");
        let in_case = Some(case_id());
        assert_eq!(CommitmentMachine::case_of(story.last()), in_case);
        let again = story.hears(&happened("e-2", 2_000), &ends_by);
        assert!(again.starts_with("ignored"), "{again}");
        let renewed = story.hears(&said("m-4", 2_500), &say("outside", "m-4", Renew));
        assert_eq!(renewed, "renewed");
        // Who is gone loses what they have outside the case, and in it.
        let back = said_by("ann", "m-5", Commit, "build", None);
        assert_eq!(story.hears(&said("m-5", 2_600), &back), "granted");
        for id in ["e-3", "e-4"] {
            let gone = CommitmentInput::Gone(agent("ann"));
            assert_eq!(story.hears(&happened(id, 2_700), &gone), "ended");
        }
        assert_eq!(CommitmentMachine::deadlines(story.state()), []);
        let (again, differences) = replay::rebuild::<CommitmentMachine>(&story.records);
        assert_eq!(differences, []);
        assert_eq!(&*again.state, story.state());
    }
}

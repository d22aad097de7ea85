use proptest::prelude::*;

use super::*;
use crate::fixtures::*;

const QUOTAS: Quotas = Quotas {
    open_cases: 2,
    gates: 3,
    challenges: 2,
    open_tasks: 2,
};

fn case(name: &str) -> CaseId {
    CaseId::new(name).unwrap()
}

fn admit(name: &str, gates: u32) -> OpenerInput {
    OpenerInput::Admit(Admitted {
        opener: agent("opal"),
        case_id: case(name),
        gates,
        quotas: QUOTAS,
    })
}

fn challenge(name: &str, id: &str) -> OpenerInput {
    OpenerInput::Challenge(ChallengeAdmitted {
        case_id: case(name),
        message_id: message(id),
        quota: QUOTAS.challenges,
    })
}

fn release(name: &str) -> OpenerInput {
    OpenerInput::Release(case(name))
}

fn admit_task(name: &str) -> OpenerInput {
    OpenerInput::AdmitTask(TaskAdmitted {
        opener: agent("opal"),
        task_id: crate::fixtures::token(name),
        quota: QUOTAS.open_tasks,
    })
}

fn release_task(name: &str) -> OpenerInput {
    OpenerInput::ReleaseTask(crate::fixtures::token(name))
}

#[test]
fn a_task_has_a_place_until_it_ends() {
    let mut story = Story::<OpenerMachine>::of("opal");
    for (at, (input, expected)) in [
        (release_task("t-1"), "ignored: already_done"),
        (admit_task("t-1"), "task_admitted"),
        (admit_task("t-1"), "ignored: already_done"),
        (admit_task("t-2"), "task_admitted"),
        (admit_task("t-3"), "refused: /payload/parameters"),
        (admit("c-1", 1), "admitted"),
        (release_task("t-1"), "task_released"),
        (admit_task("t-3"), "task_admitted"),
    ]
    .into_iter()
    .enumerate()
    {
        let cause = happened(&format!("e-{at}"), at as u64);
        assert_eq!(story.hears(&cause, &input), expected, "{at}: {input:?}");
    }
}

fn tell(quota: QuotaKind) -> OpenerInput {
    OpenerInput::Tell(QuotaReached {
        opener: agent("opal"),
        quota,
        limit: 2,
        case_id: Some(case("c-9")),
        task_id: None,
    })
}

#[test]
fn a_quota_lets_in_what_it_says_and_a_place_that_is_given_back_is_free() {
    let mut story = Story::<OpenerMachine>::of("opal");
    for (at, (input, expected)) in [
        (release("c-1"), "ignored: already_done"),
        (challenge("c-1", "m-1"), "ignored: already_done"),
        (admit("c-1", 2), "admitted"),
        (admit("c-1", 2), "ignored: already_done"),
        (admit("c-2", 2), "refused: /payload/parameters/gates"),
        (admit("c-2", 1), "admitted"),
        (admit("c-3", 0), "refused: /payload/parameters"),
        (challenge("c-1", "m-1"), "challenged"),
        (challenge("c-1", "m-1"), "ignored: repetition"),
        (challenge("c-2", "m-2"), "challenged"),
        (challenge("c-2", "m-3"), "refused: /payload"),
        (release("c-1"), "released"),
        (release("c-1"), "ignored: already_done"),
        (challenge("c-2", "m-3"), "challenged"),
        (admit("c-3", 2), "admitted"),
    ]
    .into_iter()
    .enumerate()
    {
        let cause = happened(&format!("e-{at}"), at as u64);
        assert_eq!(story.hears(&cause, &input), expected, "{at}: {input:?}");
    }
}

#[test]
fn nobody_is_told_twice_in_an_hour_of_the_same_quota() {
    let mut story = Story::<OpenerMachine>::of("opal");
    for (seconds, quota, expected) in [
        (0, QuotaKind::OpenCases, "quota_reached"),
        (1, QuotaKind::OpenCases, "ignored: already_done"),
        (2, QuotaKind::Gates, "quota_reached"),
        (3_599, QuotaKind::OpenCases, "ignored: already_done"),
        (3_600, QuotaKind::OpenCases, "quota_reached"),
    ] {
        let cause = happened(&format!("e-{seconds}"), seconds * 1_000);
        assert_eq!(story.hears(&cause, &tell(quota)), expected, "{seconds} s");
    }
}

#[test]
fn no_limit_is_no_limit() {
    let none = Quotas {
        open_cases: 0,
        gates: 0,
        challenges: 0,
        open_tasks: 0,
    };
    let mut state = OpenerState::default();
    for number in 0..50 {
        let held = HeldCase {
            since: start(),
            gates: 10,
            challenges: BTreeSet::new(),
        };
        state.cases.insert(case(&format!("c-{number}")), held);
    }
    let asked = Admitted {
        opener: agent("opal"),
        case_id: case("c-99"),
        gates: 10,
        quotas: none,
    };
    assert_eq!(state.in_the_way_of_case(&asked), None);
}

proptest! {
    #[test]
    fn no_order_of_inputs_exceeds_a_quota(inputs in prop::collection::vec((0..5u8, 0..6u8, 0..3u32), 0..60)) {
        let mut story = Story::<OpenerMachine>::of("opal");
        for (at, (what, which, gates)) in inputs.into_iter().enumerate() {
            let name = format!("c-{which}");
            let input = match what {
                0 => admit(&name, gates),
                1 => challenge(&name, &format!("m-{at}")),
                2 => admit_task(&name),
                3 => release_task(&name),
                _ => release(&name),
            };
            // Debug builds assert that no event is misplaced.
            story.hears(&happened(&format!("e-{at}"), at as u64), &input);
            let state = story.state();
            prop_assert!(state.held(QuotaKind::OpenCases) <= 2);
            prop_assert!(state.held(QuotaKind::Gates) <= 3);
            prop_assert!(state.held(QuotaKind::Challenges) <= 2);
            prop_assert!(state.held(QuotaKind::OpenTasks) <= 2);
        }
    }
}

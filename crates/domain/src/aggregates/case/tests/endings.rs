//! How a case ends, and its package.

use super::*;

#[test]
fn a_debate_may_end_before_the_case_hears_of_its_conflicts() {
    for early in [&[risk()][..], &[risk(), advice()]] {
        let mut story = story(Phase::Detecting);
        for conflict in early {
            assert_eq!(
                story.hears(&happened("e-r", 25), &resolved(conflict)),
                "debate_settled"
            );
            assert_eq!(
                story.hears(&happened("e-r", 25), &resolved(conflict)),
                "ignored: already_done"
            );
        }
        let heard = story.hears(
            &happened("e-det", 30),
            &detected(vec![risk(), advice()], vec![]),
        );
        if early.len() == 1 {
            assert_eq!(heard, "conflicts_received");
            assert_eq!(
                story.hears(&happened("e-r2", 40), &resolved(&advice())),
                "decided"
            );
        } else {
            assert_eq!(heard, "decided");
        }
        let decision = story.state().decision.clone().unwrap();
        assert_eq!(
            (decision.reason.as_str(), decision.outcomes.len()),
            ("settled", 2)
        );
        assert_eq!(decision.conflicts, [risk(), advice()]);
    }
}

#[test]
fn why_a_case_ended() {
    let due = || case_due(CASE, after(CASE_DUE));
    for (phase, input, reason, missing) in [
        (Phase::Detecting, detected(vec![], vec![]), "no_conflict", 0),
        (Phase::Collecting, due(), "timeout", 2),
        (Phase::Detecting, due(), "timeout", 0),
        (Phase::Deliberating, due(), "timeout", 0),
    ] {
        let mut story = story(phase);
        assert_eq!(story.hears(&happened("e", CASE_DUE), &input), "decided");
        let decision = story.state().decision.clone().unwrap();
        assert_eq!(
            (decision.reason.as_str(), decision.missing.len()),
            (reason, missing),
            "{phase:?}"
        );
        assert_eq!(story.last().meta.deadlines, []);
        assert_eq!(story.state().decided_at, Some(after(CASE_DUE)));
    }
    let mut silent = story(Phase::Collecting);
    silent.hears(
        &happened("e-due", FINDINGS_DUE),
        &case_due(FINDINGS, after(FINDINGS_DUE)),
    );
    assert_eq!(
        silent.hears(&happened("e-det", FINDINGS_DUE), &detected(vec![], vec![])),
        "decided"
    );
    let decision = silent.state().decision.clone().unwrap();
    assert_eq!(
        (decision.reason.as_str(), decision.missing.len()),
        ("no_finding", 2)
    );
}

#[test]
fn the_package_holds_everything_and_leaves_out_the_input() {
    assert_eq!(package(&case_id(), &CaseState::default()), None);
    let mut story = story(Phase::Decided);
    story.hears(&said("m-late", 60), &finding("ben", "m-late", json!({})));
    let package = package(&case_id(), story.state()).unwrap();
    assert_eq!(
        package
            .findings
            .iter()
            .map(|f| f.agent_id.as_str())
            .collect::<Vec<_>>(),
        ["ann", "ben"]
    );
    assert_eq!(
        package.set_aside.len(),
        1,
        "what came after the decision is in the package too"
    );
    assert_eq!(package.task.input, serde_json::Value::Null);
    assert_eq!(
        (package.phase, package.decided_at),
        (Phase::Decided, Some(after(50)))
    );
    assert!(
        serde_json::to_value(&package).unwrap()["set_aside"][0]["finding"]["summary"].is_string()
    );
}

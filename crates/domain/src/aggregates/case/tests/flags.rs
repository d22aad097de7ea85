//! Changes of regime while a case is open.

use concord_events::AlertRaised;
use concord_wire::Priority;
use concord_wire::payload::{Alert, AlertFlag, REGIME_CHANGE};

use super::*;
use crate::aggregates::impact::ImpactState;
use crate::effect;

fn raised(implications: serde_json::Value) -> AlertRaised {
    let alert = Alert {
        old_regime: Some("BULL".into()),
        new_regime: Some("BEAR".into()),
        implications: implications.as_object().cloned().unwrap_or_default(),
        ..Alert::of(REGIME_CHANGE)
    };
    AlertRaised {
        alert,
        priority: Priority::SystemCritical,
        case_id: None,
        registered: 0,
        told: Vec::new(),
        heard: Heard {
            agent_id: agent("macro"),
            message_id: message("a-1"),
            digest: String::new(),
        },
        report_due: None,
        gates: vec!["gate_1".into()],
    }
}

fn flag(alert: &str, case: &CaseState, implications: serde_json::Value) -> AlertFlag {
    let raised = raised(implications);
    let alert = (&token(alert), after(5), &raised);
    flag_of(alert, case, &ImpactState::default())
}

/// A change of regime while findings are collected.
pub(crate) fn story() -> CaseStory {
    let mut story = CaseStory::of("c-1");
    story.hears(&said("m-1", 0), &open_case(&["ann", "ben"], policy()));
    let flag = flag("alert-1", story.state(), json!({ "rates": { "up": 1 } }));
    let input = CaseInput::Flag(Box::new(flag));
    assert_eq!(story.hears(&happened("e-1", 6), &input), "flagged");
    story
}

#[test]
fn a_case_is_flagged_once_with_each_alert_while_it_is_open() {
    let mut story = story();
    let sent = effect::messages::<CaseMachine>(story.last()).unwrap();
    let [told] = &sent[..] else {
        panic!("{sent:?}");
    };
    let told: serde_json::Value = told.payload().unwrap();
    assert_eq!(told["event"], "case_flagged");
    assert_eq!(told["data"]["new_regime"], "BEAR");
    assert_eq!(told["data"]["implications"]["rates"]["up"], 1);
    for number in 0..FLAGS_MAX + 2 {
        let alert = format!("alert-{number}");
        let input = CaseInput::Flag(Box::new(flag(&alert, story.state(), json!({}))));
        let expected = match number {
            1 | FLAGS_MAX.. => "ignored: already_done",
            _ => "flagged",
        };
        let context = happened(&format!("e-{number}-0"), 10);
        assert_eq!(story.hears(&context, &input), expected, "{alert}");
    }
    assert_eq!(story.state().flags.len(), FLAGS_MAX);
    let flags = &story.state().flags;
    assert!(flags[0].is_shown_at("gate_1") && !flags[0].is_shown_at("gate_3"));
    let cancel = CaseInput::Cancel {
        by: agent("olga"),
        why: "enough".into(),
    };
    story.hears(&said("x-1", 11), &cancel);
    let late = CaseInput::Flag(Box::new(flag("alert-99", story.state(), json!({}))));
    let context = happened("e-99", 12);
    assert_eq!(story.hears(&context, &late), "ignored: already_done");
}

#[test]
fn what_the_implications_name_is_affected() {
    let mut case = CaseState::default();
    let finding = json!({
        "summary": "s",
        "critical_findings": [{ "topic": "Discount Rate", "severity": "high", "description": "d" }],
        "estimates": [{ "metric": "operating margin", "value": 25, "unit": "percent" },
                      { "metric": "technology", "value": 1 }],
    });
    case.findings.push(ReceivedFinding {
        agent_id: agent("ann"),
        message_id: message("f-1"),
        digest: String::new(),
        confidence: 0.5,
        finding: serde_json::from_value(finding).unwrap(),
    });
    let implications = json!({
        "discount_rate_changes": { "Technology": 0.025, "Utilities": 0.015 },
        "all": "x".repeat(9_000),
    });
    let flag = flag("alert-1", &case, implications);
    let affected: Vec<(&str, &str)> = flag
        .affected
        .iter()
        .map(|one| (one.kind.as_str(), one.name.as_str()))
        .collect();
    assert_eq!(
        affected,
        [("metric", "technology"), ("topic", "Discount Rate")]
    );
    assert!(
        flag.implications.is_empty(),
        "they are long: the alert has them"
    );
}

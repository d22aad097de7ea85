use concord_events::Aggregate;
use concord_wire::payload::{AlertSource, REGIME_CHANGE, Role};
use concord_wire::{MessageType, Recipient};
use proptest::prelude::*;

use super::*;
use crate::effect;
use crate::fixtures::*;

fn alert(new_regime: &str, roles: &[Role], registered: usize) -> ReceivedAlert {
    let alert = Alert {
        new_regime: Some(new_regime.to_owned()),
        ..Alert::of(REGIME_CHANGE)
    };
    ReceivedAlert {
        heard: Heard {
            agent_id: agent("macro"),
            message_id: message("m-1"),
            digest: crate::digest(new_regime.as_bytes()),
        },
        case_id: None,
        priority: Priority::SystemCritical,
        alert,
        sender: authority("macro", roles),
        registered: (0..registered)
            .map(|place| agent(&format!("agent-{place}")))
            .collect(),
        terms: None,
    }
}

fn raise(received: ReceivedAlert) -> AlertInput {
    AlertInput::Raise(Box::new(received))
}

/// An alert that was raised, with a report awaited within a minute.
fn awaited() -> Story<AlertMachine> {
    let mut story = Story::of("alert-1");
    let received = ReceivedAlert {
        terms: Some(RegimeTerms {
            report_within_ms: 60_000,
            gates: vec!["gate_1".into()],
        }),
        ..alert("BEAR", &[Role::Alerter], 2)
    };
    story.hears(&said("m-1", 0), &raise(received));
    story
}

fn report(id: &str, from: &str, sender: Authority) -> AlertInput {
    AlertInput::Report(Box::new(ReceivedReport {
        heard: Heard {
            agent_id: agent(from),
            message_id: message(id),
            digest: id.to_owned(),
        },
        report: "Sector scores are in memory.".into(),
        sender,
    }))
}

fn report_due(story: &Story<AlertMachine>, millis: u64) -> AlertInput {
    AlertInput::Elapsed(elapsed(Aggregate::Alert, &story.id, REPORT, after(millis)))
}

/// Alerts whose report came, and whose report did not.
pub(crate) fn stories() -> [Story<AlertMachine>; 2] {
    let (mut kept, mut missed) = (awaited(), awaited());
    let in_time = report("r-1", "macro", authority("macro", &[Role::Alerter]));
    assert_eq!(kept.hears(&said("r-1", 1), &in_time), "reported");
    let due = report_due(&missed, 60_000);
    assert_eq!(
        missed.hears(&happened("d-1", 60_000), &due),
        "report_missed"
    );
    [kept, missed]
}

#[test]
fn the_table_of_reports() {
    let alerter = || authority("eva", &[Role::Alerter]);
    let mut story = Story::<AlertMachine>::of("alert-1");
    let unknown = "refused: /payload/parameters/alert";
    assert_eq!(
        story.hears(&said("r-0", 0), &report("r-0", "eva", alerter())),
        unknown
    );
    let mut story = awaited();
    let early = report_due(&story, 59_000);
    for (id, input, expected) in [
        (
            "r-1",
            report("r-1", "ann", authority("ann", &[Role::Opener])),
            "refused: /from_agent",
        ),
        ("d-0", early, "ignored: deadline_not_open"),
        // Who has raised it reports, also where the role was taken away meanwhile.
        (
            "r-2",
            report("r-2", "macro", Authority::default()),
            "reported",
        ),
        (
            "r-2",
            report("r-2", "macro", Authority::default()),
            "ignored: repetition",
        ),
        ("r-3", report("r-3", "eva", alerter()), unknown),
        (
            "d-1",
            report_due(&story, 60_000),
            "ignored: deadline_not_open",
        ),
    ] {
        assert_eq!(story.hears(&said(id, 1), &input), expected, "{id}");
    }
    let [_, mut missed] = stories();
    let again = report_due(&missed, 60_000);
    assert_eq!(
        missed.hears(&happened("d-2", 61_000), &again),
        "ignored: deadline_not_open"
    );
    let late = report("r-4", "eva", alerter());
    assert_eq!(missed.hears(&said("r-4", 62_000), &late), "reported");
}

#[test]
fn only_a_change_of_regime_awaits_a_report() {
    let terms = Some(RegimeTerms::default());
    for (event_type, terms, expected) in [
        (REGIME_CHANGE, terms.clone(), Some(after(7_200_000))),
        (REGIME_CHANGE, None, None),
        ("rate_move", terms.clone(), None),
        (
            REGIME_CHANGE,
            Some(RegimeTerms {
                report_within_ms: 0,
                ..RegimeTerms::default()
            }),
            None,
        ),
    ] {
        let mut received = alert("BEAR", &[Role::Alerter], 1);
        received.alert.event_type = event_type.to_owned();
        received.terms = terms;
        let mut story = Story::<AlertMachine>::of("alert-1");
        story.hears(&said("m-1", 0), &raise(received));
        let open = AlertMachine::deadlines(story.state());
        assert_eq!(open.first().map(|one| one.due), expected, "{event_type}");
    }
}

#[test]
fn the_table_of_alerts() {
    let suspended = ReceivedAlert {
        sender: Authority {
            suspended: Some("on leave".into()),
            ..authority("macro", &[Role::Alerter])
        },
        ..alert("BEAR", &[], 1)
    };
    let mut story = Story::<AlertMachine>::of("alert-1");
    let refused = "refused: /from_agent";
    for (received, expected) in [
        (alert("BEAR", &[], 1), refused),
        (alert("BEAR", &[Role::Opener, Role::Reviewer], 1), refused),
        (alert("BEAR", &[Role::Auditor, Role::Arbiter], 1), refused),
        (suspended, refused),
        (alert("BEAR", &[Role::Alerter], 3), "raised"),
        (alert("BEAR", &[Role::Alerter], 4), "ignored: repetition"),
        (alert("BULL", &[Role::Alerter], 3), "refused: /message_id"),
    ] {
        assert_eq!(story.hears(&said("m-1", 1), &raise(received)), expected);
    }
    let mut by_operator = Story::<AlertMachine>::of("alert-2");
    let input = raise(alert("BEAR", &[Role::Operator], 3));
    assert_eq!(by_operator.hears(&said("m-1", 1), &input), "raised");
}

#[test]
fn an_alert_of_a_rule_is_raised_once_and_answers_nobody() {
    let received = alert("BEAR", &[], 2);
    let source = AlertSource {
        rule: token("regime"),
        rules_version: 1,
        agent: agent("macro"),
        topic: token("regime"),
        version: 2,
        because: "it has changed".into(),
    };
    let fired = AlertInput::Fire(Box::new(FiredAlert {
        heard: received.heard,
        priority: Priority::Normal,
        alert: Alert {
            source: Some(source),
            ..received.alert
        },
        registered: received.registered,
        terms: None,
    }));
    let mut story = Story::<AlertMachine>::of("alert-1");
    assert_eq!(story.hears(&said("m-1", 1), &fired), "raised");
    assert_eq!(
        story.hears(&said("m-1", 1), &fired),
        "ignored: already_done"
    );
    let messages = effect::messages::<AlertMachine>(&story.records[0]).unwrap();
    let [told] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert_eq!(told.priority, Priority::Normal);
    let said: Alert = told.payload().unwrap();
    assert_eq!(said.source.map(|source| source.version), Some(2));
}

#[test]
fn everybody_is_told_by_one_message_and_the_sender_is_answered() {
    let [story, _] = stories();
    let messages = effect::messages::<AlertMachine>(&story.records[0]).unwrap();
    let [told, answer] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert_eq!(told.to_agent, Recipient::All);
    assert_eq!(told.message_type, MessageType::Alert);
    assert_eq!(told.priority, Priority::SystemCritical);
    assert_eq!(told.case_id, None);
    let said: Alert = told.payload().unwrap();
    assert_eq!(said.raised_by, Some(agent("macro")));
    assert_eq!(said.alert, Some(token("alert-1")));
    assert_eq!(answer.to_agent, Recipient::Agent(agent("macro")));
}

#[test]
fn an_alert_to_a_great_many_has_room() {
    let longest = (0..TOLD_MAX + 10).map(|place| agent(&format!("{place:0>64}")));
    let mut received = alert("BEAR", &[Role::Alerter], 0);
    received.registered = longest.collect();
    received.alert.new_state = Some("x".repeat(65_000).into());
    let Decision::Append(event) =
        AlertMachine::decide(&AlertState::default(), &said("m-1", 1), &raise(received))
    else {
        panic!("not raised");
    };
    let AlertEvent::Raised(raised) = &event else {
        panic!("{event:?}");
    };
    assert_eq!(raised.registered, TOLD_MAX as u64 + 10);
    assert!(serde_json::to_string(&event).unwrap().len() < 768 * 1024);
}

proptest! {
    #[test]
    fn whatever_is_said_under_one_id_everybody_is_told_once(
        said_again in prop::collection::vec((0..3_usize, any::<bool>()), 1..12),
    ) {
        let mut story = Story::<AlertMachine>::of("alert-1");
        for (regime, may) in said_again {
            let roles: &[Role] = if may { &[Role::Alerter] } else { &[] };
            story.hears(&said("m-1", 1), &raise(alert(["A", "B", "C"][regime], roles, 1)));
        }
        let told = story.records.iter().flat_map(|record| effect::messages::<AlertMachine>(record).unwrap());
        prop_assert!(told.filter(|one| one.message_type == MessageType::Alert).count() <= 1);
    }
}

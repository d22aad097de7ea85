use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::aggregates::case::{CaseInput, CaseMachine, CaseState};
use crate::assurance::replay;
use crate::fixtures::*;

fn analysis(fields: Value) -> PublishAnalysis {
    let mut whole = json!({ "type": "valuation", "confidence": 0.8, "rerun_minutes": 5 });
    for (name, value) in fields.as_object().unwrap() {
        whole[name] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

fn publish(from: &str, id: &str, fields: Value) -> ImpactInput {
    let analysis = analysis(fields);
    ImpactInput::Publish(Box::new(ReceivedAnalysis {
        heard: Heard {
            agent_id: agent(from),
            message_id: message(id),
            digest: crate::digest(format!("{analysis:?}").as_bytes()),
        },
        case_id: case_id(),
        analysis,
    }))
}

fn hears(story: &mut Story<ImpactMachine>, id: &str, input: &ImpactInput) -> String {
    let now = story.records.len() as u64;
    story.hears(&said(id, now), input)
}

fn uses(id: &str) -> Value {
    json!([{ "kind": "analysis", "id": id }])
}

fn published() -> Story<ImpactMachine> {
    let mut story = Story::of("c-1");
    let margin = json!([{ "kind": "assumption", "id": "operating_margin", "value": 25 }]);
    let dcf =
        json!({ "analysis_id": "dcf", "figures": { "target_price": 85 }, "depends_on": margin });
    hears(&mut story, "m-1", &publish("ann", "m-1", dcf));
    let used = json!([{ "kind": "analysis", "id": "dcf", "metric": "target_price" }]);
    let peers = json!({ "analysis_id": "peers", "depends_on": used });
    hears(&mut story, "m-2", &publish("ben", "m-2", peers));
    story
}

#[test]
fn the_table_of_publishing() {
    let mut story = published();
    let own = json!({ "analysis_id": "dcf", "figures": { "target_price": 95 } });
    let place = |field: &str| format!("refused: /payload/parameters/{field}");
    for (from, id, fields, expected) in [
        ("ben", "m-3", own.clone(), place("analysis_id")),
        ("ann", "m-3", own.clone(), "published".to_owned()),
        ("ann", "m-3", own.clone(), "ignored: repetition".to_owned()),
        // An id is its sender's own.
        ("ben", "m-3", own.clone(), place("analysis_id")),
        (
            "ann",
            "m-4",
            json!({ "analysis_id": "new", "depends_on": uses("nowhere") }),
            place("depends_on/0/id"),
        ),
        (
            "ann",
            "m-5",
            json!({ "analysis_id": "new", "depends_on": [{ "kind": "analysis", "id": "dcf", "metric": "rating" }] }),
            place("depends_on/0/metric"),
        ),
        (
            "ann",
            "m-6",
            json!({ "analysis_id": "dcf", "depends_on": uses("peers") }),
            place("depends_on/0"),
        ),
        (
            "ann",
            "m-7",
            json!({ "analysis_id": "self", "depends_on": uses("self") }),
            place("depends_on/0"),
        ),
    ] {
        let input = publish(from, id, fields);
        assert_eq!(hears(&mut story, id, &input), expected, "{id}");
    }
    let dcf = story.state().graph.get(&token("dcf")).unwrap();
    assert_eq!((dcf.version, dcf.author.as_str()), (2, "ann"));
}

fn refusal(story: &Story<ImpactMachine>, input: &ImpactInput) -> concord_wire::Fault {
    match ImpactMachine::decide(story.state(), &said("m-9", 9), input) {
        Decision::Reject(fault) => fault,
        other => panic!("it is refused, not {other:?}"),
    }
}

#[test]
fn who_is_refused_is_told_the_circle_and_what_there_is() {
    let story = published();
    let circle = json!({ "analysis_id": "dcf", "depends_on": uses("peers") });
    let fault = refusal(&story, &publish("ann", "m-9", circle));
    assert!(fault.message.contains("dcf -> peers -> dcf"), "{fault}");
    let unknown = json!({ "analysis_id": "new", "depends_on": uses("nowhere") });
    let fault = refusal(&story, &publish("ann", "m-9", unknown));
    assert!(fault.advice.contains("dcf, peers"), "{fault}");
    let metric = json!([{ "kind": "analysis", "id": "dcf", "metric": "rating" }]);
    let unknown = json!({ "analysis_id": "new", "depends_on": metric });
    let fault = refusal(&story, &publish("ann", "m-9", unknown));
    assert!(fault.advice.contains("target_price"), "{fault}");
}

#[test]
fn what_was_used_is_filled_in_where_the_sender_does_not_say() {
    let story = published();
    let peers = story.state().graph.get(&token("peers")).unwrap();
    let used = &peers.published.depends_on[0];
    assert_eq!(
        used.value,
        Some(concord_wire::payload::Figure::Number(85.0))
    );
    assert_eq!(used.confidence, Some(0.8));
    let ImpactEvent::Published(stored) = &story.last().event else {
        panic!("it was published");
    };
    assert_eq!(stored.analysis, peers.published);
}

/// A case in which two agents were asked and a debate about the risk score has ended.
fn case() -> CaseState {
    let mut story = Story::<CaseMachine>::of("c-1");
    story.hears(&said("m-1", 0), &open_case(&["ann", "ben"], policy()));
    let received = conflict_of("c-1", "risk_score");
    let mut state = story.state().clone();
    state.debated.push(received);
    let id = state.debated[0].conflict_id.clone();
    let CaseInput::Resolved(outcome) = resolved(&id, json!(40)) else {
        panic!("it is an outcome");
    };
    state.outcomes.insert(id, *outcome);
    state
}

fn conflict_of(case: &str, subject: &str) -> concord_wire::payload::Conflict {
    serde_json::from_value(json!({
        "conflict_id": format!("{case}-debate"), "type": "factual_disagreement", "topic": subject, "subject": subject,
        "weight": 1.0, "positions": [],
    }))
    .unwrap()
}

fn resolved(id: &concord_wire::DebateId, value: Value) -> CaseInput {
    let outcome = json!({
        "conflict_id": id, "status": "vote", "rounds": [], "resolved_at": "2026-11-21T20:00:00Z",
        "resolution": { "position": "as said", "value": value, "supporters": ["ann"] },
        "positions": [{ "agent_id": "ann", "position": "as said", "confidence": 0.9 }],
    });
    CaseInput::Resolved(Box::new(serde_json::from_value(outcome).unwrap()))
}

#[test]
fn decisions_are_those_of_the_case() {
    let case = case();
    let with = |used: Value| {
        let fields = json!({ "analysis_id": "dcf", "depends_on": [used] });
        with_decisions(&case, analysis(fields)).map(|analysis| analysis.depends_on[0].clone())
    };
    let decision = |id: &str| json!({ "kind": "decision", "id": id });
    let used = with(decision("c-1-debate")).unwrap();
    assert_eq!(
        used.value,
        Some(concord_wire::payload::Figure::Number(40.0))
    );
    assert_eq!(used.confidence, Some(0.9));
    // The debate decides about the assumption that is its subject, however the name is written.
    let assumed = |id: &str| with(json!({ "kind": "assumption", "id": id })).unwrap();
    assert_eq!(assumed("Risk Score").value, used.value);
    assert_eq!(assumed("beta").value, None);
    let stated = json!({ "kind": "assumption", "id": "risk_score", "value": 30 });
    let stated = with(stated).unwrap();
    assert_eq!(
        stated.value,
        Some(concord_wire::payload::Figure::Number(30.0))
    );
    let fault = with(decision("c-1-other")).unwrap_err();
    assert!(fault.advice.contains("c-1-debate"), "{fault}");
    let mut part = decision("c-1");
    assert!(with(part.clone()).is_ok());
    for (metric, is_part) in [
        ("risk_score", true),
        ("recommendation", true),
        ("clauses/liability_cap", true),
        ("clauses/", false),
        ("target_price", false),
    ] {
        part["metric"] = json!(metric);
        assert_eq!(with(part.clone()).is_ok(), is_part, "{metric}");
    }
}

#[test]
fn an_author_and_a_case_have_bounds() {
    let mut story = published();
    let written = Written {
        versions: AUTHOR_VERSIONS_MAX,
        bytes: 0,
    };
    Arc::make_mut(&mut story.versioned.state)
        .authors
        .insert(agent("ann"), written);
    let more = publish("ann", "m-9", json!({ "analysis_id": "more" }));
    assert!(refusal(&story, &more).message.contains("ann has published"));
}

#[test]
fn it_is_rebuilt_from_its_events() {
    let story = published();
    let again = replay::rebuild::<ImpactMachine>(&story.records).0;
    assert_eq!(*again.state, *story.state());
}

mod decided;
pub(crate) mod estimating;
mod own_ids;

mod assessing {
    use std::collections::BTreeMap;

    use concord_wire::payload::{DependencyKind, Figure, Status};

    use super::*;
    use crate::aggregates::impact::decisions::part_standings;
    use crate::rules::impact::estimate::Standing;
    use crate::rules::impact::graph::Source;

    fn moved(to: f64) -> ImpactInput {
        let standing = Standing::of(Some(concord_wire::payload::Figure::Number(to)), Some(0.9));
        let debate = concord_wire::DebateId::new("c-1-debate").unwrap();
        ImpactInput::Moved(Box::new(DecisionMoved {
            case_id: case_id(),
            opened_by: agent("olga"),
            standings: BTreeMap::from([
                (Source::Decision(debate.token()), standing.clone()),
                (Source::assumption("operating_margin"), standing),
            ]),
            debate_id: Some(debate),
            status: Some(Status::Overridden),
            late: BTreeMap::new(),
            by: Some(agent("eva")),
        }))
    }

    fn assessed(story: &Story<ImpactMachine>) -> ImpactAssessed {
        match &story.last().event {
            ImpactEvent::Assessed(assessed) => (**assessed).clone(),
            other => panic!("it is a report, not {other:?}"),
        }
    }

    #[test]
    fn the_table_of_what_has_changed() {
        let mut story = published();
        let hears = |story: &mut Story<ImpactMachine>, id: &str, to: f64| {
            story.hears(&happened(id, 9), &moved(to))
        };
        assert_eq!(hears(&mut story, "e-1", 25.0), "ignored: already_done");
        assert_eq!(hears(&mut story, "e-2", 28.0), "assessed");
        assert_eq!(hears(&mut story, "e-2", 28.0), "ignored: repetition");
        // A second override is measured against what was used, not against the first.
        assert_eq!(hears(&mut story, "e-3", 26.0), "assessed");
        let impacts = assessed(&story).report.impacts;
        let dcf = impacts.iter().find(|one| one.analysis_id == token("dcf"));
        let delta = dcf.and_then(|one| one.delta).unwrap();
        assert!((delta - 0.10).abs() < 1e-9, "{delta}");
        let mut nobody = Story::<ImpactMachine>::of("c-1");
        assert_eq!(hears(&mut nobody, "e-1", 28.0), "ignored: already_done");
    }

    /// The two reports of an override can come at the same time: what the first has said is not said again.
    #[test]
    fn what_is_late_is_told_only_if_it_is_in_no_report_yet() {
        let late = |to: f64| match moved(to) {
            ImpactInput::Moved(mut moved) => {
                let (_, standing) = moved.standings.pop_last().unwrap();
                moved.standings.clear();
                moved.late = BTreeMap::from([
                    (Source::assumption("nobody's"), standing.clone()),
                    (Source::assumption("operating_margin"), standing),
                ]);
                ImpactInput::Moved(moved)
            }
            other => other,
        };
        let mut story = published();
        assert_eq!(story.hears(&happened("e-1", 9), &moved(28.0)), "assessed");
        let again = story.hears(&happened("e-2", 9), &late(28.0));
        assert_eq!(again, "ignored: already_done");
        assert_eq!(story.hears(&happened("e-3", 9), &late(26.0)), "assessed");
        assert_eq!(assessed(&story).changed.len(), 1);
    }

    /// What a debate has confirmed is no change, and nothing that changes later makes it one.
    #[test]
    fn what_is_late_and_as_everybody_has_used_it_is_not_told() {
        let mut story = published();
        let risk = json!([{ "kind": "assumption", "id": "risk_score", "value": 30 }]);
        let limits =
            json!({ "analysis_id": "limits", "figures": { "limit": 5 }, "depends_on": risk });
        hears(&mut story, "m-3", &publish("ann", "m-3", limits));
        let sure = |value: Figure| Standing::of(Some(value), Some(0.7));
        let ImpactInput::Moved(mut changed) = moved(0.0) else {
            panic!("it is a change");
        };
        let at = Source::assumption("risk_score");
        changed.standings = BTreeMap::from([(at, sure(Figure::Number(80.0)))]);
        let margin = Source::assumption("operating_margin");
        changed.late = BTreeMap::from([(margin, sure(Figure::Text("25 %".into())))]);
        let changed = ImpactInput::Moved(changed);
        assert_eq!(story.hears(&happened("e-1", 9), &changed), "assessed");
        let report = assessed(&story);
        let told: Vec<&str> = report.changed.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(told, ["risk score"]);
        assert_eq!(report.report.changed_assumption.id, "risk score");
    }

    #[test]
    fn whose_analyses_are_affected_is_told_and_who_opened_the_case() {
        let mut story = published();
        story.hears(&happened("e-1", 9), &moved(28.0));
        let assessed = assessed(&story);
        let told: Vec<&str> = assessed.told.iter().map(AgentId::as_str).collect();
        assert_eq!(told, ["olga", "ann", "ben"]);
        assert_eq!(assessed.by, Some(agent("eva")));
        let changed = &assessed.report.changed_assumption;
        assert_eq!(
            (changed.kind, changed.id.as_str()),
            (DependencyKind::Assumption, "operating margin")
        );
        let number = concord_wire::payload::Figure::Number;
        assert_eq!(
            (changed.old_value.clone(), changed.new_value.clone()),
            (Some(number(25.0)), Some(number(28.0)))
        );
        // dcf by the built-in sensitivity; peers, of which nobody knows what becomes, because of it.
        assert_eq!(
            (
                assessed.report.affected_count,
                assessed.report.high_impact_count
            ),
            (2, 2)
        );
        assert_eq!(assessed.report.total_rerun_time, 10);
        assert!(ImpactMachine::recount(story.state(), story.last()).is_empty());
    }

    #[test]
    fn a_report_that_says_something_else_is_found_when_it_is_counted_again() {
        let mut story = published();
        story.hears(&happened("e-1", 9), &moved(28.0));
        let mut record = story.last().clone();
        let ImpactEvent::Assessed(assessed) = &mut record.event else {
            panic!("it is a report");
        };
        assessed.report.affected_count = 1;
        assert_eq!(ImpactMachine::recount(story.state(), &record).len(), 1);
        // Those of other versions may have come to something else.
        for rules in [None, Some(u32::MAX)] {
            let ImpactEvent::Assessed(assessed) = &mut record.event else {
                panic!("it is a report");
            };
            assessed.rules = rules;
            assert!(ImpactMachine::recount(story.state(), &record).is_empty());
        }
    }

    #[test]
    fn what_a_debate_was_about_is_known_by_the_conflicts_of_its_case() {
        let mut known = case();
        let conflicts = std::mem::take(&mut known.debated);
        let assumption = Source::assumption("risk_score");
        let of_debate = debate_standings(&known, &conflicts[0].conflict_id);
        assert!(!of_debate.contains_key(&assumption));
        known.debated = conflicts;
        assert!(assumption_standings(&known, None).contains_key(&assumption));
    }

    #[test]
    fn the_parts_of_a_decision_stand_in_the_version_that_changed_them() {
        let mut case = case();
        assert!(part_standings(&case).is_empty());
        let decision = json!({
            "version": 3, "outcome": { "risk_score": 40.0, "clauses": { "cap": { "present": true, "basis": "undisputed" } } },
            "findings": [], "missing": [], "set_aside": [], "conflicts": [], "outcomes": [], "deferred": [], "reason": "settled",
            "policy_digest": "d",
        });
        case.decision = Some(serde_json::from_value(decision).unwrap());
        let standings = part_standings(&case);
        let standing = &standings[&Source::Decision(token("c-1"))];
        let parts: Vec<String> = standing
            .values
            .iter()
            .map(|(part, value)| format!("{part} {value}"))
            .collect();
        assert_eq!(parts, ["clauses/cap true", "risk_score 40"]);
        assert_eq!(
            standing.version,
            Some(1),
            "no later version has changed the result"
        );
        let debate = case.debated[0].conflict_id.clone();
        let of_debate = debate_standings(&case, &debate);
        let sources: Vec<&str> = of_debate.keys().map(Source::name).collect();
        assert_eq!(sources, ["c-1-debate", "risk score"]);
        assert!(of_debate.values().all(|one| one.confidence == Some(0.9)));
    }
}

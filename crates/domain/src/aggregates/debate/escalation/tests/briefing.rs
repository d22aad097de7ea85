//! What an expert is shown beside the positions, and that it has room.

use concord_events::OutcomeKnown;
use concord_wire::payload::{Background, Conflict};
use concord_wire::policy::Decide;

use super::*;
use crate::aggregates::case::{CaseInput, CaseMachine, CaseState};
use crate::aggregates::debate::{Sources, background, believed};
use crate::fixtures::{detected, finding, open_request};
use crate::rules::size_budget::json_bytes;

/// Most bytes of what stands beside the positions.
const BACKGROUND_BYTES_MAX: usize = 144 * 1024;

/// A case about `input` in which finance and strategy have found this, and about whose margin there is another conflict.
fn case(input: Value, findings: [Value; 2]) -> CaseState {
    let mut story = Story::<CaseMachine>::of("c-1");
    let mut request = open_request(&["finance", "strategy"], policy());
    request.request.task.input = input;
    story.hears(&said("m-open", 0), &CaseInput::Open(Box::new(request)));
    for (from, found) in ["finance", "strategy"].into_iter().zip(findings) {
        story.hears(&said(from, 1), &finding(from, from, found));
    }
    let held = [("finance", json!(1), 0.8), ("strategy", json!(2), 0.7)];
    let of = |id: &str, subject: &str| -> Conflict {
        conflict(id, ConflictType::FactualDisagreement, subject, &held)
    };
    let conflicts = vec![of("d-7", "Operating  MARGIN"), of("d-8", "another")];
    story.hears(&happened("e-1", 2), &detected(conflicts, vec![]));
    story.state().clone()
}

fn usual_case() -> CaseState {
    let about = json!({
        "estimates": [{ "metric": "operating margin", "value": 25.0, "unit": "%" }, { "metric": "eps", "value": 1.0 }],
        "evidence": ["10-K page 45"], "risk_score": 20.0,
    });
    case(json!("The whole annual report."), [about, json!({})])
}

fn opened(story: &Story<DebateMachine>) -> std::sync::Arc<concord_events::DebateOpened> {
    story.state().opened.clone().unwrap()
}

fn shown(story: &Story<DebateMachine>, case: &CaseState, sources: Sources) -> Background {
    background(&opened(story), &story.records, case, sources).unwrap()
}

fn assigned_with(background: Background) -> DebateInput {
    command(Command::Assigned {
        expert: agent("eve"),
        contact: contact_of("eve"),
        background: Some(Box::new(background)),
    })
}

/// A challenge on level 3 in which both sides have spoken.
fn at_level_three() -> Story<DebateMachine> {
    let mut story = challenged();
    let text = "Which year?".into();
    let asks = says("finance", "m-2", MessageBody::Clarification { text });
    assert_eq!(story.hears(&said("m-2", 1), &asks), "clarified");
    assert_eq!(
        story.hears(&said("m-3", 2), &evidence("finance", "m-3")),
        "evidence_given"
    );
    passes(&mut story, "evaluation", after(2 + HOUR));
    passes(&mut story, "compare", after(2 + HOUR));
    story
}

#[test]
fn the_matter_the_findings_what_was_said_and_what_depends_are_shown() {
    let story = at_level_three();
    let known = OutcomeKnown {
        case_id: case_id(),
        topic: "Another margin".into(),
        heard: concord_events::Heard {
            agent_id: agent("olga"),
            message_id: message("m-9"),
            digest: String::new(),
        },
        position: "27 %".into(),
        value: Some(json!(27)),
        explanation: "The report of the year after.".into(),
        at: after(5),
        circumstances: Default::default(),
        parties: Vec::new(),
    };
    let earlier = concord_wire::DebateId::new("d-0").unwrap();
    let sources = Sources {
        credibility: [(agent("finance"), credibility::unknown())].into(),
        proved: [(earlier.clone(), known)].into(),
    };
    let shown = shown(&story, &usual_case(), sources);
    assert_eq!(shown.task.input, "The whole annual report.");
    assert_eq!(shown.task.bytes, 26, "with its quotation marks");
    let finance = shown.findings.first().unwrap();
    assert_eq!(
        (finance.agent_id.as_str(), &finance.about, &finance.evidence),
        (
            "finance",
            &vec!["operating margin: 25 %".to_owned()],
            &vec!["10-K page 45".to_owned()]
        )
    );
    assert_eq!(shown.findings.len(), 2);
    let said: Vec<(u32, &str, bool)> = shown
        .said
        .iter()
        .map(|one| (one.round, one.words.as_str(), one.moved))
        .collect();
    let words = "See the ROI table.; 10-K page m-3";
    assert_eq!(said, [(0, "Which year?", false), (0, words, false)]);
    assert_eq!(shown.proved[&earlier].value, Some(json!(27)));
    let depends = &shown.depends;
    assert_eq!(
        (depends.gate.as_deref(), depends.decision, depends.awaited),
        (Some("valuation review"), None, false)
    );
    assert_eq!(depends.dependants, ["dcf"]);
    let related: Vec<&str> = depends
        .related
        .iter()
        .map(|one| one.debate_id.as_str())
        .collect();
    assert_eq!(related, ["d-7"], "whatever the spelling, and no other");
}

#[test]
fn a_case_that_waits_for_its_debates_waits_for_this_one() {
    let rules = Policy {
        decide: Decide::WhenSettled,
        ..policy()
    };
    let story = challenged_with(rules, terms(None), PriorKnowledge::default());
    let shown = shown(&story, &usual_case(), Sources::default());
    assert!(shown.depends.awaited && shown.depends.gate.is_none());
    assert_eq!(
        background(
            &opened(&story),
            &[],
            &CaseState::default(),
            Sources::default()
        ),
        None,
        "of a case that nobody knows nothing is shown"
    );
}

#[test]
fn what_was_said_in_rounds_says_who_moved() {
    let held = [
        ("a", json!(1), 0.8),
        ("b", json!(2), 0.7),
        ("c", json!(3), 0.6),
    ];
    let conflict = conflict("d-1", ConflictType::FactualDisagreement, "due", &held);
    let mut story = Story::<DebateMachine>::of("d-1");
    story.hears(&said("m-open", 0), &open_debate(conflict, policy()));
    story.hears(&said("m-1", 1), &keeps("a", "m-1"));
    story.hears(&said("m-2", 2), &moves_to("b", "m-2", json!(5)));
    let shown = shown(&story, &usual_case(), Sources::default());
    let said: Vec<_> = shown
        .said
        .iter()
        .map(|one| (one.round, one.agent_id.as_str(), one.agrees, one.moved))
        .collect();
    assert_eq!(
        said,
        [(1, "a", Some(false), false), (1, "b", Some(false), true)]
    );
    assert!(shown.findings.is_empty(), "no party of it found anything");
}

#[test]
fn the_brief_keeps_it_while_the_expert_has_the_debate_and_its_digest_covers_it() {
    let mut story = at_level_three();
    let plain = story.state().clone();
    let context = happened("q-1", 2 * HOUR);
    let all = shown(&story, &usual_case(), Sources::default());
    assert_eq!(
        story.hears(&context, &assigned_with(all.clone())),
        "assigned"
    );
    let digest = ladder(&story).digest.clone();
    let DebateEvent::Assigned(assigned) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    let json = serde_json::to_vec(&assigned.briefed.brief).unwrap();
    assert_eq!(Some(crate::digest(&json)), digest);
    let without = DebateMachine::decide(&plain, &context, &assigned_to("eve"));
    let crate::machine::Decision::Append(DebateEvent::Assigned(without)) = without else {
        panic!("{without:?}")
    };
    assert!(without.briefed.brief.background.is_none());
    assert_ne!(Some(without.briefed.digest), digest);

    story.hears(&said("m-8", 2 * HOUR + 1), &evidence("strategy", "m-8"));
    let DebateEvent::EvidenceGiven(given) = &story.last().event else {
        panic!("{:?}", story.last())
    };
    let again = given.brief.as_ref().unwrap();
    assert_eq!(again.brief.background.as_deref(), Some(&all));
    assert_ne!(Some(&again.digest), digest.as_ref());
    let now = again.digest.clone();
    story.hears(&said("r-1", 3 * HOUR), &rules("eve", "r-1", &now, "p1"));
    assert_eq!(
        ladder(&story).background,
        None,
        "nothing of it stays in memory"
    );
}

#[test]
fn those_with_the_best_records_are_shown_and_no_more_than_there_is_room_for() {
    let names: Vec<String> = (0..20).map(|n| format!("a{n:02}")).collect();
    let held: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), json!(name), 0.5))
        .collect();
    let mut credible = PriorKnowledge::default();
    credible
        .credibility
        .insert(agent("a19"), half_width(0.1, 0.9));
    let request = OpenDebate {
        case_id: case_id(),
        conflict: conflict("d-1", ConflictType::Challenge, "due", &held),
        policy: policy(),
        terms: terms(None),
    };
    let mut story = Story::<DebateMachine>::of("d-1");
    let opening = DebateInput::Open(Box::new(Opening {
        request,
        prior_knowledge: credible,
    }));
    story.hears(&said("m-open", 0), &opening);
    let shown = believed(&opened(&story));
    let names: Vec<&str> = shown.iter().map(|one| one.as_str()).collect();
    assert_eq!(
        names,
        ["a19", "a00", "a01", "a02", "a03", "a04", "a05", "a06"]
    );
}

#[test]
fn however_much_agents_write_it_has_room() {
    for filler in ["x", "\u{1}", "🦀"] {
        let long = filler.repeat(60_000 / filler.len());
        let found = json!({
            "summary": long, "evidence": [long, long],
            "estimates": vec![json!({ "metric": "operating margin", "value": 1.0 }); 400],
        });
        let case = case(json!({ "text": long }), [found.clone(), found]);
        let mut story = challenged();
        for number in 0..30 {
            let id = format!("m-{number}");
            let text = filler.repeat(4_000 / filler.len());
            // A party gives evidence only so often, and both ask for the rest.
            let from = if number < 18 { "finance" } else { "strategy" };
            let body = match number {
                0..8 => MessageBody::Evidence(Evidence {
                    statement: text,
                    evidence: vec![format!("10-K page {id}")],
                    limitation: None,
                }),
                _ => MessageBody::Clarification { text },
            };
            story.hears(&said(&id, number), &says(from, &id, body));
        }
        let due = ladder(&story).due("evaluation").unwrap();
        passes(&mut story, "evaluation", due);
        passes(&mut story, "compare", due);
        let shown = shown(&story, &case, Sources::default());
        assert!(
            json_bytes(&shown) <= BACKGROUND_BYTES_MAX,
            "{}",
            json_bytes(&shown)
        );
        assert!(shown.said_omitted > 0 && !shown.said.is_empty());
        assert!(shown.findings.iter().all(|one| one.omitted > 0));
        assert!(shown.task.input.ends_with("… [shortened]"));
        let context = happened("q-1", 2 * HOUR);
        assert_eq!(story.hears(&context, &assigned_with(shown)), "assigned");
    }
}

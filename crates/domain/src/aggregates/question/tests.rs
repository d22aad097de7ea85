use concord_events::{Aggregate, QuestionOutcome, QuestionTerms, Remembered, WakeOutcome, Weighed};
use concord_wire::payload::track_record::Interval;
use concord_wire::payload::{AnswerMode, SynthesisStatus};
use concord_wire::{Envelope, ErrorCode, MessageType, Recipient};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;
use crate::rules::credibility;

mod opening;

const BOUNDS: QuestionBounds = QuestionBounds {
    answer_ms: 30_000,
    answer_ms_max: 60_000,
};

fn terms(mode: AnswerMode, synthesiser: Option<&str>) -> QuestionTerms {
    QuestionTerms {
        mode,
        synthesiser: synthesiser.map(agent),
        ..QuestionTerms::default()
    }
}

fn asking(id: &str, woken: &[&str], terms: QuestionTerms) -> Asking {
    let weighed = |name: &&str| Weighed {
        agent_id: agent(name),
        outcome: WakeOutcome::Wake,
        reason: "mention".into(),
        score: None,
        runner_up: None,
        runner_up_score: None,
    };
    let decided = WakeDecided {
        said: Remembered {
            message_id: message(id),
            from: agent("eva"),
            to: Recipient::Any,
            message_type: "group_query".into(),
            at: after(0),
            reply_to: None,
            text: "Who knows?".into(),
        },
        case_id: Some(case_id()),
        from_outside: false,
        woken: woken.iter().map(weighed).collect(),
        others: Vec::new(),
        observing: 0,
        ignoring: 0,
        named_beyond: 0,
        with_model: false,
        message: Value::Null,
        context: Vec::new(),
        sees: std::collections::BTreeMap::new(),
        question: Some(terms),
        loop_broken: None,
    };
    Asking {
        decided,
        sender: Authority::default(),
        bounds: BOUNDS,
    }
}

fn given(by: &str, id: &str, at: u64, confidence: f64) -> GivenAnswer {
    let answer = GivenAnswer {
        by: agent(by),
        message_id: message(id),
        message_type: "response".into(),
        at: after(at),
        confidence: Some(confidence),
        record: None,
        weight: 0.0,
        declines: false,
        payload: json!({ "content": format!("{by} says so") }),
        too_large: false,
    };
    weigh(answer, None)
}

fn answers(answer: GivenAnswer) -> QuestionInput {
    QuestionInput::Answer(Box::new(answer))
}

fn passes(name: &str, due: u64, unread: Vec<GivenAnswer>) -> QuestionInput {
    let elapsed = elapsed(Aggregate::Question, &token("q-1"), name, after(due));
    QuestionInput::Elapsed { elapsed, unread }
}

/// A question of eva that has woken ann, ben and cyd.
fn open(mode: AnswerMode, synthesiser: Option<&str>) -> Story<QuestionMachine> {
    let mut story = Story::<QuestionMachine>::of("q-1");
    let asked = asking("m-1", &["ann", "ben", "cyd"], terms(mode, synthesiser));
    let input = QuestionInput::Ask(Box::new(asked));
    assert_eq!(story.hears(&happened("e-1", 1), &input), "opened");
    story
}

fn hears(story: &mut Story<QuestionMachine>, answer: GivenAnswer) -> String {
    let (id, at) = (
        answer.message_id.to_string(),
        answer.at.millis_since(start()),
    );
    story.hears(&said(&id, at), &answers(answer))
}

fn told(story: &Story<QuestionMachine>) -> Vec<Envelope> {
    crate::effect::messages::<QuestionMachine>(story.last()).unwrap()
}

/// Everything that was said because of the question, in order: type and recipient.
fn all_told(story: &Story<QuestionMachine>) -> Vec<(String, String)> {
    let messages = story
        .records
        .iter()
        .flat_map(|record| crate::effect::messages::<QuestionMachine>(record).unwrap());
    messages
        .map(|one| (one.message_type.to_string(), one.to_agent.to_string()))
        .collect()
}

fn answer_of(story: &Story<QuestionMachine>) -> concord_wire::payload::GroupAnswer {
    match &story.last().event.end().unwrap().outcome {
        QuestionOutcome::Answered(answer) => answer.clone(),
        failed => panic!("{failed:?}"),
    }
}

fn failure_of(story: &Story<QuestionMachine>) -> ErrorCode {
    match &story.last().event.end().unwrap().outcome {
        QuestionOutcome::Failed { code, .. } => *code,
        answered => panic!("{answered:?}"),
    }
}

fn names(answers: &[GivenAnswer]) -> Vec<&str> {
    answers.iter().map(|answer| answer.by.as_str()).collect()
}

#[test]
fn the_most_confident_is_primary_when_all_have_answered_and_whoever_asked_is_told_once() {
    let mut story = open(AnswerMode::Confidence, None);
    assert_eq!(hears(&mut story, given("ann", "a-1", 10, 0.7)), "answered");
    let declined = GivenAnswer {
        declines: true,
        ..given("cyd", "a-3", 15, 1.0)
    };
    assert_eq!(hears(&mut story, declined), "answered");
    assert_eq!(hears(&mut story, given("ben", "a-2", 20, 0.9)), "answered");
    let answer = answer_of(&story);
    assert_eq!(answer.primary.by, agent("ben"));
    assert_eq!(
        (names(&answer.supplementary), names(&answer.declined)),
        (vec!["ann"], vec!["cyd"])
    );
    assert!(!answer.timed_out && answer.silent.is_empty() && answer.synthesis.is_none());
    let messages = told(&story);
    let [response] = messages.as_slice() else {
        panic!("{messages:?}")
    };
    assert_eq!(response.message_type, MessageType::Response);
    assert_eq!(response.reply_to.as_deref(), Some("m-1"));
    assert_eq!(response.case_id, Some(case_id()));
    assert_eq!(all_told(&story).len(), 1);
}

#[test]
fn the_first_answer_ends_a_question_to_the_first_responder_and_the_others_stand_down() {
    let mut story = open(AnswerMode::FirstResponder, None);
    let declined = GivenAnswer {
        declines: true,
        ..given("ann", "a-1", 5, 1.0)
    };
    assert_eq!(hears(&mut story, declined), "answered");
    assert_eq!(hears(&mut story, given("cyd", "a-2", 10, 0.1)), "answered");
    let answer = answer_of(&story);
    assert_eq!(
        (answer.primary.by.as_str(), answer.timed_out),
        ("cyd", false)
    );
    let last = told(&story);
    let stand_down = last.last().unwrap();
    assert_eq!((last.len(), stand_down.to_agent.as_str()), (2, "ben"));
    let data: Value = stand_down.payload().unwrap();
    assert_eq!(data["event"], "stand_down");
    assert_eq!(
        hears(&mut story, given("ben", "a-3", 11, 1.0)),
        "refused: /reply_to"
    );
    let early = passes(ANSWERS, 30_000, Vec::new());
    assert_eq!(
        story.hears(&happened("e-2", 30_000), &early),
        "ignored: deadline_not_open"
    );
}

#[test]
fn all_answers_go_to_the_synthesiser_whose_answer_is_primary() {
    let mut story = open(AnswerMode::Collaborative, Some("lead"));
    for (by, id) in [("ann", "a-1"), ("ben", "a-2"), ("cyd", "a-3")] {
        assert_eq!(hears(&mut story, given(by, id, 10, 0.5)), "answered");
    }
    let asked = told(&story);
    assert_eq!((asked.len(), asked[0].to_agent.as_str()), (1, "lead"));
    let request: Value = asked[0].payload().unwrap();
    assert_eq!(request["action"], "synthesise");
    assert_eq!(
        request["parameters"]["answers"].as_array().unwrap().len(),
        3
    );
    let sequence = story.last().sequence;
    let synthesis = |by: &str, id: &str, asked| QuestionInput::Synthesis {
        answer: Box::new(given(by, id, 20, 0.4)),
        asked,
    };
    for (by, asked, expected) in [
        ("ann", sequence, "refused: /reply_to"),
        ("lead", sequence + 1, "refused: /reply_to"),
        ("lead", sequence, "synthesised"),
        ("lead", sequence, "ignored: repetition"),
    ] {
        assert_eq!(
            story.hears(&said("s-1", 20), &synthesis(by, "s-1", asked)),
            expected
        );
    }
    let again = synthesis("lead", "s-2", sequence);
    assert_eq!(story.hears(&said("s-2", 21), &again), "refused: /reply_to");
    let answer = answer_of(&story);
    assert_eq!(
        (answer.primary.by.as_str(), answer.supplementary.len()),
        ("lead", 3)
    );
    assert_eq!(answer.synthesis.unwrap().status, SynthesisStatus::Done);
}

#[test]
fn without_the_synthesiser_the_answers_go_out_as_they_are() {
    for declines in [true, false] {
        let mut story = open(AnswerMode::Collaborative, Some("lead"));
        hears(&mut story, given("ann", "a-1", 10, 0.5));
        // Two thirds of the time are for the answers.
        let answers_over = passes(ANSWERS, 20_000, Vec::new());
        assert_eq!(
            story.hears(&happened("e-2", 20_000), &answers_over),
            "elapsed"
        );
        assert_eq!(story.state().synthesis.as_ref().unwrap().due, after(30_000));
        let asked = story.last().sequence;
        assert_eq!(
            hears(&mut story, given("ben", "a-2", 10, 0.5)),
            "refused: /reply_to"
        );
        let (input, expected) = match declines {
            true => {
                let none = GivenAnswer {
                    declines,
                    ..given("lead", "s-1", 21, 0.5)
                };
                let answer = Box::new(none);
                (
                    QuestionInput::Synthesis { answer, asked },
                    SynthesisStatus::Declined,
                )
            }
            false => (
                passes(SYNTHESIS, 30_000, Vec::new()),
                SynthesisStatus::Missed,
            ),
        };
        story.hears(&happened("e-3", 30_000), &input);
        let answer = answer_of(&story);
        assert_eq!(answer.synthesis.unwrap().status, expected);
        assert_eq!(
            (answer.primary.by.as_str(), answer.silent.len()),
            ("ann", 2)
        );
        assert_eq!(
            told(&story).len(),
            3,
            "whoever asked, and two who need not answer"
        );
    }
}

#[test]
fn the_deadline_ends_it_with_every_answer_that_was_stored_in_time() {
    let mut story = open(AnswerMode::Confidence, None);
    hears(&mut story, given("ann", "a-1", 10, 0.5));
    let unread = vec![
        given("ben", "a-2", 29_999, 0.9),
        given("ben", "a-3", 29_999, 1.0),
        given("cyd", "a-4", 30_001, 1.0),
        given("eve", "a-5", 20, 1.0),
    ];
    let over = passes(ANSWERS, 30_000, unread);
    assert_eq!(story.hears(&happened("e-2", 30_100), &over), "elapsed");
    let answer = answer_of(&story);
    assert_eq!(
        (answer.primary.by.as_str(), names(&answer.supplementary)),
        ("ben", vec!["ann"])
    );
    assert_eq!(
        (answer.timed_out, answer.silent),
        (true, vec![agent("cyd")])
    );
    // What was found when its time was over is handled now.
    assert_eq!(
        hears(&mut story, given("ben", "a-2", 29_999, 0.9)),
        "ignored: repetition"
    );
    assert_eq!(
        story.hears(
            &happened("e-3", 30_200),
            &passes(ANSWERS, 30_000, Vec::new())
        ),
        "ignored: deadline_not_open"
    );
}

#[test]
fn a_record_decides_in_place_of_stated_confidence_where_there_is_enough_of_one() {
    let known = |score: f64, data_points: f64| concord_wire::payload::Credibility {
        score,
        interval: Interval {
            low: 0.0,
            high: 1.0,
        },
        data_points,
        ..credibility::unknown()
    };
    let weight = |confidence, record: Option<(f64, f64)>| {
        let record = record.map(|(score, points)| known(score, points));
        let answer = weigh(given("ann", "a-1", 1, confidence), record.as_ref());
        (answer.weight, answer.record.is_some())
    };
    assert_eq!(weight(0.95, None), (0.8, false));
    assert_eq!(weight(0.95, Some((0.9, 14.0))), (0.8, false));
    assert_eq!(weight(0.95, Some((0.5, 15.0))), (0.0, true));
    let (reliable, _) = weight(0.1, Some((0.9, 20.0)));
    assert!((reliable - 9.0_f64.ln()).abs() < 1e-8, "{reliable}");
}

#[test]
fn of_two_of_the_same_weight_the_more_confident_is_primary_and_else_the_earlier() {
    for (stated, primary) in [([0.4, 0.5], "ben"), ([0.5, 0.5], "ann")] {
        let mut story = open(AnswerMode::Confidence, None);
        hears(&mut story, given("ben", "a-2", 20, stated[1]));
        hears(&mut story, given("ann", "a-1", 10, stated[0]));
        let over = passes(ANSWERS, 30_000, Vec::new());
        story.hears(&happened("e-2", 30_000), &over);
        assert_eq!(answer_of(&story).primary.by.as_str(), primary, "{stated:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_said_it_ends_once_and_whoever_asked_is_told_once(
        mode in prop::sample::select(AnswerMode::ALL.to_vec()), has_synthesiser in any::<bool>(),
        steps in prop::collection::vec((0usize..5, 0u32..12, 0u64..35_000, 0u8..8), 0..30),
    ) {
        let synthesiser = (has_synthesiser && mode == AnswerMode::Collaborative).then_some("lead");
        let mut story = open(mode, synthesiser);
        for (who, id, at, what) in steps {
            let who = ["ann", "ben", "cyd", "lead", "eve"][who];
            let answer = GivenAnswer { declines: what == 1, ..given(who, &format!("a-{id}"), at, 0.5) };
            let asked = story.last().sequence;
            match what {
                0..5 => { hears(&mut story, answer); }
                5 => { story.hears(&said("s-1", at), &QuestionInput::Synthesis { answer: Box::new(answer), asked }); }
                _ => { story.hears(&happened("e-2", at), &passes(ANSWERS, 20_000, vec![answer])); }
            }
        }
        for n in 0..3 {
            let open = QuestionMachine::deadlines(story.state());
            let Some(first) = open.first() else { break };
            let due = first.due.millis_since(start());
            let over = passes(first.name.as_str(), due, Vec::new());
            prop_assert_eq!(story.hears(&happened(&format!("t-{n}"), due), &over), "elapsed");
        }
        prop_assert!(story.state().is_ended);
        let ends = story.records.iter().filter(|record| record.event.end().is_some()).count();
        prop_assert_eq!(ends, 1);
        let to_eva = all_told(&story).into_iter().filter(|(_, to)| to == "eva").count();
        prop_assert_eq!(to_eva, 1);
        let (again, differences) = replay::rebuild::<QuestionMachine>(&story.records);
        prop_assert_eq!(differences, []);
        prop_assert_eq!(&*again.state, story.state());
    }
}

/// The id of an answer can be foreseen, so another may have used it first.
#[test]
fn an_answer_counts_whoever_has_used_its_id_before() {
    let mut story = open(AnswerMode::Confidence, None);
    for who in ["ann", "ben"] {
        let by = said("a-1", 2).of_sender(agent(who));
        let same = GivenAnswer {
            payload: json!({ "content": "the same" }),
            ..given(who, "a-1", 2, 0.5)
        };
        assert_eq!(story.hears(&by, &answers(same)), "answered", "{who}");
    }
    assert!(story.has_one_id_each());
}

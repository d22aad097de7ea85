//! Whatever is said in whatever order: no debate goes back, none ends twice, and time brings every
//! one to an end or a gate.

use proptest::prelude::*;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Input(DebateInput),
    /// The deadline at this place passes.
    Due(usize),
    /// The expert rules on the brief as it is, or as it was.
    Rules {
        expert: &'static str,
        current: bool,
        position: &'static str,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let who = proptest::sample::select(vec!["finance", "strategy", "mia", "zoe"]);
    let expert = proptest::sample::select(vec!["eve", "fay"]);
    let id = 0u32..12;
    let name = |id: u32| format!("m-{id}");
    let action = proptest::sample::select(vec![
        ReviewAction::Confirm,
        ReviewAction::Override,
        ReviewAction::Redebate,
    ]);
    let controls = vec![
        DeadlineControl::Hold,
        DeadlineControl::Resume,
        DeadlineControl::Extend,
    ];
    prop_oneof![
        6 => (0usize..3).prop_map(Step::Due),
        2 => (who.clone(), id.clone()).prop_map(move |(who, id)| Step::Input(evidence(who, &name(id)))),
        1 => (who.clone(), id.clone()).prop_map(move |(who, id)| {
            Step::Input(says(who, &name(id), MessageBody::Acknowledgement { commit_by: None }))
        }),
        1 => (who.clone(), id.clone()).prop_map(move |(who, id)| {
            Step::Input(says(who, &name(id), MessageBody::Clarification { text: "Why?".into() }))
        }),
        1 => (who.clone(), id.clone()).prop_map(move |(who, id)| Step::Input(keeps(who, &name(id)))),
        1 => (who.clone(), id.clone()).prop_map(move |(who, id)| Step::Input(joins(who, &name(id), "finance"))),
        1 => (who, id).prop_map(move |(who, id)| Step::Input(moves_to(who, &name(id), json!(26)))),
        2 => expert.clone().prop_map(|expert| Step::Input(assigned_to(expert))),
        1 => expert.clone().prop_map(|expert| Step::Input(command(Command::Unassigned { expert: agent(expert), reason: UnassignedReason::Left }))),
        1 => any::<bool>().prop_map(|defer| {
            let handling = if defer { Overflow::Defer } else { Overflow::Escalate };
            Step::Input(command(Command::Overflowed { handling }))
        }),
        2 => (expert, any::<bool>(), proptest::sample::select(vec!["p1", "p2", "p7"]))
            .prop_map(|(expert, current, position)| Step::Rules { expert, current, position }),
        1 => (proptest::sample::select(vec!["olga", "finance"]), any::<bool>()).prop_map(|(who, finance)| {
            let held_by = if finance { "finance" } else { "strategy" };
            Step::Input(super::outcome::tells_right(who, held_by))
        }),
        1 => action.prop_map(|action| Step::Input(reviews(action))),
        1 => (proptest::sample::select(controls), 1u64..HOUR).prop_map(|(control, later_ms)| {
            Step::Input(command(Command::Deadlines { control, later_ms, by: agent("olga"), why: "window".into() }))
        }),
    ]
}

#[derive(Debug, Clone)]
struct Play {
    gate: bool,
    mediator: bool,
    credible: bool,
    steps: Vec<(Step, u64)>,
}

fn play() -> impl Strategy<Value = Play> {
    let steps = proptest::collection::vec((step(), 0u64..2 * HOUR), 0..30);
    (
        any::<bool>(),
        any::<bool>(),
        proptest::bool::weighted(0.2),
        steps,
    )
        .prop_map(|(gate, mediator, credible, steps)| Play {
            gate,
            mediator,
            credible,
            steps,
        })
}

/// The end of a debate does not change, and its level only rises.
fn goes_up(story: &Story<DebateMachine>, before: (Level, bool)) -> (Level, bool) {
    let now = (ladder(story).level, story.state().outcome.is_some());
    assert!(now >= before, "{now:?} after {before:?}");
    now
}

fn acted(play: &Play) -> (Story<DebateMachine>, u64) {
    let mut rules = policy();
    rules.ladder.mediator = play.mediator.then(|| agent("mia"));
    let known = if play.credible {
        known(20.0, 0.9, 0.5)
    } else {
        PriorKnowledge::default()
    };
    let mut story = challenged_with(rules, terms(play.gate.then_some("valuation review")), known);
    let (mut now, mut level) = (0, (Level::Agents, false));
    for (place, (step, wait)) in play.steps.iter().enumerate() {
        now += wait;
        let context = said(&format!("x-{place}"), now);
        match step {
            Step::Input(input) => drop(story.hears(&context, input)),
            Step::Due(place) => {
                if let Some(due) = DebateMachine::deadlines(story.state()).get(*place).cloned() {
                    now = now.max(due.due.millis_since(after(0)));
                    due_passes(&mut story, now, &due);
                }
            }
            Step::Rules {
                expert,
                current,
                position,
            } => {
                let digest = ladder(&story)
                    .digest
                    .clone()
                    .filter(|_| *current)
                    .unwrap_or_else(|| "old".into());
                let input = super::rules(expert, &format!("r-{place}"), &digest, position);
                let fact = story.hears(&said(&format!("r-{place}"), now), &input);
                // Nobody but the expert who has it rules, and never on something else.
                let right = ladder(&story).expert.as_ref() == Some(&agent(expert)) && *current;
                assert!(fact != "resolved" || right, "{fact} by {expert}");
            }
        }
        level = goes_up(&story, level);
    }
    (story, now)
}

fn due_passes(story: &mut Story<DebateMachine>, now: u64, due: &Deadline) {
    let input = DebateInput::Elapsed(elapsed(
        Aggregate::Debate,
        &story.id.clone(),
        due.name.as_str(),
        due.due,
    ));
    story.hears(&happened(&format!("e-{}-{now}", due.name), now), &input);
}

/// Lets time pass until nothing is waited for.
fn waits(story: &mut Story<DebateMachine>, mut now: u64) -> usize {
    let mut passed = 0;
    let resume = Command::Deadlines {
        control: DeadlineControl::Resume,
        later_ms: 0,
        by: agent("olga"),
        why: "the window is over".into(),
    };
    story.hears(&said("resume", now), &command(resume));
    while let Some(due) = DebateMachine::deadlines(story.state())
        .into_iter()
        .min_by_key(|one| one.due)
    {
        now = now.max(due.due.millis_since(after(0)));
        due_passes(story, now, &due);
        passed += 1;
        assert!(passed <= 16, "the deadlines of a ladder end");
    }
    passed
}

/// Stories that show what facts do.
pub(crate) fn stories(count: usize) -> impl Iterator<Item = Story<DebateMachine>> {
    let mut runner = TestRunner::deterministic();
    let strategy = play();
    (0..count).map(move |_| {
        let play = strategy.new_tree(&mut runner).unwrap().current();
        let (mut story, now) = acted(&play);
        waits(&mut story, now);
        story
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_debate_goes_back_or_ends_twice_and_time_brings_it_to_an_end_or_a_gate(play in play()) {
        let (mut story, now) = acted(&play);
        waits(&mut story, now);
        let resolved = story.records.iter().filter(|record| matches!(record.event, DebateEvent::Resolved(_))).count();
        prop_assert!(resolved <= 1, "resolved {} times", resolved);
        let at_gate = ladder(&story).level == Level::Gate && play.gate;
        prop_assert!(resolved == 1 || at_gate, "{:?}", story.state().ladder);
        prop_assert_eq!(crate::assurance::replay::recount::<DebateMachine>(&story.records), vec![]);
        let (rebuilt, differences) = crate::assurance::replay::rebuild::<DebateMachine>(&story.records);
        prop_assert_eq!(differences, vec![]);
        prop_assert_eq!(&*rebuilt.state, story.state());
    }
}

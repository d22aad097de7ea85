use concord_events::{Aggregate, FiredBy};
use concord_wire::payload::Snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::assurance::replay;
use crate::fixtures::*;

fn insight(who: &str, topic: &str, version: u64) -> Insight {
    Insight {
        agent: agent(who),
        topic: token(topic),
        version,
        since: Snapshot(version),
        importance: 0.6,
        confidence: None,
        tags: Vec::new(),
        value: json!(version),
        left_out: false,
    }
}

fn known() -> Known {
    Known {
        everyone: ["ann", "ben", "olga"].map(agent).to_vec(),
        ..Known::default()
    }
}

fn hold(who: &str, topic: &str, version: u64) -> SynthesisInput {
    SynthesisInput::Hold {
        case_id: case_id(),
        insight: insight(who, topic, version),
        every_ms: 5_000,
        known: known(),
    }
}

fn checkpoint(reason: CheckpointReason) -> SynthesisInput {
    SynthesisInput::Checkpoint {
        case_id: case_id(),
        reason,
        known: known(),
    }
}

fn elapsed(due: Timestamp) -> SynthesisInput {
    SynthesisInput::Elapsed {
        elapsed: DeadlineElapsed {
            aggregate: Aggregate::Synthesis,
            id: case_id().token(),
            name: Token::fixed(PERIOD),
            due,
            fired_by: FiredBy::Scheduler,
            lateness_ms: 0,
        },
        case_id: case_id(),
        known: known(),
    }
}

fn hears(story: &mut Story<SynthesisMachine>, input: &SynthesisInput) -> String {
    let now = story.records.len() as u64;
    story.hears(&happened(&format!("e-{now}"), now), input)
}

/// What was told at the last checkpoint, by topic, version and how many were told.
fn last(story: &Story<SynthesisMachine>) -> (Vec<(String, u64)>, usize) {
    let SynthesisEvent::Consolidated(told) = &story.last().event else {
        panic!("it is a checkpoint");
    };
    let insights = told.insights.iter();
    let insights = insights.map(|one| (one.topic.to_string(), one.version));
    let messages = crate::effect::messages::<SynthesisMachine>(story.last()).unwrap();
    assert_eq!(messages.len(), told.told.len());
    (insights.collect(), messages.len())
}

/// A story with every event, for the filters of consumers.
pub(crate) fn story() -> Story<SynthesisMachine> {
    let mut story = Story::of("c-1");
    hears(&mut story, &hold("ann", "margin", 1));
    hears(&mut story, &checkpoint(CheckpointReason::Decided));
    story
}

#[test]
fn what_has_led_to_a_checkpoint_leads_to_no_other() {
    let mut story: Story<SynthesisMachine> = Story::of("c-1");
    let detected = happened("detected", 1);
    let checkpoint = checkpoint(CheckpointReason::Detected);
    hears(&mut story, &hold("ann", "margin", 1));
    assert_eq!(story.hears(&detected, &checkpoint), "consolidated");
    hears(&mut story, &hold("ann", "margin", 2));
    // The same event is delivered again, long after.
    assert_eq!(story.hears(&detected, &checkpoint), "ignored: already_done");
    let decided = happened("decided", 2);
    assert_eq!(story.hears(&decided, &checkpoint), "consolidated");
}

#[test]
fn the_table_of_what_is_held_back() {
    use CheckpointReason::{CaseOver, Decided, Detected};
    let mut story = Story::<SynthesisMachine>::of("c-1");
    let again = "ignored: already_done";
    for (input, expected) in [
        (checkpoint(Detected), again),
        (hold("ann", "margin", 1), "held"),
        (hold("ann", "margin", 1), again),
        (hold("ann", "margin", 2), "held"),
        (hold("ben", "margin", 1), "held"),
        (checkpoint(Detected), "consolidated"),
        (checkpoint(Detected), again),
        (hold("ann", "margin", 2), again),
        (hold("ann", "margin", 3), "held"),
        (checkpoint(Decided), "consolidated"),
        (checkpoint(CaseOver), "consolidated"),
        (checkpoint(CaseOver), again),
        (checkpoint(Decided), again),
        (hold("ann", "margin", 3), again),
        (hold("ann", "price", 1), "consolidated"),
    ] {
        assert_eq!(hears(&mut story, &input), expected, "{input:?}");
    }
    assert_eq!(last(&story), (vec![("price".to_owned(), 1)], 3));
    let told: Vec<u32> = story
        .state()
        .checkpoints
        .iter()
        .map(|one| one.told)
        .collect();
    assert_eq!(told, [2, 1, 0, 1]);
    let (again, differences) = replay::rebuild::<SynthesisMachine>(&story.records);
    assert!(differences.is_empty(), "{differences:?}");
    assert_eq!(&*again.state, story.state());
}

#[test]
fn what_is_held_back_is_told_when_the_period_is_over() {
    let mut story = Story::<SynthesisMachine>::of("c-1");
    hears(&mut story, &hold("ann", "margin", 1));
    hears(&mut story, &hold("ben", "price", 1));
    let deadlines = SynthesisMachine::deadlines(story.state());
    assert_eq!(deadlines.len(), 1);
    let due = deadlines[0].due;
    assert_eq!(due, after(5_000), "that of the first");
    let early = elapsed(after(4_000));
    assert_eq!(hears(&mut story, &early), "ignored: deadline_not_open");
    assert_eq!(hears(&mut story, &elapsed(due)), "consolidated");
    assert_eq!(last(&story).1, 3);
    assert_eq!(
        hears(&mut story, &elapsed(due)),
        "ignored: deadline_not_open"
    );
}

#[test]
fn what_was_written_again_and_not_held_back_is_not_told() {
    let mut story = Story::<SynthesisMachine>::of("c-1");
    hears(&mut story, &hold("ann", "margin", 1));
    hears(&mut story, &hold("ann", "price", 1));
    let mut known = known();
    known.standing.insert((token("margin"), agent("ann")), 2);
    known.standing.insert((token("price"), agent("ann")), 1);
    let input = SynthesisInput::Checkpoint {
        case_id: case_id(),
        reason: CheckpointReason::Decided,
        known,
    };
    hears(&mut story, &input);
    assert_eq!(last(&story), (vec![("price".to_owned(), 1)], 3));
    let SynthesisEvent::Consolidated(told) = &story.last().event else {
        panic!("it is a checkpoint");
    };
    assert_eq!(told.replaced, 1);
    // What was replaced is heard of again, as any event may be; and something else that is not the last any more.
    let again = hears(&mut story, &hold("ann", "margin", 1));
    assert_eq!(again, "ignored: already_done");
    let mut old = hold("ann", "rate", 1);
    if let SynthesisInput::Hold { known, .. } = &mut old {
        known.standing.insert((token("rate"), agent("ann")), 2);
    }
    assert_eq!(hears(&mut story, &old), "ignored: already_done");
}

#[test]
fn as_much_as_can_be_held_back_makes_a_checkpoint() {
    let mut story = Story::<SynthesisMachine>::of("c-1");
    for n in 1..HELD_MAX {
        let mut input = hold("ann", &format!("t-{n}"), 1);
        if let SynthesisInput::Hold { insight, .. } = &mut input {
            insight.value = json!("v".repeat(2_046));
        }
        assert_eq!(hears(&mut story, &input), "held", "{n}");
    }
    // A later version needs no other place.
    assert_eq!(hears(&mut story, &hold("ann", "t-1", 2)), "held");
    assert_eq!(hears(&mut story, &hold("ann", "t-0", 1)), "consolidated");
    assert_eq!(last(&story).0.len(), HELD_MAX);
}

proptest! {
    /// Whatever is held back when, and whichever checkpoints come: each version is told at most once, and at the end none is left that is
    /// the last of its topic.
    #[test]
    fn each_version_is_told_once_at_most_and_none_is_lost(
        steps in prop::collection::vec((0u8..6, "a|b|c", 1u64..5), 1..60),
    ) {
        use CheckpointReason::{CaseOver, Decided, Detected};
        let mut story = Story::<SynthesisMachine>::of("c-1");
        let mut latest: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, topic, version) in steps {
            let input = match kind {
                0 => checkpoint(Detected),
                1 => checkpoint(Decided),
                _ => {
                    let last = latest.entry(topic.clone()).or_default();
                    *last = version.max(*last);
                    hold("ann", &topic, version)
                }
            };
            hears(&mut story, &input);
        }
        hears(&mut story, &checkpoint(CaseOver));
        let mut told: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for record in &story.records {
            if let SynthesisEvent::Consolidated(one) = &record.event {
                for insight in &one.insights {
                    told.entry(insight.topic.to_string()).or_default().push(insight.version);
                }
            }
        }
        for (topic, latest) in latest {
            let versions = &told[&topic];
            prop_assert!(versions.is_sorted_by(|one, next| one < next), "{:?}", versions);
            prop_assert_eq!(versions.last(), Some(&latest));
        }
    }
}

/// The same entry with tags and a confidence.
fn about(who: &str, topic: &str, tags: &[&str], confidence: f64) -> Insight {
    Insight {
        confidence: Some(confidence),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..insight(who, topic, 1)
    }
}

#[test]
fn what_entries_of_several_agents_have_in_common_is_told_with_them() {
    let mut story = Story::<SynthesisMachine>::of("c-1");
    for insight in [
        about("ann", "operating_margin", &["Peers"], 0.5),
        about("ben", "cost", &["operating  margin"], 0.8),
        about("ben", "price", &["peers", "operating_margin"], 0.4),
        about("cyd", "margins", &["Operating Margin"], 0.6),
        about("ann", "alone", &["cash"], 0.9),
    ] {
        let input = SynthesisInput::Hold {
            case_id: case_id(),
            insight,
            every_ms: 0,
            known: known(),
        };
        assert_eq!(hears(&mut story, &input), "held");
    }
    assert_eq!(
        hears(&mut story, &checkpoint(CheckpointReason::Detected)),
        "consolidated"
    );
    let messages = crate::effect::messages::<SynthesisMachine>(story.last()).unwrap();
    let told: serde_json::Value = messages[0].payload().unwrap();
    assert_eq!(
        told["data"]["patterns"],
        json!([
            // 1 - 0.2 x 0.7 x 0.75
            { "about": "operating margin", "agents": ["ann", "ben", "cyd"], "entries": 4, "confidence": 0.895 },
            { "about": "peers", "agents": ["ann", "ben"], "entries": 2, "confidence": 0.6 },
        ])
    );
    let shown = &story.state().checkpoints[0];
    assert_eq!(shown.patterns.len(), 2);
    let nothing = patterns(&[insight("ann", "margin", 1), insight("ann", "price", 1)]);
    assert!(nothing.is_empty(), "{nothing:?}");
}

/// A checkpoint when these entries of the case were told at once.
fn checkpoint_with(shared: &[Insight]) -> SynthesisInput {
    SynthesisInput::Checkpoint {
        case_id: case_id(),
        reason: CheckpointReason::Detected,
        known: Known {
            shared: shared.to_vec(),
            ..known()
        },
    }
}

/// What the messages of the last checkpoint say: the topics that are told, and the patterns with their agents.
fn told(story: &Story<SynthesisMachine>) -> (Vec<String>, Vec<(String, usize, u32)>) {
    let messages = crate::effect::messages::<SynthesisMachine>(story.last()).unwrap();
    let data: serde_json::Value = messages[0].payload().unwrap();
    let data: InsightsConsolidated = serde_json::from_value(data["data"].clone()).unwrap();
    let topics = data.insights.iter().map(|one| one.topic.to_string());
    let patterns = data.patterns.into_iter();
    let patterns = patterns.map(|one| (one.about, one.agents.len(), one.entries));
    (topics.collect(), patterns.collect())
}

#[test]
fn what_was_told_at_once_has_its_part_in_patterns_and_is_not_told_again() {
    let since = |insight: Insight, since| Insight {
        since: Snapshot(since),
        importance: 0.9,
        ..insight
    };
    let mut story = Story::<SynthesisMachine>::of("c-1");
    let shared = [
        since(about("ann", "capex", &["cloud"], 0.5), 1),
        since(about("ben", "capex", &["cloud"], 0.5), 1),
    ];
    let held = SynthesisInput::Hold {
        case_id: case_id(),
        insight: about("cyd", "cloud", &[], 0.5),
        every_ms: 0,
        known: known(),
    };
    assert_eq!(hears(&mut story, &held), "held");
    assert_eq!(hears(&mut story, &checkpoint_with(&shared)), "consolidated");
    let both = ("capex".to_owned(), 2, 2);
    let all = ("cloud".to_owned(), 3, 3);
    let expected = (vec!["cloud".to_owned()], vec![all, both]);
    assert_eq!(told(&story), expected);
    assert_eq!(story.state().checkpoints[0].patterns.len(), 2);
    // What was known then is no news. An entry alone is no pattern, and neither are two of one agent.
    assert_eq!(
        hears(&mut story, &checkpoint_with(&shared)),
        "ignored: already_done"
    );
    let at = story.last().sequence + 1;
    let alone = since(about("ann", "rates", &[], 0.5), at);
    for other in [None, Some("ann")] {
        let other = other.map(|who| since(about(who, "yield", &["rates"], 0.5), at));
        let shared: Vec<Insight> = [alone.clone()].into_iter().chain(other).collect();
        assert_eq!(
            hears(&mut story, &checkpoint_with(&shared)),
            "ignored: already_done"
        );
    }
    // Two that differ are surfaced, although nothing is held back; so is one more about what is known.
    let differs = since(about("ben", "rates", &[], 0.5), at);
    let third = since(about("cyd", "capex", &[], 0.5), at);
    let shared = [shared.to_vec(), vec![alone, differs, third]].concat();
    assert_eq!(hears(&mut story, &checkpoint_with(&shared)), "consolidated");
    let (capex, rates) = (("capex".to_owned(), 3, 3), ("rates".to_owned(), 2, 2));
    assert_eq!(told(&story), (Vec::new(), vec![capex, rates]));
    let (again, differences) = replay::rebuild::<SynthesisMachine>(&story.records);
    assert!(differences.is_empty(), "{differences:?}");
    assert_eq!(&*again.state, story.state());
}

//! Before the first round: the parties write into shared memory, and the snapshot is taken.

use concord_wire::payload::Snapshot;
use concord_wire::payload::notification::{MemorySynced, NotificationData};

use super::super::input::{LadderMessage, MessageBody};
use super::*;

const SYNC: u64 = 2_000;

fn syncing() -> Policy {
    Policy {
        memory_sync_ms: SYNC,
        ..policy()
    }
}

fn says(from: &str, id: &str, snapshot: Option<Snapshot>, body: MessageBody) -> DebateInput {
    DebateInput::Message(Box::new(LadderMessage {
        agent_id: agent(from),
        message_id: message(id),
        digest: format!("{from} {body:?}"),
        case_id: None,
        body,
        snapshot,
        sender: Default::default(),
        signed_for: None,
    }))
}

fn acknowledges(from: &str, id: &str) -> DebateInput {
    says(
        from,
        id,
        None,
        MessageBody::Acknowledgement { commit_by: None },
    )
}

fn is_due(story: &DebateStory, name: &str, due: concord_wire::Timestamp) -> DebateInput {
    DebateInput::Elapsed(elapsed(
        concord_events::Aggregate::Debate,
        &story.id,
        name,
        due,
    ))
}

fn answers_on(snapshot: Option<Snapshot>, from: &str, id: &str) -> DebateInput {
    answers(AnswerMessage {
        snapshot,
        ..given(from, id, "disagreement", no_answer())
    })
}

fn hears(story: &mut DebateStory, at: u64, id: &str, input: &DebateInput) -> String {
    story.hears(&said(id, at), input)
}

/// All acknowledge, and one answers.
pub(crate) fn story() -> DebateStory {
    let mut story = opened(scores(), syncing());
    for (at, from, expected) in [
        (1, "ann", "flushed"),
        (2, "ben", "flushed"),
        (3, "cyd", "synced"),
    ] {
        let id = format!("m-{from}");
        assert_eq!(
            hears(&mut story, at, &id, &acknowledges(from, &id)),
            expected
        );
    }
    story
}

/// The snapshots that the messages of the last event refer to, each once.
fn snapshots(story: &DebateStory) -> Vec<Option<Snapshot>> {
    let messages = crate::effect::messages::<DebateMachine>(story.last()).unwrap();
    let mut named: Vec<_> = messages
        .iter()
        .map(|message| message.metadata.memory_snapshot)
        .collect();
    named.dedup();
    named
}

#[test]
fn the_table_of_the_time_before_the_first_round() {
    let mut story = opened(scores(), syncing());
    assert_eq!(snapshots(&story), [None], "there is none yet");
    let early = is_due(&story, "sync", after(1));
    let round = is_due(&story, "round-1", after(SYNC + ROUND));
    let evidence = says(
        "ann",
        "m-0",
        None,
        MessageBody::Clarification { text: "?".into() },
    );
    for (at, id, input, expected) in [
        (1, "m-1", keeps("ann", "m-1"), "refused: "),
        (1, "m-0", evidence, "refused: "),
        (1, "m-2", acknowledges("zoe", "m-2"), "refused: /from_agent"),
        (1, "e-1", early, "ignored: deadline_not_open"),
        (1, "e-2", round, "ignored: deadline_not_open"),
        (2, "m-3", acknowledges("ann", "m-3"), "flushed"),
        (2, "m-3", acknowledges("ann", "m-3"), "ignored: repetition"),
        (
            3,
            "m-4",
            acknowledges("ann", "m-4"),
            "ignored: already_done",
        ),
        (4, "m-5", acknowledges("cyd", "m-5"), "flushed"),
    ] {
        assert_eq!(hears(&mut story, at, id, &input), expected, "{id}");
    }
    let over = is_due(&story, "sync", after(SYNC));
    assert_eq!(story.hears(&happened("e-3", SYNC), &over), "synced");
    let DebateEvent::Synced(synced) = &story.last().event else {
        panic!("it is the snapshot");
    };
    assert_eq!(synced.silent, [agent("ben")]);
    assert_eq!(synced.flushed, [agent("ann"), agent("cyd")]);
    assert_eq!(
        synced.due,
        after(SYNC + ROUND),
        "the round has its whole time"
    );
    assert_eq!(
        story.hears(&happened("e-4", SYNC), &over),
        "ignored: deadline_not_open"
    );
}

#[test]
fn the_snapshot_is_the_event_and_every_later_message_carries_it() {
    let mut story = story();
    let right = Snapshot(story.last().sequence);
    assert_eq!(story.state().snapshot, Some(right));
    assert_eq!(snapshots(&story), [Some(right)]);
    let told = DebateMachine::effects(story.last());
    let released = told.iter().filter(|effect| match effect {
        Effect::Notify { data, .. } => matches!(
            &**data,
            NotificationData::MemorySynced(MemorySynced { snapshot, .. }) if *snapshot == right
        ),
        _ => false,
    });
    assert_eq!(released.count(), 3, "everybody may write again");
    let asked = told
        .iter()
        .filter(|effect| matches!(effect, Effect::AskParty { .. }));
    assert_eq!(asked.count(), 3);

    let wrong = answers_on(Some(Snapshot(3)), "ann", "m-7");
    let Decision::Reject(fault) = DebateMachine::decide(story.state(), &said("m-7", 5), &wrong)
    else {
        panic!("it is refused");
    };
    assert_eq!(fault.pointer, "/metadata/memory_snapshot");
    assert!(
        fault.message.contains("snap_3") && fault.message.contains(&right.to_string()),
        "{fault}"
    );
    for (from, id, expected) in [
        ("ann", "m-8", "answered"),
        ("ben", "m-9", "answered"),
        ("cyd", "m-10", "round_closed"),
    ] {
        let input = answers_on(Some(right), from, id);
        assert_eq!(hears(&mut story, 6, id, &input), expected);
        assert_eq!(story.last().meta.memory_snapshot, Some(right));
        assert_eq!(snapshots(&story), [Some(right)]);
    }
}

#[test]
fn a_debate_that_is_cancelled_before_its_first_round_waits_for_nobody() {
    let mut story = opened(scores(), syncing());
    let cancel = DebateInput::Command(Box::new(Command::Cancel {
        by: agent("olga"),
        why: "not needed".into(),
    }));
    assert_eq!(story.hears(&said("m-1", 5), &cancel), "resolved");
    assert!(DebateMachine::deadlines(story.state()).is_empty());
}

/// What a reviewer has added to a debate that is had again, as the parties are asked of it.
fn added(story: &DebateStory) -> Vec<Option<String>> {
    let effects = DebateMachine::effects(story.last()).into_iter();
    let asked = effects.filter_map(|effect| match effect {
        Effect::AskParty { question, .. } => Some(question.added_context),
        _ => None,
    });
    asked.collect()
}

#[test]
fn what_a_reviewer_has_added_is_in_each_question_of_each_round() {
    for policy in [policy(), syncing()] {
        let is_synced = policy.memory_sync_ms > 0;
        let DebateInput::Open(mut opening) = open_debate(scores(), policy) else {
            panic!("an opening")
        };
        opening.request.terms.added_context = Some("The filing is out.".to_owned());
        let mut story = DebateStory::of("d-1");
        story.hears(&said("c-1-5-0", 0), &DebateInput::Open(opening));
        for from in ["ann", "ben", "cyd"].iter().filter(|_| is_synced) {
            let id = format!("m-{from}");
            hears(&mut story, 1, &id, &acknowledges(from, &id));
        }
        let told = [(); 3].map(|()| Some("The filing is out.".to_owned()));
        assert_eq!(added(&story), told);
        for from in ["ann", "ben", "cyd"] {
            let id = format!("m-{from}-1");
            hears(&mut story, 2, &id, &keeps(from, &id));
        }
        assert_eq!(added(&story), told, "the second round");
    }
}

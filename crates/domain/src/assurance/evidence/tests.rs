use std::collections::BTreeMap;

use concord_events::dead_letter::header::RETRIED;
use concord_events::topology::StreamKind;
use concord_events::{Head, StreamInterval};
use concord_wire::Timestamp;
use concord_wire::header::MESSAGE_ID;
use proptest::prelude::*;

use super::*;

mod anew;

/// A day, in milliseconds.
const DAY: u64 = 86_400_000;

/// A message of a stream: its sequence and what it says.
type Message = (u64, u8);

fn at(sequence: u64) -> Timestamp {
    Timestamp::from_unix_millis(0).plus_millis(sequence * DAY)
}

fn digest(stream: StreamKind, says: u8) -> MessageDigest {
    let content = Content {
        subject: "s",
        payload: &[says],
    };
    content.digest(stream, [])
}

/// Heads over a stream that keeps messages for `kept` days, each over the messages up to one of `ends`.
fn heads(stream: StreamKind, kept: Option<u64>, messages: &[Message], ends: &[u64]) -> Vec<Head> {
    let mut heads: Vec<Head> = Vec::new();
    let mut taken = 0;
    for end in ends {
        let last = heads.last();
        let mut fold = Fold::after(
            last.map(|head| &head.streams[0]),
            stream,
            kept.map(|days| days * DAY),
        );
        for (sequence, says) in messages.iter().filter(|(s, _)| *s > taken && s <= end) {
            fold.take(*sequence, at(*sequence), &digest(stream, *says));
        }
        taken = *end;
        let mut head = Head {
            number: heads.len() as u64 + 1,
            previous: last.map(|head| head.digest.clone()),
            at: at(*end),
            streams: vec![fold.interval()],
            digest: String::new(),
            signature: None,
        };
        head.digest = digest_of(&head);
        heads.push(head);
    }
    heads
}

fn stored(heads: &[Head]) -> Vec<StoredHead> {
    let numbered = heads.iter().cloned();
    numbered
        .map(|head| StoredHead {
            sequence: head.number * 100,
            head,
        })
        .collect()
}

fn intervals(heads: &[Head]) -> Vec<StreamInterval> {
    History::new(heads.last().unwrap(), &stored(heads)).intervals(heads[0].streams[0].stream)
}

fn check(heads: &[Head], messages: &[Message], now: Timestamp) -> StreamReport {
    let stream = heads[0].streams[0].stream;
    let mut check = StreamCheck::new(stream, intervals(heads), BTreeMap::new(), now);
    for (sequence, says) in messages {
        check.take(*sequence, at(*sequence), digest(stream, *says), false);
    }
    check.finish()
}

fn kinds(differences: &[Difference]) -> Vec<DifferenceKind> {
    differences.iter().map(|one| one.kind).collect()
}

const MESSAGES: [Message; 8] = [
    (1, 1),
    (2, 2),
    (3, 3),
    (5, 5),
    (6, 6),
    (7, 7),
    (8, 8),
    (9, 9),
];

/// The messages without those for which `is_gone` is true.
fn without(is_gone: impl Fn(u64) -> bool) -> Vec<Message> {
    let kept = MESSAGES
        .into_iter()
        .filter(|(sequence, _)| !is_gone(*sequence));
    kept.collect()
}

#[test]
fn what_is_as_it_was_is_verified_and_what_no_head_covers_is_said() {
    let heads = heads(StreamKind::Events, None, &MESSAGES, &[3, 8]);
    let report = check(&heads, &MESSAGES, at(10));
    assert_eq!(
        (report.verified, report.uncovered, report.unverifiable),
        (7, 1, 0)
    );
    assert_eq!(report.differences(), []);
    assert_eq!(heads[1].streams[0].gaps, [[4, 4]]);
    assert_eq!(heads[1].streams[0].total, 7);
}

#[test]
fn what_is_gone_changed_or_added_is_named() {
    use DifferenceKind::{Added, Changed, Cut, Missing};
    let heads = heads(StreamKind::Events, None, &MESSAGES, &[3, 8]);
    let changed: Vec<Message> = MESSAGES
        .into_iter()
        .map(|(sequence, says)| (sequence, if sequence == 6 { 0 } else { says }))
        .collect();
    let mut added = MESSAGES.to_vec();
    added.insert(3, (4, 4));
    for (name, messages, kind, sequences) in [
        ("one is gone", without(|s| s == 2), Missing, vec![[2, 2]]),
        (
            "some are gone",
            without(|s| s == 1 || (5..8).contains(&s)),
            Missing,
            vec![[1, 1], [5, 7]],
        ),
        ("the end is gone", without(|s| s > 5), Cut, vec![[6, 8]]),
        ("all is gone", Vec::new(), Cut, vec![[1, 3], [5, 8]]),
        ("one is changed", changed, Changed, vec![[4, 8]]),
        ("one is added", added, Added, vec![[4, 4]]),
    ] {
        let differences = check(&heads, &messages, at(1_000)).differences();
        assert_eq!(kinds(&differences), [kind], "{name}: {differences:?}");
        assert_eq!(differences[0].sequences, sequences, "{name}");
    }
}

#[test]
fn what_is_removed_by_its_age_is_no_difference_and_what_is_removed_sooner_is_one() {
    let heads = heads(StreamKind::Messages, Some(90), &MESSAGES, &[3, 8]);
    let young = without(|sequence| sequence <= 3);
    for (name, messages, day, expired, missing) in [
        ("all of an interval, in time", young.clone(), 93, 3, vec![]),
        ("all of an interval, too soon", young, 92, 0, vec![[1, 3]]),
        ("a part, in time", without(|s| s <= 6), 97, 5, vec![]),
        ("a part, too soon", without(|s| s <= 6), 94, 3, vec![[5, 6]]),
        (
            "from the middle, however old",
            without(|s| s == 6),
            1_000,
            0,
            vec![[6, 6]],
        ),
        ("everything, in time", vec![], 98, 7, vec![]),
        ("everything, too soon", vec![], 97, 3, vec![[5, 8]]),
    ] {
        let report = check(&heads, &messages, at(day));
        assert_eq!(
            (report.expired, report.missing),
            (expired, missing),
            "{name}"
        );
    }
}

#[test]
fn a_shorter_life_counts_once_a_head_that_says_so_is_kept() {
    let mut heads = heads(StreamKind::Messages, Some(90), &MESSAGES, &[3, 6, 8]);
    for place in 1..3 {
        heads[place].streams[0].kept_ms = Some(30 * DAY);
        heads[place].previous = Some(heads[place - 1].digest.clone());
        heads[place].digest = digest_of(&heads[place]);
    }
    let missing = |kept: &Head| {
        let history = History::new(kept, &stored(&heads));
        let intervals = history.intervals(StreamKind::Messages);
        let mut check = StreamCheck::new(StreamKind::Messages, intervals, BTreeMap::new(), at(35));
        for (sequence, says) in without(|sequence| sequence <= 3) {
            check.take(
                sequence,
                at(sequence),
                digest(StreamKind::Messages, says),
                false,
            );
        }
        check.finish().missing
    };
    assert_eq!(missing(&heads[0]), [[1, 3]], "nobody knows that yet");
    assert_eq!(missing(&heads[1]), [[0; 2]; 0]);
    assert_eq!(missing(&heads[2]), [[0; 2]; 0]);
}

#[test]
fn a_letter_that_was_sent_again_stands_where_it_stood() {
    let letters = [(1, 1), (2, 2), (3, 3)];
    let heads = heads(StreamKind::Dead, Some(90), &letters, &[3]);
    let report = |digest_of_copy| {
        let retried = BTreeMap::from([(2, digest_of_copy)]);
        let mut check = StreamCheck::new(StreamKind::Dead, intervals(&heads), retried, at(5));
        for (sequence, says) in [(1, 1), (3, 3), (4, 2)] {
            check.take(
                sequence,
                at(sequence),
                digest(StreamKind::Dead, says),
                false,
            );
        }
        check.finish()
    };
    let same = report(digest(StreamKind::Dead, 2));
    assert_eq!((same.differences(), same.uncovered), (vec![], 1));
    let other = report(digest(StreamKind::Dead, 7)).differences();
    assert_eq!(kinds(&other), [DifferenceKind::Changed]);

    let content = Content {
        subject: "s",
        payload: b"p",
    };
    let marks = [(MESSAGE_ID, "retried-2"), (RETRIED, "now"), ("a", "b")];
    let digest = |stream| content.digest(stream, marks);
    assert_eq!(
        digest(StreamKind::Dead),
        content.digest(StreamKind::Dead, [("a", "b")])
    );
    assert_ne!(
        digest(StreamKind::Messages),
        content.digest(StreamKind::Messages, [("a", "b")])
    );
}

#[test]
fn heads_that_were_replaced_removed_or_broken_are_named() {
    use DifferenceKind::{BrokenChain, KeptHead, NoHeads, OtherHistory};
    let real = heads(StreamKind::Events, None, &MESSAGES, &[3, 6, 8]);
    let shadow = heads(
        StreamKind::Events,
        None,
        &[(1, 7), (2, 7), (3, 7)],
        &[1, 2, 3],
    );
    let mut forged = real[1].clone();
    forged.streams[0].count = 9;
    let mut changed = real[1].clone();
    changed.number = 7;
    let kept = &real[1];
    for (name, kept, log, expected) in [
        ("all there", kept, real.clone(), vec![]),
        (
            "another history",
            kept,
            shadow,
            vec![OtherHistory, BrokenChain, BrokenChain],
        ),
        (
            "its end is gone",
            kept,
            real[..1].to_vec(),
            vec![OtherHistory],
        ),
        ("no heads", kept, vec![], vec![NoHeads, BrokenChain]),
        (
            "its beginning is gone",
            kept,
            real[1..].to_vec(),
            vec![BrokenChain],
        ),
        (
            "its content was changed, its digest not",
            kept,
            vec![real[0].clone(), forged, real[2].clone()],
            vec![OtherHistory],
        ),
        (
            "the file was changed",
            &changed,
            real.clone(),
            vec![KeptHead],
        ),
    ] {
        let history = History::new(kept, &stored(&log));
        assert_eq!(kinds(history.differences()), expected, "{name}");
    }
    assert_eq!(History::new(kept, &stored(&real)).heads().count(), 3);
}

#[test]
fn a_copy_names_the_very_message() {
    let kept = |(sequence, says): Message| KeptMessage {
        sequence,
        subject: format!("case.c-{sequence}"),
        at: at(sequence),
        digest: digest(StreamKind::Messages, says),
    };
    let compare = |messages: &[Message], expired_before| {
        let copy = MESSAGES.into_iter().map(kept);
        let mut compared = ByMessage::new(
            StreamKind::Messages,
            copy,
            BTreeMap::from([(5, digest(StreamKind::Messages, 5))]),
            expired_before,
        );
        for (sequence, says) in messages {
            compared.take(*sequence, digest(StreamKind::Messages, *says), false);
        }
        compared.finish()
    };
    assert_eq!(compare(&MESSAGES, None), []);
    assert_eq!(compare(&without(|s| s == 5), None), [], "it was sent again");
    assert_eq!(
        compare(&without(|s| s < 3), Some(at(2))),
        [],
        "they have expired"
    );
    let gone = compare(&without(|s| s == 7), Some(at(9)));
    assert_eq!(kinds(&gone), [DifferenceKind::Missing]);
    assert!(gone[0].what.starts_with("case.c-7 at 7"), "{gone:?}");
    let mut changed = MESSAGES.to_vec();
    changed[1].1 = 0;
    let differences = compare(&changed, None);
    assert_eq!(kinds(&differences), [DifferenceKind::Changed]);
    assert_eq!(differences[0].sequences, [[2, 2]]);
}

/// Something done to a stream: the message at a place is removed, or says something else.
fn tamper(messages: &mut Vec<Message>, place: usize, remove: bool) {
    let place = place % messages.len();
    if remove {
        messages.remove(place);
    } else {
        messages[place].1 ^= 1;
    }
}

proptest! {
    #[test]
    fn whatever_is_done_to_what_heads_cover_is_found(
        says in proptest::collection::vec((1_u64..4, any::<u8>()), 1..40),
        cuts in proptest::collection::btree_set(1_u64..120, 0..5),
        place in any::<usize>(),
        remove in any::<bool>(),
    ) {
        let mut sequence = 0;
        let mut messages: Vec<Message> = says
            .into_iter()
            .map(|(step, says)| { sequence += step; (sequence, says) })
            .collect();
        let ends: Vec<u64> = cuts.into_iter().filter(|cut| *cut < sequence).chain([sequence]).collect();
        let heads = heads(StreamKind::Events, None, &messages, &ends);
        let whole = check(&heads, &messages, at(1_000));
        prop_assert_eq!(whole.differences(), []);
        prop_assert_eq!(whole.verified, messages.len() as u64);
        tamper(&mut messages, place, remove);
        prop_assert_eq!(check(&heads, &messages, at(1_000)).differences().len(), 1);
    }
}

#[test]
fn what_is_archived_stands_where_it_was_and_says_nothing_of_what_has_expired() {
    let heads = heads(StreamKind::Messages, Some(90), &MESSAGES, &[3, 6, 8]);
    let stream = StreamKind::Messages;
    let report = |archived: &[Message], day| {
        let mut check = StreamCheck::new(stream, intervals(&heads), BTreeMap::new(), at(day));
        for (sequence, says) in archived {
            check.take(*sequence, at(*sequence), digest(stream, *says), true);
        }
        for (sequence, says) in without(|sequence| sequence <= 3) {
            check.take(sequence, at(sequence), digest(stream, says), false);
        }
        check.finish()
    };
    let whole = report(&[(1, 1), (2, 2), (3, 3)], 1_000);
    assert_eq!((whole.differences(), whole.expired), (vec![], 0));
    let in_time = report(&[(1, 1)], 91);
    assert_eq!((in_time.differences(), in_time.expired), (vec![], 2));
    assert_eq!(report(&[(1, 1)], 90).missing, [[2, 3]]);
    let other = report(&[(1, 1), (2, 9), (3, 3)], 1_000).differences();
    assert_eq!(kinds(&other), [DifferenceKind::Changed]);
}

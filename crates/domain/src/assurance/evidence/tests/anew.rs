//! A stream that was lost and made anew, which counts from one again.

use super::*;

const STREAM: StreamKind = StreamKind::Messages;

/// Three messages, and heads over the stream that was lost, over the first two and over the third.
fn anew(kept: Option<u64>) -> (Vec<Head>, [(u64, Timestamp, u8); 3]) {
    let mut heads = heads(STREAM, kept, &MESSAGES, &[3, 6]);
    let kept_ms = kept.map(|days| days * DAY);
    let messages = [(1, at(10), 11), (2, at(11), 12), (3, at(12), 13)];
    let (first, second) = messages.split_at(2);
    for (is_first, taken) in [(true, first), (false, second)] {
        let last = heads.last().unwrap();
        let before = &last.streams[0];
        let mut fold = match is_first {
            true => Fold::anew(before, kept_ms),
            false => Fold::after(Some(before), STREAM, kept_ms),
        };
        for (sequence, at, says) in taken {
            fold.take(*sequence, *at, &digest(STREAM, *says));
        }
        let mut head = Head {
            number: last.number + 1,
            previous: Some(last.digest.clone()),
            at: at(12),
            streams: vec![fold.interval()],
            digest: String::new(),
            signature: None,
        };
        head.digest = digest_of(&head);
        heads.push(head);
    }
    (heads, messages)
}

#[test]
fn what_was_lost_is_named_until_it_would_have_expired_and_the_rest_is_checked() {
    use DifferenceKind::{Changed, Missing};
    let lost = vec![[1, 3], [5, 6]];
    for (name, kept, day, says, verified, expired, lost, kinds_named) in [
        ("just then", None, 13, 12, 3, 0, lost.clone(), vec![Missing]),
        ("long after", Some(90), 97, 12, 3, 5, vec![], vec![]),
        (
            "changed since",
            None,
            13,
            99,
            1,
            0,
            lost,
            vec![Missing, Changed],
        ),
    ] {
        let (heads, mut messages) = anew(kept);
        messages[1].2 = says;
        assert_eq!(heads[3].streams[0].total, 8, "{name}");
        let mut check = StreamCheck::new(STREAM, intervals(&heads), BTreeMap::new(), at(day));
        // It was archived before the stream was lost.
        check.take(2, at(2), digest(STREAM, 2), true);
        for (sequence, at, says) in messages {
            check.take(sequence, at, digest(STREAM, says), false);
        }
        let report = check.finish();
        assert_eq!(
            (report.verified, report.expired),
            (verified, expired),
            "{name}"
        );
        assert_eq!((&report.lost, report.cut), (&lost, false), "{name}");
        assert_eq!(kinds(&report.differences()), kinds_named, "{name}");
    }
}

//! What holds for every story.

use proptest::prelude::*;

use super::*;

/// A conversation of its own: its ids, its case and its askers are nobody else's.
fn story(name: &'static str) -> impl Strategy<Value = Vec<Stored>> {
    let step = (
        0..6_usize,
        0..5_usize,
        0..5_usize,
        0..8_u64,
        0..400_000_u64,
        any::<bool>(),
    );
    proptest::collection::vec(step, 0..25).prop_map(move |steps| {
        let agents = ["ann", "ben", "cleo", "lea", "coordinator"];
        let mut millis = 0;
        let tell = |(place, (kind, from, to, about, wait, declines)): (
            usize,
            (usize, usize, usize, u64, u64, bool),
        )| {
            millis += wait / 8;
            let (id, about) = (format!("{name}-{place}"), format!("{name}-{about}"));
            let payload = if declines {
                json!({ "accepted": false })
            } else {
                json!({})
            };
            let more = json!({ "reply_to": about, "payload": payload });
            let to = if to == 4 { "_any" } else { agents[to] };
            let kinds = [
                "peer_request",
                "group_query",
                "expertise_offer",
                "response",
                "info_update",
            ];
            match kinds.get(kind) {
                Some(kind) => {
                    let envelope = envelope(name, &id, agents[from], to, kind, &more);
                    Stored::Message(Box::new(TrackedMessage::of(&envelope, after(millis))))
                }
                None => woken(
                    millis,
                    &about,
                    &[(agents[from], "semantic:x"), ("dan", "mention")],
                ),
            }
        };
        steps.into_iter().enumerate().map(tell).collect()
    })
}

/// The two in one order, each keeping its own.
fn interleaved(one: &[Stored], other: &[Stored], turns: &[bool]) -> Vec<Stored> {
    let (mut one, mut other) = (one.iter().cloned(), other.iter().cloned());
    let mut all: Vec<Stored> = turns
        .iter()
        .filter_map(|turn| if *turn { one.next() } else { other.next() })
        .collect();
    all.extend(one);
    all.extend(other);
    all
}

proptest! {
    #[test]
    fn independent_conversations_may_come_in_any_order(
        one in story("c-a"), other in story("c-b"), turns in proptest::collection::vec(any::<bool>(), 0..50)
    ) {
        let together: Vec<Stored> = one.iter().chain(&other).cloned().collect();
        let mixed = interleaved(&one, &other, &turns);
        prop_assert_eq!(reports(Limits::default(), &together), reports(Limits::default(), &mixed));
    }

    #[test]
    fn the_counts_add_up_whatever_is_said_and_however_little_room_there_is(
        story in story("c-a"), open_max in 1..6_usize,
    ) {
        for limits in [Limits::default(), Limits { open_max, sessions_max: 1, messages_max: 3, ..Limits::default() }] {
            let (before, after) = reports(limits, &story);
            for report in [before, after] {
                let help = report.peer_help;
                prop_assert_eq!(help.asked, help.answered + help.unanswered + help.waiting);
                for of in [report.matches, report.wakes] {
                    prop_assert_eq!(of.woken, of.accepted + of.declined + of.silent + of.waiting);
                }
                prop_assert!(report.matches.woken <= report.wakes.woken);
                prop_assert!(report.messages_through_lead <= report.messages && report.sessions <= report.messages);
                for share in [report.lead_share, report.matching_accuracy, report.false_wakes] {
                    prop_assert!(share.value.is_none_or(|value| (0.0..=1.0).contains(&value)));
                    prop_assert_eq!(share.value.is_none(), share.met.is_none());
                }
            }
            prop_assert_eq!((after.peer_help.waiting, after.wakes.waiting), (0, 0));
        }
    }

    #[test]
    fn what_is_stored_twice_counts_once(story in story("c-a")) {
        let twice: Vec<Stored> = story.iter().flat_map(|one| [one.clone(), one.clone()]).collect();
        prop_assert_eq!(reports(Limits::default(), &story), reports(Limits::default(), &twice));
    }
}

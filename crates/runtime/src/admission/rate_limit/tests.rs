use std::collections::BTreeSet;

use concord_wire::{ErrorCode, Timestamp};

use super::*;
use crate::settings::WorkSettings;

const INBOX: ConsumerKind = ConsumerKind::Inbox(Service::Coordinator);

fn limits(rate: u32, burst: u32) -> RateLimits {
    RateLimits::new(&WorkSettings {
        agent_rate_max: rate,
        agent_burst_max: burst,
        ..WorkSettings::default()
    })
}

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_millis(1_700_000_000_000 + ms)
}

#[tokio::test]
async fn a_burst_is_admitted_and_then_the_rate_and_nobody_pays_for_another() {
    let limits = limits(10, 3);
    let admitted = |name: &str, ms: i64, tries: usize| {
        (0..tries)
            .filter(|_| limits.count(INBOX, &agent(name), 1, at(ms)).admitted)
            .count()
    };
    for (name, ms, tries, expected) in [
        ("ann", 0, 10, 3),
        ("bob", 0, 2, 2),
        ("ann", 99, 10, 0),
        ("ann", 100, 10, 1),
        // Another stream may be behind.
        ("ann", 50, 10, 0),
        ("ann", 350, 10, 2),
        ("bob", 350, 10, 3),
        ("ann", 60_000, 10, 3),
    ] {
        assert_eq!(admitted(name, ms, tries), expected, "{name} after {ms} ms");
    }
    let answered = (0..20)
        .filter(|_| limits.may_answer(INBOX, &agent("ann"), at(0)))
        .count();
    assert_eq!(answered, 10, "answers are bounded too, and by themselves");
    assert!(
        limits
            .count(ConsumerKind::Wake, &agent("ann"), 1, at(0))
            .admitted,
        "each kind of consumer counts by itself"
    );
    // A clock that stands still gives nothing, and takes nothing away.
    assert_eq!(admitted("ann", 60_000, 1), 0);
}

#[tokio::test]
async fn whoever_sends_a_quarter_of_a_seconds_worth_at_once_floods_before_it_is_over_the_limit() {
    let limits = limits(10, 30);
    let ann = agent("ann");
    let floods: Vec<bool> = (0..12)
        .map(|_| limits.count(INBOX, &ann, 1, at(0)).floods)
        .collect();
    assert_eq!(
        floods.iter().filter(|floods| **floods).count(),
        10,
        "{floods:?}"
    );
    limits.count(INBOX, &agent("bob"), 1, at(0));
    let senders = limits.senders(RateLimit {
        kind: INBOX,
        action: Action::Refuse,
    });
    assert_eq!(
        (senders.quiet, senders.flooding),
        (vec![agent("bob")], BTreeSet::from([ann.clone()]))
    );
    // At the rate that is allowed nobody floods, however long it goes on.
    assert!(!(0..1_000).any(|number| {
        limits
            .count(INBOX, &agent("cleo"), 1, at(number * 100))
            .floods
    }));
}

#[test]
fn bytes_count_beside_messages_and_what_is_owed_is_waited_for() {
    let limits = RateLimits::new(&WorkSettings {
        agent_bytes_max: 1_000,
        agent_bytes_burst_max: 5_000,
        ..WorkSettings::default()
    });
    let ann = agent("ann");
    let admitted = |bytes, ms| limits.count(INBOX, &ann, bytes, at(ms)).admitted;
    assert!(admitted(4_000, 0));
    assert!(limits.fault(INBOX, &ann).message.contains("messages"));
    // Something is left, so what is larger is admitted, and owed.
    assert_eq!(limits.spend(INBOX, &ann, 4_000, at(0)), Ok(()));
    assert!(!admitted(1, 0), "nothing is left");
    let fault = limits.spend(INBOX, &ann, 1, at(0)).unwrap_err();
    assert_eq!(fault.code, ErrorCode::CapacityExceeded);
    assert!(fault.message.contains("1000 bytes a second"), "{fault}");
    assert!(fault.advice.contains("in 4 seconds"), "{fault}");
    let report = limits.report(INBOX, &ann);
    assert_eq!(report.details["bytes_max"], 1_000);
    assert_eq!(report.details["retry_after_ms"], 4_000);
    assert!(!admitted(1, 3_000));
    assert!(admitted(1, 3_001));
    assert!(limits.count(INBOX, &agent("bob"), 1, at(0)).admitted);
    // Nothing is too large for ever, and without a limit nothing is too large.
    assert!(admitted(usize::MAX, 1_000_000));
    let free = RateLimits::new(&WorkSettings {
        agent_bytes_max: 0,
        ..WorkSettings::default()
    });
    assert!((0..9).all(|_| free.count(INBOX, &ann, usize::MAX, at(0)).admitted));
}

/// Messages are counted at the time of the broker, and verbs at that of this process.
#[test]
fn a_clock_that_is_ahead_takes_no_bytes_from_what_is_sent_after_it() {
    let limits = RateLimits::new(&WorkSettings {
        agent_bytes_max: 1_000,
        agent_bytes_burst_max: 5_000,
        ..WorkSettings::default()
    });
    let (pat, hour) = (agent("pat"), 3_600_000);
    assert_eq!(limits.spend(INBOX, &pat, 6_000, at(hour)), Ok(()));
    let admitted = |bytes, ms| limits.count(INBOX, &pat, bytes, at(ms)).admitted;
    assert!(!admitted(1, 0), "a step back adds nothing");
    assert!(!admitted(1, 1_000));
    assert!(
        admitted(1, 1_001),
        "what is owed is paid by the broker's time"
    );
    assert!(admitted(5_000, 7_000), "and the account fills again");
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded_and_refusals_are_gathered_until_they_are_told() {
    let limits = limits(1, 1);
    for number in 0..=accounts::ACCOUNTS_MAX.get() {
        limits.count(INBOX, &agent(&format!("a-{number}")), 1, at(0));
    }
    assert_eq!(limits.remembered(), accounts::ACCOUNTS_MAX.get());
    let ann = agent("ann");
    let first: Vec<bool> = [7, 9, 8]
        .iter()
        .map(|sequence| limits.gather(INBOX, &ann, *sequence))
        .collect();
    assert_eq!(first, [true, false, false]);
    let Gathered { count, last } = limits.take_gathered(INBOX, &ann, 7);
    assert_eq!((count, last), (3, 9));
    assert!(
        limits.gather(INBOX, &ann, 10),
        "what comes after is told by itself"
    );
}

#[test]
fn what_was_refused_is_refused_in_the_same_way_when_it_is_delivered_again() {
    let limits = limits(1, 1);
    let urgent = ConsumerKind::UrgentInbox(Service::Coordinator);
    limits.remember_refused(INBOX, 7, Excess::Answer);
    limits.remember_refused(INBOX, 8, Excess::Skip);
    for (kind, sequence, expected) in [
        (INBOX, 7, Some(Excess::Answer)),
        (INBOX, 8, Some(Excess::Skip)),
        (INBOX, 9, None),
        // Another stream counts by itself.
        (urgent, 7, None),
    ] {
        assert_eq!(
            limits.refused_before(kind, sequence),
            expected,
            "{sequence}"
        );
    }
    // It was looked at before 8, so that 8 has to make room first.
    limits.refused_before(INBOX, 7);
    for sequence in 0..accounts::REFUSED_MAX.get() as u64 - 1 {
        limits.remember_refused(urgent, sequence, Excess::Skip);
    }
    assert_eq!(limits.refused_before(INBOX, 8), None);
    assert_eq!(limits.refused_before(INBOX, 7), Some(Excess::Answer));
}

#[test]
fn what_hears_agents_has_a_limit_and_what_two_consumers_are_given_counts_once() {
    let layout = Layout::default();
    let of = |name: &str| RateLimit::of(&layout, name).map(|limit| limit.action);
    for (name, expected) in [
        ("coordinator-inbox", Some(Action::Refuse)),
        ("debate-facilitator-urgent", Some(Action::Refuse)),
        (
            "coordinator-exchange-msg-request",
            Some(Action::TellHandler),
        ),
        ("agent-adapter-wake-msg-group_query", Some(Action::Skip)),
        ("escalation-timer-due", None),
        ("agent-adapter-agent-ann", None),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    let counts = |consumer: &str, kind: &str| {
        RateLimit::of(&layout, consumer)
            .unwrap()
            .counts(Some(kind), consumer)
    };
    for (consumer, kind, expected) in [
        ("coordinator-exchange-msg-request", "request", true),
        ("coordinator-exchange-msg-response", "response", false),
        ("agent-adapter-wake-msg-group_query", "group_query", true),
        ("agent-adapter-wake-msg-any", "group_query", false),
        ("agent-adapter-wake-msg-any", "question", true),
        ("agent-adapter-wake-msg-all", "info_update", false),
        ("agent-adapter-wake-urgent-all", "note", true),
        ("coordinator-inbox", "status", true),
    ] {
        assert_eq!(counts(consumer, kind), expected, "{consumer} {kind}");
    }
}

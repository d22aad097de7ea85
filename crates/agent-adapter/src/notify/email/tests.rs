use concord_wire::payload::{Contact, DebatePriority};
use concord_wire::{AgentId, CaseId, DebateId, Timestamp};

use super::super::notice::{Matter, Position, What};
use super::*;

fn notice(topic: &str) -> Notice {
    Notice {
        sequence: 42,
        at: Timestamp::from_unix_millis(1_700_000_000_000),
        debate_id: DebateId::new("d-1").ok(),
        case_id: CaseId::new("c-1").ok(),
        task_id: None,
        topic: topic.into(),
        what: What::Assigned {
            priority: DebatePriority::CriticalPath,
            digest: "9f2a".into(),
            positions: vec![
                position("p1", "25 %", 25),
                position("p2", "a margin\nUntil: never", 30),
            ],
            matter: None,
        },
        to: Audience::Expert {
            expert: Some(AgentId::new("eva").unwrap()),
            contact: Contact {
                email: Some("eva@example.org".into()),
                webhook: None,
            },
        },
        until: Some(Timestamp::from_unix_millis(1_700_000_600_000)),
    }
}

fn position(id: &str, words: &str, value: u32) -> Position {
    Position {
        position_id: Some(id.into()),
        position: words.into(),
        value: Some(value.into()),
    }
}

fn formatted(notice: &Notice) -> String {
    let from: Mailbox = "Concord <concord@example.org>".parse().unwrap();
    let Ok(message) = message(notice, &from, "eva@example.org", "concord") else {
        panic!("a mail can be made")
    };
    String::from_utf8(message.formatted()).unwrap()
}

#[test]
fn a_mail_says_what_is_disputed_until_when_and_how_to_answer() {
    let mail = formatted(&notice("Operating margin"));
    let (headers, body) = mail.split_once("\r\n\r\n").unwrap();
    for header in [
        "From: Concord <concord@example.org>",
        "To: eva@example.org",
        "Subject: [Concord] A ruling is awaited: Operating margin",
        "Message-ID: <concord-d-1-42-email@example.org>",
        "References: <concord-d-1@example.org>",
        "Auto-Submitted: auto-generated",
        "Content-Type: text/plain; charset=utf-8",
    ] {
        assert!(
            headers.lines().any(|line| line == header),
            "{header}\n{headers}"
        );
    }
    assert_eq!(
        body.replace("\r\n", "\n"),
        "A debate waits for your ruling.\n\
         \n\
         Disputed: Operating margin\n  \
         p1: 25 %\n  \
         p2: a margin Until: never (30)\n\
         Priority: critical-path\n\
         Until: 2023-11-14T22:23:20.000Z\n\
         Debate: d-1 of the case c-1\n\
         \n\
         What each side says, and the digest of it:\n  \
         concord queue next --expert eva --debate d-1\n\
         Your ruling, on a position of the brief or on one of your own (--own):\n  \
         concord rule d-1 --position p1 --rationale \"...\" --expert eva\n"
    );
}

#[test]
fn no_topic_can_add_a_header_or_a_line() {
    for topic in [
        "x\r\nBcc: all@example.org",
        "x\nBcc: all@example.org\n\nbody",
        "x\r\n\r\n.\r\nMAIL FROM:<a@b>",
        "x\u{2028}Bcc: all@example.org",
        "x\u{85}Bcc: all@example.org\u{202e}",
        "ü\r\nBcc: all@example.org",
    ] {
        let mail = formatted(&notice(topic));
        let (headers, body) = mail.split_once("\r\n\r\n").unwrap();
        assert!(
            !headers
                .lines()
                .any(|line| line.to_lowercase().starts_with("bcc")),
            "{headers}"
        );
        assert_eq!(
            headers
                .lines()
                .filter(|line| line.starts_with("Subject:"))
                .count(),
            1,
            "{headers}"
        );
        assert!(
            !body
                .lines()
                .any(|line| line.starts_with("Bcc") || line == "."),
            "{body}"
        );
        assert!(
            !text::body(&notice(topic)).contains(['\u{202e}', '\r']),
            "{topic:?}"
        );
    }
    let long = text::subject(&notice(&"x".repeat(10_000)));
    assert!(long.chars().count() <= 121 && long.ends_with('…'), "{long}");
}

#[test]
fn a_command_that_is_copied_runs_nothing_that_a_stranger_wrote() {
    let gate = "board'; rm -r ~ '\n$(id)";
    let notice = Notice {
        what: What::AwaitsGate,
        to: Audience::Gate(gate.into()),
        until: None,
        ..notice("x")
    };
    let text = text::body(&notice);
    let command = "  concord gate review c-1 --gate $'board\\'; rm -r ~ \\'\\U0000000a$(id)' --by YOU --confirm d-1\n";
    assert!(text.contains(command), "{text}");
}

#[test]
fn what_is_no_mailbox_gets_no_mail() {
    let from: Mailbox = "concord@example.org".parse().unwrap();
    for to in [
        "",
        "eva",
        "eva@",
        "eva@example.org\r\nBcc: b@example.org",
        "<eva@example.org>",
        "a@b, c@d",
    ] {
        assert!(
            matches!(
                message(&notice("x"), &from, to, "concord"),
                Err(Failure::Lasting(_))
            ),
            "{to:?}"
        );
    }
}

#[test]
fn a_mail_says_what_the_case_is_about_and_what_depends_on_the_ruling() {
    let mut told = notice("Operating margin");
    let What::Assigned { matter, .. } = &mut told.what else {
        panic!("{told:?}")
    };
    *matter = Some(Matter {
        title: "The target\nPriority: none".into(),
        opened_by: AgentId::new("olga").unwrap(),
        gate: Some("valuation".into()),
        decision: Some(2),
        awaited: false,
        dependants: vec!["dcf".into(), "the\r\nreport".into()],
    });
    let mail = formatted(&told).replace("\r\n", "\n");
    for lines in [
        "Disputed: Operating margin\nCase: The target Priority: none, opened by olga\n  p1: 25 %\n",
        "Priority: critical-path\nThe case is decided meanwhile, version 2; your ruling can change that.\n",
        "Without a ruling the gate valuation reviews what stands then.\nRests on it: dcf, the report\nUntil: ",
    ] {
        assert!(mail.contains(lines), "{lines}\n{mail}");
    }
}

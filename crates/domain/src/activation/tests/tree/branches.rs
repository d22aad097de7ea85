//! Every branch of the decision tree, in its order.

use concord_wire::Token;

use super::*;

/// A message, with names in place of agents.
#[derive(Debug, Clone, Copy)]
struct Given {
    kind: &'static str,
    from: &'static str,
    to: &'static str,
    content: &'static str,
    assigned: Option<&'static str>,
    preferred: &'static [&'static str],
    reply_to_author: Option<&'static str>,
}

const GIVEN: Given = Given {
    kind: "group_query",
    from: "user",
    to: "_any",
    content: "zzz",
    assigned: None,
    preferred: &[],
    reply_to_author: None,
};

/// Messages, and what security does about each.
const BRANCHES: [(Given, Option<&str>); 25] = [
    (
        Given {
            from: "security",
            to: "security",
            content: "@security",
            ..GIVEN
        },
        None,
    ),
    (
        Given {
            to: "security",
            content: "@security",
            ..GIVEN
        },
        Some("wake direct_target"),
    ),
    (
        Given {
            to: "security",
            kind: "info_update",
            ..GIVEN
        },
        Some("wake direct_target"),
    ),
    (
        Given {
            content: "ask @Security",
            reply_to_author: Some("security"),
            ..GIVEN
        },
        Some("wake mention"),
    ),
    (
        Given {
            content: "ask @security",
            kind: "finding",
            to: "lead",
            ..GIVEN
        },
        Some("wake mention"),
    ),
    (
        Given {
            kind: "task_assignment",
            to: "_all",
            assigned: Some("security"),
            ..GIVEN
        },
        Some("wake task_assignment"),
    ),
    (
        Given {
            kind: "task_assignment",
            to: "lead",
            assigned: Some("lead"),
            ..GIVEN
        },
        Some("ignore not_concerned"),
    ),
    (
        Given {
            kind: "peer_request",
            preferred: &["security", "lead"],
            ..GIVEN
        },
        Some("wake preferred_peer"),
    ),
    (
        Given {
            kind: "group_query",
            preferred: &["security", "lead"],
            ..GIVEN
        },
        Some("wake preferred_peer"),
    ),
    (
        Given {
            kind: "expertise_offer",
            preferred: &["security", "lead"],
            ..GIVEN
        },
        Some("ignore irrelevant"),
    ),
    (
        Given {
            kind: "task_result",
            to: "_all",
            reply_to_author: Some("security"),
            ..GIVEN
        },
        Some("wake reply"),
    ),
    (
        Given {
            kind: "task_result",
            to: "_all",
            reply_to_author: Some("database"),
            ..GIVEN
        },
        Some("observe information"),
    ),
    (
        Given {
            content: "is this login safe",
            ..GIVEN
        },
        Some("wake semantic:authentication"),
    ),
    (
        Given {
            content: "is this login safe",
            kind: "expertise_offer",
            to: "_all",
            ..GIVEN
        },
        Some("wake semantic:authentication"),
    ),
    (
        Given {
            content: "is this login safe",
            kind: "call_for_proposals",
            to: "_all",
            ..GIVEN
        },
        Some("wake semantic:authentication"),
    ),
    (
        Given {
            content: "is this login safe",
            kind: "peer_request",
            to: "lead",
            ..GIVEN
        },
        Some("wake semantic:authentication"),
    ),
    (
        Given {
            content: "is this login safe",
            kind: "question",
            ..GIVEN
        },
        Some("wake semantic:authentication"),
    ),
    (
        Given {
            content: "is this login safe",
            kind: "question",
            to: "lead",
            ..GIVEN
        },
        Some("ignore not_concerned"),
    ),
    (
        Given {
            content: "design a database schema for users",
            ..GIVEN
        },
        Some("ignore irrelevant"),
    ),
    (
        Given {
            kind: "info_update",
            to: "lead",
            ..GIVEN
        },
        Some("observe information"),
    ),
    (
        Given {
            kind: "session_briefing",
            to: "_all",
            ..GIVEN
        },
        Some("observe information"),
    ),
    (
        Given {
            kind: "agent_joined",
            to: "_all",
            ..GIVEN
        },
        Some("observe information"),
    ),
    (
        Given {
            kind: "alert",
            to: "_all",
            ..GIVEN
        },
        Some("observe information"),
    ),
    (
        Given {
            kind: "finding",
            to: "lead",
            ..GIVEN
        },
        Some("ignore not_concerned"),
    ),
    (
        Given {
            kind: "alert",
            to: "_any",
            ..GIVEN
        },
        Some("ignore irrelevant"),
    ),
];

#[test]
fn every_branch_in_its_order() {
    let matcher = matcher_of(&panel());
    for (given, expected) in BRANCHES {
        let message_type = MessageType::from(Token::new(given.kind).unwrap());
        let from = id(given.from);
        let to = Recipient::new(given.to).unwrap();
        let assigned = given.assigned.map(id);
        let preferred: Vec<AgentId> = given.preferred.iter().map(|name| id(name)).collect();
        let author = given.reply_to_author.map(id);
        let message = Message {
            message_type: &message_type,
            from: &from,
            to: &to,
            content: given.content,
            assigned: assigned.as_ref(),
            preferred: &preferred,
            reply_to_author: author.as_ref(),
            asks_for_objections: false,
        };
        let decisions = decide_all(&matcher, &message, None, &ALONE);
        let found = decisions
            .decisions
            .contains_key(&id("security"))
            .then(|| reason_of(&decisions, "security"));
        assert_eq!(found.as_deref(), expected, "{given:?}");
    }
}

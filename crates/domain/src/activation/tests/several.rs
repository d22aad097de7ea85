//! Messages that concern several agents.

use proptest::prelude::*;

use super::tree::saying;
use super::*;

/// Who wakes on a question to the group, by letters.
fn woken(cards: &[Card], text: &str) -> Vec<String> {
    let user = id("user");
    let found = parts(text);
    let split: Vec<Part<'_>> = found
        .iter()
        .map(|text| Part { text, vector: None })
        .collect();
    let conversation = Conversation {
        parts: &split,
        ..ALONE
    };
    let message = Message {
        content: text,
        ..saying(&user)
    };
    let decisions = decide_all(&matcher_of(cards), &message, None, &conversation);
    decisions
        .woken()
        .map(|(agent, decision)| format!("{agent} {}", decision.reason))
        .collect()
}

#[test]
fn a_text_is_cut_where_another_request_begins() {
    for (text, expected) in [
        ("what is the exchange rate", &[][..]),
        ("design the tables, please", &[]),
        ("rice and beans", &[]),
        (
            "how much tax do we owe and is this login really safe",
            &["how much tax do we owe", "and is this login really safe"],
        ),
        (
            "How much tax do we owe? Is this login really safe.\nWhich tables do we need",
            &[
                "How much tax do we owe?",
                "Is this login really safe.",
                "Which tables do we need",
            ],
        ),
        (
            "file the tax return, also design a database schema",
            &["file the tax return,", "also design a database schema"],
        ),
        // Cut where both sides have enough words.
        (
            "yes, and no, file the tax return and then is this login safe",
            &[
                "yes, and no, file the tax return",
                "and then is this login safe",
            ],
        ),
    ] {
        assert_eq!(parts(text), expected, "{text}");
    }
    assert_eq!(parts(&"one two three four. ".repeat(50)).len(), PARTS_MAX);
}

#[test]
fn each_part_wakes_its_agent_and_none_leads_over_another() {
    assert_eq!(
        woken(
            &panel(),
            "what is the exchange rate from dollars to euros, and is this login safe today"
        ),
        [
            "accounting semantic:exchange_rate",
            "security semantic:authentication"
        ]
    );
}

#[test]
fn two_that_are_level_and_far_before_all_others_share_their_lead() {
    let level = |name: &str, other: &str| {
        let text = format!("{other} of the harbour pilots");
        card(name, vec![skill(name, &[&text])])
    };
    let cards = [
        level("north", "northern rota"),
        level("south", "southern rota"),
        card("baker", vec![skill("bread", &["bake a loaf of bread"])]),
    ];
    let text = "who knows the rota of the harbour pilots";
    assert_eq!(
        woken(&cards, text),
        ["north semantic:north", "south semantic:south"]
    );
    // Nor is whoever has the same skill a rival, although a third one is not far behind.
    let rota = || vec![skill("rota", &["the rota of the harbour pilots"])];
    let near = card("pier", vec![skill("pier", &["pilots of the harbour"])]);
    let alone = [card("north", rota()), near.clone()];
    let twins = [card("north", rota()), card("south", rota()), near];
    assert_eq!(woken(&alone, text), ["north semantic:rota"]);
    assert_eq!(
        woken(&twins, text),
        ["north semantic:rota", "south semantic:rota"]
    );
    // Of four nobody stands out.
    let four: Vec<Card> = ["north", "south", "east", "west"]
        .iter()
        .map(|name| level(name, &format!("{name}ern rota")))
        .chain(cards[2..].iter().cloned())
        .collect();
    assert_eq!(woken(&four, text), [""; 0]);
}

#[test]
fn an_objection_wakes_whoever_holds_a_position_and_help_whoever_fits_the_assignment() {
    let coder = id("coder");
    let positions = [id("database")].into();
    let conversation = Conversation {
        assignment: Some(Embedded {
            text: "is this login safe",
            vector: None,
        }),
        positions: &positions,
        ..ALONE
    };
    let reasons = |kind: MessageType, content: &str, asks_for_objections: bool| {
        let message = Message {
            message_type: &kind,
            content,
            asks_for_objections,
            ..saying(&coder)
        };
        let decisions = decide_all(&matcher_of(&panel()), &message, None, &conversation);
        ["database", "security"].map(|agent| reason_of(&decisions, agent))
    };
    let [database, security] = reasons(MessageType::PeerRequest, "zzz", false);
    assert_eq!(
        (database.as_str(), security.as_str()),
        ("ignore irrelevant", "wake context:authentication")
    );
    for (content, says_so) in [
        ("Does anyone disagree with this plan?", false),
        ("Any OBJECTIONS?", false),
        ("Ist jemand dagegen?", true),
    ] {
        let [database, security] = reasons(MessageType::GroupQuery, content, says_so);
        assert_eq!(database, "wake position", "{content}");
        assert!(!security.starts_with("wake"), "{content}: {security}");
    }
    // News are no objection, whatever they say; neither is a word that only contains one.
    let message = Message {
        message_type: &MessageType::InfoUpdate,
        to: &Recipient::Agent(id("lead")),
        content: "they disagree",
        ..saying(&coder)
    };
    let decisions = decide_all(&matcher_of(&panel()), &message, None, &conversation);
    assert_eq!(decisions.woken().count(), 0);
    let [database, _] = reasons(MessageType::GroupQuery, "objectionable", false);
    assert!(!database.starts_with("wake"), "{database}");
}

proptest! {
    /// The parts are what is there, in its order, and bounded, whatever the text.
    #[test]
    fn parts_are_pieces_of_the_text(text in "[a-d ,.;?!\n\u{e4}\u{2003}andtheplus]{0,200}") {
        let found = parts(&text);
        prop_assert!(found.len() != 1 && found.len() <= PARTS_MAX);
        let mut rest = text.as_str();
        for part in found {
            let at = rest.find(part);
            prop_assert!(at.is_some(), "{part:?} is not in {rest:?}");
            rest = &rest[at.unwrap_or_default() + part.len()..];
        }
        prop_assert!(rest.trim().is_empty() || parts(&text).is_empty());
    }
}

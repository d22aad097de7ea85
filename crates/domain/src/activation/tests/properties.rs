//! What holds for every card and every message.

use proptest::prelude::*;

use super::*;

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-d ]{0,30}",
        "(@[abAB_-]{1,4}[ .,/@]?){0,20}",
        any::<String>(),
        proptest::sample::select(vec![
            "design a database schema",
            "is this login safe",
            "@a @b help"
        ])
        .prop_map(str::to_owned),
    ]
}

fn any_card() -> impl Strategy<Value = Card> {
    let skills = proptest::collection::vec(
        (any_text(), proptest::collection::vec(any_text(), 0..3)),
        0..4,
    );
    (
        "[a-dA-D]{1,2}",
        skills,
        proptest::collection::vec(any_text(), 0..2),
    )
        .prop_map(|(name, skills, triggers)| Card {
            skills: skills
                .into_iter()
                .map(|(name, examples)| Skill {
                    name,
                    examples,
                    ..Skill::default()
                })
                .collect(),
            triggers,
            ..Card::new(id(&name))
        })
}

fn any_vector() -> impl Strategy<Value = Option<Vec<f32>>> {
    proptest::option::of(proptest::collection::vec(any::<f32>(), 0..4))
}

proptest! {
    #[test]
    fn decisions_are_of_everyone_and_consistent(
        cards in proptest::collection::vec(any_card(), 0..6),
        vectors in any_vector(),
        (content, before) in (any_text(), proptest::option::of(any_text())),
        vector in any_vector(),
        silent_for in proptest::option::of(any::<u32>()),
        from in "[a-dA-D]{1,2}",
    ) {
        let mut matcher = Matcher::default();
        cards.iter().for_each(|card| matcher.insert(card, |_| vectors.clone()));
        let from = id(&from);
        let participations: BTreeMap<_, _> =
            silent_for.iter().flat_map(|s| cards.first().map(|c| (c.agent_id.clone(), Participation { silent_for: *s }))).collect();
        let previous = before.as_deref().map(|text| Previous { text, vector: vector.as_deref() });
        let conversation = Conversation { previous, participations: &participations, ..ALONE };
        let message = Message { content: &content, ..tree::saying(&from) };
        let decisions = decide_all(&matcher, &message, vector.as_deref(), &conversation);
        prop_assert!(decisions.decisions.keys().eq(matcher.agents().filter(|agent| **agent != from)));
        for (agent, decision) in &decisions.decisions {
            prop_assert!(decision.score.is_none_or(|p| (0.0..=1.0).contains(&p)), "{:?}", decision);
            prop_assert!(decision.runner_up.as_ref().is_none_or(|r| &r.agent_id != agent && r.agent_id != from));
            if let (Reason::Semantic(_), Some(p)) = (&decision.reason, decision.score) {
                prop_assert!(p >= 0.7 - 1e-6);
            }
        }
        let by_mention = decisions.woken().filter(|(_, decision)| decision.reason == Reason::Mention).count();
        prop_assert!(by_mention <= NAMED_MAX);
        prop_assert_eq!(&decisions, &decide_all(&matcher, &message, vector.as_deref(), &conversation));
    }

    #[test]
    fn whom_a_text_is_about_is_found_without_a_look_at_everybody(
        cards in proptest::collection::vec(any_card(), 0..12),
        text in any_text(),
        probability_min in 0.5..1.0_f64,
    ) {
        let matcher = matcher_of(&cards);
        let query = asking(&text);
        let mut ranked = matcher.rank(&query);
        ranked.retain(|one| one.probability >= probability_min);
        prop_assert_eq!(matcher.about(&text, probability_min), ranked);
    }

    #[test]
    fn how_a_matcher_came_about_does_not_matter(
        cards in proptest::collection::vec(any_card(), 1..6),
        gone in proptest::collection::vec(any_card(), 0..4),
        content in any_text(),
    ) {
        let kept: BTreeMap<_, _> = cards.iter().map(|card| (card.agent_id.clone(), card.clone())).collect();
        let plain = matcher_of(&kept.values().cloned().collect::<Vec<_>>());
        let mut eventful = matcher_of(&gone);
        cards.iter().rev().for_each(|card| eventful.insert(card, |_| None));
        gone.iter().for_each(|card| { eventful.remove(&card.agent_id); });
        kept.values().for_each(|card| eventful.insert(card, |_| None));
        prop_assert_eq!(plain.ngrams(), eventful.ngrams());
        prop_assert_eq!(plain.rank(&asking(&content)), eventful.rank(&asking(&content)));
    }

    #[test]
    fn likeness_is_a_proportion_and_an_examples_own_words_are_the_likest(
        (mine, other) in ("[a-z]{4,8} [a-z]{4,8} [a-z]{4,8}", "[0-9]{4,8} [0-9]{4,8}"),
    ) {
        let matcher = matcher_of(&[card("a", vec![skill("x", &[&mine])]), card("b", vec![skill("y", &[&other])])]);
        let found = matcher.rank(&asking(&mine));
        prop_assert_eq!(found[0].agent.as_str(), "a");
        prop_assert!((0.0..=1.0 + 1e-6).contains(&found[0].ngrams));
    }
}

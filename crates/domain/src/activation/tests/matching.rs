//! Who fits a message, and how well.

use super::*;

fn best<'a>(matcher: &'a Matcher, query: &Query<'_>) -> (&'a str, &'a str) {
    let first = matcher.rank(query)[0];
    (first.agent.as_str(), first.skill.unwrap_or_default())
}

#[test]
fn skills_are_found_by_parts_of_words() {
    let matcher = matcher_of(&panel());
    for (text, expected) in [
        (
            "which currencies can be converted",
            ("accounting", "exchange_rate"),
        ),
        ("TAXES", ("accounting", "tax")),
        ("new column in a table", ("database", "schema")),
        ("Postgres refuses connections", ("database", "pooling")),
        ("logins with OAuth", ("security", "authentication")),
    ] {
        assert_eq!(best(&matcher, &asking(text)), expected, "{text}");
    }
}

#[test]
fn a_card_can_be_changed_and_taken_back_without_a_trace() {
    let fresh = matcher_of(&panel());
    let mut matcher = matcher_of(&panel());
    let text = "Postgres refuses connections";
    let poet = card(
        "database",
        vec![skill("poems", &["write a poem about the sea"])],
    );
    matcher.insert(&poet, |_| Some(vec![1.0]));
    assert_eq!(best(&matcher, &asking("a sea poem")), ("database", "poems"));
    assert_ne!(best(&matcher, &asking(text)).0, "database");
    matcher.insert(&panel()[1], |_| None);
    matcher.insert(&card("guest", vec![skill("pooling", &[text])]), |_| None);
    assert_eq!(best(&matcher, &asking(text)), ("guest", "pooling"));
    assert!(matcher.remove(&id("guest")) && !matcher.remove(&id("guest")));
    assert_eq!(matcher.rank(&asking(text)), fresh.rank(&asking(text)));
    assert_eq!(matcher.agent_named("guest"), None);
}

#[test]
fn vectors_and_ngrams_share_the_score() {
    let mut matcher = Matcher::default();
    let vectors = [("north", [0.0, 2.0]), ("east", [3.0, 0.0])];
    for (name, vector) in vectors {
        matcher.insert(&card(name, vec![skill(name, &["zzz"])]), |_| {
            Some(vector.to_vec())
        });
    }
    let found = matcher.rank(&Query {
        vector: Some(&[0.0, 0.1]),
        ..asking("north")
    });
    assert_eq!(found[0].agent.as_str(), "north");
    let cosine = found[0].cosine.unwrap();
    assert!((cosine - 1.0).abs() < 1e-6, "{cosine}");
    assert!((found[0].score - (0.7 * cosine + 0.3 * found[0].ngrams)).abs() < 1e-9);
    assert!(found[0].ngrams > 0.3 && found[1].ngrams < 0.1);
    // What is no direction is no vector, and a vector of another model is like nothing.
    for vector in [
        &[0.0, 0.0][..],
        &[f32::NAN, 1.0],
        &[f32::INFINITY, 1.0],
        &[],
    ] {
        assert_eq!(
            matcher.rank(&Query {
                vector: Some(vector),
                ..asking("north")
            })[0]
                .cosine,
            None,
            "{vector:?}"
        );
    }
    assert_eq!(
        matcher.rank(&Query {
            vector: Some(&[1.0; 3]),
            ..asking("north")
        })[0]
            .cosine,
        Some(0.0)
    );
}

#[test]
fn a_centroid_is_the_direction_of_the_sum_of_directions() {
    let diagonal = centroid([&[3.0, 0.0][..], &[0.0, 0.5]]).unwrap();
    assert!(
        diagonal
            .iter()
            .all(|x| (x - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6),
        "{diagonal:?}"
    );
    assert_eq!(
        centroid([&[3.0, 0.0][..], &[1.0], &[0.0, 0.0]]),
        Some(vec![1.0, 0.0])
    );
    assert_eq!(centroid([&[1.0, 0.0][..], &[-1.0, 0.0]]), None);
    assert_eq!(centroid([]), None);
    let large = direction(&[f32::MAX, f32::MAX]).unwrap();
    assert!((large[0] - std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6);
}

#[test]
fn what_is_embedded_of_a_skill() {
    let mut skill = skill("freeze_account", &[]);
    assert_eq!(texts_of(&skill), ["freeze account"]);
    skill.description = "Blocks it.".to_owned();
    assert_eq!(texts_of(&skill), ["freeze account: Blocks it."]);
    skill.examples = vec!["block my account".to_owned(), " ".to_owned()];
    assert_eq!(
        texts_of(&skill),
        ["freeze account: Blocks it.", "block my account"]
    );
    skill.name = "?".to_owned();
    assert_eq!(texts_of(&skill), ["Blocks it.", "block my account"]);
    skill.description.clear();
    assert_eq!(texts_of(&skill), ["block my account"]);
}

#[test]
fn a_follow_up_is_matched_with_what_came_before_and_keeps_who_takes_part() {
    let matcher = matcher_of(&panel());
    let before = Previous {
        text: "which tables and columns do we need",
        vector: None,
    };
    let participations = [(id("database"), Participation { silent_for: 0 })].into();
    let follow_up = Query {
        previous: Some(before),
        participations: &participations,
        ..asking("yes, seven of them")
    };
    let found = matcher.rank(&follow_up);
    assert_eq!((found[0].agent.as_str(), found[0].bonus), ("database", 3.8));
    assert!(found[0].probability >= 0.7, "{found:?}");
    assert!(matcher.rank(&asking("yes, seven of them"))[0].probability < 0.7);

    // Silent for long, it has to be asked again.
    let participations = [(id("database"), Participation { silent_for: 40 })].into();
    let found = matcher.rank(&Query {
        participations: &participations,
        ..follow_up
    });
    assert!(found[0].bonus < 0.01, "{found:?}");

    // Another agent that is sure without any help takes over.
    let found = matcher.rank(&Query {
        text: "how do we store oauth tokens then, and is this login safe",
        ..follow_up
    });
    assert_eq!(found[0].agent.as_str(), "security");
    assert!(found[0].probability >= 0.7, "{found:?}");
    assert!(
        found[1..].iter().all(|other| other.bonus == 0.0),
        "{found:?}"
    );
}

#[test]
fn the_bonus_halves_with_silence() {
    let bonus = Bonus {
        log_odds: 4.0,
        half_life: 2.0,
    };
    for (silent_for, expected) in [(0, 4.0), (2, 2.0), (4, 1.0), (u32::MAX, 0.0)] {
        assert!((bonus.of(Participation { silent_for }) - expected).abs() < 1e-12);
    }
    assert_eq!(
        Bonus {
            half_life: 0.0,
            ..bonus
        }
        .of(Participation { silent_for: 0 }),
        0.0
    );
}

#[test]
fn who_asks_is_nobodys_rival() {
    let matcher = matcher_of(&panel());
    let text = "design a database schema for login and oauth tokens";
    let database = id("database");
    let asked = matcher.rank(&Query {
        from: Some(&database),
        ..asking(text)
    });
    let heard = matcher.rank(&asking(text));
    let of = |found: &[Candidate<'_>], name: &str| {
        found
            .iter()
            .find(|c| c.agent.as_str() == name)
            .unwrap()
            .probability
    };
    assert!(asked.iter().all(|candidate| candidate.agent != &database));
    assert!(of(&asked, "security") > of(&heard, "security"));
}

#[test]
fn no_card_and_no_message_is_too_large() {
    let long: String = (0..200_000).map(|n: u32| format!("w{n} ")).collect();
    let skills = (0..64)
        .map(|n| skill(&format!("s{n}"), &[&long, &long]))
        .collect();
    let matcher = matcher_of(&[card("greedy", skills), panel().remove(1)]);
    assert!(
        matcher.ngrams() <= CARD_NGRAMS_MAX + 2 * SKILL_NGRAMS_MAX,
        "{}",
        matcher.ngrams()
    );
    assert_eq!(matcher.rank(&asking(&long)).len(), 2);
    assert_eq!(
        best(&matcher, &asking("too many open connections")).0,
        "database"
    );
}

#[test]
fn a_calibration_is_found_again_from_its_own_probabilities() {
    let truth = Calibration {
        score: 8.0,
        lead: 5.0,
        bias: -3.0,
        ..Calibration::WITH_MODEL
    };
    let mut samples = Vec::new();
    for (score, lead) in
        (0..20).flat_map(|s| (0..20).map(move |l| (f64::from(s) / 20.0, f64::from(l) / 20.0 - 0.5)))
    {
        let concerned = (sigmoid(truth.log_odds(score, lead)) * 200.0).round() as usize;
        samples.extend((0..200).map(|n| Sample {
            score,
            lead,
            concerned: n < concerned,
        }));
    }
    let found = Calibration::WITH_MODEL.fitted(&samples).unwrap();
    for (found, truth) in [(found.score, 8.0), (found.lead, 5.0), (found.bias, -3.0)] {
        assert!((found - truth).abs() < 0.1, "{found} {truth}");
    }
    // What one number separates does not chain off to infinity.
    let separate = [(0.1, false), (0.9, true)].map(|(score, concerned)| Sample {
        score,
        lead: 0.0,
        concerned,
    });
    assert!(truth.fitted(&separate).unwrap().score.is_finite());
    assert_eq!(truth.fitted(&samples[..0]), None);
    assert_eq!(truth.fitted(&separate[..1]), None);
}

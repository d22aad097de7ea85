use concord_events::Heard;
use concord_wire::payload::track_record::Context as RecordContext;
use concord_wire::payload::{Circumstances, ConflictType, DebateTerms, Status};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::aggregates::precedent::{PrecedentMachine, alike, field_id_of, id_of};
use crate::fixtures::*;

fn matter(
    kind: ConflictType,
    subject: &str,
    policy: &str,
    domain: Option<&str>,
) -> PrecedentMatter {
    PrecedentMatter {
        kind,
        subject: subject.into(),
        policy: policy.into(),
        domain: domain.map(str::to_owned),
        circumstances: Circumstances::default(),
    }
}

/// A debate about the operating margin, between 25 and 30.
fn opened(precedents: Vec<Precedent>) -> DebateOpened {
    let kind = ConflictType::Challenge;
    let held = [("fin", json!(25), 0.8), ("sid", json!(30), 0.7)];
    DebateOpened {
        case_id: case_id(),
        conflict: conflict("d-1", kind, "operating margin", &held),
        policy: policy(),
        asked: Vec::new(),
        due: None,
        sync_until: None,
        terms: DebateTerms {
            domain: Some("valuation".into()),
            circumstances: Circumstances {
                regime: Some("bear".into()),
                context: RecordContext::default(),
            },
            ..DebateTerms::default()
        },
        credibility: BTreeMap::new(),
        precedents,
        waits_for: Vec::new(),
    }
}

fn known(value: Value) -> OutcomeKnown {
    OutcomeKnown {
        case_id: case_id(),
        topic: "Margin".into(),
        heard: Heard {
            agent_id: agent("source"),
            message_id: message("m-9"),
            digest: "d".into(),
        },
        position: value.to_string(),
        value: Some(value),
        explanation: "The annual report.".into(),
        at: after(9),
        circumstances: Circumstances::default(),
        parties: Vec::new(),
    }
}

/// An earlier debate like it, in which the lower number was chosen, and this proved right.
fn earlier(n: u64, proved: Option<f64>) -> Precedent {
    let mut debate = opened(Vec::new());
    debate.terms.circumstances.regime = Some(if n == 1 { "bull" } else { "bear" }.into());
    debate.conflict.conflict_id = concord_wire::DebateId::new(format!("d-e{n}")).unwrap();
    let mut ended = outcome(&debate.conflict, Status::Ruling, Some(json!(25)));
    ended.resolved_at = after(n);
    let known = proved.map(|value| known(json!(value)));
    precedent_of(&debate, &ended, known.as_ref()).unwrap()
}

#[test]
fn two_disputes_about_different_things_never_share_one() {
    use ConflictType::*;
    let base = matter(
        FactualDisagreement,
        "acme/operating margin",
        "investment",
        Some("valuation"),
    );
    assert!(is_like(&base, &base));
    for (kind, subject, policy, domain) in [
        (
            Challenge,
            "acme/operating margin",
            "investment",
            Some("valuation"),
        ),
        (
            FactualDisagreement,
            "beta/operating margin",
            "investment",
            Some("valuation"),
        ),
        (
            FactualDisagreement,
            "acme/gross margin",
            "investment",
            Some("valuation"),
        ),
        (
            FactualDisagreement,
            "acme/operating margin",
            "contract-review",
            Some("valuation"),
        ),
        (
            FactualDisagreement,
            "acme/operating margin",
            "investment",
            Some("credit"),
        ),
        (
            FactualDisagreement,
            "acme/operating margin",
            "investment",
            None,
        ),
        (FactualDisagreement, "acme", "investment", Some("valuation")),
    ] {
        let other = matter(kind, subject, policy, domain);
        assert!(
            !is_like(&base, &other) && !is_like(&other, &base),
            "{other:?}"
        );
    }
}

#[test]
fn subjects_are_alike_when_most_of_their_words_are_the_same() {
    use ConflictType::*;
    for (one, other, expected) in [
        ("operating margin", "Operating_Margins", true),
        ("liability cap", "cap on the liability", true),
        (
            "termination for cause",
            "termination for convenience",
            false,
        ),
        ("capped liability", "uncapped liability", false),
        ("price target 2025", "price target 2026", false),
        ("", "margin", false),
    ] {
        let of = |subject| matter(SeverityDisagreement, subject, "p", None);
        assert_eq!(is_like(&of(one), &of(other)), expected, "{one} {other}");
    }
    // A challenge that names no metric may be about anything.
    let any = matter(Challenge, "finding", "investment", None);
    assert!(!is_like(&any, &any));
}

#[test]
fn what_proved_right_in_like_debates_says_how_likely_each_side_is() {
    let past = [
        Some(22.0),
        Some(26.0),
        Some(25.0),
        Some(31.0),
        Some(24.0),
        None,
    ];
    let past: Vec<Precedent> = past
        .into_iter()
        .zip(1..)
        .map(|(proved, n)| earlier(n, proved))
        .collect();
    let debate = opened(past.clone());
    let guidance = guidance_of(&debate, &debate.conflict.positions).unwrap();
    let lower = guidance.lower.unwrap();
    assert_eq!((guidance.found, lower.right, lower.known), (6, 4, 5));
    assert_eq!(
        (guidance.chosen.right, guidance.chosen.known),
        (1, 5),
        "25 was right once"
    );
    let interval = wilson(0.8, 5.0, Z);
    assert_eq!(lower.interval, interval);
    let positions: Vec<u32> = guidance
        .positions
        .iter()
        .map(|one| one.rate.right)
        .collect();
    assert_eq!(positions, [1, 0]);
    assert!(
        guidance.conditions.contains(&"domain valuation".to_owned()),
        "{guidance:?}"
    );
    let risks = guidance.risks.join("|");
    for part in ["proved wrong in 4 of 5", "The regime is bear; it was bull"] {
        assert!(risks.contains(part), "{risks}");
    }
    // Entries that do not say what they are about are not known to be like anything.
    let old = past
        .into_iter()
        .map(|one| Precedent {
            matter: None,
            ..one
        })
        .collect();
    assert_eq!(guidance_of(&opened(old), &debate.conflict.positions), None);
}

/// The brief counts precedents, and the decision package asks whether an outcome agrees with what was chosen: both by units and tolerance.
#[test]
fn a_precedent_says_what_the_package_says_of_what_proved_right() {
    let kind = ConflictType::EstimateDisagreement;
    let percent = |number: f64| json!({ "value": number, "unit": "%" });
    let million = |number: f64| json!({ "value": number, "unit": "USD million" });
    for (low, high, proved, right) in [
        (percent(25.0), percent(35.0), percent(25.0), [1, 0]),
        (percent(25.0), percent(35.0), json!("0.25"), [1, 0]),
        // What is said without a unit is in that of what was held.
        (percent(25.0), percent(35.0), json!(25), [1, 0]),
        // Within the tolerance of the policy, which is 5 % of the larger.
        (percent(25.0), percent(35.0), percent(25.5), [1, 0]),
        (percent(25.0), percent(35.0), percent(34.0), [0, 1]),
        (percent(25.0), percent(35.0), percent(28.0), [0, 0]),
        (
            million(1.0),
            json!("2000000 USD"),
            json!("1000000 USD"),
            [1, 0],
        ),
    ] {
        let mut debate = opened(Vec::new());
        debate.policy.estimates.tolerance.relative = 0.05;
        let held = [("fin", low.clone(), 0.8), ("sid", high, 0.7)];
        debate.conflict = conflict("d-1", kind, "operating margin", &held);
        let ended = outcome(&debate.conflict, Status::Ruling, Some(low));
        let known = known(proved.clone());
        let precedent = precedent_of(&debate, &ended, Some(&known)).unwrap();
        let was_right = was_right(&debate, &ended, &known);
        let proved_so = precedent.proved.as_ref().unwrap();
        assert_eq!(Some(proved_so.was_chosen), was_right, "{proved}");
        let nearer = match right {
            [0, 1] => EstimateSide::Higher,
            _ => EstimateSide::Lower,
        };
        assert_eq!(proved_so.side, Some(nearer), "{proved}");
        debate.precedents = vec![precedent];
        let guidance = guidance_of(&debate, &debate.conflict.positions).unwrap();
        let rates = guidance.positions.iter().map(|one| one.rate.right);
        let rates: Vec<u32> = rates.collect();
        assert_eq!(rates, right, "{proved}");
        assert_eq!(guidance.chosen.right, right[0], "{proved}");
    }
}

/// An arbiter has ruled "somewhat lower" about a score: nobody can say whether that proved right.
#[test]
fn what_was_chosen_in_words_without_a_value_is_neither_right_nor_wrong() {
    let kind = ConflictType::RiskScoreDisagreement;
    let mut debate = opened(Vec::new());
    let held = [("fin", json!(30), 0.8), ("sid", json!(80), 0.7)];
    debate.conflict = conflict("d-1", kind, "risk_score", &held);
    let mut ended = outcome(&debate.conflict, Status::Ruling, None);
    ended.resolution = Some(concord_wire::payload::Resolution {
        position: "somewhat lower".into(),
        value: None,
        supporters: vec![agent("eve")],
    });
    let known = known(json!(30));
    assert_eq!(was_right(&debate, &ended, &known), None);
    let precedent = precedent_of(&debate, &ended, Some(&known)).unwrap();
    debate.precedents = vec![precedent];
    let guidance = guidance_of(&debate, &debate.conflict.positions).unwrap();
    assert_eq!((guidance.chosen.right, guidance.chosen.known), (0, 0));
    assert!(!format!("{:?}", guidance.risks).contains("proved wrong"));
    assert_eq!(guidance.positions[0].rate.right, 1, "who held 30 was right");
}

#[test]
fn a_claim_far_outside_of_what_is_known_is_said() {
    let past = (1..=20)
        .map(|n| earlier(n, Some(if n % 5 == 0 { 31.0 } else { 24.0 })))
        .collect();
    let debate = opened(past);
    let mut believed = crate::rules::credibility::unknown();
    believed.data_points = 30.0;
    believed.score = 0.6;
    believed.interval = wilson(0.6, 30.0, Z);
    let finding = |from: &str, context: Value| {
        received(from, "m", 0.8, json!({ "historical_context": context }))
    };
    for (from, context, outside) in [
        (
            "fin",
            json!({ "pattern_success_rate": 0.8, "observations": 12 }),
            false,
        ),
        ("fin", json!({ "pattern_success_rate": 0.1 }), true),
        ("sid", json!({ "pattern_success_rate": 0.9 }), true),
        (
            "sid",
            json!({ "pattern_success_rate": 0.2, "my_accuracy_on_pattern": 0.62 }),
            false,
        ),
        ("sid", json!({ "my_accuracy_on_pattern": 0.99 }), true),
        ("sid", json!({}), false),
    ] {
        let credibility = [(agent("sid"), believed.clone())].into();
        let claims = claims(&debate, &[finding(from, context.clone())], &credibility);
        let [claim] = &claims[..] else {
            panic!("{claims:?}")
        };
        assert_eq!(
            (claim.is_far_outside, claim.known.known),
            (outside, 20),
            "{context}: {claim:?}"
        );
        assert_eq!(claim.known.right, if from == "fin" { 16 } else { 4 });
        assert_eq!(
            claim.remark.contains("does not fit"),
            outside,
            "{}",
            claim.remark
        );
    }
    let other = claims(&debate, &[finding("nosy", json!({}))], &BTreeMap::new());
    assert_eq!(other, []);
}

#[test]
fn a_debate_is_found_by_what_it_was_about_and_by_its_field() {
    let entry = earlier(3, None);
    let about = entry.matter.clone().unwrap();
    let (mut exact, mut field) = (
        Story::<PrecedentMachine>::of("e"),
        Story::<PrecedentMachine>::of("f"),
    );
    for story in [&mut exact, &mut field] {
        assert_eq!(story.hears(&said("m", 9), &entry), "recorded");
        let proved = earlier(3, Some(25.0));
        assert_eq!(story.hears(&said("n", 9), &proved), "recorded");
        // The end of the debate is delivered once more.
        assert_eq!(story.hears(&said("m", 9), &entry), "ignored: already_done");
    }
    let similar = PrecedentMatter {
        subject: "Operating-Margins".into(),
        ..about.clone()
    };
    assert_ne!(
        id_of(about.kind, &about.subject),
        id_of(similar.kind, &similar.subject)
    );
    assert_eq!(field_id_of(&about), field_id_of(&similar));
    let nothing = Default::default();
    let found = alike(&similar, &nothing, field.state(), 5);
    assert_eq!(found.len(), 1);
    assert!(found[0].proved.as_ref().unwrap().was_chosen);
    let both = alike(&about, exact.state(), field.state(), 5);
    assert_eq!(both.len(), 1, "of each debate one");
    let other = PrecedentMatter {
        subject: "revenue".into(),
        ..about
    };
    assert!(alike(&other, &nothing, field.state(), 5).is_empty());
}

proptest! {
    #[test]
    fn likeness_is_symmetric_and_rates_are_within_their_bounds(
        one in "[a-c ]{0,8}(/[a-c ]{0,4})?", other in "[a-c ]{0,8}(/[a-c ]{0,4})?",
        proved in prop::collection::vec(prop::option::of(20.0..35.0_f64), 0..12),
    ) {
        let of = |subject: &str| matter(ConflictType::FactualDisagreement, subject, "p", None);
        prop_assert_eq!(is_like(&of(&one), &of(&other)), is_like(&of(&other), &of(&one)));
        prop_assert!(is_like(&of(&one), &of(&one)));
        let past: Vec<Precedent> = proved.iter().zip(1..).map(|(proved, n)| earlier(n, *proved)).collect();
        let debate = opened(past);
        if let Some(guidance) = guidance_of(&debate, &debate.conflict.positions) {
            let rates = guidance.positions.iter().map(|one| one.rate).chain([guidance.chosen]).chain(guidance.lower);
            for rate in rates {
                prop_assert!(rate.right <= rate.known && rate.known <= guidance.found);
                prop_assert!(rate.interval.low <= rate.interval.high);
            }
        }
    }
}

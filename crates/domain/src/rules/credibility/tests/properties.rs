//! What holds for every record.

use proptest::prelude::*;

use super::*;

fn maybe(names: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    proptest::option::of(proptest::sample::select(names).prop_map(str::to_owned))
}

fn any_context() -> impl Strategy<Value = Context> {
    (
        maybe(&["software", "retail"]),
        maybe(&["revenue", "margin"]),
        maybe(&["1y"]),
        maybe(&["small"]),
    )
        .prop_map(|(sector, metric, horizon, size)| Context {
            sector,
            metric,
            horizon,
            size,
            stage: None,
        })
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let age = prop_oneof![0u64..1_000, 0u64..10_000];
    let domain = proptest::sample::select(vec![
        "valuation",
        "valuation",
        "valuation.revenue",
        "valuation.revenue.growth",
        "legal",
    ]);
    (
        age,
        any::<bool>(),
        domain,
        maybe(&["bull", "bear"]),
        any_context(),
        any::<bool>(),
    )
        .prop_map(
            |(age, correct, domain, regime, context, overridden)| Observation {
                domain: domain.into(),
                regime,
                context,
                overridden,
                ..observed(age, correct)
            },
        )
}

/// Records of a few observations, and of many that are mostly alike, so that every factor comes to
/// be applied.
pub(super) fn any_record() -> impl Strategy<Value = Vec<Observation>> {
    prop_oneof![
        proptest::collection::vec(any_observation(), 0..40),
        (
            proptest::collection::vec(any_observation(), 1..6),
            1usize..60
        )
            .prop_map(|(few, times)| few
                .iter()
                .cycle()
                .take(few.len() * times)
                .cloned()
                .collect()),
    ]
}

pub(super) fn any_query() -> impl Strategy<Value = Query> {
    let domain = proptest::sample::select(vec!["valuation", "valuation.revenue"]);
    (maybe(&["bull"]), any_context(), domain).prop_map(|(regime, context, domain)| Query {
        domain: domain.into(),
        regime,
        context,
        ..query()
    })
}

pub(super) fn any_version() -> impl Strategy<Value = Version> {
    proptest::sample::select(vec![
        Version::Simple,
        Version::Comprehensive,
        Version::Specialised,
    ])
}

proptest! {
    #[test]
    fn a_score_is_a_proportion_inside_its_interval(version in any_version(), record in any_record(), query in any_query()) {
        let credibility = score(version, &record, &query);
        let Interval { low, high } = credibility.interval;
        prop_assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high), "{credibility:?}");
        prop_assert!((0.0..=1.0).contains(&credibility.score));
        prop_assert!(low - 1e-9 <= credibility.score && credibility.score <= high + 1e-9, "{credibility:?}");
        prop_assert!(credibility.data_points <= credibility.effective_size);
        prop_assert!(credibility.effective_size <= f64::from(credibility.observations) + 1e-9);
        let product: f64 = credibility.factors.iter().map(|factor| factor.value).product();
        prop_assert!(near(product, credibility.score), "{product} {credibility:?}");
        for factor in &credibility.factors {
            prop_assert!(factor.applied || factor.value == 1.0 || factor.name == FactorName::BaseAccuracy);
            prop_assert!(factor.applied != factor.explanation.starts_with("Not applied because"), "{factor:?}");
            prop_assert!(factor.explanation.ends_with('.'));
        }
    }

    #[test]
    fn the_order_of_observations_does_not_matter(
        version in any_version(),
        (record, shuffled) in any_record().prop_flat_map(|record| (Just(record.clone()), Just(record).prop_shuffle())),
        query in any_query(),
    ) {
        prop_assert_eq!(score(version, &record, &query), score(version, &shuffled, &query));
    }

    #[test]
    fn the_same_again_makes_nobody_less_certain(record in any_record(), times in 2usize..5) {
        let more: Vec<Observation> = record.iter().cycle().take(record.len() * times).cloned().collect();
        let (once, often) =
            (score(Version::Simple, &record, &query()), score(Version::Simple, &more, &query()));
        prop_assert!(near(once.score, often.score));
        prop_assert!(often.interval.half_width() <= once.interval.half_width() + 1e-9);
        prop_assert!(often.data_points + 1e-9 >= once.data_points);
    }

    #[test]
    fn more_trials_never_widen_the_interval_which_contains_its_proportion(p in 0.0..=1.0f64, n in 0.0..1e4f64, more in 0.0..1e4f64) {
        let (few, many) = (wilson(p, n, Z), wilson(p, n + more, Z));
        prop_assert!(many.half_width() <= few.half_width() + 1e-12);
        prop_assert!(few.low <= p + 1e-12 && p <= few.high + 1e-12);
        prop_assert!(few.low <= few.centre() && few.centre() <= few.high);
        let other = wilson(1.0 - p, n, Z);
        prop_assert!(near(other.low, 1.0 - few.high) && near(other.high, 1.0 - few.low));
    }

    #[test]
    fn adjusting_makes_nobody_more_certain(record in any_record(), query in any_query()) {
        let simple = score(Version::Simple, &record, &query);
        let adjusted = score(Version::Comprehensive, &record, &query);
        prop_assert!(adjusted.interval.half_width() >= simple.interval.half_width() - 1e-9, "{simple:?} {adjusted:?}");
        prop_assert_eq!(adjusted.data_points, simple.data_points);
    }

    #[test]
    fn wider_domains_count_their_share_and_narrower_ones_nothing(
        correct in proptest::collection::vec(any::<bool>(), 1..60), levels in 0usize..4,
    ) {
        let record: Vec<Observation> = correct.iter().map(|correct| observed(0, *correct)).collect();
        let deep = Query { domain: format!("valuation{}", ".x".repeat(levels)), ..query() };
        let (near_by, far) = (
            score(Version::Specialised, &record, &query()),
            score(Version::Specialised, &record, &deep),
        );
        let share = SHARE_PER_LEVEL.powi(levels as i32);
        prop_assert!(near(far.score, near_by.score), "a share changes no accuracy");
        prop_assert!(near(far.data_points, near_by.data_points * share));
        prop_assert!(far.interval.half_width() >= near_by.interval.half_width() - 1e-9);
        for version in [Version::Simple, Version::Comprehensive] {
            let alone = score(version, &record, &deep);
            prop_assert_eq!(alone.observations == 0, levels > 0, "each domain stands for itself");
        }
        let narrower: Vec<Observation> = record
            .iter()
            .map(|one| Observation { domain: deep.domain.clone(), ..one.clone() })
            .collect();
        let wide = score(Version::Specialised, &narrower, &query());
        prop_assert_eq!(wide.observations == 0, levels > 0);
    }

    #[test]
    fn domain_expertise_moves_a_score_by_no_more_than_its_share(record in any_record(), query in any_query()) {
        let credibility = score(Version::Specialised, &record, &query);
        let expertise = factor(&credibility, FactorName::DomainExpertise);
        prop_assert!(expertise.value >= 1.0 - BLEND - 1e-9, "{expertise:?}");
        // Of the accuracy before: (0.7 overall + 0.3 own) is at most 0.3 above it.
        let before: f64 = credibility.factors[..2].iter().map(|factor| factor.value).product();
        prop_assert!(before * (expertise.value - 1.0) <= BLEND + 1e-9, "{expertise:?}");
        if !expertise.applied {
            let plain = score(Version::Comprehensive, &record, &query);
            let has_wider = record.iter().any(|one| share_for(&query.domain, &one.domain).is_some_and(|share| share < 1.0));
            prop_assert!(has_wider || near(plain.score, credibility.score));
        } else {
            prop_assert!(expertise.data_points >= EXPERTISE_POINTS_MIN);
        }
    }

    #[test]
    fn a_settlement_is_the_same_from_either_side(a in any_record(), b in any_record(), version in any_version()) {
        let (a, b) = (score(version, &a, &query()), score(version, &b, &query()));
        let (there, back) = (settle(&a, &b), settle(&b, &a));
        prop_assert_eq!((there.gap, there.threshold, there.reason), (back.gap, back.threshold, back.reason));
        let mirrored = back.winner.map(|side| if side == Side::A { Side::B } else { Side::A });
        prop_assert_eq!(there.winner, mirrored);
        if let Some(winner) = there.winner {
            prop_assert!(there.gap > 0.25 && a.data_points >= 15.0 && b.data_points >= 15.0);
            prop_assert_eq!(winner == Side::A, a.score > b.score);
        }
    }

    #[test]
    fn nobody_is_believed_less_for_knowing_more(p in 0.0..=1.0f64, better in 0.0..=1.0f64, options in 0usize..10) {
        let (low, high) = (log_odds(p.min(better), options), log_odds(p.max(better), options));
        prop_assert!(0.0 <= low && low <= high && high.is_finite());
    }

    #[test]
    fn what_is_stored_is_what_is_read(version in any_version(), record in any_record(), query in any_query()) {
        let credibility = score(version, &record, &query);
        let text = serde_json::to_string(&(&record, &query, &credibility)).unwrap();
        let read: (Vec<Observation>, Query, Credibility) = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read, (record, query, credibility));
    }
}

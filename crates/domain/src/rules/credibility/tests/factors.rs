//! The factors that only the comprehensive version has.

use super::*;

fn comprehensive(record: &[Observation], query: &Query) -> Credibility {
    score(Version::Comprehensive, record, query)
}

/// 60 of 100 in a bear market, and `all` of which `correct` in a bull market.
fn two_regimes(correct: usize, all: usize) -> Vec<Observation> {
    let in_regime = |record: Vec<Observation>, regime: &str| {
        record
            .into_iter()
            .map(|o| Observation {
                regime: Some(regime.into()),
                ..o
            })
            .collect::<Vec<_>>()
    };
    [
        in_regime(fresh(60, 100), "bear"),
        in_regime(fresh(correct, all), "bull"),
    ]
    .concat()
}

#[test]
fn the_regime_counts_for_three_tenths_from_fifty_data_points_on() {
    let asked = Query {
        regime: Some("Bull".into()),
        ..query()
    };
    // 105 of 150 overall is 0.7, 45 of 50 in the regime is 0.9: 0.49 + 0.27 = 0.76.
    let enough = comprehensive(&two_regimes(45, 50), &asked);
    let regime = factor(&enough, FactorName::RegimeAdjustment);
    assert!(
        regime.applied && near(regime.value, 0.76 / 0.7) && near(enough.score, 0.76),
        "{enough:?}"
    );
    assert_eq!(
        (regime.basis, regime.weight, regime.data_points),
        (Some(0.9), Some(0.3), 50.0)
    );
    assert_eq!(
        regime.explanation,
        "30% is the accuracy in the present regime, 0.900 from 50.0 data points, against 0.700 overall."
    );
    let few = comprehensive(&two_regimes(45, 49), &asked);
    let regime = factor(&few, FactorName::RegimeAdjustment);
    assert_eq!((regime.applied, regime.value), (false, 1.0));
    assert_eq!(
        regime.explanation,
        "Not applied because 49.0 of the 50 data points needed are from the present regime."
    );
    assert!(near(few.score, 105.0 / 149.0));
    let unknown = comprehensive(&two_regimes(45, 50), &query());
    let regime = factor(&unknown, FactorName::RegimeAdjustment);
    assert_eq!(
        (regime.applied, regime.explanation.as_str()),
        (false, "Not applied because no present regime is given.")
    );
}

fn context(sector: &str, metric: &str) -> Context {
    Context {
        sector: Some(sector.into()),
        metric: Some(metric.into()),
        ..Context::default()
    }
}

#[test]
fn circumstances_are_alike_by_the_share_of_what_is_asked_for() {
    let asked = context("software", "revenue");
    for (seen, expected) in [
        (context("Software", "revenue"), 1.0),
        (context("software", "margin"), 0.5),
        (context("retail", "margin"), 0.0),
        (
            Context {
                metric: None,
                ..context("software", "")
            },
            0.5,
        ),
        (
            Context {
                size: Some("small".into()),
                ..context("software", "revenue")
            },
            1.0,
        ),
        (Context::default(), 0.0),
    ] {
        assert_eq!(similarity(&asked, &seen), expected, "{seen:?}");
    }
    assert_eq!(similarity(&Context::default(), &asked), 0.0);
}

#[test]
fn like_circumstances_count_for_three_tenths_from_fifteen_data_points_on() {
    let of = |record: Vec<Observation>, context: &Context| {
        record
            .into_iter()
            .map(|o| Observation {
                context: context.clone(),
                ..o
            })
            .collect::<Vec<_>>()
    };
    let asked = Query {
        context: context("software", "revenue"),
        ..query()
    };
    let record = |whole: usize, half: usize| {
        let (same, like) = (
            context("software", "revenue"),
            context("software", "margin"),
        );
        [
            of(fresh(whole, whole), &same),
            of(fresh(0, half), &like),
            fresh(30, 60),
        ]
        .concat()
    };
    // 15 right in the same circumstances, 10 wrong in half the same: 15 of 20. Overall 45 of 85.
    let enough = comprehensive(&record(15, 10), &asked);
    let matched = factor(&enough, FactorName::ContextMatch);
    assert!(matched.applied && near(matched.basis.unwrap(), 0.75));
    assert!(
        near(matched.data_points, 400.0 / 17.5f64.max(20.0)),
        "20² / 17.5 is above the sum, 20"
    );
    assert!(near(enough.score, 0.7 * 45.0 / 85.0 + 0.3 * 0.75));
    // 9 and half of 10 are 14.
    let few = comprehensive(&record(9, 10), &asked);
    let matched = factor(&few, FactorName::ContextMatch);
    assert_eq!(
        matched.explanation,
        "Not applied because 14.0 of the 15 data points needed are from like circumstances."
    );
    assert!(near(few.score, 39.0 / 79.0));
    let unasked = comprehensive(&record(15, 10), &query());
    assert!(!factor(&unasked, FactorName::ContextMatch).applied);
}

/// In each past quarter, counted back from now, ten observations of which so many are correct.
fn by_quarter(correct: &[usize]) -> Vec<Observation> {
    let quarter = |(ago, correct): (usize, &usize)| {
        let age = (ago as f64 * QUARTER_DAYS + 10.0) as u64;
        (0..10)
            .map(|n| observed(age, n < *correct))
            .collect::<Vec<_>>()
    };
    correct.iter().enumerate().flat_map(quarter).collect()
}

#[test]
fn a_clear_trend_is_extrapolated_to_now() {
    // 0.9, 0.8, 0.7, 0.6 at half a quarter, one and a half, ... ago: 0.95 now, exactly on a line.
    let rising = comprehensive(&by_quarter(&[9, 8, 7, 6]), &query());
    let trend = factor(&rising, FactorName::TrendAdjusted);
    assert!(
        trend.applied && near(trend.basis.unwrap(), 0.95) && near(rising.score, 0.95),
        "{rising:?}"
    );
    assert_eq!(
        trend.explanation,
        "The accuracy extrapolated to now is 0.950: slope 0.100 a quarter, R² 1.00 over 4 quarters."
    );
    // Weights differ little within a year: near mean(x) = -2 and var(x) = 1.25, so that a little
    // over a quarter remains.
    let interval = wilson(
        0.75,
        rising.effective_size * trend.data_points / rising.data_points,
        Z,
    );
    assert!((0.22..0.3).contains(&(trend.data_points / rising.data_points)));
    assert!(
        rising.interval.half_width() > interval.half_width() && interval.half_width() > 0.2,
        "{rising:?}"
    );
    let falling = comprehensive(&by_quarter(&[1, 4, 7]), &query());
    assert!(
        factor(&falling, FactorName::TrendAdjusted).applied && near(falling.score, 0.0),
        "held at 0: {falling:?}"
    );
    assert!(
        falling.interval.low == 0.0 && falling.interval.high > 0.3,
        "and no more certain: {falling:?}"
    );
}

#[test]
fn what_is_no_trend_changes_nothing() {
    for (correct, reason) in [
        (
            vec![8],
            "it takes three quarters whose accuracies differ, and 1 have observations.",
        ),
        (
            vec![8, 6],
            "it takes three quarters whose accuracies differ, and 2 have observations.",
        ),
        (
            vec![8, 8, 8, 8],
            "it takes three quarters whose accuracies differ, and 4 have observations.",
        ),
        (vec![7, 9, 7, 9, 7], "the line explains too little: "),
    ] {
        let record = by_quarter(&correct);
        let credibility = comprehensive(&record, &query());
        let trend = factor(&credibility, FactorName::TrendAdjusted);
        assert!(
            !trend.applied
                && trend
                    .explanation
                    .starts_with(&format!("Not applied because {reason}")),
            "{trend:?}"
        );
        assert_eq!(
            credibility.score,
            score(Version::Simple, &record, &query()).score
        );
    }
}

#[test]
fn overrides_are_punished_only_where_they_are_surely_frequent() {
    let overridden = |times: usize, all: usize| -> Vec<Observation> {
        let each = fresh(all * 8 / 10, all).into_iter().enumerate();
        each.map(|(n, o)| Observation {
            overridden: n < times,
            ..o
        })
        .collect()
    };
    for (times, all, penalty) in [
        (0, 100, None),
        // Rates above 20% whose lower bounds are 0.109, 0.112 and 0.142.
        (4, 15, None),
        (5, 20, None),
        (21, 100, None),
        // The lower bound is 0.219, the penalty 1 - (0.3 - 0.2).
        (30, 100, Some(0.9)),
        (100, 100, Some(0.2)),
    ] {
        let credibility = comprehensive(&overridden(times, all), &query());
        let factor = factor(&credibility, FactorName::OverridePenalty);
        assert_eq!(
            factor.applied,
            penalty.is_some(),
            "{times} of {all}: {factor:?}"
        );
        assert!(
            near(factor.value, penalty.unwrap_or(1.0))
                && near(credibility.score, 0.8 * penalty.unwrap_or(1.0))
        );
        let simple = score(Version::Simple, &overridden(times, all), &query());
        assert!(
            near(simple.score, 0.8)
                && near(
                    simple.interval.half_width(),
                    credibility.interval.half_width()
                )
        );
    }
    // The same overrides four half-lives ago, followed by good work, are outlived.
    let mut past = overridden(30, 100);
    past.iter_mut()
        .for_each(|o| o.at = observed(4 * 730, true).at);
    past.extend(fresh(40, 50));
    assert!(!factor(&comprehensive(&past, &query()), FactorName::OverridePenalty).applied);
}

#[test]
fn the_score_does_not_pass_one() {
    // Right in the regime and the context asked for, mostly wrong elsewhere.
    let here = |o| Observation {
        regime: Some("bull".into()),
        context: context("software", "revenue"),
        ..o
    };
    let record: Vec<Observation> = fresh(60, 60)
        .into_iter()
        .map(here)
        .chain(fresh(0, 1140))
        .collect();
    let asked = Query {
        regime: Some("bull".into()),
        context: context("software", "revenue"),
        ..query()
    };
    let credibility = comprehensive(&record, &asked);
    // 0.05 overall, 0.335 with the regime, and the context would make it 2.24.
    let matched = factor(&credibility, FactorName::ContextMatch);
    assert!(
        near(credibility.score, 1.0) && near(matched.value, 1.0 / 0.335),
        "{credibility:?}"
    );
    assert!(
        matched
            .explanation
            .ends_with(", limited so that the score does not pass 1."),
        "{}",
        matched.explanation
    );
    assert!(
        near(credibility.interval.high, 1.0) && credibility.interval.half_width() > 0.2,
        "{credibility:?}"
    );
}

#[test]
fn every_factor_is_listed_in_the_order_of_the_product() {
    use FactorName::*;
    let names = |version| {
        score(version, &fresh(3, 4), &query())
            .factors
            .into_iter()
            .map(|factor| factor.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Version::Simple), [BaseAccuracy, TemporalWeight]);
    let all = [
        BaseAccuracy,
        TemporalWeight,
        RegimeAdjustment,
        ContextMatch,
        TrendAdjusted,
        OverridePenalty,
    ];
    assert_eq!(names(Version::Comprehensive), all);
}

#[test]
fn domain_expertise_blends_the_accuracy_in_the_domain_itself() {
    // Forty of the wider domain, all correct: 20 points. Twenty of the domain itself, ten correct.
    let wide = (0..40).map(|_| observed(0, true));
    let own = (0..20).map(|n| Observation {
        domain: "valuation.revenue".into(),
        ..observed(0, n < 10)
    });
    let record: Vec<Observation> = wide.chain(own).collect();
    let asked = Query {
        domain: "Valuation.Revenue".into(),
        ..query()
    };
    let credibility = score(Version::Specialised, &record, &asked);
    let expertise = factor(&credibility, FactorName::DomainExpertise);
    // Overall (20 + 10) / 40 = 0.75; 0.7 * 0.75 + 0.3 * 0.5 = 0.675.
    assert!(near(credibility.score, 0.675), "{credibility:?}");
    assert!(near(expertise.value, 0.9) && expertise.weight == Some(BLEND));
    assert!(near(expertise.data_points, 20.0));
    assert!(near(credibility.data_points, 40.0), "{credibility:?}");
    // With fewer than fifteen of its own it is not applied, and nor is it where nothing is wider.
    for (record, reason) in [
        (&record[..50], "10.0 of the 15 data points needed"),
        (&record[40..], "all observations are from the domain itself"),
    ] {
        let credibility = score(Version::Specialised, record, &asked);
        let expertise = factor(&credibility, FactorName::DomainExpertise);
        assert!(
            !expertise.applied && expertise.explanation.contains(reason),
            "{expertise:?}"
        );
    }
    let simple = score(Version::Simple, &record, &asked);
    assert!(near(simple.score, 0.5) && simple.observations == 20);
}

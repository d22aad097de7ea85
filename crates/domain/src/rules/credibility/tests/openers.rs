//! The share of one opener's cases.

use proptest::prelude::*;

use super::properties::{any_query, any_record, any_version};
use super::*;

fn opener(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

/// A record of which each observation has the opener that is given with it.
fn opened<'a>(parts: &[(&'a [Observation], Option<&'a AgentId>)]) -> Vec<Attributed<'a>> {
    let part = |(observations, opened_by): &(&'a [Observation], Option<&'a AgentId>)| {
        let opened_by = *opened_by;
        observations.iter().map(move |observation| Attributed {
            observation,
            opened_by,
        })
    };
    parts.iter().flat_map(part).collect()
}

#[test]
fn one_opener_has_twenty_points_or_as_many_as_all_others() {
    let olga = opener("olga");
    // Of the cases of olga and of others: how many observations. What counts of the first, in points.
    for (own, others, counting) in [
        (10, 0, 10.0),
        (20, 0, 20.0),
        (21, 0, 20.0),
        (5_000, 0, 20.0),
        (20, 5, 20.0),
        (25, 5, 20.0),
        (40, 30, 30.0),
        (40, 40, 40.0),
        (40, 50, 40.0),
        (5_000, 100, 100.0),
    ] {
        let (own_cases, other_cases) = (fresh(own, own), fresh(0, others));
        let record = opened(&[(&own_cases, Some(&olga)), (&other_cases, None)]);
        let credibility = score(Version::Simple, record, &query());
        let points = others as f64 + counting;
        assert!(
            near(credibility.data_points, points)
                && near(credibility.effective_size, points)
                && near(credibility.score, counting / points),
            "{own} and {others}: {credibility:?}"
        );
        let as_many = fresh(counting as usize, others + counting as usize);
        let of_others = score(Version::Simple, &as_many, &query());
        assert!(
            near(credibility.interval.low, of_others.interval.low)
                && near(credibility.interval.high, of_others.interval.high),
            "{own} and {others}: no surer than {counting} of others"
        );
        let held = credibility.held_back.map(|held| {
            assert_eq!(
                (held.opened_by.as_ref(), held.points),
                (Some(&olga), own as f64)
            );
            held.held
        });
        let above = own as f64 - counting;
        assert_eq!(held, (above > 0.0).then_some(above), "{own} and {others}");
        assert_eq!(credibility.observations as usize, own + others);
    }
}

#[test]
fn what_is_held_back_can_be_read() {
    let olga = opener("olga");
    let (own, others) = (fresh(44, 60), fresh(20, 25));
    let record = opened(&[(&own, Some(&olga)), (&others, None)]);
    let credibility = score(Version::Simple, record, &query());
    assert_eq!(
        factor(&credibility, FactorName::BaseAccuracy).explanation,
        "38.3 of 50.0 observations in the domain were correct: 0.767."
    );
    let held = credibility.held_back.unwrap();
    assert_eq!((held.points, held.held), (60.0, 35.0));
}

#[test]
fn fifty_points_of_a_regime_are_never_those_of_one_opener() {
    let olga = opener("olga");
    let bull = |record: Vec<Observation>| -> Vec<Observation> {
        let regime = Some("bull".to_owned());
        let in_regime = |one| Observation {
            regime: regime.clone(),
            ..one
        };
        record.into_iter().map(in_regime).collect()
    };
    let asked = Query {
        regime: Some("bull".into()),
        ..query()
    };
    // Olga's cases are half of the record, and but for `others` the whole of its regime.
    for (others, points) in [(0, 20.0), (24, 48.0), (25, 50.0), (40, 80.0)] {
        let (own, elsewhere) = (bull(fresh(100, 100)), fresh(50, 100));
        let shared = bull(fresh(0, others));
        let record = opened(&[(&own, Some(&olga)), (&elsewhere, None), (&shared, None)]);
        let credibility = score(Version::Comprehensive, record, &asked);
        let regime = factor(&credibility, FactorName::RegimeAdjustment);
        assert!(near(regime.data_points, points), "{others}: {regime:?}");
        assert_eq!(regime.applied, points >= REGIME_POINTS_MIN, "{others}");
        if regime.applied {
            assert!(near(regime.basis.unwrap(), 0.5), "half of it is hers");
        }
    }
}

/// Two openers of one record.
fn any_owned() -> impl Strategy<Value = Vec<(Observation, Option<AgentId>)>> {
    any_record().prop_flat_map(|record| {
        let mixed = proptest::sample::select(vec![None, Some("olga"), Some("olga"), Some("otto")]);
        let mostly = prop_oneof![9 => Just(Some("olga")), 1 => Just(None)];
        let names = prop_oneof![
            proptest::collection::vec(mixed, record.len()),
            proptest::collection::vec(mostly, record.len()),
        ];
        names.prop_map(move |names| {
            let openers = names.into_iter().map(|name| name.map(opener));
            record.clone().into_iter().zip(openers).collect()
        })
    })
}

fn attributed(owned: &[(Observation, Option<AgentId>)]) -> Vec<Attributed<'_>> {
    owned
        .iter()
        .map(|(observation, opened_by)| Attributed {
            observation,
            opened_by: opened_by.as_ref(),
        })
        .collect()
}

/// The weight of the observations that pass, as the formula weighs them by age and domain.
fn weight_of(
    owned: &[(Observation, Option<AgentId>)],
    version: Version,
    query: &Query,
    of: impl Fn(Option<&AgentId>) -> bool,
) -> f64 {
    let weighed = in_domain(version, attributed(owned), query);
    let of_some = weighed.iter().filter(|w| of(w.opened_by));
    of_some.map(|w| w.weight).sum()
}

proptest! {
    #[test]
    fn an_opener_moves_a_score_no_further_than_an_equal_weight_of_others(owned in any_owned(), right in any::<bool>()) {
        let olga = opener("olga");
        // Whatever olga's cases say, they say the same.
        let said = |(one, opened_by): (Observation, Option<AgentId>)| {
            let correct = if opened_by.as_ref() == Some(&olga) { right } else { one.correct };
            (Observation { correct, ..one }, opened_by)
        };
        let owned: Vec<_> = owned.into_iter().map(said).collect();
        let without: Vec<_> = owned.iter().filter(|(_, who)| who.as_ref() != Some(&olga)).cloned().collect();
        let of_others = weight_of(&without, Version::Simple, &query(), |_| true);
        let before = score(Version::Simple, attributed(&without), &query());
        let after = score(Version::Simple, attributed(&owned), &query());
        let most = FREE_POINTS.max(of_others);
        // What is held back of otto before olga's cases were there counts less: only then is the record of others lighter.
        if before.held_back.is_none() {
            let limit = (before.score * of_others + if right { most } else { 0.0 }) / (of_others + most);
            let limit = if of_others > 0.0 { limit } else { f64::from(u8::from(right)) };
            let beyond = if right { after.score - limit } else { limit - after.score };
            prop_assert!(beyond <= 1e-9 || after.data_points == 0.0, "{} beyond {limit}", after.score);
        }
        prop_assert!(after.data_points <= of_others + most + 1e-9);
    }

    #[test]
    fn what_is_held_back_is_what_is_above_the_share(version in any_version(), owned in any_owned(), query in any_query()) {
        let credibility = score(version, attributed(&owned), &query);
        let weight = |of: &dyn Fn(Option<&AgentId>) -> bool| weight_of(&owned, version, &query, of);
        let all = weight(&|_| true);
        for name in ["olga", "otto"] {
            let own = weight(&|who| who.is_some_and(|who| who.as_str() == name));
            let above = own - FREE_POINTS.max(all - own);
            let held = credibility.held_back.as_ref().filter(|held| held.opened_by == Some(opener(name)));
            prop_assert_eq!(held.is_some(), above > 1e-9, "{} of {}", own, all);
            if let Some(held) = held {
                prop_assert!(near(held.points, own) && near(held.held, above), "{held:?}");
            }
        }
    }

    #[test]
    fn more_of_the_same_moves_nothing_once_it_is_held_back(
        version in any_version(), owned in any_owned(), query in any_query(), times in 2usize..6,
    ) {
        let once = score(version, attributed(&owned), &query);
        let Some(HeldBack { opened_by: opener, .. }) = once.held_back.clone() else { return Ok(()) };
        let more: Vec<_> = owned
            .iter()
            .flat_map(|one| {
                let times = if one.1 == opener { times } else { 1 };
                std::iter::repeat_n(one.clone(), times)
            })
            .collect();
        let often = score(version, attributed(&more), &query);
        prop_assert!(near(once.score, often.score), "{once:?} {often:?}");
        prop_assert!(near(once.interval.low, often.interval.low) && near(once.interval.high, often.interval.high));
        prop_assert!(near(once.data_points, often.data_points) && near(once.effective_size, often.effective_size));
        for (one, other) in once.factors.iter().zip(&often.factors) {
            prop_assert!(near(one.value, other.value) && near(one.data_points, other.data_points), "{one:?} {other:?}");
        }
    }

    #[test]
    fn where_nothing_is_held_back_openers_change_nothing(version in any_version(), owned in any_owned(), query in any_query()) {
        let nobodys: Vec<Observation> = owned.iter().map(|(one, _)| one.clone()).collect();
        let plain = score(version, &nobodys, &query);
        prop_assert_eq!(&plain.held_back, &None);
        let credibility = score(version, attributed(&owned), &query);
        // In a part of the record an opener can weigh too much who does not in the whole.
        let light = |name: &str| weight_of(&owned, version, &query, |who| who.is_some_and(|who| who.as_str() == name)) <= FREE_POINTS;
        if light("olga") && light("otto") || version == Version::Simple && credibility.held_back.is_none() {
            prop_assert_eq!((plain.score, plain.interval), (credibility.score, credibility.interval));
            prop_assert_eq!((plain.data_points, &plain.factors), (credibility.data_points, &credibility.factors));
        }
    }

    #[test]
    fn neither_order_nor_name_of_openers_matters(
        version in any_version(), query in any_query(),
        (owned, shuffled) in any_owned().prop_flat_map(|owned| (Just(owned.clone()), Just(owned).prop_shuffle())),
    ) {
        prop_assert_eq!(score(version, attributed(&owned), &query), score(version, attributed(&shuffled), &query));
    }
}

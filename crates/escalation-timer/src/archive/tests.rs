//! Which cases are looked at again.

use concord_events::SealedAggregate;
use concord_wire::Token;

use super::*;

fn at(ms: u64) -> Timestamp {
    Timestamp::default().plus_millis(ms)
}

/// A case that has so many aggregates.
fn case(id: &str, aggregates: usize) -> CaseContents {
    let aggregate = |number: usize| SealedAggregate {
        aggregate: Aggregate::Request,
        id: Token::new(format!("r-{number}")).unwrap(),
        last_sequence: 1,
    };
    CaseContents {
        case_id: CaseId::new(id).unwrap(),
        aggregates: (0..aggregates).map(aggregate).collect(),
        messages: Vec::new(),
    }
}

/// The ids of these cases, and when each is looked at again.
fn candidates<'a>(cases: impl IntoIterator<Item = (&'a str, u64)>) -> Candidates {
    let cases = cases.into_iter();
    cases
        .map(|(id, ms)| (CaseId::new(id).unwrap(), at(ms)))
        .collect()
}

#[test]
fn the_cases_of_a_segment_that_is_refused_are_looked_at_again() {
    let cases = [case("c-1", 1), case("c-2", 1)];
    for (is_sealed, left) in [
        (true, vec![("c-3", 7)]),
        (false, vec![("c-1", 5), ("c-2", 5), ("c-3", 7)]),
    ] {
        let mut known = candidates([("c-1", 5), ("c-2", 5), ("c-3", 7)]);
        forget(&mut known, &cases, is_sealed);
        assert_eq!(known, candidates(left), "{is_sealed}");
    }
}

#[test]
fn a_case_of_more_aggregates_than_a_segment_may_have_waits_and_hinders_no_other() {
    let mut known = candidates([("c-1", 5), ("c-2", 5), ("c-3", 5), ("c-4", 5)]);
    let cases = vec![
        case("c-1", 4_097),
        case("c-2", 4_000),
        case("c-3", 97),
        case("c-4", 1),
    ];
    let taken = within_bounds(&mut known, cases, at(1));
    let taken: Vec<&str> = taken.iter().map(|case| case.case_id.as_str()).collect();
    assert_eq!(taken, ["c-2"]);
    let expected = [
        ("c-1", 1 + RETRY_MS_MAX),
        ("c-2", 5),
        ("c-3", 1),
        ("c-4", 1),
    ];
    assert_eq!(known, candidates(expected));
}

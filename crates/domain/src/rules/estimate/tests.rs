use super::*;

fn of(change: impl FnOnce(&mut Assumptions, &mut Policy)) -> Estimate {
    let (mut given, mut policy) = (Assumptions::default(), Policy::contract_review());
    change(&mut given, &mut policy);
    estimate(&policy, &given)
}

#[test]
fn the_table_of_the_specification() {
    // Five agents, two rounds, three conflicts, one call for the synthesis: 5, 6 and 1 calls in
    // 15 to 35 seconds.
    let estimate = of(|given, _| given.synthesis_calls = 1);
    let rows: Vec<_> = estimate
        .phases
        .iter()
        .map(|row| (row.calls.least, row.time_ms.least, row.time_ms.most))
        .collect();
    assert_eq!(
        rows,
        [
            (5, 5_000, 15_000),
            (6, 5_000, 10_000),
            (0, 0, 0),
            (1, 5_000, 10_000)
        ]
    );
    let total = &estimate.total;
    assert_eq!(
        (total.calls.least, total.time_ms),
        (12, Range::new(15_000, 35_000))
    );
    // The free limits that the specification names, 30 and 15 a minute, do not make it longer.
    let limited = of(|given, _| (given.synthesis_calls, given.requests_per_minute) = (1, Some(30)));
    assert_eq!(limited.total.time_ms.least, 15_000);
    // The specification does not say what happens when the conflicts do not settle: two rounds
    // of ten answers. Each answer is told to the other parties.
    assert_eq!(estimate.phases[1].calls.most, 20);
    assert_eq!(estimate.phases[1].messages, Range::new(15, 43));
    assert_eq!(estimate.phases[2].messages, Range::new(6, 80));
    assert_eq!(estimate.phases[2].calls, Range::default());
}

#[test]
fn the_policy_bounds_what_can_happen() {
    type Change = fn(&mut Assumptions, &mut Policy);
    let cases: [(Change, Range, Range); 8] = [
        (
            |_, policy| policy.rounds_max = 0,
            Range::only(0),
            Range::only(0),
        ),
        (
            |_, policy| policy.rounds_max = 3,
            Range::new(6, 30),
            Range::new(5_000, 15_000),
        ),
        (
            |_, policy| policy.conflicts_max = 1,
            Range::new(2, 10),
            Range::new(5_000, 10_000),
        ),
        (
            |_, policy| policy.messages_per_round_max = 2,
            Range::new(2, 4),
            Range::new(5_000, 10_000),
        ),
        (
            |_, policy| policy.answer_timeout_ms = 1_000,
            Range::new(6, 20),
            Range::new(1_000, 2_000),
        ),
        (
            |given, _| given.participants = 2,
            Range::new(6, 12),
            Range::new(5_000, 10_000),
        ),
        (
            |given, _| given.participants = 1,
            Range::only(0),
            Range::only(0),
        ),
        (
            |given, _| given.conflicts = 0,
            Range::only(0),
            Range::only(0),
        ),
    ];
    for (place, (change, calls, time)) in cases.into_iter().enumerate() {
        let row = &of(change).phases[1];
        assert_eq!((row.calls, row.time_ms), (calls, time), "{place}");
    }
}

#[test]
fn hearing_each_other_costs_messages_and_nothing_else() {
    let (heard, unheard) = (of(|_, _| ()), of(|_, policy| policy.hear_answers = false));
    assert_eq!(heard.messages_unheard, unheard.total.messages);
    assert_eq!(unheard.messages_unheard, unheard.total.messages);
    assert_eq!(heard.total.messages, Range::new(32, 134));
    assert_eq!(unheard.total.messages, Range::new(26, 54));
    assert_eq!(
        (heard.total.calls, heard.total.cost, heard.total.time_ms),
        (
            unheard.total.calls,
            unheard.total.cost,
            unheard.total.time_ms
        )
    );
}

#[test]
fn prices_and_limits_of_the_provider_count() {
    let estimate = of(|given, policy| {
        (given.price_in, given.price_out, given.conflicts) = (1.0, 10.0, 0);
        (given.requests_per_minute, policy.finding_timeout_ms) = (Some(2), 10_000);
    });
    let analysis = &estimate.phases[0];
    assert_eq!(
        (analysis.tokens_in, analysis.tokens_out),
        (Range::only(11_000), Range::only(5_000))
    );
    assert!(
        (analysis.cost.most - 0.061).abs() < 1e-9,
        "{:?}",
        analysis.cost
    );
    // Five calls, two a minute: the last one waits for two minutes.
    assert_eq!(estimate.total.time_ms, Range::only(120_000));
    let never_longer = of(|given, policy| {
        (given.requests_per_minute, policy.case_timeout_ms) = (Some(1), 30_000);
    });
    assert_eq!(never_longer.total.time_ms.most, 30_000);
}

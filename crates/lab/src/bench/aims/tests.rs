use std::collections::BTreeMap;

use super::*;
use crate::bench::agents::AgentKind;
use crate::bench::host::HostReport;
use crate::bench::meter::Usage;

#[test]
fn a_bound_is_kept_or_not() {
    let met = |value, bound| Aim::new("an aim", value, bound).met;
    assert_eq!(met(Some(0.8), Bound::AtLeast(0.8)), Some(true));
    assert_eq!(met(Some(0.799), Bound::AtLeast(0.8)), Some(false));
    assert_eq!(met(Some(1.0), Bound::Above(1.0)), Some(false));
    assert_eq!(met(Some(1.001), Bound::Above(1.0)), Some(true));
    assert_eq!(met(Some(0.05), Bound::AtMost(0.05)), Some(true));
    assert_eq!(met(Some(0.051), Bound::AtMost(0.05)), Some(false));
}

#[test]
fn what_was_not_measured_is_neither_met_nor_not() {
    let aim = Aim::new("an aim", None, Bound::AtLeast(0.9));
    assert_eq!((aim.value, aim.met), (None, None));
    // Nothing was stored, so nothing can be divided by it.
    let aim = Aim::new("an aim", Some(1.0 / 0.0), Bound::AtLeast(0.9));
    assert_eq!((aim.value, aim.met), (None, None));
    assert_eq!(aim.wanted, ">= 0.9");
}

#[test]
fn what_was_measured_is_compared_before_it_is_rounded() {
    let aim = Aim::new("an aim", Some(0.799_96), Bound::AtLeast(0.8));
    assert_eq!((aim.value, aim.met), (Some(0.8), Some(false)));
}

fn cases(replicas: usize, per_second: f64) -> CasesReport {
    let usage = Usage {
        per_second,
        cpu_ms_per_case: 1_000.0 / per_second,
        cpu_ms_by_process: BTreeMap::new(),
        broker_in_per_case: 120.0,
        broker_out_per_case: 120.0,
        host: HostReport::default(),
    };
    CasesReport {
        replicas,
        agents: AgentKind::Python,
        concurrency: 32,
        hear_answers: false,
        cases: 500,
        p50_ms: 200.0,
        p99_ms: 400.0,
        stored_per_case: 47.0,
        stored_bytes_per_case: 57_000.0,
        conflicts_per_case: 0.0,
        reloads_per_case: 12.0,
        usage,
        limited: 0,
    }
}

#[test]
fn of_several_rounds_the_medians_are_compared() {
    // The machine was slow in the first round, and only there four were ahead.
    let rates = [
        (1, 50.0),
        (4, 80.0),
        (1, 100.0),
        (4, 70.0),
        (1, 110.0),
        (4, 60.0),
    ];
    let rounds = rates.map(|(replicas, rate)| cases(replicas, rate));
    let aims = of_replicas(&rounds);
    let value = |name: &str| aims.iter().find(|aim| aim.aim == name).unwrap().value;
    assert_eq!(value("cases a second, 4 replicas / 1"), Some(0.7));
    assert_eq!(value("cases a second, 2 replicas / 1"), None);
}

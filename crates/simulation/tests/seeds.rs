//! Seeds: that they hold, that they are the same each time, and that planted bugs do not hold.

use concord_simulation::{Counts, Faults, Options, Plant, run};

/// Seeds within which a planted bug must be found.
const FOUND_WITHIN: u64 = 300;

#[test]
fn two_hundred_seeds_hold_and_everything_that_can_go_wrong_did() {
    let mut counts = Counts::default();
    for seed in 1..=200 {
        let report = run(seed, &Options::default());
        assert!(report.violations.is_empty(), "seed {seed}: {:#?}", report.violations);
        counts.add(&report.counts);
    }
    for (name, count, _) in counts.rows() {
        assert!(count > 0 || matches!(name, "violations" | "given_up"), "there were no {name}");
    }
    assert_eq!(counts.cases, counts.decided);
}

#[test]
fn two_hundred_seeds_with_the_ladder_hold_and_everything_that_can_happen_on_it_did() {
    let options = Options { ladder: true, ..Options::default() };
    let mut counts = Counts::default();
    for seed in 1..=200 {
        let report = run(seed, &options);
        assert!(report.violations.is_empty(), "seed {seed}: {:#?}", report.violations);
        counts.add(&report.counts);
    }
    for (name, count, _) in counts.ladder.rows() {
        assert!(count > 0, "there were no {name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in [3, 4] {
        let (first, second) = (run(seed, &Options::default()), run(seed, &Options::default()));
        assert_eq!(first, second);
        assert_ne!(first.digest, run(seed + 100, &Options::default()).digest);
        let ladder = Options { ladder: true, ..Options::default() };
        let (first, second) = (run(seed, &ladder), run(seed, &ladder));
        assert_eq!(first, second);
        assert_eq!(run(seed, &Options::default()).counts.ladder.challenges, 0);
    }
}

#[test]
fn a_world_in_which_nothing_goes_wrong_is_quiet() {
    let options = Options { faults: Faults::none(), ..Options::default() };
    for seed in 1..=10 {
        let report = run(seed, &options);
        assert!(report.violations.is_empty(), "seed {seed}: {:#?}", report.violations);
        let Counts { crashes, lost_answers, stale_reads, watchdog_fires, pauses, .. } = report.counts;
        assert_eq!([crashes, lost_answers, stale_reads, watchdog_fires, pauses], [0; 5]);
    }
}

#[test]
fn every_planted_bug_is_found() {
    for plant in Plant::ALL {
        let options = Options { plant: Some(plant), ladder: plant.is_on_ladder(), ..Options::default() };
        let found = (1..=FOUND_WITHIN).find(|seed| !run(*seed, &options).violations.is_empty());
        assert!(found.is_some(), "{} is not found within {FOUND_WITHIN} seeds", plant.as_str());
    }
}

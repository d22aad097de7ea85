//! Messages that are almost right, in any number: every one is used, answered or kept as a dead letter.

use concord_simulation::{Counts, Faults, Options, run};
use concord_testkit::Mutants;
use concord_wire::subject::Lane;

/// Mutants in one world.
const IN_ONE_WORLD: u64 = 250;
/// Mutants when the environment names no other number.
const USUAL: u64 = 2_000;

#[test]
fn every_mutant_of_an_example_is_used_answered_or_dead() {
    let wanted = std::env::var("CONCORD_MUTANTS").ok();
    let wanted = wanted.map_or(USUAL, |number| number.parse().expect("a number"));
    let cases: Vec<String> = (1..=3).map(|number| format!("c-{number}")).collect();
    let mut counts = Counts::default();
    for seed in 1..=wanted.div_ceil(IN_ONE_WORLD) {
        let mut mutants = Mutants::new(seed, &cases, &[Lane::Normal]);
        let intrusions = (0..IN_ONE_WORLD).map(|_| {
            let mutant = mutants.make();
            (mutant.place, mutant.body)
        });
        let options = Options {
            intrusions: intrusions.collect(),
            ladder: seed % 2 == 0,
            // Losses and crashes are the matter of other seeds; some have them here, too.
            faults: if seed % 4 == 0 {
                Faults::default()
            } else {
                Faults::none()
            },
            ..Options::default()
        };
        let report = run(seed, &options);
        assert!(
            report.violations.is_empty(),
            "seed {seed}: {:#?}",
            report.violations
        );
        counts.add(&report.counts);
    }
    let sent = wanted.div_ceil(IN_ONE_WORLD) * IN_ONE_WORLD;
    println!(
        "{sent} mutants: {} messages, {} dead",
        counts.messages, counts.dead
    );
    assert!(
        counts.dead * 4 > sent,
        "few of them were refused: {counts:?}"
    );
}

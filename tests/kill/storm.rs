//! A hundred cases under way, while every process is killed again and again and the broker is away for a moment.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_events::dead_letter::header;
use concord_testkit::{Random, TestInstallation, audit, dead_letters, settled, wait_for};
use serde_json::Value;

use crate::kill::agents::{Agents, store};
use crate::kill::blows::{Blow, last_event, plan, start, start_sharing, strike};
use crate::kill::cases::{self, AGENTS, opening, undisturbed, wait_for_decisions};

pub(crate) const CASES: usize = 100;
/// How many events an undisturbed case has at least.
const EVENTS_OF_A_CASE: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs all cases under these blows: the decisions. Replicas share the work, or stand by as they usually do.
async fn run(blows: &[(u64, Blow)], do_share: bool) -> Vec<(String, Value)> {
    let begun = Instant::now();
    let installation = if do_share {
        start_sharing().await
    } else {
        start().await
    };
    println!("replicas share the work: {do_share}");
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS[..4], cases::answers);
    for number in 0..CASES {
        store(&jetstream, &opening(number)).await;
    }
    for (at, blow) in blows {
        wait_for(format!("event {at}"), PATIENCE, async || {
            let last = last_event(&jetstream).await?;
            if last >= *at {
                Ok(())
            } else {
                Err(format!("event {last}"))
            }
        })
        .await;
        println!(
            "{:6.2} s: event {at}: {blow:?}",
            begun.elapsed().as_secs_f64()
        );
        strike(&installation, *blow).await;
    }
    let decided = wait_for_decisions(&client, CASES, PATIENCE).await;
    settled(&client, PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{:6.2} s: all is done", begun.elapsed().as_secs_f64());
    check(&installation).await;
    decided
}

/// Checks that the invariants hold, that replaying gives what is stored, and that no message had to be given up.
pub(crate) async fn check(installation: &TestInstallation) {
    let letters = dead_letters(installation.client())
        .await
        .expect("the stream can be read");
    let errors: Vec<_> = letters
        .iter()
        .map(|letter| (letter.header(header::SUBJECT), letter.header(header::ERROR)))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let report = audit(installation.client())
        .await
        .expect("the streams can be read");
    let violations: Vec<_> = report.violations().collect();
    assert!(report.holds(), "{violations:#?}");
    let unexamined: Vec<_> = report
        .invariants
        .iter()
        .filter(|checked| checked.examined == 0)
        .collect();
    // No deadline is reached here, no person is needed and nobody signs; every other invariant has been looked at.
    assert_eq!(
        unexamined
            .iter()
            .map(|checked| checked.name)
            .collect::<Vec<_>>(),
        ["deadlines", "capacity", "signatures"]
    );
    assert!(
        installation.exited().is_empty(),
        "{:?}",
        installation.exited()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_comes_to_the_decision_of_an_undisturbed_run() {
    if std::env::var_os("CONCORD_QUICK").is_some() {
        return println!("left out: CONCORD_QUICK is set");
    }
    let mut random = Random::seeded();
    let undisturbed = undisturbed(CASES).await;
    let events = undisturbed.events;
    assert!(
        events >= CASES as u64 * EVENTS_OF_A_CASE,
        "only {events} events"
    );
    let expected = undisturbed.of_first(CASES);
    let do_share = random.once_in(2);
    let disturbed = run(&plan(&mut random, events * 9 / 10), do_share).await;
    assert_eq!(expected.len(), disturbed.len());
    for (expected, found) in expected.iter().zip(&disturbed) {
        assert_eq!(expected, found);
    }
    let statuses: Vec<&Value> = expected
        .iter()
        .flat_map(|(_, decision)| decision["outcomes"].as_array().into_iter().flatten())
        .map(|outcome| &outcome["status"])
        .collect();
    for status in ["discussion", "vote"] {
        assert!(
            statuses.iter().any(|found| *found == status),
            "no conflict ended by {status}"
        );
    }
}

//! Two hundred cases under way, while every process is killed again and again and the broker is away for a moment.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_events::dead_letter::header;
use concord_events::topology::StreamKind;
use concord_testkit::{TestInstallation, audit, settled, stored, until};
use serde_json::Value;

use crate::agents::{Agents, publish};
use crate::blows::{Blow, last_fact, plan, start, strike};
use crate::cases::{self, AGENTS, decisions, opening};
use crate::random::Random;

const CASES: usize = 200;
/// Facts of an undisturbed run, at least: the measure of how far a run has come.
const FACTS_OF_A_CASE: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs all cases under these blows: what was decided, and how many facts it took.
async fn run(blows: &[(u64, Blow)]) -> (Vec<(String, Value)>, u64) {
    let begun = Instant::now();
    let installation = start().await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS[..4], cases::says);
    for number in 0..CASES {
        publish(&jetstream, &opening(number))
            .await
            .expect("the request is stored");
    }
    for (at, blow) in blows {
        let what = format!("fact {at}");
        let reached = until(&what, PATIENCE, async || {
            let last = last_fact(&jetstream).await?;
            if last >= *at {
                Ok(())
            } else {
                Err(format!("fact {last}"))
            }
        });
        reached.await.unwrap_or_else(|error| panic!("{error}"));
        println!(
            "{:6.2} s: fact {at}: {blow:?}",
            begun.elapsed().as_secs_f64()
        );
        strike(&installation, *blow).await;
    }
    let decided = until("all decisions", PATIENCE, async || {
        let decisions = decisions(&client).await?;
        if decisions.len() == CASES {
            Ok(decisions)
        } else {
            Err(format!("{} decisions", decisions.len()))
        }
    });
    let decided = decided.await.unwrap_or_else(|error| panic!("{error}"));
    settled(&client, PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{:6.2} s: all is done", begun.elapsed().as_secs_f64());
    check(&installation).await;
    (
        decided,
        last_fact(&jetstream).await.expect("the stream is there"),
    )
}

/// The invariants hold, replaying gives what is stored, and nothing had to be given up.
async fn check(installation: &TestInstallation) {
    let letters = stored(installation.client(), StreamKind::Dead, ">")
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
    // No deadline is reached here and no person is needed; every other invariant has been looked at.
    assert_eq!(
        unexamined
            .iter()
            .map(|checked| checked.name)
            .collect::<Vec<_>>(),
        ["deadlines", "capacity"]
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
    let (undisturbed, facts) = run(&[]).await;
    assert!(
        facts >= CASES as u64 * FACTS_OF_A_CASE,
        "only {facts} facts"
    );
    let (disturbed, _) = run(&plan(&mut random, facts * 9 / 10)).await;
    for (expected, found) in undisturbed.iter().zip(&disturbed) {
        assert_eq!(expected, found);
    }
    let statuses: Vec<&Value> = undisturbed
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

//! SIGTERM: a process ends what it has in hand, leaves the rest to others at once, and exits with 0.

use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_testkit::{SERVICES, TestInstallation, until};
use concord_wire::subject::Service;

use crate::agents::{Agents, publish};
use crate::cases::{self, AGENTS, case_id, decisions, opening};

const CASES: usize = 60;
/// The stated time, `work.drain_ms`.
const DRAIN: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(90);
/// After this time the broker gives to another what a process had and did not acknowledge.
const ACK_WAIT: Duration = Duration::from_secs(120);

async fn terminate(installation: &TestInstallation, service: Service, replica: usize) {
    let pid = installation.pid(service, replica).expect("it runs");
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &pid.to_string()])
        .status()
        .expect("kill runs");
    assert!(asked.success(), "the process is there");
    let begun = Instant::now();
    let what = format!("{service}-{replica} to end");
    let ended = until(&what, DRAIN + Duration::from_secs(5), async || {
        let ended = installation
            .exited()
            .into_iter()
            .find(|(s, r, _)| (*s, *r) == (service, replica));
        ended
            .map(|(_, _, status)| status)
            .ok_or_else(|| "it runs".to_owned())
    });
    let status = ended.await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(status.code(), Some(0), "{service}: {status}");
    println!(
        "{service} has drained in {:.2} s",
        begun.elapsed().as_secs_f64()
    );
}

/// Whatever a drained process had fetched is done by it or by another long before the broker would notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_drained_process_leaves_nothing_that_has_to_be_missed_first() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_setting(format!("work.ack_wait_ms={}", ACK_WAIT.as_millis()));
        let plan = SERVICES
            .iter()
            .fold(plan, |plan, service| plan.with_replicas(*service, 2));
        plan.with_replicas(Service::AgentAdapter, 0)
    })
    .await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS, cases::says);
    for number in 0..CASES {
        publish(&jetstream, &opening(number))
            .await
            .expect("the request is stored");
    }
    let begun = Instant::now();
    for service in SERVICES
        .into_iter()
        .filter(|service| *service != Service::AgentAdapter)
    {
        terminate(&installation, service, 0).await;
    }
    let decided = until("all decisions", PATIENCE, async || {
        let decisions = decisions(&client).await?;
        let open = (0..CASES)
            .map(case_id)
            .filter(|case| !decisions.iter().any(|(decided, _)| decided == case))
            .count();
        if open == 0 {
            Ok(())
        } else {
            Err(format!("{open} cases are open"))
        }
    });
    decided.await.unwrap_or_else(|error| panic!("{error}"));
    assert!(begun.elapsed() < ACK_WAIT, "it took {:?}", begun.elapsed());
}

//! The replicas of a service share the cases among them: each delivery goes to the one that its case belongs to. One that is frozen or
//! killed holds nobody up.

use std::time::Duration;

use async_nats::jetstream;
use concord_installation::{Instance, instances};
use concord_testkit::{TestInstallation, audit, settled, wait_for};
use concord_wire::subject::Service;

use crate::agents::{Agents, publish};
use crate::blows::{freeze, start, thaw};
use crate::cases::{self, AGENTS, opening, wait_for_decisions};

const PATIENCE: Duration = Duration::from_secs(60);
/// Cases of each part of the test.
const CASES: usize = 20;

/// The processes of these services, two of each.
async fn running(installation: &TestInstallation) -> Vec<Instance> {
    let client = installation.client();
    let is_one = |instance: &&Instance| {
        ["concord-coordinator", "concord-debate-facilitator"].contains(&instance.name.as_str())
    };
    wait_for("two of each answer".to_owned(), PATIENCE, async || {
        let enough = |found: &[Instance]| found.iter().filter(is_one).count() >= 4;
        let found = instances(client, Duration::from_secs(1), enough).await;
        let found = found.map_err(|error| error.to_string())?;
        let found: Vec<Instance> = found.into_iter().filter(|one| is_one(&one)).collect();
        if found.len() == 4 {
            Ok(found)
        } else {
            Err(format!("{} answer", found.len()))
        }
    })
    .await
}

/// A counter, added up over processes.
async fn sum(of: &[Instance], counter: &str) -> u64 {
    let mut sum = 0;
    for instance in of {
        sum += instance
            .counter(counter)
            .await
            .expect("its metrics are read");
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_belongs_to_one_replica_and_another_takes_it_over() {
    let installation = start().await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS[..4], cases::answers);
    let open = async |part: usize| {
        for number in part * CASES..(part + 1) * CASES {
            let stored = publish(&jetstream, &opening(number)).await;
            stored.expect("the request is stored");
        }
    };

    // Of two replicas each works on about half of the cases, and is handed them by the other.
    open(0).await;
    wait_for_decisions(&client, CASES, PATIENCE).await;
    let processes = running(&installation).await;
    let handed = sum(&processes, "concord_handed_off_total").await;
    assert!(
        handed > CASES as u64,
        "{handed} deliveries were handed over"
    );
    // Both take and give back places of the one who opened all cases, and one of them does it for both. While each did, ten to
    // twenty-one locks were lost; without owners of cases it was 176.
    let asked = sum(&processes, "concord_steps_asked_total").await;
    assert!(asked > 0, "no step was asked for");
    let conflicts = sum(&processes, "concord_step_conflicts_total").await;
    println!("{handed} deliveries handed over, {asked} steps asked for, {conflicts} locks lost");
    assert!(conflicts < CASES as u64, "{conflicts} locks were lost");

    // What a frozen replica is handed, it does not take.
    freeze(&installation, Service::Coordinator, 0);
    freeze(&installation, Service::DebateFacilitator, 1);
    open(1).await;
    wait_for_decisions(&client, 2 * CASES, PATIENCE).await;
    thaw(&installation, Service::Coordinator, 0);
    thaw(&installation, Service::DebateFacilitator, 1);

    // Nobody listens any more where one was killed.
    for service in [Service::Coordinator, Service::DebateFacilitator] {
        installation
            .kill(service, 1)
            .expect("a process of the plan");
    }
    open(2).await;
    wait_for_decisions(&client, 3 * CASES, PATIENCE).await;
    settled(&client, PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let report = audit(&client).await.expect("the streams can be read");
    let violations: Vec<_> = report.violations().collect();
    assert!(report.holds(), "{violations:#?}");
}

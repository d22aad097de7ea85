//! The replicas of a service share the cases among them: each delivery goes to the one that its case belongs to. One that is frozen or
//! killed holds nobody up.

use std::ops::Range;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_installation::{Instance, instances};
use concord_testkit::{Message, TestInstallation, audit, settled, wait_for};
use concord_wire::subject::Service;
use futures::{FutureExt, StreamExt};
use serde_json::json;
use tokio::time::timeout;

use crate::kill::agents::{Agents, store};
use crate::kill::blows::{freeze, start_sharing, thaw};
use crate::kill::cases::{self, AGENTS, opening, wait_for_decisions};

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
    wait_for(counter, PATIENCE, async || {
        let mut sum = 0;
        for instance in of {
            sum += instance.counter(counter).await?;
        }
        Ok(sum)
    })
    .await
}

/// What these processes have handed over, have asked of each other, and have lost locks.
async fn worked(of: &[Instance]) -> [u64; 3] {
    [
        sum(of, "concord_handed_off_total").await,
        sum(of, "concord_steps_asked_total").await,
        sum(of, "concord_step_conflicts_total").await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_belongs_to_one_replica_and_another_takes_it_over() {
    let installation = start_sharing().await;
    let client = installation.client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS[..4], cases::answers);
    let open = async |part: usize| {
        for number in part * CASES..(part + 1) * CASES {
            store(&jetstream, &opening(number)).await;
        }
    };

    // Of two replicas each works on about half of the cases, and is handed them by the other.
    // Both take and give back places of the one who opened all cases, and one of them does it for both. While each did, ten to
    // twenty-one locks were lost; without owners of cases it was 176. On a machine that stands still each may see the other gone for a
    // moment; then it is done with more cases.
    let processes = running(&installation).await;
    let (mut before, mut part) = (worked(&processes).await, 0);
    loop {
        open(part).await;
        part += 1;
        wait_for_decisions(&client, part * CASES, PATIENCE).await;
        let after = worked(&processes).await;
        let [handed, asked, conflicts] = [0, 1, 2].map(|one| after[one] - before[one]);
        println!(
            "{handed} deliveries handed over, {asked} steps asked for, {conflicts} locks lost"
        );
        if handed > CASES as u64 && asked > 0 && conflicts < CASES as u64 {
            break;
        }
        assert!(part < 3, "with {part} times {CASES} cases");
        before = after;
    }

    // What a frozen replica is handed, it does not take.
    freeze(&installation, Service::Coordinator, 0);
    freeze(&installation, Service::DebateFacilitator, 1);
    open(part).await;
    wait_for_decisions(&client, (part + 1) * CASES, PATIENCE).await;
    thaw(&installation, Service::Coordinator, 0);
    thaw(&installation, Service::DebateFacilitator, 1);

    // Nobody listens any more where one was killed.
    for service in [Service::Coordinator, Service::DebateFacilitator] {
        installation
            .kill(service, 1)
            .expect("a process of the plan");
    }
    open(part + 1).await;
    wait_for_decisions(&client, (part + 2) * CASES, PATIENCE).await;
    settled(&client, PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let report = audit(&client).await.expect("the streams can be read");
    let violations: Vec<_> = report.violations().collect();
    assert!(report.holds(), "{violations:#?}");
}

/// Opens these cases, of which nobody finds anything, and waits until the deadline of each has passed.
async fn run_out(installation: &TestInstallation, cases: Range<usize>) {
    for number in cases.clone() {
        let parameters = json!({
            "case_id": format!("case-{number}"), "participants": ["ann", "ben"], "task": { "type": "test" },
            "policy": { "finding_timeout_ms": 300 },
        });
        let request = json!({ "action": "open_case", "parameters": parameters });
        Message::new("_", "olga", "coordinator", "request", request)
            .publish(installation.client())
            .await;
    }
    wait_for_decisions(installation.client(), cases.end, PATIENCE).await;
}

/// How many replicas of a service work, and do not stand by.
pub(crate) async fn working(
    installation: &TestInstallation,
    service: Service,
) -> Result<u64, String> {
    let name = format!("concord-{service}");
    let enough = |found: &[Instance]| found.iter().filter(|one| one.name == name).count() >= 2;
    let found = instances(installation.client(), Duration::from_secs(1), enough).await;
    let mut found = found.map_err(|error| error.to_string())?;
    found.retain(|instance| instance.name == name);
    let mut working = 0;
    for instance in found {
        working += instance.counter("concord_working").await?;
    }
    Ok(working)
}

async fn wait_for_working(installation: &TestInstallation, service: Service, count: u64) {
    let what = format!("{count} of {service} to work");
    wait_for(what, PATIENCE, async || {
        match working(installation, service).await? {
            found if found == count => Ok(()),
            found => Err(format!("{found} do")),
        }
    })
    .await;
}

/// Two of each, without the adapter.
async fn standing_by(settings: &[&str]) -> TestInstallation {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_replicas(Service::AgentAdapter, 0);
        let services = Service::ALL.iter();
        let services = services.filter(|service| **service != Service::AgentAdapter);
        let plan = services.fold(plan, |plan, service| plan.with_replicas(*service, 2));
        let settings = settings.iter();
        settings.fold(plan, |plan, setting| plan.with_setting(*setting))
    })
    .await;
    installation.free_openers().await;
    installation
}

/// The services of whose two replicas one works on cases that run out, and is frozen.
const FREEZABLE: [Service; 2] = [Service::Coordinator, Service::EscalationTimer];

/// What was handed over and what two replicas have tried to do.
async fn shared(installation: &TestInstallation) -> Vec<(&'static str, u64)> {
    let mut shared = Vec::new();
    for counter in [
        "concord_handed_off_total",
        "concord_steps_asked_total",
        "concord_step_conflicts_total",
    ] {
        let counted = wait_for(counter, PATIENCE, async || {
            let counted = installation.counter(counter).await;
            counted.map_err(|error| error.to_string())
        });
        shared.push((counter, counted.await));
    }
    shared
}

/// Lets a few cases run out while one replica has all of the work, which hands nothing over: how many were opened. On a machine that is slow
/// for a moment the other one helps or takes over, as it should. Each counts for itself for how long it has been calm, so the two may see for
/// some ten seconds differently who works, and what is handed over then is done by the one that stands by. Then more cases are opened.
async fn run_out_alone(installation: &TestInstallation) -> usize {
    /// So few that one replica is not busy with them.
    const FEW: usize = 5;
    let begun = Instant::now();
    let mut opened = 0;
    while begun.elapsed() < 2 * PATIENCE {
        for service in FREEZABLE {
            wait_for_working(installation, service, 1).await;
        }
        let settled = settled(installation.client(), PATIENCE).await;
        settled.unwrap_or_else(|error| panic!("{error}"));
        let before = shared(installation).await;
        run_out(installation, opened..opened + FEW).await;
        opened += FEW;
        let after = shared(installation).await;
        if after == before {
            return opened;
        }
        println!("{opened} cases: {before:?} became {after:?}");
    }
    panic!("something was handed over with each {FEW} of {opened} cases");
}

/// As long as one can do the work it has all of it, and nothing is handed over.
#[tokio::test(flavor = "multi_thread")]
async fn one_replica_works_while_another_stands_by_and_takes_over() {
    let installation = standing_by(&["work.ack_wait_ms=1000"]).await;
    let mut done = run_out_alone(&installation).await;
    let mut run_out_more = async || {
        run_out(&installation, done..done + CASES).await;
        done += CASES;
    };
    // Whichever of them it is that works.
    for replica in 0..2 {
        for service in FREEZABLE {
            freeze(&installation, service, replica);
        }
        run_out_more().await;
        for service in FREEZABLE {
            thaw(&installation, service, replica);
        }
    }
    for replica in 0..2 {
        for service in FREEZABLE {
            installation
                .kill(service, replica)
                .expect("a process of the plan");
        }
        run_out_more().await;
        for service in FREEZABLE {
            installation
                .launch(service, replica)
                .expect("it starts again");
        }
    }
    installation.holds(PATIENCE).await;
}

/// Each message is refused, so nothing but their number matters.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_behind_is_helped_and_who_helped_gives_nothing_back() {
    /// So many are sent at a time, until there are two that work.
    const MESSAGES: usize = 100;
    const AFTERWARDS: usize = 300;
    let installation = standing_by(&["work.in_flight_max=1", "work.agent_rate_max=0"]).await;
    wait_for_working(&installation, Service::Coordinator, 1).await;
    let client = installation.client();
    wait_for("two of coordinator to work", PATIENCE, async || {
        for number in 0..MESSAGES {
            let finding = json!({ "summary": number.to_string() });
            let message = Message::finding("no-such-case", "ann", finding, 0.8);
            message.publish(client).await;
        }
        match working(&installation, Service::Coordinator).await? {
            2 => Ok(()),
            found => Err(format!("{found} do")),
        }
    })
    .await;
    wait_for_working(&installation, Service::Coordinator, 1).await;
    // What the broker still sends to the one that stands by again has not to come a second time.
    let given_back = client.subscribe("$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.>");
    let mut given_back = given_back.await.expect("a subscription");
    let mut answers = client
        .subscribe("concord.v1.msg.*.*.ben.error")
        .await
        .expect("a subscription");
    for number in 0..AFTERWARDS {
        let finding = json!({ "summary": number.to_string() });
        let message = Message::finding("no-such-case", "ben", finding, 0.8);
        message.publish(client).await;
        let answer = timeout(PATIENCE, answers.next()).await;
        assert!(answer.is_ok_and(|answer| answer.is_some()), "{number}");
    }
    client.flush().await.expect("the broker answers");
    assert!(given_back.next().now_or_never().is_none());
    installation.holds(PATIENCE).await;
}

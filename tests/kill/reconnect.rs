//! When the broker goes away, the services stay and say that they are not ready; when it comes back, they go on.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use concord_testkit::{
    Agent, Instance, TestInstallation, connect, instances, nats_server, wait_for,
};
use concord_wire::subject::Service;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);
/// An orchestrator needs to know within this time whether a process is ready.
const PROMPTLY: Duration = Duration::from_secs(15);

/// Waits until all these processes are ready, or all are not because the broker does not answer.
async fn wait_for_readiness(instances: &[Instance], ready: bool) {
    for instance in instances {
        let what = format!("{} to be ready: {ready}", instance.name);
        wait_for(what, PROMPTLY, async || {
            let found = instance.readiness().await;
            let is_it = match &found {
                Ok(()) => ready,
                // On a slow machine it may not answer itself.
                Err(reasons) => !ready && reasons.contains("the broker does not answer"),
            };
            is_it.then_some(()).ok_or_else(|| format!("{found:?}"))
        })
        .await;
    }
}

/// A case of two agents with a connection of their own is decided.
async fn decides_a_case(installation: &TestInstallation, round: u32) {
    let client = connect(installation.server_url()).await;
    let names = [format!("ann-{round}"), format!("ben-{round}")];
    let low = json!({"summary": "low", "risk_score": 20});
    let high = json!({"summary": "high", "risk_score": 90});
    let _ann = Agent::steadfast(&client, &names[0], low, 0.9).await;
    let _ben = Agent::steadfast(&client, &names[1], high, 0.6).await;
    let parameters = json!({ "participants": names, "task": { "type": "test" } });
    let case = installation.open_case(&parameters).await;
    let decided = installation.decision(&case, PATIENCE).await;
    assert_eq!(decided["decision"]["reason"], "settled");
}

#[tokio::test(flavor = "multi_thread")]
async fn services_outlive_the_broker() {
    let installation =
        TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 1)).await;
    let services: Vec<_> = installation.processes().collect();
    let pids = || {
        services
            .iter()
            .map(|(service, replica)| installation.pid(*service, *replica))
            .collect::<Vec<_>>()
    };
    let before = pids();
    let all = wait_for("all to answer", PATIENCE, async || {
        let enough = |found: &[Instance]| found.len() == services.len();
        let found = instances(installation.client(), Duration::from_secs(5), enough).await;
        let found = found.map_err(|error| error.to_string())?;
        if enough(&found) {
            Ok(found)
        } else {
            Err(format!("{} do", found.len()))
        }
    })
    .await;
    wait_for_readiness(&all, true).await;
    for round in 0..2 {
        if round == 0 {
            assert!(
                installation.stop_broker().await.expect("it is ours"),
                "it stops in order"
            );
        } else {
            installation.kill_broker().expect("it is ours");
        }
        wait_for_readiness(&all, false).await;
        installation.start_broker().await.expect("it starts again");
        wait_for_readiness(&all, true).await;
        decides_a_case(&installation, round).await;
    }
    assert_eq!(pids(), before, "no process was started again");
    assert!(
        installation.exited().is_empty(),
        "{:?}",
        installation.exited()
    );
}

/// A nats-server without streams in place of the one that has them, ended when dropped.
struct Streamless(Child);

impl Streamless {
    fn start(url: &str) -> Self {
        let port = url.rsplit(':').next().expect("a port");
        let mut command = Command::new(nats_server());
        command
            .args(["--addr", "127.0.0.1", "--port", port])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Streamless {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// While a broker starts, it may be reached before it has its streams.
#[tokio::test(flavor = "multi_thread")]
async fn services_that_start_wait_for_the_streams_of_the_broker() {
    let installation = TestInstallation::start_without_adapter().await;
    let services: Vec<_> = installation.processes().collect();
    for (service, replica) in &services {
        installation
            .kill(*service, *replica)
            .expect("a process of the plan");
    }
    installation.stop_broker().await.expect("it is ours");
    let streamless = Streamless::start(installation.server_url());
    for (service, replica) in &services {
        installation
            .launch(*service, *replica)
            .expect("it starts again");
        let log = installation
            .log(*service, *replica)
            .expect("it has a log")
            .to_owned();
        let what = format!("{service} to say that it waits");
        wait_for(what, PATIENCE, async || {
            assert!(
                installation.exited().is_empty(),
                "{:?}",
                installation.exited()
            );
            let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
            if text.contains("could not be looked at") {
                Ok(())
            } else {
                Err("it does not".to_owned())
            }
        })
        .await;
    }
    drop(streamless);
    installation.start_broker().await.expect("it starts again");
    installation
        .ready()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        installation.exited().is_empty(),
        "{:?}",
        installation.exited()
    );
}

//! The adapter enters its agents in the register: it asks once for each, however long nobody answers, and does not insist where it is
//! refused.

use concord_testkit::{
    TestInstallation, event_data, message_bodies, unique, wait_for, with_adapter_settings,
};
use concord_wire::subject::Service;

use crate::hosted::stage::PATIENCE;

const ADAPTER: (Service, usize) = (Service::AgentAdapter, 0);
const COORDINATOR: (Service, usize) = (Service::Coordinator, 0);

/// Waits until the log of the adapter has so many lines with these words about an agent.
async fn says(installation: &TestInstallation, agent: &str, words: &str, count: usize) {
    let log = installation.log(ADAPTER.0, ADAPTER.1).expect("it has one");
    wait_for(format!("{count} times {words:?}"), PATIENCE, async || {
        let log = std::fs::read_to_string(log).map_err(|error| error.to_string())?;
        let lines = log.lines().filter(|line| line.contains(words));
        let found = lines.filter(|line| line.contains(agent)).count();
        (found >= count).then_some(()).ok_or(log)
    })
    .await;
}

/// How many requests of an agent to the coordinator are stored.
async fn requests(installation: &TestInstallation, agent: &str) -> usize {
    let filter = format!("concord.v1.msg.*.{agent}.coordinator.request");
    let all = message_bodies(installation.client(), &filter).await;
    all.expect("the stream can be read").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosted_agents_are_entered_by_one_request_each_and_a_refusal_ends_the_asking_for_a_while() {
    let installation = TestInstallation::start_with(|plan| {
        let plan = plan.with_setting("work.deliveries_max=2");
        with_adapter_settings(plan, "").with_replicas(Service::AgentAdapter, 1)
    })
    .await;
    let [entered, refused] = ["entered", "refused"].map(unique);
    // Nobody can read the entry of this one, so the coordinator gives its request up.
    let subject = format!("concord.v1.event.agent.{refused}.registered");
    let garbled = async_nats::jetstream::new(installation.client().clone())
        .publish(subject, "no event".into())
        .await;
    garbled.expect("it is sent").await.expect("it is stored");

    let agent =
        |name: &str| format!("[[service.agents]]\nagent_id = \"{name}\"\ncommand = [\"cat\"]\n");
    let settings = agent(&entered) + &agent(&refused);
    let file = installation.directory().join("adapter.toml");
    installation.kill(ADAPTER.0, ADAPTER.1).unwrap();
    let stopped = installation.terminate(COORDINATOR.0, COORDINATOR.1).await;
    assert!(stopped.unwrap(), "the coordinator ends by itself");
    std::fs::write(file, settings).expect("the settings are written");
    installation.launch(ADAPTER.0, ADAPTER.1).unwrap();

    says(&installation, &entered, "No coordinator has entered", 2).await;
    assert_eq!(requests(&installation, &entered).await, 1);
    let restarted = installation.restart(COORDINATOR.0, COORDINATOR.1).await;
    restarted.unwrap();
    says(&installation, &refused, "refuses to enter", 1).await;
    for agent in [&entered, &refused] {
        assert_eq!(requests(&installation, agent).await, 1, "{agent}");
    }
    let kind = format!("agent.{entered}.registered");
    wait_for("the agent to be entered", PATIENCE, async || {
        let events = event_data(installation.client(), &kind).await?;
        (events.len() == 1)
            .then_some(())
            .ok_or_else(|| format!("{events:?}"))
    })
    .await;
}

//! Blows: processes are killed and started again, and the broker is away for a moment. They fall at numbers of stored events, so
//! that the same seed gives the same blows.

use async_nats::jetstream;
use concord_testkit::{Plan, Random, SERVICES, TestInstallation, with_hosted_agent};
use concord_wire::subject::Service;

/// Processes of each service.
pub(crate) const REPLICAS: usize = 2;
/// Each process is killed so often.
const KILLS: u64 = 2;

/// What happens to an installation at some point of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Blow {
    /// One process is killed and started again.
    Process(Service, usize),
    /// All processes of a service are killed, and then started again.
    Service(Service),
    /// The broker is stopped and started again.
    Broker,
}

/// Blows for a run of so many events, each with the number of events at which it falls, in order.
pub(crate) fn plan(random: &mut Random, events: u64) -> Vec<(u64, Blow)> {
    let mut blows = Vec::new();
    for service in SERVICES {
        for replica in 0..REPLICAS {
            blows.extend(
                (0..KILLS).map(|_| (random.between(1, events), Blow::Process(service, replica))),
            );
        }
        blows.push((random.between(1, events), Blow::Service(service)));
    }
    blows.push((random.between(events / 4, events / 2), Blow::Broker));
    blows.sort_by_key(|(at, _)| *at);
    blows
}

/// Strikes, and returns when what was killed has been started again.
pub(crate) async fn strike(installation: &TestInstallation, blow: Blow) {
    let replicas = match blow {
        Blow::Process(service, replica) => vec![(service, replica)],
        Blow::Service(service) => (0..REPLICAS).map(|replica| (service, replica)).collect(),
        Blow::Broker => {
            installation.stop_broker().await.expect("the broker stops");
            return installation
                .start_broker()
                .await
                .expect("the broker starts again");
        }
    };
    for (service, replica) in &replicas {
        installation
            .kill(*service, *replica)
            .expect("a process of the plan");
    }
    for (service, replica) in &replicas {
        installation
            .launch(*service, *replica)
            .expect("it starts again");
    }
}

/// An installation of two processes of each service.
pub(crate) async fn start() -> TestInstallation {
    let installation = TestInstallation::start_with(doubled).await;
    installation.free_openers().await;
    installation
}

/// The same, where no replica stands by: all deliveries are shared.
pub(crate) async fn start_sharing() -> TestInstallation {
    let sharing = |plan| doubled(plan).with_setting("work.standby=false");
    let installation = TestInstallation::start_with(sharing).await;
    installation.free_openers().await;
    installation
}

/// A plan with two processes of each service.
pub(crate) fn doubled(plan: Plan) -> Plan {
    // A message that a killed process was working on is delivered to another after this time.
    let plan = with_hosted_agent(plan).with_setting("work.ack_wait_ms=2000");
    SERVICES
        .iter()
        .fold(plan, |plan, service| plan.with_replicas(*service, REPLICAS))
}

/// The position of the last stored event.
pub(crate) async fn last_event(jetstream: &jetstream::Context) -> Result<u64, String> {
    let stream = jetstream
        .get_stream("CONCORD_EVENTS")
        .await
        .map_err(|error| error.to_string())?;
    Ok(stream.cached_info().state.last_sequence)
}

/// Stops a process without its knowing.
pub(crate) fn freeze(installation: &TestInstallation, service: Service, replica: usize) {
    assert!(
        installation
            .freeze(service, replica)
            .expect("a process of the plan")
    );
}

/// Lets a frozen process go on.
pub(crate) fn thaw(installation: &TestInstallation, service: Service, replica: usize) {
    assert!(
        installation
            .thaw(service, replica)
            .expect("a process of the plan")
    );
}

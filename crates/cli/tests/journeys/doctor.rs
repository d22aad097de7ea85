//! The doctor finds what is wrong, and only that.

use concord_protocol::subject::Service;
use concord_testkit::TestInstallation;
use serde_json::Value;

use crate::command::run;

fn faults(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "fault");
    checks.map(|check| format!("{} -> {}", check["found"], check["advice"])).collect()
}

#[tokio::test]
async fn a_missing_service_and_a_missing_consumer_are_found() {
    let installation = TestInstallation::start_with(|plan| plan.with_replicas(Service::Coordinator, 2)).await;
    let url = installation.server_url();
    let said = run(&["doctor", "--server", url]).await;
    let text = said.good();
    assert!(text.contains("Nothing is wrong.") && text.contains("coordinator: 2 processes"), "{text}");

    installation.terminate(Service::DebateFacilitator, 0).await.unwrap();
    let jetstream = async_nats::jetstream::new(installation.client().clone());
    jetstream.delete_consumer_from_stream("debate-facilitator-effects-debate-opened", "CONCORD_EVENTS").await.unwrap();
    let said = run(&["doctor", "--json", "--server", url]).await;
    assert_eq!(said.code, 1);
    let found = faults(&serde_json::from_str(&said.out).unwrap());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("debate-facilitator-effects-debate-opened is missing")
            && found[0].contains("start the debate-facilitator")
    );
    assert!(found[1].contains("debate-facilitator does not answer"), "{found:?}");

    installation.restart(Service::DebateFacilitator, 0).await.unwrap();
    run(&["doctor", "--server", url]).await.good();

    let mut changed = jetstream.get_stream("CONCORD_DEAD").await.unwrap().cached_info().config.clone();
    changed.max_age = std::time::Duration::from_secs(3_600);
    jetstream.update_stream(changed).await.unwrap();
    let said = run(&["doctor", "--server", url]).await;
    assert!(said.code == 1 && said.out.contains("CONCORD_DEAD: max_age is 3600s"), "{}", said.out);
}

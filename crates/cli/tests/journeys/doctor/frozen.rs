//! A process that is connected and does not answer.

use concord_testkit::TestInstallation;
use concord_wire::subject::Service;
use futures::future::join_all;

use super::faults;
use crate::command::{Session, doctor_until, run};

/// The broker goes on giving it a part of what is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stands_still_is_named_and_what_people_read_is_asked_again() {
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::Coordinator, 2)
            .with_replicas(Service::AgentAdapter, 0)
    })
    .await;
    let url = installation.server_url();
    let pid = installation.pid(Service::Coordinator, 1).unwrap();
    assert!(installation.freeze(Service::Coordinator, 1).unwrap());
    let session = Session::new(url);
    let asked = join_all((0..8).map(|_| session.run("policy list"))).await;
    // Chance may give one of them to it every time.
    let answered = asked.iter().filter(|said| said.code == 0).count();
    assert!(answered >= 7, "{asked:#?}");
    let said = doctor_until(&["--json", "--server", url], |said| {
        said.code == 1 && said.out.contains("is connected and does not answer")
    })
    .await;
    let found = faults(&serde_json::from_str(&said.out).unwrap());
    let named = format!("coordinator (pid {pid} on ");
    assert!(
        found.iter().any(|fault| fault.contains(&named)),
        "{found:#?}"
    );
    // It is not a process of another installation in the same account.
    let other = ["--prefix", "other", "doctor", "--json", "--server", url];
    let other = run(&other).await.out;
    assert!(other.contains("conflict-detector does not answer"));
    assert!(
        !other.contains("is connected and does not answer"),
        "{other}"
    );
    installation.thaw(Service::Coordinator, 1).unwrap();
    doctor_until(&["--json", "--server", url], |said| {
        !said.out.contains("is connected and does not answer")
    })
    .await;
}

//! A replica that was started as another service: it can do nothing, and says so.

use concord_testkit::{command, concord, free_address, http_get, programs_of, wait_for};
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::user::start;

/// A coordinator that is connected as a debate facilitator would be is not ready, and has the broker's words for it; `concord doctor` names it.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_the_rights_of_its_service_is_not_ready() {
    let output = concord(&["permissions", "--service", "debate-facilitator", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let users = json!({ "users": [
        { "user": "debate-facilitator", "password": "x", "permissions": printed["permissions"] },
        { "user": "services", "password": "x" },
    ] });
    let config = format!("authorization: {users}\nno_auth_user: services");
    let installation = start(config).await;
    let address = free_address().to_string();
    let program = programs_of(&["concord-coordinator"]).join("concord-coordinator");
    let settings = [
        format!("broker.servers={}", installation.server_url()),
        "broker.user=debate-facilitator".to_owned(),
        "broker.password=x".to_owned(),
        "broker.inbox_prefix=_INBOX.debate-facilitator".to_owned(),
        format!("http.address={address}"),
    ];
    let mut wrong = command(program);
    wrong.args(settings.iter().flat_map(|one| ["--set", one]));
    let _wrong = wrong.spawn().expect("it starts");
    wait_for("the broker's words", PATIENCE, async || {
        let answer = http_get(&address, "/readyz").await;
        let answer = answer.map_err(|error| error.to_string())?;
        let said = answer.contains("Permissions Violation for Publish to");
        said.then_some(()).ok_or(answer)
    })
    .await;
    // The other coordinator answers for the service, and the doctor waits only so long for everybody else.
    wait_for("the doctor to name it", PATIENCE, async || {
        let doctor = concord(&["doctor", "--server", installation.server_url()]);
        let told = String::from_utf8_lossy(&doctor.stdout);
        let is_named = told.contains("concord-coordinator (pid")
            && told.contains("is not ready: the broker does not give the rights");
        let is_told = is_named && !doctor.status.success();
        is_told.then_some(()).ok_or_else(|| told.into_owned())
    })
    .await;
    let metrics = http_get(&address, "/metrics").await.expect("it lives");
    let refuses = "concord_stream_refuses{stream=\"CONCORD_EVENTS\"} 1";
    assert!(!metrics.contains(refuses), "{metrics}");
}

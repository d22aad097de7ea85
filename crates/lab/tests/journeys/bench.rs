//! `concord-lab bench` on a real broker and real services, with as few cases as possible.

use std::time::Duration;

use concord_testkit::{CommandOutput, binaries, finish, nats_server};
use serde_json::Value;

use crate::{concord_lab, run};

/// A measurement takes seconds, and several minutes where other tests have the machine.
const MEASURED_MAX: Duration = Duration::from_secs(600);

/// Runs `concord-lab bench` on the services of this build.
async fn bench(arguments: &[&str]) -> CommandOutput {
    let mut command = concord_lab();
    command.env("CONCORD_NATS_SERVER", nats_server());
    command.arg("bench").arg("--binaries").arg(binaries());
    let output = tokio::time::timeout(MEASURED_MAX, command.args(arguments).output()).await;
    let output = output.expect("the measurement ends");
    output.expect("the program can be started").into()
}

fn aim<'a>(report: &'a Value, name: &str) -> &'a Value {
    let aims = report["aims"].as_array().unwrap();
    let found = aims
        .iter()
        .find(|aim| aim["aim"].as_str().unwrap().contains(name));
    found.unwrap_or_else(|| panic!("no aim {name} in {aims:?}"))
}

#[tokio::test]
async fn cases_are_measured_by_the_number_of_replicas() {
    let sizes = "--cases 4 --concurrency 4 --rounds 1 --messages 100 --in-flight 4 --json";
    let mut arguments: Vec<&str> = sizes.split(' ').collect();
    arguments.extend(["--replicas", "1,2", "--agents", "rust"]);
    let report = bench(&arguments).await.json();
    let replicas = report["replicas"].as_array().unwrap();
    for (measured, expected) in replicas.iter().zip([1, 2]) {
        assert_eq!(
            (&measured["replicas"], &measured["cases"]),
            (&expected.into(), &4.into())
        );
        assert!(measured["per_second"].as_f64().unwrap() > 0.0, "{measured}");
        // Five tasks, five findings, and what they lead to.
        assert!(
            measured["stored_per_case"].as_f64().unwrap() > 20.0,
            "{measured}"
        );
        assert!(
            measured["broker_in_per_case"].as_f64().unwrap() > 20.0,
            "{measured}"
        );
        assert_eq!(measured["limited"], 0);
        for process in [
            "coordinator",
            "agent-adapter",
            "agents",
            "nats-server",
            "driver",
        ] {
            assert!(
                measured["cpu_ms_by_process"][process].is_number(),
                "{measured}"
            );
        }
    }
    assert_eq!(replicas.len(), 2);
    assert!(aim(&report, "2 replicas / 1")["met"].is_boolean());
    // There were not four replicas, and nothing by hand.
    assert_eq!(aim(&report, "4 replicas / 1")["met"], Value::Null);
    assert_eq!(aim(&report, "by hand, 128")["met"], Value::Null);
}

#[tokio::test]
async fn many_cases_are_measured_in_tenths() {
    let arguments = [
        "--long",
        "--cases",
        "20",
        "--concurrency",
        "4",
        "--agents",
        "rust",
        "--json",
    ];
    let output = bench(&arguments).await;
    assert!(output.err.contains("2 of 20 cases"), "{}", output.err);
    let report = output.json();
    let tenths = report["tenths"].as_array().unwrap();
    assert_eq!(tenths.len(), 10);
    assert_eq!(tenths[9]["cases"], 20);
    assert!(tenths[0]["resident_mb"]["nats-server"].as_f64().unwrap() > 1.0);
    assert_eq!(
        aim(&report, "coordinator's resident memory")["wanted"],
        "<= 96"
    );
}

#[tokio::test]
async fn what_cannot_be_measured_is_refused_before_anything_starts() {
    let refused = run(&["bench", "--replicas", "1,0"]).await;
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--replicas"), "{}", refused.err);

    let mut without_python = concord_lab();
    without_python
        .env("PATH", "/nowhere")
        .args(["bench", "--replicas", "1"]);
    let error = finish(&mut without_python).await.refused(69);
    assert!(
        error.contains("needs python3") && error.contains("--agents rust"),
        "{error}"
    );
}

//! Metrics and logs by OTLP: the collector has what `/metrics` shows and what stands in the log, with the trace of the case.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use concord_testkit::{Agent, TestInstallation, unique, wait_for};
use concord_wire::subject::Service;
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value};
use serde_json::json;

use crate::tracing::PATIENCE;
use crate::tracing::case::trace_of;
use crate::tracing::collector::{Collector, end};

const COORDINATOR: &str = "concord-coordinator";

/// How many steps of cases the coordinator has told the collector of.
fn steps(collector: &Collector) -> f64 {
    let metrics = collector.metric(COORDINATOR, "concord_steps");
    let Some(Data::Sum(sum)) = metrics.last().and_then(|metric| metric.data.clone()) else {
        return 0.0;
    };
    assert!(sum.is_monotonic);
    let counts = sum.data_points.iter().map(|point| match point.value {
        Some(Value::AsDouble(count)) => count,
        _ => 0.0,
    });
    counts.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collector_has_numbers_and_log_lines_beside_spans() {
    let collector = Collector::start(StatusCode::OK).await;
    let installation = TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_setting(collector.setting())
            .with_setting("telemetry.otlp_logs=true".to_owned())
            .with_setting("telemetry.otlp_metrics_ms=100".to_owned())
            .with_setting("telemetry.log=info,concord_runtime=debug".to_owned())
    })
    .await;
    let client = installation.client();
    let names = [unique("ann"), unique("ben")];
    let low = json!({ "summary": "low", "risk_score": 20 });
    let high = json!({ "summary": "high", "risk_score": 90 });
    let _ann = Agent::steadfast(client, &names[0], low, 0.9).await;
    let _ben = Agent::agreeable(client, &names[1], high, 0.6).await;
    let case = json!({ "participants": names, "task": { "type": "test" } });
    let case = installation.open_case(&case).await;
    installation.decision(&case, PATIENCE).await;
    wait_for("the numbers of the case", PATIENCE, async || {
        let found = steps(&collector);
        if found >= 4.0 {
            Ok(())
        } else {
            Err(found.to_string())
        }
    })
    .await;
    let times = collector.metric(COORDINATOR, "concord_handling_seconds");
    assert!(
        matches!(
            times.last().and_then(|metric| metric.data.clone()),
            Some(Data::Histogram(_))
        ),
        "{times:?}"
    );
    end(&installation).await;
    let lines = collector.lines();
    for service in [
        "coordinator",
        "conflict-detector",
        "debate-facilitator",
        "escalation-timer",
    ] {
        let sender = format!("concord-{service}");
        let started = lines
            .iter()
            .find(|line| line.service == sender && line.text == "Started.");
        let started = started.unwrap_or_else(|| panic!("{service}: {lines:#?}"));
        assert_eq!(
            (started.severity.as_str(), started.attribute("service")),
            ("INFO", service)
        );
    }
    let of_case = lines
        .iter()
        .filter(|line| line.trace_id == trace_of(case.as_str()));
    let decided = of_case.filter(|line| line.text == "Decided." && line.severity == "DEBUG");
    let outcomes: BTreeSet<&str> = decided.map(|line| line.attribute("outcome")).collect();
    for outcome in ["finding_recorded", "completed", "resolved", "decided"] {
        assert!(outcomes.contains(outcome), "{outcomes:?}");
    }
}

//! A collector that is away, refuses or never answers: cases are decided as if it were there, and each service logs once
//! what is wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use concord_testkit::{Agent, TestInstallation, free_address, unique, wait_for};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::tracing::PATIENCE;
use crate::tracing::collector::{Collector, end, setting};

/// The longest time of one attempt to send spans. A case that waits for an attempt takes longer than this.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
/// The longest time in which services without work end: four seconds until the broker has ended what they have asked it for (record
/// 75), one for their last spans, and the rest for the machine. Whoever waited for an attempt would take nine.
const END_MAX: Duration = Duration::from_millis(8_500);

/// How often it is looked whether the machine stands still, and for how long nobody has looked when it has.
const LOOKS_EVERY: Duration = Duration::from_millis(10);
const STILL_MIN: Duration = Duration::from_millis(200);

/// A service logs the first when its spans are not taken, and the second when they are taken again.
const FAILS: &str = "Spans cannot be sent";
const MENDED: &str = "Spans are being sent again";
/// The services that have spans when a case is decided.
const EXPORTING: [Service; 3] = [
    Service::Coordinator,
    Service::ConflictDetector,
    Service::DebateFacilitator,
];

/// Measures how long something takes. While this machine stands still nobody gets on, so that time does not count.
struct Stopwatch {
    begun: Instant,
    still_ms: Arc<AtomicU64>,
    looking: JoinHandle<()>,
}

impl Stopwatch {
    fn start() -> Self {
        let still_ms = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&still_ms);
        let looking = tokio::spawn(async move {
            let mut every = interval(LOOKS_EVERY);
            every.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut before = Instant::now();
            loop {
                every.tick().await;
                let still = before.elapsed().saturating_sub(STILL_MIN);
                let millis = u64::try_from(still.as_millis()).unwrap_or(u64::MAX);
                counted.fetch_add(millis, Ordering::Relaxed);
                before = Instant::now();
            }
        });
        Self {
            begun: Instant::now(),
            still_ms,
            looking,
        }
    }

    fn elapsed(&self) -> Duration {
        let still = Duration::from_millis(self.still_ms.load(Ordering::Relaxed));
        self.begun.elapsed().saturating_sub(still)
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

async fn start(setting: String) -> TestInstallation {
    // Agents here speak plain NATS, so nobody needs to host them.
    TestInstallation::start_with(|plan| {
        plan.with_replicas(Service::AgentAdapter, 0)
            .with_setting(setting)
    })
    .await
}

/// A case with a debate is decided before any attempt to send spans could have come to an end.
async fn decides_a_case(installation: &TestInstallation) {
    let client = installation.client();
    let names = [unique("ann"), unique("ben")];
    let low = json!({ "summary": "low", "risk_score": 20 });
    let high = json!({ "summary": "high", "risk_score": 90 });
    let _ann = Agent::steadfast(client, &names[0], low, 0.9).await;
    let _ben = Agent::agreeable(client, &names[1], high, 0.6).await;
    let begun = Stopwatch::start();
    let policy = json!({ "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 });
    let case = json!({ "policy": policy, "participants": names, "task": { "type": "test" } });
    let case: CaseId = installation.open_case(&case).await;
    installation.decision(&case, PATIENCE).await;
    assert!(
        begun.elapsed() < ATTEMPT_MAX,
        "the case took {:?}",
        begun.elapsed()
    );
}

/// The log of a service.
fn log(installation: &TestInstallation, service: Service) -> String {
    let path = installation.log(service, 0).expect("a process of the plan");
    std::fs::read_to_string(path).expect("its log")
}

/// Waits until a service has logged this.
async fn wait_for_log(installation: &TestInstallation, service: Service, what: &str) {
    wait_for(format!("{service} to say {what:?}"), PATIENCE, async || {
        let log = log(installation, service);
        if log.contains(what) { Ok(()) } else { Err(log) }
    })
    .await;
}

/// Every service ends in time, however long an attempt may take, and has logged the failure once.
async fn check_end_and_one_warning(installation: &TestInstallation) {
    let begun = Stopwatch::start();
    end(installation).await;
    assert!(
        begun.elapsed() < END_MAX,
        "the services took {:?} to end",
        begun.elapsed()
    );
    for (service, _) in installation.processes() {
        let log = log(installation, service);
        let warnings: Vec<&str> = log.lines().filter(|line| line.contains(FAILS)).collect();
        // The timer has fired nothing, and so has no spans.
        let expected = usize::from(service != Service::EscalationTimer);
        assert_eq!(warnings.len(), expected, "{service}: {warnings:#?}");
    }
}

/// Cases are decided, before and after the services have noticed that nothing at this address takes their spans.
async fn goes_on_without(address: &str) {
    let installation = start(setting(address)).await;
    decides_a_case(&installation).await;
    // All services: one whose first attempt is not over when it is to end has logged nothing.
    for service in EXPORTING {
        wait_for_log(&installation, service, FAILS).await;
    }
    decides_a_case(&installation).await;
    check_end_and_one_warning(&installation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there() {
    goes_on_without(&free_address().to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_takes_connections_and_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = silent.local_addr().expect("an address").to_string();
    goes_on_without(&address).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_refuses_until_it_is_mended() {
    let collector = Collector::start(StatusCode::INTERNAL_SERVER_ERROR).await;
    let installation = start(collector.setting()).await;
    for attempts in 1..=2 {
        decides_a_case(&installation).await;
        wait_for(format!("attempt {attempts}"), PATIENCE, async || {
            let found = collector.requests_of("concord-coordinator");
            if found >= attempts {
                Ok(())
            } else {
                Err(format!("{found} attempts"))
            }
        })
        .await;
    }
    // All services: one that made its first attempt only after the collector is mended would log no failure.
    for service in EXPORTING {
        wait_for_log(&installation, service, FAILS).await;
    }
    assert!(collector.spans().is_empty());
    collector.answer(StatusCode::OK);
    decides_a_case(&installation).await;
    wait_for_log(&installation, Service::Coordinator, MENDED).await;
    assert!(!collector.spans().is_empty());
    check_end_and_one_warning(&installation).await;
}

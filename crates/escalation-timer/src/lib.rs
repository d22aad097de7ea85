//! The escalation timer: owns time. Every deadline in the system is armed, moved, cancelled and fired here and nowhere
//! else, through the broker's scheduler.
//!
//! An event says which deadlines its aggregate has open after it, and which of them it opened or closed. That account is
//! the record; a scheduled message is a means. So a schedule that is delivered although its deadline has closed or
//! moved is seen through ([`due`]), and a deadline whose schedule was lost is found by the watchdog ([`watchdog`]).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use concord_domain::aggregates::deadline::DeadlineMachine;
use concord_events::topology::ConsumerKind;
use concord_runtime::service::{Binder, Run, ServiceContext, ServiceRunner};
use concord_runtime::{Aggregates, Ports};
use concord_wire::subject::Service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod archive;
mod arm;
mod due;
mod fire;
mod heads;
mod schedule;
mod watchdog;

pub use watchdog::Watchdog;

/// Settings of the escalation timer alone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimerSettings {
    /// Bytes of a case that go to the archive; one of which more is stored stays in the streams. So much is held in memory several times.
    pub archive_case_bytes_max: usize,
    /// How often the watchdog looks for deadlines that nobody fired, in milliseconds.
    pub watchdog_interval_ms: u64,
    /// How long after a deadline was due the watchdog fires it, in milliseconds.
    pub watchdog_grace_ms: u64,
    /// How long what is stored waits at most for a head that digests it, in milliseconds; 0 for no heads. See `concord audit`.
    pub head_interval_ms: u64,
    /// A head is made before that time when so many events, messages and dead letters wait for it.
    pub head_messages: u64,
    /// File with the installation's secret key, which signs heads; `concord keys generate` makes one. Without it heads are unsigned.
    pub head_key: Option<PathBuf>,
}

impl Default for TimerSettings {
    fn default() -> Self {
        Self {
            archive_case_bytes_max: 32 << 20,
            watchdog_interval_ms: 5_000,
            watchdog_grace_ms: 5_000,
            head_interval_ms: 60_000,
            head_messages: 1_000,
            head_key: None,
        }
    }
}

/// Events under way at once while their deadlines are held back. Each is kept in memory with all that it says, a few
/// kilobytes: ten thousand debates that climb at one instant took 120 MB with four times as many.
const HELD_MAX: usize = 2_048;

/// The service.
pub struct EscalationTimer;

impl Run for EscalationTimer {
    const SERVICE: Service = Service::EscalationTimer;
    const ABOUT: &'static str = "Owns time: arms, cancels and fires every deadline";
    type Own = TimerSettings;

    fn check_files(own: &TimerSettings) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if own.head_interval_ms > 0 {
            heads::key(own)?;
        }
        Ok(())
    }

    async fn start(
        mut runner: ServiceRunner,
        own: TimerSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let service = runner.context().clone();
        let watchdog = bind(&service, own.watchdog_grace_ms, &mut runner);
        let interval = Duration::from_millis(own.watchdog_interval_ms.max(100));
        runner.spawn(watchdog::run(watchdog, runner.clone(), interval));
        if own.head_interval_ms > 0 {
            runner.spawn(heads::Heads::new(&runner, &own)?.run());
        }
        if runner.broker.archive_after_ms > 0 {
            runner.spawn(archive::Archiver::new(&runner, &own)?.run());
        }
        Ok(())
    }
}

/// Binds the service's handlers to its consumers, and its verb to its API. Returns the watchdog, whose rounds somebody has
/// to begin.
pub fn bind<P: Ports>(
    service: &ServiceContext<P>,
    watchdog_grace_ms: u64,
    binder: &mut impl Binder,
) -> Watchdog<P> {
    let deadlines = Aggregates::<DeadlineMachine, P>::new(service.ports.clone(), &service.cache);
    let firing = Arc::new(fire::Firing {
        service: service.clone(),
        deadlines,
    });
    let schedule = schedule::Schedule::new(&service.ports);
    let arm = arm::ArmHandler::new(service, schedule.clone());
    binder.handle_many(ConsumerKind::Deadlines, HELD_MAX, arm);
    binder.answer("armed", schedule.verb(&firing, watchdog_grace_ms));
    let due = due::DueHandler {
        firing: Arc::clone(&firing),
        schedule,
    };
    binder.handle(ConsumerKind::Due, due);
    binder.handle_no_messages(service);
    Watchdog::new(firing, watchdog_grace_ms)
}

//! `concord doctor`: looks for faults, and gives advice about each.

use std::time::Duration;

use clap::Args;
use concord_wire::subject::Service;
use serde::Serialize;

use crate::shared::args::{JsonArg, service};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, BAD, DOUBTFUL, FAINT, GOOD, STRONG, styled};

mod broker;
mod payloads;
mod processes;
mod running;
mod services;
mod storage;
mod streams;

/// What is to be done with services that answer, so that they make what is missing.
const RESTART: &str = "restart";

/// Arguments of `concord doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: concord doctor --lag-max 1000\n\nThe exit code is 1 when something is wrong."
)]
pub(crate) struct DoctorArgs {
    /// More messages than this waiting in one consumer are a fault.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    lag_max: u64,
    /// Clocks further apart than this are a fault, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    skew_max: u64,
    /// A service that this installation does without: it is no fault that it is not there. For several give it several times.
    #[arg(long, value_name = "SERVICE", value_parser = service)]
    without: Vec<Service>,
    #[command(flatten)]
    json: JsonArg,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    /// Nothing is wrong.
    Good,
    /// Nothing is wrong, but an operator should know.
    Note,
    /// Something is wrong.
    Fault,
}

/// A check, with its result.
#[derive(Debug, Serialize)]
struct Check {
    /// The part of the installation.
    area: &'static str,
    verdict: Severity,
    /// A sentence that says what is so.
    found: String,
    /// Advice; none where nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Check {
    fn good(area: &'static str, found: impl Into<String>) -> Self {
        Self {
            area,
            verdict: Severity::Good,
            found: found.into(),
            advice: None,
        }
    }

    fn note(area: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            area,
            verdict: Severity::Note,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    fn fault(area: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            area,
            verdict: Severity::Fault,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &DoctorArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut checks = broker::look(&broker, args.skew_max).await;
    let services = running::look(&broker).await;
    // What is missing a service makes when it starts.
    let start = match &services {
        Ok(running) if !running.answer.is_empty() => RESTART,
        _ => "start",
    };
    checks.extend(streams::streams(&broker, start).await);
    checks.extend(streams::copies(&broker).await);
    checks.extend(storage::look(&broker).await);
    checks.extend(payloads::look(&broker, start).await);
    checks.extend(services::look(&broker, services, &args.without).await);
    let ack_wait = Duration::from_millis(connection.settings()?.work.ack_wait_ms);
    checks.extend(streams::consumers(&broker, args.lag_max, ack_wait, &args.without).await);
    checks.extend(services::deadlines(&broker).await);
    checks.extend(streams::dead(&broker).await);
    let faults = checks
        .iter()
        .filter(|check| check.verdict == Severity::Fault)
        .count();
    if args.json.json {
        output::json(&serde_json::json!({ "healthy": faults == 0, "checks": checks }))?;
    } else {
        output::print(&text(&checks, faults))?;
    }
    Ok(if faults > 0 { FOUND } else { 0 })
}

fn text(checks: &[Check], faults: usize) -> String {
    let mut text = String::new();
    let mut area = "";
    for check in checks {
        if check.area != area {
            area = check.area;
            text.push_str(&format!("{}\n", styled(STRONG, area)));
        }
        let mark = match check.verdict {
            Severity::Good => styled(GOOD, "ok   "),
            Severity::Note => styled(DOUBTFUL, "note "),
            Severity::Fault => styled(BAD, "FAULT"),
        };
        text.push_str(&format!("  {mark} {}\n", check.found));
        if let Some(advice) = &check.advice {
            text.push_str(&format!("        {} {advice}\n", styled(FAINT, "->")));
        }
    }
    let verdict = match faults {
        0 => styled(GOOD, "Nothing is wrong."),
        1 => styled(BAD, "1 fault."),
        faults => styled(BAD, format!("{faults} faults.")),
    };
    text.push_str(&format!("\n{verdict}\n"));
    text
}

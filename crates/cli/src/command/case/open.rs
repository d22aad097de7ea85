//! `concord case open`: opening a case, and waiting for its decision.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use concord_events::Aggregate;
use concord_runtime::Broker;
use concord_wire::payload::OpenCase;
use concord_wire::policy::{Policy, PolicyRequest};
use concord_wire::subject::Service;
use concord_wire::{CaseId, Fault};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use crate::command::case::show;
use crate::shared::args::JsonArg;
use crate::shared::case_file;
use crate::shared::connection::{ConnectionArgs, ask_of_input};
use crate::shared::event_source::{EventQuery, EventSource};
use crate::shared::failure::Failure;
use crate::shared::input;
use crate::shared::output::{self, NAMED, styled};

/// Arguments of `concord case open`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is what the request open_case takes (proto-schemas/open_case.schema.json), for example:
  {\"policy\": \"contract-review\", \"participants\": [\"ann\", \"ben\"],
   \"task\": {\"type\": \"contract_review\", \"title\": \"Lease\", \"input\": {}}}

Without --as it is opened by the installation's operator, whom the bounds of policies do not hold; with --as by that person, who
needs the role opener (docs/policies.md).

Examples:
  concord case open case.json
  concord case open - --wait --timeout 60 --json < case.json")]
pub(crate) struct OpenArgs {
    /// The case as JSON; - for standard input.
    file: PathBuf,
    /// Wait for the decision, and show it.
    #[arg(long)]
    wait: bool,
    /// Wait no longer than this many seconds [default: as long as the case's policy allows, and a little more].
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    timeout: Option<u64>,
    #[command(flatten)]
    json: JsonArg,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    case_id: CaseId,
}

/// The time that timer and services may take beyond the policy's own limit.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run(connection: &ConnectionArgs, args: &OpenArgs) -> Result<u8, Failure> {
    let name = input::name(&args.file);
    let bytes = input::read_input(&args.file, "concord case open")?;
    let request = parse(&bytes).map_err(|fault| malformed(&name, &fault))?;
    let broker = connection.connect().await?;
    let opened: Opened = ask_of_input(&broker, Service::Coordinator, "open_case", &request).await?;
    if !args.wait {
        match args.json.json {
            true => output::json(&opened)?,
            false => output::print(&format!(
                "opened case {}; follow it with: concord case watch {}\n",
                styled(NAMED, &opened.case_id),
                opened.case_id
            ))?,
        }
        return Ok(0);
    }
    let limit = match args.timeout {
        Some(seconds) => Duration::from_secs(seconds),
        None => allowed(&broker, &opened.case_id).await? + PATIENCE,
    };
    decided(&broker, &opened.case_id, limit).await?;
    show::show(&broker, &opened.case_id, args.json).await
}

/// Reads a request, so that faults are reported before anything is sent. What stands under the name of its policy is known to the
/// installation alone.
pub(crate) fn parse(bytes: &[u8]) -> Result<OpenCase, Fault> {
    let request: OpenCase = concord_wire::envelope::from_json(bytes, "")?;
    let policy = PolicyRequest::parse(&request.policy, "/policy")?;
    if let Some(preset) = Policy::preset(policy.name()) {
        policy.applied_to(&preset, "/policy")?;
    }
    Ok(request)
}

/// How long the case may take by its policy.
async fn allowed(broker: &Broker, case: &CaseId) -> Result<Duration, Failure> {
    let state = case_file::state(broker, case).await?;
    let opened = state.and_then(|state| state.opened);
    let allowed = opened.map(|opened| Duration::from_millis(opened.policy.case_timeout_ms));
    allowed.ok_or_else(|| Failure::failed(format!("case {case} was opened and is not there")))
}

pub(crate) fn malformed(name: &str, fault: &Fault) -> Failure {
    let fault = Fault {
        advice: format!(
            "{} `concord case open --help` has an example.",
            fault.advice
        ),
        ..fault.clone()
    };
    input::malformed(name, "is not a case", &fault)
}

/// How the subject of the event ends that says that a case was cancelled.
const CANCELLED: &str = ".cancelled";
/// The events with which a case ends.
pub(super) const ENDS: [&str; 2] = ["decided", "cancelled"];

/// Waits for the decision of a case.
async fn decided(broker: &Broker, case: &CaseId, limit: Duration) -> Result<(), Failure> {
    let query = EventQuery::of(Aggregate::Case, &case.token()).named(&ENDS);
    let source = EventSource::new(broker).await?;
    let mut decisions = source.follow(&query).await?;
    match tokio::time::timeout(limit, decisions.next()).await {
        Ok(Some(Err(failure))) => Err(failure),
        Ok(Some(Ok(end))) if end.subject.ends_with(CANCELLED) => Err(Failure::failed(format!(
            "case {case} was cancelled; `concord case show {case}` says by whom and why"
        ))),
        Ok(Some(Ok(_))) => Ok(()),
        Ok(None) => Err(Failure::unavailable(
            "the broker has gone; see `concord doctor`",
        )),
        Err(_) => {
            let phase = case_file::state(broker, case)
                .await?
                .map(|state| show::phase_name(state.phase))
                .unwrap_or("unknown");
            Err(Failure::failed(format!(
                "case {case} is not decided after {} s, it is {phase}; see `concord case show {case}` and `concord doctor`",
                limit.as_secs()
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_case_is_said_at_its_place() {
        for (text, place) in [
            ("{", "standard input is not a case: "),
            ("[]", "is not a case"),
            (
                r#"{"participants": ["a b"], "task": {"type": "t"}}"#,
                " at /participants/0: ",
            ),
            (r#"{"participants": ["a"], "task": {}}"#, " at /task/type: "),
            (
                r#"{"participants": ["a"], "task": {"type": "t"}, "policy": "No Name"}"#,
                " at /policy: ",
            ),
            (
                r#"{"participant": ["a"], "task": {"type": "t"}}"#,
                "participant",
            ),
        ] {
            let message =
                malformed("standard input", &parse(text.as_bytes()).unwrap_err()).to_string();
            assert!(
                message.contains(place) && !message.contains('\n'),
                "{text}: {message}"
            );
        }
    }
}

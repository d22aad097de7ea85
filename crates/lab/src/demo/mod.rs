//! `concord-lab demo`: one contract, the sample panel, and the five phases as they happen.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use concord_wire::CaseId;
use concord_wire::payload::OpenCase;
use concord_wire::subject::Service;
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

mod decision;
mod ladder;
mod timeline;
mod view;
mod words;

use crate::panel::contract::{self, Contract};
use crate::panel::events::follow;
use crate::panel::stage::{Stage, StageOptions};
use crate::panel::{self, STOPPED};
use concord_cli::shared::case_file;
use concord_cli::shared::connection;
use concord_cli::shared::failure::{FOUND, Failure};
use concord_cli::shared::output;
use timeline::{CaseFilter, TimelineEvent};
use view::View;

/// The contract that is reviewed when none is given, in the panel's folder.
const SAMPLE: &str = "sample-contract.json";
/// The longest time without an event: above the deadline of every phase of the preset.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Arguments of `concord-lab demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// A contract as JSON: contract_id, title, clauses; the sample contract when absent.
    file: Option<PathBuf>,
    /// Which line of the file, from 1, where it has one contract a line (.jsonl; the first when absent).
    #[arg(long, value_name = "N", requires = "file")]
    line: Option<usize>,
    /// Show the ladder instead: one challenge through all five levels, an hour as a second.
    #[arg(long, conflicts_with_all = ["file", "line"])]
    ladder: bool,
    /// Print the decision package with its debates (of the ladder: the decision log) as JSON, and everything else on standard error.
    #[arg(long)]
    json: bool,
    /// Where the panel's programs are; found above this program or the current folder when absent.
    #[arg(long, value_name = "DIR")]
    panel: Option<PathBuf>,
}

pub(crate) async fn run(args: DemoArgs) -> Result<u8, Failure> {
    let folder = panel::folder(args.panel.as_deref())?;
    let file = args.file.clone().unwrap_or_else(|| folder.join(SAMPLE));
    let contract = contract::read_one(&file, args.line)?;
    let stop = concord_runtime::service::shutdown::on_signal()
        .map_err(|error| Failure::failed(error.to_string()))?;
    let screen = Screen::new(args.json);
    screen.wait_for("starting a broker, the five services and the five agents");
    let options = StageOptions {
        panel: Some(folder),
        ..StageOptions::default()
    };
    let set = Stage::start(&options, |step| screen.wait_for(step));
    let stage = tokio::select! {
        stage = set => stage?,
        () = stop.cancelled() => return Ok(STOPPED),
    };
    let case = tokio::select! {
        case = play(&args, &stage, &contract, &screen) => Some(case),
        () = stop.cancelled() => None,
    };
    screen.wait_for("stopping");
    if matches!(&case, Some(Err(failure)) if failure.code() == FOUND) {
        screen.note(&stage.log_tails());
    }
    stage.stop().await;
    screen.close();
    let Some(case) = case else { return Ok(STOPPED) };
    let case = case?;
    if args.json {
        output::json(&case)?;
    }
    Ok(0)
}

/// Plays the contract or the ladder; the result as JSON.
async fn play(
    args: &DemoArgs,
    stage: &Stage,
    contract: &Contract,
    screen: &Screen,
) -> Result<Value, Failure> {
    let written = if args.ladder {
        serde_json::to_value(ladder::climb(stage, screen).await?)
    } else {
        serde_json::to_value(deliberate(stage, contract, screen).await?)
    };
    written.map_err(|error| Failure::failed(error.to_string()))
}

/// Opens the case and shows every event of it, in the order of the stream, until it is decided.
async fn deliberate(
    stage: &Stage,
    contract: &Contract,
    screen: &Screen,
) -> Result<case_file::CaseFile, Failure> {
    let broker = &stage.broker;
    let mut events = follow(broker, vec![broker.subjects().all("event")]).await?;
    let case_id = CaseId::derived(&format!("demo/{}", concord_runtime::service::clock::now()));
    let (policy, participants) = (serde_json::json!("contract-review"), panel::names());
    let request = OpenCase {
        case_id: Some(case_id.clone()),
        policy,
        ..OpenCase::new(participants, contract.task())
    };
    connection::ask::<serde_json::Value>(broker, Service::Coordinator, "open_case", &request)
        .await?;
    let (mut filter, mut view) = (CaseFilter::new(case_id.clone()), View::new());
    loop {
        let event = match tokio::time::timeout(SILENCE_MAX, events.next()).await {
            Ok(Some(event)) => event?,
            Ok(None) => return Err(Failure::failed("the stream of events has ended")),
            Err(_) => {
                return Err(Failure::failed(format!(
                    "nothing has happened for {} s",
                    SILENCE_MAX.as_secs()
                )));
            }
        };
        let Some(event) = filter.pick(&event)? else {
            continue;
        };
        screen.print(&view.show(&event))?;
        screen.wait_for(waiting_for(&event));
        if event.is_decision() {
            let file = case_file::read(broker, &case_id).await?;
            return file.ok_or_else(|| Failure::failed("the decided case cannot be read"));
        }
    }
}

/// What the demonstration waits for after an event.
fn waiting_for(event: &TimelineEvent) -> &'static str {
    use concord_events::CaseEvent::{FindingRecorded, FindingSetAside, FindingsClosed, Opened};
    match event {
        TimelineEvent::Case(stored) => match stored.event {
            Opened(_) | FindingRecorded(_) | FindingSetAside(_) => "waiting for findings",
            FindingsClosed(_) => "looking for conflicts",
            _ => "waiting for the debates",
        },
        TimelineEvent::Detection(_) | TimelineEvent::Debate(_) => "waiting for the debates",
    }
}

/// The output of the view: standard output, or standard error where standard output is for JSON. On a terminal a spinner
/// below it shows what the demonstration waits for.
struct Screen {
    spinner: ProgressBar,
    to_stderr: bool,
}

impl Screen {
    fn new(to_stderr: bool) -> Self {
        let spinner = if std::io::stderr().is_terminal() {
            let spinner = ProgressBar::new_spinner();
            if let Ok(template) = ProgressStyle::with_template("{spinner} {msg}") {
                spinner.set_style(template);
            }
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        };
        Self { spinner, to_stderr }
    }

    /// Shows on a terminal what the demonstration waits for.
    fn wait_for(&self, what: &str) {
        self.spinner.set_message(what.to_owned());
    }

    fn print(&self, lines: &[String]) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        let text = lines.join("\n") + "\n";
        self.spinner.suspend(|| {
            if self.to_stderr {
                anstream::eprint!("{}", output::harmless(&text));
                return Ok(());
            }
            output::print(&text)
        })
    }

    fn note(&self, text: &str) {
        self.spinner.suspend(|| eprintln!("{text}"));
    }

    fn close(&self) {
        self.spinner.finish_and_clear();
    }
}

//! `concord metrics`: how well agents help each other, beside the targets of the specification.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use concord_domain::coordination_metrics::{Limits, Report, Tally, Tracker};
use concord_runtime::event_store::archived::Archived;
use concord_runtime::{Broker, service::clock};
use concord_wire::subject::Service;
use concord_wire::{AgentId, CaseId, Timestamp};
use serde::Serialize;

use crate::shared::archive_reader::unknown_case;
use crate::shared::args::case_id;
use crate::shared::args::{JsonArg, agent_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::since::{self, Since};

mod show;
mod sources;

use sources::{Input, Reader};

/// Messages that may still be answered, and messages and sessions that are known: 100 MB at the very most.
const OPEN_MAX: usize = 100_000;
const KNOWN_MAX: usize = 200_000;
/// The time between two prints of what has changed.
const PRINT_INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `concord metrics`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord metrics
  concord metrics --since 24h --lead planner
  concord metrics --case c-42 --json | jq .matching_accuracy
  concord metrics --watch

An answer names the message that it answers in reply_to or correlation_id. An agent declines by an answer with
\"accepted\": false in its payload. Leads are the coordinator and the agents of which a skill has the tag \"lead\".")]
pub(crate) struct MetricsArgs {
    /// Only messages since then: a time such as 2026-11-21T20:00:00Z, or so long ago: 90s, 30m, 24h, 7d.
    #[arg(long, value_name = "WHEN", value_parser = since::parse)]
    since: Option<Since>,
    /// Only the messages of this case.
    #[arg(long, value_name = "CASE", value_parser = case_id)]
    case: Option<CaseId>,
    /// An agent that leads others, in place of those whose cards say so; can be repeated.
    #[arg(long, value_name = "AGENT", value_parser = agent_id)]
    lead: Vec<AgentId>,
    /// The time within which an answer to a message counts: 90s, 30m.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = since::span)]
    window: Duration,
    /// Go on, and print what has changed, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// The metrics as they are printed.
#[derive(Debug, PartialEq, Serialize)]
struct Printed {
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    case_id: Option<CaseId>,
    leads: BTreeSet<AgentId>,
    window_ms: u64,
    /// Messages that are no envelope, and are not counted.
    unreadable: u64,
    /// Cases that are archived, and not counted.
    archived_cases: usize,
    #[serde(flatten)]
    report: Report,
}

/// The metrics so far.
struct Count {
    follow: Tracker,
    tally: Tally,
    unreadable: u64,
}

impl Count {
    fn new(window_ms: u64, leads: BTreeSet<AgentId>) -> Self {
        let limits = Limits {
            window_ms,
            open_max: OPEN_MAX,
            messages_max: KNOWN_MAX,
            sessions_max: KNOWN_MAX,
        };
        Self {
            follow: Tracker::new(limits, leads),
            tally: Tally::default(),
            unreadable: 0,
        }
    }

    fn add(&mut self, input: &Input) {
        let counted = match input {
            Input::Message(message) => self.follow.message(message),
            Input::Wake(decided) => self.follow.woken(decided),
            Input::Unreadable => {
                self.unreadable += 1;
                return;
            }
            Input::Unknown => return,
        };
        counted.iter().for_each(|one| self.tally.add(one.what));
    }

    fn report(&mut self, now: Timestamp) -> Report {
        self.follow
            .close_expired(now)
            .iter()
            .for_each(|one| self.tally.add(one.what));
        self.tally.report(&self.follow.waiting())
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, args: MetricsArgs) -> Result<u8, Failure> {
    let since = args.since.map(|since| since.at(clock::now()));
    if let Some(since) = since.filter(|since| *since > clock::now()) {
        return Err(Failure::usage(format!(
            "--since {since} is in the future: nothing has been said since then"
        )));
    }
    let broker = connection.connect().await?;
    let leads = leads(&broker, &args.lead).await?;
    let window_ms = u64::try_from(args.window.as_millis()).unwrap_or(u64::MAX);
    let mut count = Count::new(window_ms, leads.clone());
    let archived = Archived::read(&broker).await?;
    let cases = archived.segments().iter().map(|one| one.cases.len());
    let archived_cases = cases.sum();
    let mut reader = Reader::open(&broker, args.case.as_ref(), since).await?;
    let mut is_empty = true;
    while let Some(input) = reader.past().await? {
        is_empty = false;
        count.add(&input);
    }
    if let Some(case) = args
        .case
        .as_ref()
        .filter(|_| is_empty && since.is_none() && !args.watch)
    {
        return Err(match archived.case(case) {
            Some(_) => Failure::failed(format!(
                "{case} is archived; the metrics are counted from what is in the streams"
            )),
            None => unknown_case(&broker, case).await,
        });
    }
    let printed = |count: &mut Count| Printed {
        since,
        case_id: args.case.clone(),
        leads: leads.clone(),
        window_ms,
        report: count.report(clock::now()),
        unreadable: count.unreadable,
        archived_cases,
    };
    let mut shown = printed(&mut count);
    if !args.watch {
        print(&shown, args.json.json)?;
        return Ok(0);
    }
    print_again(&shown, args.json.json)?;
    let mut due = tokio::time::interval(PRINT_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            input = reader.next() => count.add(&input?),
            _ = due.tick() => {
                let now = printed(&mut count);
                if now != shown {
                    print_again(&now, args.json.json)?;
                    shown = now;
                }
            }
            _ = tokio::signal::ctrl_c() => return Ok(0),
        }
    }
}

/// The agents that lead: those that are named, or else those whose cards say so; and the coordinator.
async fn leads(broker: &Broker, named: &[AgentId]) -> Result<BTreeSet<AgentId>, Failure> {
    let mut leads = match named {
        [] => sources::leads_on_the_register(broker).await?,
        named => named.iter().cloned().collect(),
    };
    leads.insert(Service::Coordinator.agent_id());
    Ok(leads)
}

fn print(printed: &Printed, as_json: bool) -> Result<(), Failure> {
    if as_json {
        output::json(printed)
    } else {
        output::print(&show::text(printed))
    }
}

fn print_again(printed: &Printed, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json_line(printed);
    }
    let at = output::styled(output::FAINT, clock::now());
    output::print(&format!("{at}\n{}\n", show::text(printed)))
}

//! `concord case watch`: messages and events as they come.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use concord_domain::aggregates::case::Phase;
use concord_events::Aggregate;
use concord_events::subject::{AnySubject, SystemSubject};
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_wire::subject::Lane;
use concord_wire::{CaseId, Token};
use futures::StreamExt;
use futures::stream::select_all;

use crate::command::case::event_line::EventLine;
use crate::command::case::open::ENDS;
use crate::command::case::polled::Polled;
use crate::command::case::show::phase_name;
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::case_file;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// Arguments of `concord case watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord case watch                       every case, until Ctrl-C
  concord case watch c-42 --from-start     one case, until it is decided or cancelled
  concord case watch --json | jq .subject

With --json, one object a line.")]
pub(crate) struct WatchArgs {
    /// The case; every case when absent.
    #[arg(value_parser = case_id)]
    case: Option<CaseId>,
    /// Begin with what is stored already.
    #[arg(long)]
    pub(super) from_start: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// The places at which an event names its case.
const CASE_IDS: [&str; 2] = ["/data/case_id", "/data/request/case_id"];
/// The places at which an event of something else names a debate.
const DEBATE_IDS: [&str; 2] = ["/data/debate_id", "/data/precedent/debate_id"];
/// The place at which an elapsed deadline names the case or the debate that waited for it.
const WAITING_ID: &str = "/data/id";

/// The case that is watched, and the debates that belong to it.
pub(super) struct Watched {
    pub(super) case: CaseId,
    pub(super) debates: BTreeSet<Token>,
}

impl Watched {
    /// Whether an event is about the case. The opening of a debate adds the debate to those of the case.
    fn concerns(&mut self, aggregate: Aggregate, id: &Token, line: &EventLine) -> bool {
        let at = |pointer: &str| {
            line.body
                .pointer(pointer)
                .and_then(serde_json::Value::as_str)
        };
        let is_case = |id: &str| id == self.case.as_str();
        let is_debate = |id: &str| self.debates.iter().any(|debate| debate.as_str() == id);
        let names_case = CASE_IDS.into_iter().filter_map(at).any(is_case);
        match aggregate {
            Aggregate::Case | Aggregate::Detection => is_case(id.as_str()),
            Aggregate::Debate if names_case => {
                self.debates.insert(id.clone());
                true
            }
            Aggregate::Debate => self.debates.contains(id),
            _ => {
                let names_debate = DEBATE_IDS.into_iter().filter_map(at).any(is_debate);
                let was_waited_for = at(WAITING_ID).is_some_and(|id| is_case(id) || is_debate(id));
                names_case || names_debate || was_waited_for
            }
        }
    }
}

/// Prints what is of interest.
pub(super) struct Display<'a> {
    broker: &'a Broker,
    pub(super) watched: Option<Watched>,
    json: bool,
    /// The sequence of the last message of each stream: a message may be read from the past and arrive live too.
    last: BTreeMap<StreamKind, u64>,
}

impl Display<'_> {
    /// The same of a message of a stream that is read in order, each message once.
    fn show_once(&mut self, kind: StreamKind, stored: &StreamMessage) -> Result<bool, Failure> {
        if self
            .last
            .get(&kind)
            .is_some_and(|last| stored.sequence <= *last)
        {
            return Ok(false);
        }
        self.last.insert(kind, stored.sequence);
        self.show(stored)
    }

    /// Prints a message or event that is of interest; true when it is the end of the case that is watched.
    pub(super) fn show(&mut self, stored: &StreamMessage) -> Result<bool, Failure> {
        if stored.non_event.is_some() {
            return Ok(false);
        }
        let subject = self.broker.subjects().parse(&stored.subject).ok();
        let line = EventLine::new(stored, subject.as_ref());
        if let (Some(watched), Some(AnySubject::System(SystemSubject::Event { aggregate, id, .. }))) =
            (&mut self.watched, &subject)
            && !watched.concerns(*aggregate, id, &line)
        {
            return Ok(false);
        }
        match self.json {
            true => output::json_line(&line)?,
            false => output::print(&line.text(subject.as_ref()))?,
        }
        let Some(AnySubject::System(SystemSubject::Event {
            aggregate: Aggregate::Case,
            event: name,
            ..
        })) = &subject
        else {
            return Ok(false);
        };
        Ok(self.watched.is_some() && ENDS.contains(&name.as_str()))
    }

    /// Watches one case; true when there is nothing to watch because it is over.
    pub(super) async fn begin(&mut self, case: &CaseId, from_start: bool) -> Result<bool, Failure> {
        let state = case_file::existing(self.broker, case).await?;
        let is_over = matches!(state.phase, Phase::Decided | Phase::Cancelled);
        if is_over && !from_start {
            let phase = phase_name(state.phase);
            output::complain(&format!("case {case} is {phase}; --from-start shows how"));
            return Ok(true);
        }
        let debates = case_file::debated(self.broker, case, &state).await?;
        let debates = debates
            .into_iter()
            .map(|conflict| conflict.conflict_id.token())
            .collect();
        self.watched = Some(Watched {
            case: case.clone(),
            debates,
        });
        Ok(false)
    }

    pub(super) fn announce(&self) {
        if !self.json {
            eprintln!("watching; Ctrl-C ends it");
        }
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &WatchArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut display = Display {
        broker: &broker,
        watched: None,
        json: args.json.json,
        last: BTreeMap::new(),
    };
    if broker.caller.is_some() {
        let case = args.case.as_ref().ok_or_else(|| {
            Failure::usage("name a case: under a name (--as) one case is watched at a time")
        })?;
        let polled = Polled::new(&broker, case).await?;
        return polled.watch(&mut display, args).await;
    }
    // The live streams begin before the past is read, so that nothing falls between the two.
    let scopes = scopes(&broker, args.case.as_ref());
    let mut live = Vec::new();
    for (kind, scope) in &scopes {
        let (_, stream) = stream_reader::follow(&broker, &scope.clone().new_only()).await?;
        live.push(stream.map(|stored| (*kind, stored)).boxed());
    }
    if let Some(case) = &args.case
        && display.begin(case, args.from_start).await?
    {
        return Ok(0);
    }
    if args.from_start && past(&broker, &scopes, &mut display).await? {
        return Ok(0);
    }
    display.announce();
    let mut live = select_all(live);
    while let Some((kind, stored)) = live.next().await {
        if display.show_once(kind, &stored?)? {
            return Ok(0);
        }
    }
    Err(Failure::unavailable(
        "the broker has gone; see `concord doctor`",
    ))
}

/// Prints what is stored already, in the order of time; true when the case that is watched is decided.
async fn past(
    broker: &Broker,
    scopes: &[(StreamKind, Scope)],
    display: &mut Display<'_>,
) -> Result<bool, Failure> {
    let mut stored = Vec::new();
    for (kind, scope) in scopes {
        stream_reader::for_each(broker, scope, "reading messages", |message| {
            stored.push((*kind, message));
            Ok(())
        })
        .await?;
    }
    stored.sort_by_key(|(kind, message)| (message.at, *kind, message.sequence));
    let mut decided = false;
    for (kind, message) in &stored {
        decided |= display.show_once(*kind, message)?;
    }
    Ok(decided)
}

fn scopes(broker: &Broker, case: Option<&CaseId>) -> Vec<(StreamKind, Scope)> {
    let lanes = [
        (StreamKind::Messages, Lane::Normal),
        (StreamKind::Urgent, Lane::Urgent),
    ];
    let messages = lanes.into_iter().map(|(kind, lane)| match case {
        Some(case) => (
            kind,
            Scope::of(kind, broker.subjects().transcript(lane, case)),
        ),
        None => (kind, Scope::all(kind)),
    });
    messages
        .chain(std::iter::once((
            StreamKind::Events,
            Scope::all(StreamKind::Events),
        )))
        .collect()
}

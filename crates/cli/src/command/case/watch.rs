//! `concord case watch`: messages and facts as they come.

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

use crate::command::case::event_line::Line;
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::case_file;
use crate::shared::case_file::unknown;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, FAINT, styled};
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// Arguments of `concord case watch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord case watch                       every case, until Ctrl-C
  concord case watch c-42 --from-start     one case, until it is decided
  concord case watch --json | jq .subject

With --json, one object a line.")]
pub(crate) struct WatchArgs {
    /// The case; every case when absent.
    #[arg(value_parser = case_id)]
    case: Option<CaseId>,
    /// Begin with what is stored already.
    #[arg(long)]
    from_start: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Which case is watched, and which debates belong to it.
struct Watched {
    case: CaseId,
    debates: BTreeSet<Token>,
}

impl Watched {
    fn has_debate(&self, id: &str) -> bool {
        self.debates.iter().any(|debate| debate.as_str() == id)
    }

    /// Whether a fact is about the case; learns of debates as they open.
    fn concerns(&mut self, aggregate: Aggregate, id: &Token, line: &Line) -> bool {
        let data = |pointer: &str| {
            line.body
                .pointer(pointer)
                .and_then(serde_json::Value::as_str)
        };
        match aggregate {
            Aggregate::Case | Aggregate::Detection => id.as_str() == self.case.as_str(),
            Aggregate::Debate => {
                if data("/data/case_id") == Some(self.case.as_str()) {
                    self.debates.insert(id.clone());
                }
                self.debates.contains(id)
            }
            Aggregate::TrackRecord => data("/data/case_id") == Some(self.case.as_str()),
            Aggregate::Precedent => {
                data("/data/precedent/debate_id").is_some_and(|of| self.has_debate(of))
            }
            Aggregate::Deadline => {
                data("/data/id").is_some_and(|of| of == self.case.as_str() || self.has_debate(of))
            }
            Aggregate::Agent => false,
            Aggregate::Wake => data("/data/case_id") == Some(self.case.as_str()),
            Aggregate::Request => {
                let case = Some(self.case.as_str());
                data("/data/case_id") == case || data("/data/request/case_id") == case
            }
            Aggregate::ReviewQueue => {
                data("/data/case_id") == Some(self.case.as_str())
                    || data("/data/debate_id").is_some_and(|of| self.has_debate(of))
            }
        }
    }
}

/// What is printed, and what was.
struct Display<'a> {
    broker: &'a Broker,
    watched: Option<Watched>,
    json: bool,
    /// The last message printed of each stream, for what is both read and heard.
    last: BTreeMap<StreamKind, u64>,
}

impl Display<'_> {
    /// Prints a message or fact that is of interest; true when it is the decision of the case that is watched.
    fn show(&mut self, kind: StreamKind, stored: &StreamMessage) -> Result<bool, Failure> {
        if self
            .last
            .get(&kind)
            .is_some_and(|last| stored.sequence <= *last)
        {
            return Ok(false);
        }
        self.last.insert(kind, stored.sequence);
        if stored.non_event.is_some() {
            return Ok(false);
        }
        let subject = self.broker.subjects().parse(&stored.subject).ok();
        let line = Line::new(stored, subject.as_ref());
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
            event: fact,
            ..
        })) = &subject
        else {
            return Ok(false);
        };
        Ok(self.watched.is_some() && fact.as_str() == "decided")
    }
}

/// Runs the verb.
pub(crate) async fn run(connection: &ConnectionArgs, args: &WatchArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    // Listening begins before anything is read, so that nothing falls between the two.
    let scopes = scopes(&broker, args.case.as_ref());
    let mut heard = Vec::new();
    for (kind, scope) in &scopes {
        let (_, stream) = stream_reader::follow(&broker, &scope.clone().new_only()).await?;
        heard.push(stream.map(|stored| (*kind, stored)).boxed());
    }
    let mut display = Display {
        broker: &broker,
        watched: None,
        json: args.json.json,
        last: BTreeMap::new(),
    };
    if let Some(case) = &args.case {
        let state = case_file::state(&broker, case)
            .await?
            .ok_or_else(|| unknown(case))?;
        if state.phase == Phase::Decided && !args.from_start {
            let note = format!("case {case} is decided; --from-start shows how");
            output::print(&format!("{}\n", styled(FAINT, note)))?;
            return Ok(0);
        }
        let debates = case_file::debated(&broker, case, &state).await?;
        let debates = debates
            .into_iter()
            .map(|conflict| conflict.conflict_id.token())
            .collect();
        display.watched = Some(Watched {
            case: case.clone(),
            debates,
        });
    }
    if args.from_start && past(&broker, &scopes, &mut display).await? {
        return Ok(0);
    }
    if !args.json.json {
        eprintln!("watching; Ctrl-C ends it");
    }
    let mut heard = select_all(heard);
    while let Some((kind, stored)) = heard.next().await {
        if display.show(kind, &stored?)? {
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
        stream_reader::for_each(broker, scope, "reading what was said", |message| {
            stored.push((*kind, message));
            Ok(())
        })
        .await?;
    }
    stored.sort_by_key(|(kind, message)| (message.at, *kind, message.sequence));
    let mut decided = false;
    for (kind, message) in &stored {
        decided |= display.show(*kind, message)?;
    }
    Ok(decided)
}

fn scopes(broker: &Broker, case: Option<&CaseId>) -> Vec<(StreamKind, Scope)> {
    let lanes = [
        (StreamKind::Messages, Lane::Normal),
        (StreamKind::Urgent, Lane::Urgent),
    ];
    let said = lanes.into_iter().map(|(kind, lane)| match case {
        Some(case) => (
            kind,
            Scope::of(kind, broker.subjects().transcript(lane, case)),
        ),
        None => (kind, Scope::all(kind)),
    });
    said.chain(std::iter::once((
        StreamKind::Events,
        Scope::all(StreamKind::Events),
    )))
    .collect()
}

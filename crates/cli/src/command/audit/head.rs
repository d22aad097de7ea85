//! `concord audit head`: the latest head of the log.

use std::path::Path;

use clap::Args;
use concord_domain::aggregates::head::head_id;
use concord_events::subject::SystemFilters;
use concord_events::topology::StreamKind;
use concord_events::{Aggregate, Head, HeadEvent, StoredEvent};
use concord_runtime::Broker;
use serde::{Deserialize, Serialize};

use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, DOUBTFUL, NAMED, Table, styled};
use crate::shared::stream_reader::{self, Scope, StreamMessage};

/// Arguments of `concord audit head`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord audit head --json > head.json

Keep the file where nobody who can write to the broker can write. `concord check --against head.json` then says whether
everything up to this head is as it was.")]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// A head as somebody keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeadFile {
    /// The prefix of the installation.
    pub(super) installation: String,
    /// The sequence of the head among the events.
    pub(super) sequence: u64,
    /// The head.
    pub(super) head: Head,
}

pub(super) async fn run(broker: &Broker, args: &HeadArgs) -> Result<u8, Failure> {
    let Some(file) = latest(broker).await? else {
        return Err(Failure::failed(
            "there is no head yet; the escalation timer makes one within a minute of the first event, unless its setting \
             service.head_interval_ms is 0 or longer",
        ));
    };
    args.json.print(&file, text)?;
    Ok(0)
}

/// The latest head; none where there is none.
pub(crate) async fn latest(broker: &Broker) -> Result<Option<HeadFile>, Failure> {
    let subjects = broker.subjects();
    let filter = subjects.events_of(Aggregate::Head, &head_id());
    let mut last = None;
    stream_reader::for_each(
        broker,
        &Scope::of(StreamKind::Events, filter),
        "reading heads",
        |stored| {
            last = Some(stored);
            Ok(())
        },
    )
    .await?;
    let Some(stored) = last else {
        return Ok(None);
    };
    let head = decoded(&stored).map_err(Failure::failed)?;
    Ok(Some(HeadFile {
        installation: installation(broker),
        sequence: stored.sequence,
        head,
    }))
}

/// The prefix of the installation.
pub(super) fn installation(broker: &Broker) -> String {
    let events = broker.subjects().events_of(Aggregate::Head, &head_id());
    events.split('.').next().unwrap_or_default().to_owned()
}

/// The head that a stored event is.
pub(super) fn decoded(stored: &StreamMessage) -> Result<Head, String> {
    match StoredEvent::<HeadEvent>::decode(&stored.payload, stored.sequence) {
        Ok(StoredEvent {
            event: HeadEvent::Advanced(head),
            ..
        }) => Ok(head),
        Err(error) => Err(format!(
            "the head at {} cannot be read: {error}",
            stored.sequence
        )),
    }
}

/// Reads a head that somebody has kept.
pub(super) fn read(path: &Path) -> Result<HeadFile, Failure> {
    let shown = path.display();
    let text = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("{shown} cannot be read: {error}")))?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::data(format!(
            "{shown} is no head ({error}); `concord audit head --json` writes one"
        ))
    })
}

fn text(file: &HeadFile) -> String {
    let HeadFile { sequence, head, .. } = file;
    let mut table = Table::new(["STREAM", "UP TO", "MESSAGES", "SINCE THE HEAD BEFORE"]);
    for interval in &head.streams {
        table.row([
            Cell::text(interval.stream.as_str()),
            Cell::number(interval.last_sequence),
            Cell::number(interval.total),
            Cell::number(interval.count),
        ]);
    }
    let number = styled(NAMED, head.number);
    format!(
        "Head {number} of {}, at {sequence} among the events\n{table}digest {}\n{}\n",
        head.at,
        head.digest,
        signed(head)
    )
}

/// Who has signed a head, as a line.
pub(super) fn signed(head: &Head) -> String {
    match &head.signature {
        Some(signature) => format!("signed by {}", signature.key),
        None => styled(
            DOUBTFUL,
            "unsigned: whoever can write to the broker and to the place where it is kept can forge both",
        )
        .to_string(),
    }
}

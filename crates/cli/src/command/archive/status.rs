//! `concord archive status`: how much is archived.

use clap::Args;
use concord_runtime::Broker;
use concord_runtime::event_store::archived::Archived;
use concord_wire::Timestamp;
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;
use crate::shared::output::{DOUBTFUL, NAMED, count, styled};

/// Arguments of `concord archive status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord archive status
  concord archive status --archive /var/lib/concord/archive --json

With --archive it also says whether the last segment is there and as it was sealed; `concord archive verify` reads all.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// What is archived, in numbers.
#[derive(Debug, Serialize)]
struct Status {
    /// Where the archive is, as far as it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    segments: usize,
    cases: usize,
    /// Events and messages in all segments.
    messages: u64,
    /// Bytes of all segments.
    bytes: u64,
    /// Bytes before they were compressed.
    plain_bytes: u64,
    /// Segments that were sealed and whose messages are still in the streams.
    waiting_segments: u64,
    /// When the last segment was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sealed_at: Option<Timestamp>,
    /// The digest of the last manifest, which proves all before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_manifest: Option<String>,
}

pub(super) async fn run(
    broker: &Broker,
    archived: &Archived,
    args: &StatusArgs,
) -> Result<u8, Failure> {
    let segments = archived.segments();
    let last = segments.last();
    if let (Some(archive), Some(last)) = (&broker.archive, last) {
        archive.segment(last).await?;
    }
    let intervals = segments.iter().flat_map(|segment| &segment.streams);
    let status = Status {
        location: broker
            .archive
            .as_ref()
            .map(|archive| archive.location().to_string()),
        segments: segments.len(),
        cases: segments.iter().map(|segment| segment.cases.len()).sum(),
        messages: intervals.map(|interval| interval.count).sum(),
        bytes: segments.iter().map(|segment| segment.bytes).sum(),
        plain_bytes: segments.iter().map(|segment| segment.plain_bytes).sum(),
        waiting_segments: last.map_or(0, |last| last.number - archived.purged()),
        last_sealed_at: last.map(|last| last.at),
        last_manifest: last.map(|last| last.manifest.clone()),
    };
    args.json.print(&status, text)?;
    Ok(0)
}

fn text(status: &Status) -> String {
    let Some(at) = status.last_sealed_at else {
        return "Nothing is archived yet. Where the services have storage.archive and storage.archive_after_s, a case is archived when it has \
                been over for that long; see docs/archive.md.\n"
            .to_owned();
    };
    let place = match &status.location {
        Some(location) => styled(NAMED, location).to_string(),
        None => styled(DOUBTFUL, "a place that --archive does not name").to_string(),
    };
    let percent = (status.bytes * 100)
        .checked_div(status.plain_bytes)
        .unwrap_or(100);
    let mut text = format!(
        "{} with {} in {}, at {place}\n{} bytes, {percent} % of {}; the last was sealed at {at}\n",
        count(status.cases as u64, "case"),
        count(status.messages, "message"),
        count(status.segments as u64, "segment"),
        status.bytes,
        status.plain_bytes,
    );
    if status.waiting_segments > 0 {
        let waiting = count(status.waiting_segments, "segment");
        text.push_str(&format!("{waiting} not removed from the streams yet\n"));
    }
    text
}

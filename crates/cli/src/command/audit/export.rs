//! `concord audit export`: a bundle of everything that is stored.

use std::path::{Path, PathBuf};

use clap::Args;
use concord_events::topology::StreamKind;
use concord_runtime::{Broker, service::clock};
use serde_json::json;

use super::bundle::{self, Manifest, StreamFile, StreamWriter};
use super::evidence;
use super::head;
use super::source::Source;
use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, count, styled};
use crate::shared::own_folder::OwnFolder;
use crate::shared::stillness::{self, Stillness};
use crate::shared::stream_reader::{self, Scope};

/// Arguments of `concord audit export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord audit export audit-2026-11

The folder gets manifest.json, head.json and a file of JSON Lines for each stream: events, messages, urgent, dead. `concord
audit verify` checks it without the broker; `concord check --against` compares the broker with it, message by message.")]
pub(crate) struct ExportArgs {
    /// The folder to write to; it must be empty, or not be there yet.
    folder: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(broker: &Broker, args: &ExportArgs) -> Result<u8, Failure> {
    let folder = OwnFolder::begin(&args.folder, "name another")?;
    let manifest = folder.fill(write(broker, &args.folder)).await?;
    let written = json!({
        "folder": args.folder.display().to_string(),
        "head": manifest.head.as_ref().map(|file| file.head.number),
        "streams": manifest.streams,
    });
    args.json.print(&written, |_| text(args, &manifest))?;
    Ok(0)
}

/// Writes the bundle.
async fn write(broker: &Broker, folder: &Path) -> Result<Manifest, Failure> {
    let mut manifest = Manifest::new(head::installation(broker), clock::now());
    let stillness = Stillness::begin(broker).await?;
    manifest.messages_since = stillness::messages_since(broker).await?;
    // Before the streams: what it covers is then in the files.
    manifest.head = head::latest(broker).await?;
    for stream in StreamKind::EVIDENCE {
        let mut writer = StreamWriter::new(folder, stream)?;
        let scope = Scope::all(stream).with_non_events();
        let count =
            stream_reader::for_each(broker, &scope, "exporting", |stored| writer.write(&stored))
                .await?;
        writer.finish()?;
        manifest.streams.push(StreamFile { stream, count });
    }
    let under_way = stillness.end(broker).await?;
    (manifest.under_way, manifest.judged) = (under_way.number, under_way.judged);
    manifest.keys = evidence::keys(&Source::Broker(broker)).await?;
    bundle::finish(folder, &manifest)?;
    Ok(manifest)
}

fn text(args: &ExportArgs, manifest: &Manifest) -> String {
    let streams = manifest.streams.iter();
    let stored: u64 = streams.map(|stream| stream.count).sum();
    let covered = match &manifest.head {
        Some(file) => format!("up to head {}", file.head.number),
        None => "without a head: nothing proves it whole".to_owned(),
    };
    let folder = styled(NAMED, args.folder.display());
    format!(
        "{} written to {folder}, {covered}\n",
        count(stored, "message")
    )
}

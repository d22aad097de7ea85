//! `concord archive restore`: everything that is archived of a case, as files.

use std::path::PathBuf;

use clap::Args;
use concord_archive::CaseContents;
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_runtime::event_store::archived::Archived;
use concord_wire::CaseId;
use serde::Serialize;

use crate::command::audit::bundle::StreamWriter;
use crate::shared::args::{JsonArg, case_id};
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, count, styled};
use crate::shared::own_folder::OwnFolder;
use crate::shared::stream_reader::StreamMessage;

/// Arguments of `concord archive restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord archive restore c-42 --to c-42-restored --archive /var/lib/concord/archive

The folder gets a file of JSON Lines for each stream: events, messages, urgent. Nothing is put back into the streams: events name
each other by their sequences there, and services would act on them again. `concord case show`, `case transcript`, `replay` and
`decisions` read an archived case without that.")]
pub(crate) struct RestoreArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The folder to write to; it must be empty, or not be there yet. The case's id when left out.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Debug, Serialize)]
struct Restored<'a> {
    case_id: &'a CaseId,
    folder: String,
    segment: u64,
    messages: u64,
}

pub(super) async fn run(
    broker: &Broker,
    archived: &Archived,
    args: &RestoreArgs,
) -> Result<u8, Failure> {
    let case = &args.case;
    let Some((segment, _)) = archived.case(case) else {
        return Err(Failure::failed(format!(
            "case {case} is not archived; `concord archive list` shows those that are"
        )));
    };
    let contents = super::archive(broker)?.case(segment, case).await?;
    let contents = contents.ok_or_else(|| {
        Failure::failed(format!(
            "segment {} has no case {case}; see `concord archive verify`",
            segment.number
        ))
    })?;
    let folder = args.to.clone().unwrap_or_else(|| case.as_str().into());
    let messages = contents.messages.len() as u64;
    let begun = OwnFolder::begin(&folder, "name another with --to")?;
    if let Err(failure) = write(&folder, contents) {
        return Err(begun.discard(failure));
    }
    let restored = Restored {
        case_id: case,
        folder: folder.display().to_string(),
        segment: segment.number,
        messages,
    };
    args.json.print(&restored, |restored| {
        format!(
            "{} of case {} written to {}\n",
            count(restored.messages, "message"),
            styled(NAMED, restored.case_id),
            styled(NAMED, &restored.folder)
        )
    })?;
    Ok(0)
}

fn write(folder: &std::path::Path, contents: CaseContents) -> Result<(), Failure> {
    for stream in [StreamKind::Events, StreamKind::Messages, StreamKind::Urgent] {
        let mut writer = StreamWriter::new(folder, stream)?;
        let messages = contents.messages.iter();
        for message in messages.filter(|message| message.stream == stream) {
            writer.write(&StreamMessage::archived(message.clone()))?;
        }
        writer.finish()?;
    }
    Ok(())
}

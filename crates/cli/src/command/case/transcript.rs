//! `concord case transcript`: all messages of a case.

use clap::Args;
use concord_runtime::Broker;
use concord_wire::CaseId;

use crate::command::case::event_line::EventLine;
use crate::command::case::thread_tree::ThreadTree;
use crate::shared::archive_reader::unknown_case;
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::case_file::state;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table};

/// Arguments of `concord case transcript`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord case transcript c-42
  concord case transcript c-42 --json
  concord case transcript c-42 --tree      replies below what they answer, and who took part

Messages are kept by age (storage.message_days), those of archived cases as long as the archive; events, which `concord case
show` reads, are kept for ever.")]
pub(crate) struct TranscriptArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// Order the messages by threads: each below the one that it answers.
    #[arg(long)]
    tree: bool,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &TranscriptArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut lines = Vec::new();
    let source = EventSource::new(&broker).await?;
    let read = source.messages(&args.case, [0; 2], |_, stored| {
        let subject = broker.subjects().parse(&stored.subject).ok();
        lines.push(EventLine::new(&stored, subject.as_ref()));
        Ok(())
    });
    read.await?;
    if lines.is_empty() {
        return Err(match state(&broker, &args.case).await? {
            Some(_) => expired(&args.case),
            None => unknown_case(&broker, &args.case).await,
        });
    }
    // The messages come from two streams.
    lines.sort_by_key(|line| line.stored_at);
    if args.tree {
        let tree = ThreadTree::new(lines);
        args.json.print(&tree, |tree| tree_text(&broker, tree))?;
        return Ok(0);
    }
    if args.json.json {
        output::json(&lines)?;
        return Ok(0);
    }
    let text = lines
        .iter()
        .map(|line| line.text(broker.subjects().parse(&line.subject).ok().as_ref()));
    output::print(&text.collect::<String>())?;
    Ok(0)
}

/// The failure for a case of which events alone are left.
fn expired(case: &CaseId) -> Failure {
    Failure::failed(format!(
        "no message of case {case} is stored any more: they are kept for so many days as the services' setting storage.message_days says; \
         its events are there, see `concord case show {case}`"
    ))
}

fn tree_text(broker: &Broker, tree: &ThreadTree) -> String {
    let lines = tree.messages.iter().map(|one| {
        let subject = broker.subjects().parse(&one.line.subject).ok();
        format!("{}{}", one.indent(), one.line.text(subject.as_ref()))
    });
    let mut table = Table::new(["TOOK PART", "MESSAGES", "ANSWERED BY OTHERS"]);
    for one in &tree.took_part {
        table.row([
            Cell::text(&one.name).with(NAMED),
            Cell::text(one.messages),
            Cell::text(one.answered),
        ]);
    }
    format!("{}\n{table}", lines.collect::<String>())
}

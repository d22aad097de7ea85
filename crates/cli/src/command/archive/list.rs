//! `concord archive list`: the archived cases.

use clap::Args;
use concord_runtime::event_store::archived::Archived;
use concord_wire::{CaseId, Timestamp};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table};

/// Arguments of `concord archive list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord archive list
  concord archive list --segment 12 --json

A case stands there twice when something happened to it while it was archived: the later segment has all of it.")]
pub(crate) struct ListArgs {
    /// Only the cases of this segment.
    #[arg(long, value_name = "NUMBER")]
    segment: Option<u64>,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Debug, Serialize)]
struct Listed<'a> {
    case_id: &'a CaseId,
    segment: u64,
    sealed_at: Timestamp,
    /// The name of the segment's files, without folder and ending.
    name: &'a str,
    /// Whether the streams hold it no longer.
    removed: bool,
}

pub(super) fn run(archived: &Archived, args: &ListArgs) -> Result<u8, Failure> {
    let segments = archived.segments().iter();
    let wanted = segments.filter(|one| args.segment.is_none_or(|number| one.number == number));
    let cases = wanted.flat_map(|segment| {
        segment.cases.iter().map(|case| Listed {
            case_id: &case.case_id,
            segment: segment.number,
            sealed_at: segment.at,
            name: &segment.name,
            removed: segment.number <= archived.purged(),
        })
    });
    let cases: Vec<Listed<'_>> = cases.collect();
    if let (Some(number), true) = (args.segment, cases.is_empty()) {
        return Err(Failure::usage(format!(
            "there is no segment {number}; `concord archive status` says how many there are"
        )));
    }
    args.json.print(&cases, |cases| text(cases))?;
    Ok(0)
}

fn text(cases: &[Listed<'_>]) -> String {
    if cases.is_empty() {
        return "Nothing is archived.\n".to_owned();
    }
    let mut table = Table::new(["CASE", "SEGMENT", "SEALED AT", "IN THE STREAMS"]);
    for case in cases {
        table.row([
            Cell::text(case.case_id).with(NAMED),
            Cell::number(case.segment),
            Cell::text(case.sealed_at),
            Cell::text(if case.removed { "no" } else { "yet" }),
        ]);
    }
    table.to_string()
}

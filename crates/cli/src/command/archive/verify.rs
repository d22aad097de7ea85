//! `concord archive verify`: whether everything that is archived is what was sealed.

use std::collections::BTreeSet;

use clap::Args;
use concord_archive::Archive;
use concord_events::SegmentSealed;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::event_store::archived::Archived;
use concord_wire::CaseId;
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{BAD, DOUBTFUL, GOOD, count, styled};
use crate::shared::stream_reader::progress;

/// Arguments of `concord archive verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: concord archive verify --archive /var/lib/concord/archive

It reads every segment that an event names, and digests file and cases again, each by itself: it names every case that
is damaged, and the others can be read. The events are proved by heads: `concord check
--against` compares them, and what is archived, with a head that was kept elsewhere. The exit code is 1 when something is
missing or not what was sealed.")]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Verified {
    holds: bool,
    segments: u64,
    /// Those that are what was sealed.
    cases: u64,
    /// Those that were sealed.
    cases_sealed: u64,
    messages: u64,
    faults: Vec<SegmentFault>,
    /// Files that no event names: what was written when another replica was faster, or before a crash. They count for nothing.
    unsealed: Vec<String>,
}

/// A segment that is missing, or is not what was sealed.
#[derive(Debug, Serialize)]
struct SegmentFault {
    segment: u64,
    name: String,
    /// The case whose contents differ, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    case_id: Option<CaseId>,
    what: String,
}

pub(super) async fn run(
    archive: &Archive,
    archived: &Archived,
    args: &VerifyArgs,
) -> Result<u8, Failure> {
    let segments = archived.segments();
    let named: BTreeSet<&str> = segments.iter().map(|one| one.name.as_str()).collect();
    let kept = archive.names().await?.into_iter();
    let sealed = segments.iter().map(|segment| segment.cases.len() as u64);
    let mut found = Verified {
        holds: true,
        segments: segments.len() as u64,
        cases: 0,
        cases_sealed: sealed.sum(),
        messages: 0,
        faults: Vec::new(),
        unsealed: kept.filter(|name| !named.contains(name.as_str())).collect(),
    };
    let bar = progress("verifying", segments.len() as u64);
    let mut previous: Option<&str> = None;
    for segment in segments {
        if segment.previous.as_deref() != previous {
            let what = format!(
                "segment {} does not follow the one before it",
                segment.number
            );
            found.faults.push(fault(segment, None, what));
        }
        previous = Some(&segment.manifest);
        examine(archive, segment, &mut found).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
    found.holds = found.faults.is_empty();
    args.json.print(&found, text)?;
    Ok(if found.holds { 0 } else { FOUND })
}

/// Reads a segment, and adds what is found.
async fn examine(archive: &Archive, segment: &SegmentSealed, found: &mut Verified) {
    match archive.examine(segment).await {
        Ok((cases, differences)) => {
            found.cases += cases.len() as u64;
            let messages = cases.iter().map(|case| case.messages.len() as u64);
            found.messages += messages.sum::<u64>();
            for error in differences {
                let what = ErrorChain(&error).to_string();
                let case = match error {
                    concord_archive::Error::Tampered { case, .. } => case,
                    _ => None,
                };
                found.faults.push(fault(segment, case, what));
            }
        }
        Err(error) => {
            let cases = segment.cases.iter().map(|case| case.case_id.as_str());
            let cases: Vec<&str> = cases.collect();
            let what = format!(
                "{}; no case of it can be read: {}",
                ErrorChain(&error),
                cases.join(", ")
            );
            found.faults.push(fault(segment, None, what));
        }
    }
}

fn fault(segment: &SegmentSealed, case_id: Option<CaseId>, what: String) -> SegmentFault {
    SegmentFault {
        segment: segment.number,
        name: segment.name.clone(),
        case_id,
        what,
    }
}

fn text(found: &Verified) -> String {
    let cases = count(found.cases_sealed, "case");
    let cases = match found.cases == found.cases_sealed {
        true => cases,
        false => format!("{cases}, of which {} can be read,", found.cases),
    };
    let mut text = format!(
        "{} with {cases} and {} read\n",
        count(found.segments, "segment"),
        count(found.messages, "message")
    );
    for fault in &found.faults {
        text.push_str(&format!("{} {}\n", styled(BAD, "differs"), fault.what));
    }
    for name in &found.unsealed {
        text.push_str(&format!(
            "{} {name}: no event names it; it counts for nothing and may be deleted while no timer runs\n",
            styled(DOUBTFUL, "unsealed")
        ));
    }
    let verdict = match found.holds {
        true => styled(GOOD, "Everything that is archived is what was sealed."),
        false => styled(BAD, "It is not what was sealed."),
    };
    text + &format!("{verdict}\n")
}

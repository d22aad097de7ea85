//! `concord audit verify`: a bundle, checked without the broker.

use std::path::PathBuf;

use clap::Args;
use concord_domain::assurance::audit::{Auditor, Ending, Report};
use concord_events::topology::StreamKind;
use concord_runtime::service::clock;
use concord_runtime::signing;
use concord_wire::Timestamp;
use serde::Serialize;

use super::bundle::Bundle;
use super::evidence::{self, Evidence, Kept, KeyArgs};
use super::head;
use super::source::Source;
use crate::command::check;
use crate::shared::args::JsonArg;
use crate::shared::audit_feed;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{self, BAD, styled};

/// The time after which a deadline that is due may no longer be open, in milliseconds.
const GRACE_MS: u64 = 10_000;

/// Arguments of `concord audit verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord audit verify audit-2026-11
  concord audit verify audit-2026-11 --against head.json --key head.key.pub

It digests everything again, follows every head, checks signatures, and checks the invariants. The bundle's own head proves
only that the bundle fits itself; a head that you have kept since, or the key, proves whose it is. The exit code is 1 when
something is not as it was.")]
pub(crate) struct VerifyArgs {
    /// The folder of the bundle.
    bundle: PathBuf,
    /// A head that was kept elsewhere; else that of the bundle.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Printed<'a> {
    holds: bool,
    #[serde(flatten)]
    report: &'a Report,
    against: Option<&'a Evidence>,
    /// Streams whose files have another number of messages than the manifest says.
    incomplete: Vec<String>,
}

pub(super) async fn run(args: &VerifyArgs) -> Result<u8, Failure> {
    let bundle = Bundle::open(&args.bundle)?;
    let source = Source::Bundle(&bundle);
    let kept = match &args.against {
        Some(path) => Some(head::read(path)?),
        None => bundle.manifest.head.clone(),
    };
    // What a bundle says of its age may not make it older than it can be.
    let now = bundle.manifest.exported_at.min(clock::now());
    let evidence = match kept {
        Some(file) => {
            let kept = Kept {
                head: file.head,
                bundle: None,
            };
            Some(evidence::compare(&source, &kept, &args.keys, now).await?)
        }
        None => None,
    };
    let (report, incomplete) = invariants(&bundle, now).await?;
    let holds =
        report.holds() && incomplete.is_empty() && evidence.as_ref().is_some_and(Evidence::holds);
    if args.json.json {
        output::json(&Printed {
            holds,
            report: &report,
            against: evidence.as_ref(),
            incomplete,
        })?;
    } else {
        let mut text = check::text(&report, &bundle.manifest.while_read());
        for stream in incomplete {
            let what = format!("{stream} has another number of messages than the manifest says.");
            text.push_str(&format!("{}\n", styled(BAD, what)));
        }
        text.push_str(&match &evidence {
            Some(evidence) => evidence.text(),
            None => format!(
                "{}\n",
                styled(
                    BAD,
                    "There is no head in the bundle: nothing proves it whole."
                )
            ),
        });
        output::print(&text)?;
    }
    Ok(if holds { 0 } else { FOUND })
}

/// Checks the invariants; the names of the streams whose files are not as long as the manifest says.
async fn invariants(bundle: &Bundle, now: Timestamp) -> Result<(Report, Vec<String>), Failure> {
    let source = Source::Bundle(bundle);
    let mut auditor = Auditor::verifying(signing::fits);
    let mut incomplete = Vec::new();
    for kind in StreamKind::EVIDENCE {
        let mut count = 0;
        let take = |stored| {
            count += 1;
            audit_feed::take(&bundle.layout, &mut auditor, kind, &stored)
        };
        source.for_each(kind, None, "checking", take).await?;
        let files = &bundle.manifest.streams;
        if !files
            .iter()
            .any(|file| file.stream == kind && file.count == count)
        {
            incomplete.push(kind.as_str().to_owned());
        }
    }
    let report = auditor.finish(&Ending {
        messages_since: bundle.manifest.messages_since,
        ..bundle.manifest.while_read().ending(now, GRACE_MS)
    });
    Ok((report, incomplete))
}

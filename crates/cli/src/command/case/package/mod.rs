//! `concord case package`: the decision package of a case for a meeting.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use concord_wire::CaseId;

use crate::shared::args::{JsonArg, case_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output;

mod contents;
mod document;
mod html;
mod markdown;
mod past;
mod read;

/// Arguments of `concord case package`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord case package c-42
  concord case package c-42 --out c-42.html
  concord case package c-42 --format json | jq .recommendation

It has what is recommended and what speaks for it, what is not certain, who disagrees, the findings with confidences that are
corrected by the agents' records, earlier decisions like these and how they turned out, what a change does to analyses,
and how each number is computed. It decides nothing. The HTML is one file that loads nothing.")]
pub(crate) struct PackageArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The format; by the ending of FILE when absent (json, md, html), and Markdown without one.
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<Format>,
    /// The file to write; standard output when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// The format of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Everything, for programs.
    Json,
    /// For people, in a text.
    Markdown,
    /// For people, in a browser; one file.
    Html,
}

impl Format {
    /// The format that a file's ending stands for.
    fn of(file: &Path) -> Option<Self> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "json" => Some(Self::Json),
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            _ => None,
        }
    }
}

/// The format that is asked for. A file whose ending says something else than its contents misleads whoever gets it.
fn format(named: Option<Format>, file: Option<&Path>) -> Result<Format, Failure> {
    let Some(file) = file.filter(|file| named.is_none() && file.extension().is_some()) else {
        return Ok(named.unwrap_or(Format::Markdown));
    };
    Format::of(file).ok_or_else(|| {
        Failure::usage(format!(
            "{} has an ending that stands for no format of a package: name it .md, .html or .json, or say --format",
            file.display()
        ))
    })
}

pub(super) async fn run(connection: &ConnectionArgs, args: &PackageArgs) -> Result<u8, Failure> {
    let format = match args.json.json {
        true => Format::Json,
        false => format(args.format, args.out.as_deref())?,
    };
    let broker = connection.connect().await?;
    let package = read::package(&broker, &args.case).await?;
    let text = match format {
        Format::Json => {
            let json = serde_json::to_string_pretty(&package);
            let json = json.map_err(|error| {
                Failure::failed(format!("the package cannot be written: {error}"))
            })?;
            concord_domain::text::visible_json(&json) + "\n"
        }
        Format::Markdown => markdown::text(&contents::document(&package)),
        Format::Html => html::text(&contents::document(&package)),
    };
    let Some(path) = &args.out else {
        output::write(&text)?;
        return Ok(0);
    };
    std::fs::write(path, text).map_err(|error| {
        Failure::failed(format!("{} cannot be written: {error}", path.display()))
    })?;
    output::print(&format!("{} is written\n", path.display()))?;
    Ok(0)
}

#[cfg(test)]
mod tests;

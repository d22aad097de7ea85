//! `concord decisions list`: the entries of the decision log.

use clap::Args;
use concord_runtime::Broker;
use concord_wire::CaseId;
use concord_wire::payload::{LogEntry, Status};

use super::log::{self, Entered};
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::debate_file::both;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::output::{BAD, Cell, DOUBTFUL, NAMED, PLAIN, Table, one_line, styled};

/// Arguments of `concord decisions list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord decisions list
  concord decisions list c-42 --json

An entry whose hash or place in the chain is wrong is marked, and the exit code is 1 then.")]
pub(crate) struct ListArgs {
    /// The case; every case when absent.
    #[arg(value_parser = case_id)]
    case: Option<CaseId>,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) async fn run(broker: &Broker, args: &ListArgs) -> Result<u8, Failure> {
    let entries = log::read(broker, args.case.as_ref()).await?;
    args.json.print(entries.as_slice(), text)?;
    Ok(code(&entries))
}

/// The exit code: faults were found when an entry has one.
pub(super) fn code(entries: &[Entered]) -> u8 {
    if entries.iter().any(|entered| !entered.faults.is_empty()) {
        FOUND
    } else {
        0
    }
}

fn text(entries: &[Entered]) -> String {
    if entries.is_empty() {
        return "The decision log has no entries: it has one for each dispute that ends, and none for a case that is decided \
                without one.\n"
            .to_owned();
    }
    let mut table = Table::new([
        "ENTRY", "AT", "LEVEL", "METHOD", "BY", "DECISION", "TOPIC", "",
    ]);
    for Entered { entry, faults, .. } in entries {
        let provisional = entry.method == Status::Provisional;
        table.row([
            Cell::text(&entry.entry_id).with(NAMED),
            Cell::text(entry.at),
            Cell::number(entry.level),
            Cell::text(entry.method).with(if provisional { DOUBTFUL } else { PLAIN }),
            Cell::text(by(entry)),
            Cell::text(one_line(
                &entry.position.as_ref().map_or("-".to_owned(), plain),
                50,
            )),
            Cell::text(one_line(&entry.topic, 50)),
            Cell::text(if faults.is_empty() { "" } else { "WRONG" }).with(BAD),
        ]);
    }
    let mut text = table.to_string();
    for entered in entries {
        for fault in &entered.faults {
            text.push_str(&format!(
                "{} {fault}\n",
                styled(BAD, format!("{}:", entered.entry.entry_id))
            ));
        }
    }
    let wrong = entries
        .iter()
        .filter(|entered| !entered.faults.is_empty())
        .count();
    if wrong > 0 {
        let what = if wrong == 1 {
            "1 entry is wrong".to_owned()
        } else {
            format!("{wrong} entries are wrong")
        };
        text.push_str(&format!("{what}, of {} in all.\n", entries.len()));
    }
    text
}

/// Who has decided, if a person did.
pub(super) fn by(entry: &LogEntry) -> String {
    let first = entry.first_reviewer.as_ref();
    entry
        .by
        .as_ref()
        .map_or_else(|| "-".to_owned(), |by| both(first, by))
}

/// A position in words alone; the whole of it is in `concord decisions show`.
fn plain(resolution: &concord_wire::payload::Resolution) -> String {
    let value = resolution
        .value
        .as_ref()
        .map_or(String::new(), |value| format!(" [{value}]"));
    let supporters: Vec<&str> = resolution
        .supporters
        .iter()
        .map(|agent| agent.as_str())
        .collect();
    let who = if supporters.is_empty() {
        String::new()
    } else {
        format!(" ({})", supporters.join(", "))
    };
    format!("{}{value}{who}", resolution.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::decisions::log::tests::entries;

    /// A case in which nobody disagrees is decided, too.
    #[test]
    fn no_entry_does_not_mean_that_nothing_was_decided() {
        let text = text(&[]);
        assert!(
            text.contains("no entries") && !text.contains("Nothing is decided"),
            "{text}"
        );
    }

    #[test]
    fn a_wrong_entry_is_marked() {
        let case_id = CaseId::new("c-1").unwrap();
        let entered = |(place, entry)| {
            let faults = if place == 1 {
                vec!["It was changed.".to_owned()]
            } else {
                vec![]
            };
            Entered {
                case_id: case_id.clone(),
                entry,
                first_rationale: None,
                faults,
            }
        };
        let entries: Vec<Entered> = entries().into_iter().enumerate().map(entered).collect();
        let text = anstream::adapter::strip_str(&text(&entries)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("provisional  eva  =90 [90] (ben, cem)"),
            "{text}"
        );
        assert!(
            lines[2].ends_with("WRONG") && !lines[3].ends_with("WRONG"),
            "{text}"
        );
        assert_eq!(
            lines[4..],
            ["c-1-2: It was changed.", "1 entry is wrong, of 3 in all."]
        );
        assert_eq!((code(&entries), code(&entries[..1])), (1, 0));
    }
}

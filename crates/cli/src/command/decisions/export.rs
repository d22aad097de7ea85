//! `concord decisions export`: the decision log as JSON Lines or CSV.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use concord_domain::text::{is_deceptive, visible_json};
use concord_runtime::Broker;
use concord_wire::CaseId;
use concord_wire::payload::LogEntry;
use serde_json::Value;

use super::list::code;
use super::log::{self, Entered};
use crate::shared::args::JsonArg;
use crate::shared::args::case_id;
use crate::shared::failure::Failure;
use crate::shared::output;

/// Arguments of `concord decisions export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord decisions export > decisions.jsonl
  concord decisions export c-42 --format csv --out decisions.csv

JSON Lines has the entries as they are stored, so that their hashes can be computed again; --json has the same in one
array. CSV has the main columns; a text that a spreadsheet would take for a formula begins with a ' there. The exit code
is 1 when an entry is wrong; everything is written all the same.")]
pub(crate) struct ExportArgs {
    /// The case; every case when absent.
    #[arg(value_parser = case_id)]
    case: Option<CaseId>,
    /// The format.
    #[arg(long, value_enum, default_value_t = Format::Jsonl, conflicts_with = "json")]
    format: Format,
    /// The file to write; standard output when absent.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

/// The format of the entries.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object a line.
    Jsonl,
    /// A table with headings.
    Csv,
}

pub(super) async fn run(broker: &Broker, args: &ExportArgs) -> Result<u8, Failure> {
    let entries = log::read(broker, args.case.as_ref()).await?;
    let text = match (args.json.json, args.format) {
        (true, _) => json(&entries)?,
        (false, Format::Jsonl) => lines(&entries)?,
        (false, Format::Csv) => csv(&entries)?,
    };
    match &args.out {
        Some(path) => std::fs::write(path, text).map_err(|error| {
            Failure::failed(format!("{} cannot be written: {error}", path.display()))
        })?,
        // What is exported is for programs: it is what is stored.
        None => output::write(&text)?,
    }
    for entered in entries.iter().filter(|entered| !entered.faults.is_empty()) {
        output::complain(&format!(
            "{}: {}",
            entered.entry.entry_id,
            entered.faults.join(" ")
        ));
    }
    Ok(code(&entries))
}

fn unwritable(error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("the entries cannot be written: {error}"))
}

fn json(entries: &[Entered]) -> Result<String, Failure> {
    let entries: Vec<&LogEntry> = entries.iter().map(|entered| &entered.entry).collect();
    let text = serde_json::to_string_pretty(&entries).map_err(unwritable)?;
    Ok(visible_json(&text) + "\n")
}

fn lines(entries: &[Entered]) -> Result<String, Failure> {
    entries
        .iter()
        .map(|entered| {
            let line = serde_json::to_string(&entered.entry).map_err(unwritable)?;
            Ok(visible_json(&line) + "\n")
        })
        .collect()
}

const COLUMNS: [&str; 24] = [
    "entry_id",
    "case_id",
    "number",
    "at",
    "debate_id",
    "topic",
    "level",
    "method",
    "position",
    "value",
    "supporters",
    "confidence",
    "evidence",
    "impact",
    "by",
    "rationale",
    "default_rationale",
    "alternatives",
    "review_at",
    "window_until",
    "dependants",
    "hash",
    "first_reviewer",
    "first_rationale",
];

fn csv(entries: &[Entered]) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(unwritable)?;
    for entered in entries {
        writer.write_record(row(entered)).map_err(unwritable)?;
    }
    String::from_utf8(writer.into_inner().map_err(unwritable)?).map_err(unwritable)
}

fn row(entered: &Entered) -> [String; COLUMNS.len()] {
    let Entered { case_id, entry, .. } = entered;
    let first_rationale = entered.first_rationale.as_deref();
    let (position, provisional) = (entry.position.as_ref(), entry.provisional.as_deref());
    let list = |items: &[String]| text(&items.join("; "));
    let supporters = position.map(|one| {
        one.supporters
            .iter()
            .map(|agent| agent.as_str())
            .collect::<Vec<_>>()
    });
    let alternatives = provisional.map(|one| {
        one.alternatives
            .iter()
            .map(|other| other.position.clone())
            .collect()
    });
    let alternatives: Vec<String> = alternatives.unwrap_or_default();
    [
        entry.entry_id.clone(),
        case_id.to_string(),
        entry.number.to_string(),
        entry.at.to_string(),
        entry.debate_id.to_string(),
        text(&entry.topic),
        entry.level.to_string(),
        entry.method.to_string(),
        position.map(|one| text(&one.position)).unwrap_or_default(),
        position
            .and_then(|one| one.value.as_ref())
            .map(value)
            .unwrap_or_default(),
        supporters.unwrap_or_default().join("; "),
        entry
            .confidence
            .map(|confidence| confidence.to_string())
            .unwrap_or_default(),
        list(&entry.evidence),
        list(&entry.impact),
        entry
            .by
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        entry.rationale.as_deref().map(text).unwrap_or_default(),
        provisional
            .map(|one| text(&one.rationale))
            .unwrap_or_default(),
        list(&alternatives),
        provisional
            .and_then(|one| one.review_at.as_deref())
            .map(text)
            .unwrap_or_default(),
        provisional
            .map(|one| one.until.to_string())
            .unwrap_or_default(),
        provisional
            .map(|one| list(&one.dependants))
            .unwrap_or_default(),
        entry.hash.clone(),
        entry
            .first_reviewer
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        first_rationale.map(text).unwrap_or_default(),
    ]
}

/// A value as JSON. A negative number is one, and no formula.
fn value(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        other => text(&other.to_string()),
    }
}

/// A text of an agent or a person, written so that no spreadsheet takes it for a formula, whether that parts columns at commas,
/// semicolons or tabs: a spreadsheet that does not know these quotes would begin a cell in the middle of the text. One that
/// does passes over spaces before the formula. What is not seen becomes a space.
fn text(words: &str) -> String {
    let mut safe = String::with_capacity(words.len() + 1);
    let mut begins = true;
    for c in words.chars() {
        let c = if is_deceptive(c) && !matches!(c, '\n' | '\t') {
            ' '
        } else {
            c
        };
        if begins && matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') {
            safe.push('\'');
        }
        // A tab or a line break at the beginning of a cell can itself begin one.
        if safe.is_empty() && matches!(c, '\t' | '\n') {
            safe.push('\'');
        }
        let parts = matches!(c, ',' | ';' | '\t' | '\n' | '"');
        begins = parts || (begins && c.is_whitespace());
        safe.push(c);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::decisions::log::tests::entries;

    fn entered() -> Vec<Entered> {
        let case_id = CaseId::new("c-1").unwrap();
        entries()
            .into_iter()
            .map(|entry| Entered {
                case_id: case_id.clone(),
                entry,
                first_rationale: Some("g1".into()),
                faults: vec![],
            })
            .collect()
    }

    #[test]
    fn lines_can_be_verified_by_whoever_reads_them() {
        let lines = lines(&entered()).unwrap();
        let read: Vec<LogEntry> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read, entries());
        assert!(read.iter().all(|entry| entry.hash == entry.computed_hash()));
        assert_eq!(
            serde_json::from_str::<Vec<LogEntry>>(&json(&entered()).unwrap()).unwrap(),
            entries()
        );
    }

    #[test]
    fn no_cell_begins_with_a_formula_whatever_parts_the_columns() {
        for (words, expected) in [
            ("fair", "fair"),
            ("a - b", "a - b"),
            ("=1+1", "'=1+1"),
            ("  @SUM(A1)", "  '@SUM(A1)"),
            ("a,=1+1", "a,'=1+1"),
            ("a;-1", "a;'-1"),
            ("a\t+1", "a\t'+1"),
            ("a;\u{200b} =1", "a;  '=1"),
            ("\t=1", "'\t'=1"),
            ("\r=x", " '=x"),
            ("a\n=1", "a\n'=1"),
            ("\"=1", "\"'=1"),
            ("＝1", "'＝1"),
        ] {
            assert_eq!(text(words), expected, "{words:?}");
        }
    }

    #[test]
    fn a_value_is_a_number_or_says_what_it_seems_to_say() {
        use serde_json::json;
        for (given, expected) in [
            (json!(-2.5), "-2.5"),
            (json!(90), "90"),
            (json!("fair"), r#""fair""#),
            (json!("=1+1"), r#""'=1+1""#),
            (json!("pay \u{202e}09\u{200b}"), r#""pay  09 ""#),
            (json!({ "a\u{200b}": -1 }), r#"{"a ":-1}"#),
        ] {
            assert_eq!(value(&given), expected);
        }
    }

    #[test]
    fn the_table_has_the_main_columns_and_no_formula() {
        let text = csv(&entered()).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(
            reader.headers().unwrap().iter().collect::<Vec<_>>(),
            COLUMNS
        );
        let first = reader.records().next().unwrap().unwrap();
        let column = |name| &first[COLUMNS.iter().position(|column| *column == name).unwrap()];
        assert_eq!(
            (column("topic"), column("position"), column("value")),
            ("Price, target", "'=90", "90")
        );
        assert_eq!(
            (column("supporters"), column("alternatives")),
            ("ben; cem", "120")
        );
        assert_eq!(column("first_rationale"), "g1");
        assert_eq!(csv(&[]).unwrap().lines().count(), 1);
    }
}

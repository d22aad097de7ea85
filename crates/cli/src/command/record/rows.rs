//! The rows of a file of records: read, checked, and named by their lines where they are bad.

use std::collections::BTreeMap;

use clap::ValueEnum;
use concord_domain::digest;
use concord_wire::payload::track_record::ImportedRecord;
use concord_wire::{AgentId, Timestamp};
use serde::Deserialize;

/// How the rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Comma-separated values, with the names of the columns in the first line.
    Csv,
    /// JSON Lines: an object on each line.
    Jsonl,
}

/// One row as it is written. The names are those of the columns of CSV.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    id: Option<String>,
    agent: String,
    domain: String,
    #[serde(default)]
    metric: Option<String>,
    #[serde(default)]
    regime: Option<String>,
    #[serde(default)]
    sector: Option<String>,
    outcome: String,
    at: String,
    source: String,
}

/// A row that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct BadRow {
    /// The line of the file that it begins on, from 1.
    pub(super) line: u64,
    /// What is wrong with it.
    pub(super) why: String,
}

/// The rows of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rows {
    pub(super) good: Vec<ImportedRecord>,
    pub(super) bad: Vec<BadRow>,
    /// Rows that repeat an earlier row of the file, id and all.
    pub(super) repeated: u64,
}

/// Reads and checks the rows of a file. `now` is the present: nothing can have proved right after it.
pub(super) fn read(bytes: &[u8], format: Format, now: Timestamp) -> Rows {
    let written = match format {
        Format::Csv => csv(bytes),
        Format::Jsonl => jsonl(bytes),
    };
    let mut rows = Rows::default();
    let mut seen: BTreeMap<(AgentId, String), (u64, ImportedRecord)> = BTreeMap::new();
    for (line, written) in written {
        let record = match written.and_then(|written| record(written, now)) {
            Ok(record) => record,
            Err(why) => {
                rows.bad.push(BadRow { line, why });
                continue;
            }
        };
        let name = (record.agent.clone(), record.id.clone());
        match seen.get(&name) {
            Some((_, earlier)) if *earlier == record => rows.repeated += 1,
            Some((first, _)) => rows.bad.push(BadRow {
                line,
                why: format!(
                    "the id {:?} of {} stands on line {first} with other contents",
                    record.id, record.agent
                ),
            }),
            None => {
                seen.insert(name, (line, record.clone()));
                rows.good.push(record);
            }
        }
    }
    rows
}

type WrittenRow = (u64, Result<Written, String>);

fn csv(bytes: &[u8]) -> Vec<WrittenRow> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    let headers = match reader.headers() {
        Ok(headers) => headers.clone(),
        Err(error) => return vec![(1, Err(error.to_string()))],
    };
    if let Err(why) = check_columns(headers.iter()) {
        return vec![(1, Err(why))];
    }
    let row = |row: Result<csv::StringRecord, csv::Error>| match row {
        Ok(row) => {
            let line = row.position().map_or(0, csv::Position::line);
            let written: Result<Written, _> = row.deserialize(Some(&headers));
            (line, written.map_err(|error| without_place(&error)))
        }
        Err(error) => {
            let line = error.position().map_or(0, csv::Position::line);
            (line, Err(without_place(&error)))
        }
    };
    reader.records().map(row).collect()
}

/// What is wrong, without the place, which is said in another form.
fn without_place(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("it has {len} fields; the first line has {expected_len}"),
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

/// A wrong first line is told once, not with every row.
fn check_columns<'a>(columns: impl Iterator<Item = &'a str> + Clone) -> Result<(), String> {
    const NEEDED: [&str; 5] = ["agent", "domain", "outcome", "at", "source"];
    const OTHERS: [&str; 4] = ["id", "metric", "regime", "sector"];
    if let Some(missing) = NEEDED
        .iter()
        .find(|needed| columns.clone().all(|column| column != **needed))
    {
        return Err(format!(
            "there is no column {missing:?}; the first line names the columns {}, and where known {}",
            NEEDED.join(", "),
            OTHERS.join(", ")
        ));
    }
    let is_known = |column: &&str| NEEDED.contains(column) || OTHERS.contains(column);
    match columns.clone().find(|column| !is_known(column)) {
        Some(other) => Err(format!("there is no use for a column {other:?}")),
        None => Ok(()),
    }
}

fn jsonl(bytes: &[u8]) -> Vec<WrittenRow> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..);
    lines
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .map(|(line, number)| {
            let written = serde_json::from_slice(line).map_err(|error| {
                // It has one line, and its number is said.
                let text = error.to_string();
                text.split(" at line ").next().unwrap_or(&text).to_owned()
            });
            (number, written)
        })
        .collect()
}

fn record(written: Written, now: Timestamp) -> Result<ImportedRecord, String> {
    let agent = AgentId::new(&written.agent)
        .map_err(|error| format!("agent {:?}: {error}", written.agent))?;
    let correct = match written.outcome.trim().to_ascii_lowercase().as_str() {
        "right" => true,
        "wrong" => false,
        other => return Err(format!("outcome is {other:?}; write right or wrong")),
    };
    let at = Timestamp::parse(&written.at).map_err(|_| {
        format!(
            "at is {:?}; write a time as 2026-01-31T12:00:00Z",
            written.at
        )
    })?;
    if at > now {
        return Err(format!("at is {at}, which is in the future"));
    }
    let named = |name: Option<String>| name.filter(|name| !name.trim().is_empty());
    let metric = named(written.metric);
    let (regime, sector) = (named(written.regime), named(written.sector));
    let id = named(written.id).unwrap_or_else(|| {
        // Without an id a row is its contents: the same file again adds nothing.
        let (correct, at) = (correct.to_string(), at.to_string());
        let mut parts = vec![
            agent.as_str(),
            &written.domain,
            metric.as_deref().unwrap_or_default(),
            &correct,
            &at,
            &written.source,
        ];
        // A row without them has the id that it always had.
        if regime.is_some() || sector.is_some() {
            parts.extend([&regime, &sector].map(|name| name.as_deref().unwrap_or_default()));
        }
        digest(parts.join("\n").as_bytes())
    });
    let record = ImportedRecord {
        id,
        agent,
        domain: written.domain,
        metric,
        regime,
        sector,
        correct,
        at,
        source: written.source,
    };
    record.check("").map_err(|fault| {
        let field = fault.pointer.trim_start_matches('/');
        format!("{field}: {} {}", fault.message, fault.advice)
    })?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
    }

    #[test]
    fn rows_are_read_from_either_format() {
        let csv = "id,agent,domain,metric,outcome,at,source\n\
                   r-1,ann,valuation,,right,2025-01-01T00:00:00Z,\"back-test, 2025\"\n\
                   ,ben,valuation.revenue,growth,Wrong,2025-01-02T00:00:00Z,audit\n";
        let jsonl = r#"{"id":"r-1","agent":"ann","domain":"valuation","outcome":"right","at":"2025-01-01T00:00:00Z","source":"back-test, 2025"}

{"agent":"ben","domain":"valuation.revenue","metric":"growth","outcome":"wrong","at":"2025-01-02T00:00:00Z","source":"audit"}"#;
        let rows = read(csv.as_bytes(), Format::Csv, now());
        assert_eq!(rows, read(jsonl.as_bytes(), Format::Jsonl, now()));
        assert_eq!(rows.bad, []);
        let read: Vec<_> = rows
            .good
            .iter()
            .map(|row| (row.agent.as_str(), row.correct, row.source.as_str()))
            .collect();
        assert_eq!(
            read,
            [("ann", true, "back-test, 2025"), ("ben", false, "audit")]
        );
        assert_eq!(
            (rows.good[0].id.as_str(), rows.good[1].id.len()),
            ("r-1", 64)
        );
    }

    #[test]
    fn a_row_may_say_in_which_regime_and_sector_it_was() {
        let csv = "agent,domain,outcome,at,source,regime,sector\n\
                   ann,valuation,right,2025-01-01T00:00:00Z,audit,BEAR_LOW,software\n\
                   ann,valuation,right,2025-01-01T00:00:00Z,audit,,\n";
        let rows = read(csv.as_bytes(), Format::Csv, now());
        assert_eq!(rows.bad, []);
        let [with, without] = [0, 1].map(|row: usize| rows.good[row].observation());
        assert_eq!(with.regime.as_deref(), Some("BEAR_LOW"));
        assert_eq!(with.context.sector.as_deref(), Some("software"));
        assert_eq!((without.regime, without.context.sector), (None, None));
        let old =
            "agent,domain,outcome,at,source\nann,valuation,right,2025-01-01T00:00:00Z,audit\n";
        let old = read(old.as_bytes(), Format::Csv, now());
        assert_eq!(
            rows.good[1].id, old.good[0].id,
            "the same file adds nothing"
        );
        assert_ne!(rows.good[0].id, rows.good[1].id);
    }

    #[test]
    fn a_bad_row_is_named_by_its_line() {
        let row = |fields: &str| format!("id,agent,domain,outcome,at,source\n{fields}\n");
        for (text, line, why) in [
            (row("1,e.va,v,right,2025-01-01T00:00:00Z,s"), 2, "agent"),
            (
                row("1,eva,v,maybe,2025-01-01T00:00:00Z,s"),
                2,
                "right or wrong",
            ),
            (row("1,eva,v,right,yesterday,s"), 2, "2026-01-31T12:00:00Z"),
            (
                row("1,eva,v,right,2027-01-01T00:00:00Z,s"),
                2,
                "in the future",
            ),
            (row("1,eva,,right,2025-01-01T00:00:00Z,s"), 2, "domain"),
            (row("1,eva,v,right,2025-01-01T00:00:00Z,"), 2, "source"),
            (row("1,eva,v"), 2, "3 fields"),
            (
                row("1,eva,v,right,2025-01-01T00:00:00Z,s\n1,eva,v,wrong,2025-01-01T00:00:00Z,s"),
                3,
                "on line 2 with other contents",
            ),
            ("agent,domain,at,source\n".to_owned(), 1, "\"outcome\""),
            (
                "agent,domain,outcome,at,source,mood\n".to_owned(),
                1,
                "\"mood\"",
            ),
        ] {
            let rows = read(text.as_bytes(), Format::Csv, now());
            let [bad] = &rows.bad[..] else {
                panic!("{text}: {rows:?}")
            };
            assert!(bad.line == line && bad.why.contains(why), "{text}: {bad:?}");
        }
        let jsonl = "\n{\"agent\": 1}\n{\n";
        let rows = read(jsonl.as_bytes(), Format::Jsonl, now());
        let lines: Vec<u64> = rows.bad.iter().map(|bad| bad.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn a_row_that_is_repeated_is_one_row() {
        let row = "ann,v,right,2025-01-01T00:00:00Z,s\n";
        let text = format!("agent,domain,outcome,at,source\n{row}{row}");
        let rows = read(text.as_bytes(), Format::Csv, now());
        assert_eq!((rows.good.len(), rows.repeated, rows.bad.len()), (1, 1, 0));
    }
}

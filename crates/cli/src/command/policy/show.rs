//! `concord policy list` and `show`.

use std::fmt::Write as _;

use concord_wire::Timestamp;
use concord_wire::policy::Bound;
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PolicyView, ShowArgs, fetch};
use crate::shared::args::JsonArg;
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, FAINT, NAMED, STRONG, Table, one_line, styled};

/// A policy in the list.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
}

/// The answer of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    policies: Vec<Row>,
}

/// A version in words.
pub(super) fn version(number: u32) -> String {
    match number {
        0 => "shipped".to_owned(),
        number => number.to_string(),
    }
}

pub(super) async fn list(connection: &ConnectionArgs, json: JsonArg) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let listed: Listed = ask(&broker, Service::Coordinator, "policies", &json!({})).await?;
    json.print(&listed.policies, |rows| table(rows).to_string())?;
    Ok(0)
}

fn table(rows: &[Row]) -> Table<5> {
    let mut table = Table::new(["NAME", "VERSION", "STORED", "BY", "WHY"]);
    for row in rows {
        table.row([
            Cell::text(&row.name).with(NAMED),
            Cell::text(version(row.version)),
            Cell::text(row.at.map_or(String::new(), |at| at.to_string())),
            Cell::text(row.by.as_deref().unwrap_or_default()),
            Cell::text(row.why.as_deref().unwrap_or_default()).with(FAINT),
        ]);
    }
    table
}

pub(super) async fn one(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let view = fetch(&broker, &args.name, args.version).await?;
    args.json.print(&view, text)?;
    Ok(0)
}

/// A bound in words.
pub(super) fn bound(bound: Bound) -> String {
    match bound {
        Bound::Fixed => "fixed".to_owned(),
        Bound::Lower => "may be lowered".to_owned(),
        Bound::Higher => "may be raised".to_owned(),
        Bound::Any => "may be anything".to_owned(),
        Bound::Within(low, high) => format!("may be {low} to {high}"),
    }
}

fn text(view: &PolicyView) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{text}");
    };
    line(format!("policy {}", styled(NAMED, &view.name)));
    line(format!("  version  {}", version(view.version)));
    if let (Some(by), Some(why), Some(at)) = (&view.by, &view.why, view.at) {
        let why = one_line(why, usize::MAX);
        line(format!("  stored   {at} by {by}: {why}"));
    }
    let versions: Vec<String> = view.versions.iter().map(|one| version(*one)).collect();
    line(format!("  versions {}", versions.join(", ")));
    line(format!("  digest   {}", view.digest));
    line(String::new());
    line(styled(STRONG, "What a case is opened with:"));
    let mut fields = Table::new(["FIELD", "VALUE"]).indented("  ");
    for (field, value) in view.policy.fields() {
        if field != "preset" {
            fields.row([Cell::text(field), Cell::text(value)]);
        }
    }
    line(fields.to_string());
    line(styled(
        STRONG,
        "What an opener may change; all else is fixed:",
    ));
    let mut bounds = Table::new(["FIELD", "BOUND"]).indented("  ");
    for (field, one) in &view.bounds.fields {
        bounds.row([Cell::text(field), Cell::text(bound(*one))]);
    }
    line(bounds.to_string().trim_end().to_owned());
    out
}

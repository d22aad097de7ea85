//! `concord alert`: news of which everybody is told at once.

use clap::{Args, Subcommand};
use concord_domain::aggregates::alert::AlertMachine;
use concord_domain::aggregates::watch::{self, WatchMachine};
use concord_events::{Aggregate, AlertEvent, AlertRaised, AlertReported};
use concord_wire::payload::REGIME_CHANGE;
use concord_wire::{Timestamp, Token};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, NAMED, Table, one_line, styled};

mod raise;
mod report;
mod rules;

/// At most so many characters of a text stand in a line.
const SHOWN: usize = 60;

/// The verbs of `concord alert`.
#[derive(Debug, Subcommand)]
pub(crate) enum AlertVerb {
    /// Alert everybody, as somebody to whom an operator has given the role alerter.
    Raise(raise::RaiseArgs),
    /// List the alerts, the last first.
    List(ListArgs),
    /// Show an alert, and who was told of it.
    Show(ShowArgs),
    /// Report what follows from an alert, as is awaited after a change of regime.
    Report(report::ReportArgs),
    /// Say which entries of shared memory raise an alert by themselves.
    #[command(subcommand)]
    Rules(rules::RulesVerb),
}

/// Arguments of `concord alert list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord alert list
  concord alert list --json | jq '.[0].told'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord alert show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord alert list                 the ids
  concord alert show ALERT
  concord alert show ALERT --json | jq .implications")]
pub(crate) struct ShowArgs {
    /// The id of the alert.
    #[arg(value_parser = alert_id)]
    alert: Token,
    #[command(flatten)]
    json: JsonArg,
}

fn alert_id(text: &str) -> Result<Token, String> {
    Token::new(text).map_err(|error| error.to_string())
}

/// An alert as it is shown.
#[derive(Debug, Serialize)]
struct Shown {
    id: Token,
    at: Timestamp,
    #[serde(flatten)]
    raised: AlertRaised,
    /// The report that has followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Box<AlertReported>>,
    /// Whether it did not follow in time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    report_missed: bool,
    /// Whether the regime that it names is the present one; said where a single alert is shown, and it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_present: Option<bool>,
}

impl Shown {
    fn of(id: Token, at: Timestamp, raised: AlertRaised) -> Self {
        Self {
            id,
            at,
            raised,
            report: None,
            report_missed: false,
            is_present: None,
        }
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, verb: AlertVerb) -> Result<u8, Failure> {
    match verb {
        AlertVerb::Raise(args) => raise::run(connection, &args).await,
        AlertVerb::List(args) => list(connection, &args).await,
        AlertVerb::Show(args) => show(connection, &args).await,
        AlertVerb::Report(args) => report::run(connection, &args).await,
        AlertVerb::Rules(verb) => rules::run(connection, verb).await,
    }
}

async fn list(connection: &ConnectionArgs, args: &ListArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let query = EventQuery::of_kind(Aggregate::Alert);
    let mut alerts = Vec::new();
    source
        .for_each(&query, "reading alerts", |stored| {
            let record = event_of::<AlertEvent>(&stored)?;
            if let AlertEvent::Raised(raised) = record.event {
                alerts.push(Shown::of(record.meta.id, record.meta.at, raised));
            }
            Ok(())
        })
        .await?;
    alerts.reverse();
    args.json.print(&alerts, |alerts| table(alerts))?;
    Ok(0)
}

async fn show(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let Some(shown) = known(&source, &args.alert).await? else {
        return Err(Failure::failed(format!(
            "there is no alert {}; see `concord alert list`",
            args.alert
        )));
    };
    args.json.print(&shown, text)?;
    Ok(0)
}

/// The alert with this id; none where there is none.
async fn known(source: &EventSource, id: &Token) -> Result<Option<Shown>, Failure> {
    let (state, records) = source.aggregate::<AlertMachine>(id).await?;
    let (Some(raised), Some(first)) = (state.raised, records.first()) else {
        return Ok(None);
    };
    let present = source
        .aggregate::<WatchMachine>(&watch::id())
        .await?
        .0
        .regime;
    let is_regime = raised.alert.event_type == REGIME_CHANGE;
    let is_present = present.is_some_and(|present| present.alert == *id);
    Ok(Some(Shown {
        report: state.report,
        report_missed: state.is_missed,
        is_present: is_regime.then_some(is_present),
        ..Shown::of(id.clone(), first.meta.at, *raised)
    }))
}

/// What was before and what is now, as far as it was said.
fn change(shown: &Shown) -> String {
    let alert = &shown.raised.alert;
    let state = |value: &serde_json::Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let old = alert.old_regime.clone();
    let old = old.or_else(|| alert.old_state.as_ref().map(state));
    let new = alert.new_regime.clone();
    let new = new.or_else(|| alert.new_state.as_ref().map(state));
    match (old, new) {
        (Some(old), Some(new)) => format!("{old} -> {new}"),
        (None, Some(new)) => new,
        (Some(old), None) => format!("{old} is over"),
        (None, None) => "-".to_owned(),
    }
}

fn sure(shown: &Shown) -> String {
    let confidence = shown.raised.alert.confidence;
    confidence.map_or_else(|| "-".to_owned(), |sure| format!("{sure:.2}"))
}

fn table(alerts: &[Shown]) -> String {
    if alerts.is_empty() {
        return "Nobody has alerted, or you may not read alerts.\n".to_owned();
    }
    let mut table = Table::new(["ALERT", "AT", "EVENT", "CHANGE", "SURE", "BY", "TOLD"]);
    for shown in alerts {
        let raised = &shown.raised;
        table.row([
            Cell::text(&shown.id).with(NAMED),
            Cell::text(shown.at),
            Cell::text(one_line(&raised.alert.event_type, SHOWN)),
            Cell::text(one_line(&change(shown), SHOWN)),
            Cell::text(sure(shown)),
            Cell::text(&raised.heard.agent_id),
            Cell::text(raised.registered),
        ]);
    }
    table.to_string()
}

fn text(shown: &Shown) -> String {
    let raised = &shown.raised;
    let alert = &raised.alert;
    let mut lines = vec![
        format!(
            "{}: {}",
            styled(NAMED, &shown.id),
            one_line(&alert.event_type, SHOWN)
        ),
        format!("change      {}", one_line(&change(shown), 2 * SHOWN)),
        format!("sure        {}", sure(shown)),
        format!("raised by   {} at {}", raised.heard.agent_id, shown.at),
        format!("priority    {}", raised.priority.as_str()),
    ];
    if let Some(source) = &alert.source {
        let (agent, topic) = (&source.agent, &source.topic);
        lines.push(format!(
            "by a rule   {} (version {} of the rules): {topic} of {agent}, version {}: {}",
            source.rule,
            source.rules_version,
            source.version,
            one_line(&source.because, 4 * SHOWN)
        ));
    }
    for (what, said) in [
        ("evidence", &alert.evidence),
        ("action", &alert.recommended_actions),
    ] {
        lines.extend(
            said.iter()
                .map(|one| format!("{what:<12}{}", one_line(one, 2 * SHOWN))),
        );
    }
    for (name, value) in &alert.implications {
        let value = one_line(&value.to_string(), 2 * SHOWN);
        lines.push(format!("implies     {} {value}", one_line(name, SHOWN)));
    }
    lines.extend(consequences(shown));
    let names: Vec<&str> = raised.told.iter().map(|agent| agent.as_str()).collect();
    lines.push(format!(
        "told        everybody; on the register were {}: {}",
        raised.registered,
        if names.is_empty() {
            "nobody".to_owned()
        } else {
            names.join(", ")
        }
    ));
    lines.push(String::new());
    output::harmless(&lines.join("\n"))
}

/// What has become of an alert, one line each.
fn consequences(shown: &Shown) -> Vec<String> {
    let mut lines = Vec::new();
    match shown.is_present {
        Some(true) => lines.push("regime      it is the present one".to_owned()),
        Some(false) => lines.push("regime      another alert has named one since".to_owned()),
        None => {}
    }
    match (&shown.report, shown.raised.report_due) {
        (Some(report), _) => lines.push(format!(
            "report      by {}: {}",
            report.heard.agent_id,
            one_line(&report.report, 8 * SHOWN)
        )),
        (None, Some(due)) if shown.report_missed => lines.push(format!(
            "report      was due {due}, and has not come; people were told"
        )),
        (None, Some(due)) => lines.push(format!(
            "report      awaited until {due}: concord alert report {} TEXT --by {}",
            shown.id, shown.raised.heard.agent_id
        )),
        (None, None) => {}
    }
    lines
}

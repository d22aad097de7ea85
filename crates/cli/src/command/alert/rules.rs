//! `concord alert rules`: which entries of shared memory raise an alert by themselves.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use concord_domain::text::one_line;
use concord_events::RegimeChanged;
use concord_wire::Timestamp;
use concord_wire::payload::{AlertRule, AlertRules, AlertTrigger};
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shared::args::{ByArgs, JsonArg};
use crate::shared::connection::{ConnectionArgs, ask, command};
use crate::shared::failure::Failure;
use crate::shared::input;
use crate::shared::output::{self, Cell, NAMED, Table};

/// The verbs of `concord alert rules`.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesVerb {
    /// Store the rules, in place of those that stand.
    Set(SetArgs),
    /// Show the rules.
    Show(ShowArgs),
    /// Take all rules away: nothing raises an alert by itself any more.
    Remove(RemoveArgs),
}

/// Arguments of `concord alert rules set`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file has all rules:
  {\"rules\": [
    {\"name\": \"regime\", \"topic\": \"regime\", \"field\": \"regime\", \"event_type\": \"regime_change\",
     \"when\": {\"confidence_above\": {\"confidence\": 0.8}}},
    {\"name\": \"rate\", \"topic\": \"policy_rate\", \"event_type\": \"rate_move\",
     \"when\": {\"moved_by\": {\"by\": 25, \"unit\": \"bp\"}}},
    {\"name\": \"extreme\", \"topic\": \"indicator_*\", \"event_type\": \"threshold_breach\", \"priority\": \"normal\",
     \"when\": {\"beyond_percentile\": {\"above\": 0.95, \"below\": 0.05, \"longer_than_ms\": 259200000}}}]}

A rule looks at what agents with the role alerter write into their memory outside cases, or the agents that it names. The same
content again is no new version. docs/alerts.md has the table.

Examples:
  concord alert rules set rules.json --by olga --why \"as the house does it\"
  concord alert rules set - --by olga --why \"a smaller move\" < rules.json")]
pub(crate) struct SetArgs {
    /// The rules as JSON; - for standard input.
    file: PathBuf,
    #[command(flatten)]
    by: ByArgs,
}

/// Arguments of `concord alert rules show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord alert rules show
  concord alert rules show --version 1 --json | jq .rules")]
pub(crate) struct ShowArgs {
    /// The version [default: the one that stands].
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    #[command(flatten)]
    json: JsonArg,
}

/// Arguments of `concord alert rules remove`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord alert rules remove --by olga --why \"too many alerts\"")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    by: ByArgs,
}

/// The rules, as the coordinator answers.
#[derive(Debug, Serialize, Deserialize)]
struct RulesView {
    version: u32,
    rules: AlertRules,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    /// The present regime, where an alert has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    regime: Option<RegimeChanged>,
}

pub(super) async fn run(connection: &ConnectionArgs, verb: RulesVerb) -> Result<u8, Failure> {
    match verb {
        RulesVerb::Set(args) => {
            let bytes = input::read_input(&args.file, "concord alert rules set")?;
            let rules = read_file(&input::name(&args.file), &bytes)?;
            store(connection, &rules, &args.by).await
        }
        RulesVerb::Show(args) => show(connection, &args).await,
        RulesVerb::Remove(args) => store(connection, &AlertRules::default(), &args.by).await,
    }
}

/// Reads a file, so that faults are reported before anything is sent.
fn read_file(source: &str, bytes: &[u8]) -> Result<AlertRules, Failure> {
    let wrong = |fault: concord_wire::Fault| input::malformed(source, "has no rules", &fault);
    let rules: AlertRules = concord_wire::envelope::from_json(bytes, "").map_err(wrong)?;
    rules.check("").map_err(wrong)?;
    Ok(rules)
}

async fn store(
    connection: &ConnectionArgs,
    rules: &AlertRules,
    ByArgs { by, why, json }: &ByArgs,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = json!({ "rules": rules, "by": by, "why": why });
    let done = command(&broker, Service::Coordinator, "put_alert_rules", &request).await?;
    let stands: RulesView = ask(&broker, Service::Coordinator, "alert_rules", &json!({})).await?;
    let (version, many) = (stands.version, rules.rules.len());
    let said = match &done.event {
        Some(_) => format!("{many} rules are stored, as version {version}"),
        None => format!("these {many} rules stand already, as version {version}"),
    };
    json.print(
        &json!({ "version": version, "rules": rules, "by": by, "why": why, "done": done }),
        |_| format!("{said}\n"),
    )?;
    Ok(0)
}

async fn show(connection: &ConnectionArgs, args: &ShowArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let request = json!({ "version": args.version });
    let view: RulesView = ask(&broker, Service::Coordinator, "alert_rules", &request).await?;
    args.json.print(&view, text)?;
    Ok(0)
}

fn text(view: &RulesView) -> String {
    let regime = view.regime.as_ref().map(|now| {
        let regime = one_line(&now.regime, super::SHOWN);
        format!(
            "the regime is {regime}, by the alert {} at {}\n",
            now.alert, now.raised_at
        )
    });
    let regime = regime.unwrap_or_default();
    if view.rules.rules.is_empty() {
        return format!(
            "No rule raises an alert by itself; `concord alert rules set` stores some.\n{regime}"
        );
    }
    let mut table = Table::new(["RULE", "TOPIC", "OF", "WHEN", "EVENT", "PRIORITY"]);
    for rule in &view.rules.rules {
        table.row([
            Cell::text(&rule.name).with(NAMED),
            Cell::text(topic(rule)),
            Cell::text(agents(rule)),
            Cell::text(when(&rule.when)),
            Cell::text(one_line(&rule.event_type, super::SHOWN)),
            Cell::text(rule.priority.as_str()),
        ]);
    }
    let stored = format!(
        "version {}, by {} at {}: {}",
        view.version,
        view.by.as_deref().unwrap_or("-"),
        view.at.map_or_else(|| "-".to_owned(), |at| at.to_string()),
        view.why.as_deref().unwrap_or("-"),
    );
    let most = view.rules.per_hour_max;
    let report = match view.rules.regime_change.report_within_ms {
        0 => "no report is awaited after a change of regime".to_owned(),
        ms => format!("a report within {} after a change of regime", hours(ms)),
    };
    output::harmless(&format!(
        "{table}at most {most} alerts an hour of one agent's entries\n{report}\n{stored}\n{regime}"
    ))
}

fn topic(rule: &AlertRule) -> String {
    let field = rule.field.as_deref().map(|field| format!(", {field}"));
    one_line(
        &format!("{}{}", rule.topic, field.unwrap_or_default()),
        super::SHOWN,
    )
}

fn agents(rule: &AlertRule) -> String {
    let names: Vec<&str> = rule.agents.iter().map(|agent| agent.as_str()).collect();
    match names.is_empty() {
        true => "alerters".to_owned(),
        false => one_line(&names.join(", "), super::SHOWN),
    }
}

fn hours(ms: u64) -> String {
    format!("{} h", ms as f64 / 3_600_000.0)
}

/// When a rule raises an alert, in words.
fn when(trigger: &AlertTrigger) -> String {
    match trigger {
        AlertTrigger::Changed {} => "it changes".to_owned(),
        AlertTrigger::ConfidenceAbove { confidence } => {
            format!("it changes, confidence above {confidence}")
        }
        AlertTrigger::MovedBy {
            by,
            unit,
            within_ms,
        } => {
            let unit = unit.as_deref().map(|unit| format!(" {unit}"));
            let within = within_ms.map(|ms| format!(" within {}", hours(ms)));
            let (unit, within) = (unit.unwrap_or_default(), within.unwrap_or_default());
            format!("it moves by {by}{unit}{within}")
        }
        AlertTrigger::BeyondPercentile {
            above,
            below,
            longer_than_ms,
            observations_min,
        } => format!(
            "above percentile {}, or below {}, for longer than {}; {observations_min} numbers before",
            above * 100.0,
            below * 100.0,
            hours(*longer_than_ms)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said_at_its_place() {
        for (text, expected) in [
            ("", "rules.json"),
            (r#"{"rules": [{"name": "a"}]}"#, "topic"),
            (
                r#"{"rules": [{"name": "a", "topic": "a", "event_type": "e", "when": {"doubled": {}}}]}"#,
                "beyond_percentile",
            ),
            (
                r#"{"rules": [{"name": "a", "topic": "a", "event_type": "e", "when": {"beyond_percentile": {"above": 95}}}]}"#,
                "/rules/0/when/beyond_percentile/above",
            ),
            (r#"{"rules": [], "per_hour": 3}"#, "per_hour"),
        ] {
            let failure = read_file("rules.json", text.as_bytes()).unwrap_err();
            assert!(failure.to_string().contains(expected), "{failure}");
        }
    }
}

//! `concord alert raise`.

use std::path::PathBuf;

use clap::Args;
use concord_domain::aggregates::alert::id_of;
use concord_events::{Aggregate, AlertRaised};
use concord_wire::envelope::from_json;
use concord_wire::payload::{Alert, REGIME_CHANGE};
use concord_wire::subject::Service;
use concord_wire::{AgentId, MessageId, MessageType, Priority, Token};
use serde_json::Value;

use super::known;
use crate::shared::args::{JsonArg, agent_id};
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::{FOUND, Failure};
use crate::shared::input;
use crate::shared::output::{self, NAMED, styled};
use crate::shared::put::value_of;
use crate::shared::send::{OutgoingMessage, SendResult, WaitArgs, fresh_id, send_under};

/// Arguments of `concord alert raise`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every agent is told at once, before whatever waits for it. Who may alert is said by an operator:
  concord person register macro_analyst --agent --role alerter

With a regime_change, --old and --new are regimes; otherwise any JSON, and what is none is a text.
A file has the payload of an alert, as in docs/alerts.md. The same --message-id again is told once.

Examples:
  concord alert raise regime_change --by macro_analyst --old BULL_LOW_RATES --new BEAR_HIGH_RATES --confidence 0.85
  concord alert raise rate_move --by macro_analyst --old 4.25 --new 4.5 --evidence \"Fed, 2025-01-29\"
  concord alert raise --file alert.json --by macro_analyst --message-id fed-2025-01-29")]
pub(crate) struct RaiseArgs {
    /// What has happened, in one word.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    event_type: Option<String>,
    /// A file with the payload of the alert; - for standard input.
    #[arg(long)]
    file: Option<PathBuf>,
    /// Who alerts.
    #[arg(long, value_name = "NAME", value_parser = agent_id)]
    by: AgentId,
    /// What was before.
    #[arg(long, conflicts_with = "file")]
    old: Option<String>,
    /// What is now.
    #[arg(long, conflicts_with = "file")]
    new: Option<String>,
    /// How sure it is, 0 to 1.
    #[arg(long, conflicts_with = "file")]
    confidence: Option<f64>,
    /// What it rests on; may be given several times.
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    evidence: Vec<String>,
    /// What whoever is told should do; may be given several times.
    #[arg(long = "action", value_name = "TEXT", conflicts_with = "file")]
    actions: Vec<String>,
    /// low, normal, high, critical or system_critical; those before critical wait behind what was said earlier.
    #[arg(long, default_value = "system_critical", value_parser = priority)]
    priority: Priority,
    /// The id of the message, by which the same alert is known again.
    #[arg(long, value_name = "ID", value_parser = message_id)]
    message_id: Option<MessageId>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    json: JsonArg,
}

fn priority(text: &str) -> Result<Priority, String> {
    let known = serde_json::from_value(Value::String(text.to_owned()));
    known.map_err(|_| {
        "it is none; there are low, normal, high, critical and system_critical".to_owned()
    })
}

fn message_id(text: &str) -> Result<MessageId, String> {
    MessageId::new(text).map_err(|error| error.to_string())
}

pub(super) async fn run(connection: &ConnectionArgs, args: &RaiseArgs) -> Result<u8, Failure> {
    let alert = alert(args)?;
    alert
        .check("/payload")
        .map_err(|fault| input::unusable(&fault))?;
    let broker = connection.connect().await?;
    let message_id = match &args.message_id {
        Some(id) => id.clone(),
        None => fresh_id(&broker)?,
    };
    let id = id_of(&args.by, message_id.as_str());
    if args.message_id.is_some()
        && let Some(shown) = known(&EventSource::new(&broker).await?, &id).await?
        && shown.raised.alert == alert
    {
        args.json.print(&shown, |shown| told(&id, &shown.raised))?;
        return Ok(0);
    }
    let message = OutgoingMessage {
        from: &args.by,
        to: Service::Coordinator,
        kind: MessageType::Alert,
        priority: args.priority,
        case: None,
        correlation_id: None,
        payload: &alert,
        watched: (Aggregate::Alert, id.clone()),
    };
    let receipt = send_under(&broker, message_id, &message, args.wait).await?;
    let failure = receipt.failure(Service::Coordinator);
    if args.json.json {
        output::json(&receipt)?;
        return Ok(if failure.is_some() { FOUND } else { 0 });
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    output::print(&match &receipt.result {
        SendResult::Recorded(event) => told(&id, &event.read()?),
        _ => format!("it is sent as {}\n", receipt.message_id),
    })?;
    Ok(0)
}

fn told(id: &Token, raised: &AlertRaised) -> String {
    let agents = raised.registered;
    let id = styled(NAMED, id);
    format!("{id}: everybody is told; {agents} agents are on the register\n")
}

fn alert(args: &RaiseArgs) -> Result<Alert, Failure> {
    if let Some(file) = &args.file {
        let bytes = input::read_input(file, "concord alert raise")?;
        return from_json(&bytes, "/payload").map_err(|fault| input::unusable(&fault));
    }
    let event_type = args.event_type.clone().unwrap_or_default();
    let alert = Alert {
        confidence: args.confidence,
        evidence: args.evidence.clone(),
        recommended_actions: args.actions.clone(),
        ..Alert::of(event_type)
    };
    let (old, new) = (args.old.clone(), args.new.clone());
    if alert.event_type == REGIME_CHANGE {
        return Ok(Alert {
            old_regime: old,
            new_regime: new,
            ..alert
        });
    }
    Ok(Alert {
        old_state: old.as_deref().map(value_of),
        new_state: new.as_deref().map(value_of),
        ..alert
    })
}

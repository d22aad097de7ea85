//! The registered agents as a table.

use concord_runtime::Broker;
use concord_wire::Timestamp;
use concord_wire::payload::{AgentStatus, Card};
use concord_wire::subject::Service;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::watch;
use crate::shared::connection::{ConnectionArgs, ask};
use crate::shared::failure::Failure;
use crate::shared::output::{
    self, BAD, Cell, DOUBTFUL, FAINT, GOOD, NAMED, PLAIN, Table, ago, one_line, styled,
};

/// An agent as the coordinator describes it.
#[derive(Debug, Serialize, Deserialize)]
struct Registered {
    status: AgentStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
    since: Option<Timestamp>,
    last_heartbeat: Option<Timestamp>,
    #[serde(default)]
    silent_in_a_row: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_at: Option<Timestamp>,
    #[serde(flatten)]
    card: Value,
}

pub(super) async fn run(
    connection: &ConnectionArgs,
    as_json: bool,
    watch: bool,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    // First, so that nothing that happens between the two is missed.
    let news = if watch {
        Some(watch::News::subscribe(&broker).await?)
    } else {
        None
    };
    let registered: Vec<Registered> =
        ask(&broker, Service::Coordinator, "agents", &Value::Null).await?;
    let hosted = hosted(&broker).await;
    match as_json {
        true if watch => output::json_line(&json!({ "registered": registered, "hosted": hosted }))?,
        true => output::json(&json!({ "registered": registered, "hosted": hosted }))?,
        false => output::print(&text(&registered, hosted.as_deref()))?,
    }
    match news {
        Some(news) => news.print(as_json).await,
        None => Ok(0),
    }
}

/// The agents that the adapter hosts; none where no adapter runs.
async fn hosted(broker: &Broker) -> Option<Vec<Value>> {
    ask(broker, Service::AgentAdapter, "agents", &Value::Null)
        .await
        .ok()
}

pub(super) fn style(status: AgentStatus) -> anstyle::Style {
    match status {
        AgentStatus::Available => GOOD,
        AgentStatus::Busy => DOUBTFUL,
        AgentStatus::Unavailable => BAD,
    }
}

fn text(registered: &[Registered], hosted: Option<&[Value]>) -> String {
    let mut text = if registered.is_empty() {
        "No agent is registered. One registers by a request to coordinator with the action register_agent; see\n\
         `concord agents register --help`.\n"
            .to_owned()
    } else {
        table(registered)
    };
    match hosted {
        None => text.push_str(&format!(
            "{}\n",
            styled(FAINT, "No agent adapter runs; nothing is hosted.")
        )),
        Some([]) => text.push_str(&format!(
            "{}\n",
            styled(FAINT, "The agent adapter hosts no agents.")
        )),
        Some(hosted) => {
            text.push_str("\nHosted by the agent adapter:\n");
            hosted
                .iter()
                .for_each(|one| text.push_str(&hosted_line(one)));
        }
    }
    text
}

fn table(registered: &[Registered]) -> String {
    let mut table = Table::new([
        "AGENT",
        "STATUS",
        "SINCE",
        "HEARTBEAT",
        "DIALECT",
        "DOMAINS",
        "SKILLS",
        "ACTIONS",
        "WHY",
    ]);
    for one in registered {
        // A newer coordinator's card may hold what this build does not know.
        let card: Option<Card> = serde_json::from_value(one.card.clone()).ok();
        let strings = |name: &str| {
            let list = one
                .card
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let names = list.filter_map(|item| {
                item.as_str()
                    .or_else(|| item.get("name").and_then(Value::as_str))
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let dash = || "-".to_owned();
        table.row([
            Cell::text(
                one.card
                    .get("agent_id")
                    .and_then(Value::as_str)
                    .unwrap_or("?"),
            )
            .with(NAMED),
            Cell::text(one.status).with(style(one.status)),
            Cell::text(one.since.map_or_else(dash, ago)),
            Cell::text(one.last_heartbeat.map_or_else(dash, ago)),
            Cell::text(card.map_or_else(dash, |card| card.dialect.to_string())),
            Cell::text(one_line(&strings("domains"), 30)),
            Cell::text(one_line(&strings("skills"), 40)),
            Cell::text(one_line(&strings("actions"), 40)),
            Cell::text(one_line(&one.why, 40)).with(PLAIN),
        ]);
    }
    table.to_string()
}

/// The fields of a hosted agent on one line; they differ with the kind of host.
fn hosted_line(one: &Value) -> String {
    let id = one.get("agent_id").and_then(Value::as_str).unwrap_or("?");
    let all = one.as_object().into_iter().flatten();
    let fields = all.filter(|(name, value)| {
        let shown_above = [
            "agent_id",
            "description",
            "skills",
            "actions",
            "domains",
            "card",
        ]
        .contains(&name.as_str());
        !shown_above && !value.is_null()
    });
    let fields: Vec<String> = fields
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name} {}", one_line(text, 40)),
            other => format!("{name} {other}"),
        })
        .collect();
    format!("  {}  {}\n", styled(NAMED, id), fields.join(", "))
}

//! `concord expert list`: the experts, and the debates that they have.

use concord_domain::aggregates::review_queue::{QueueState, RegisteredExpert};
use concord_wire::DebateId;
use concord_wire::payload::Expert;
use serde::Serialize;

use crate::command::queue;
use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::EventSource;
use crate::shared::failure::Failure;
use crate::shared::output::{self, Cell, DOUBTFUL, NAMED, PLAIN, Table, one_line};

/// An expert, with the debates that they have.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    expert: &'a Expert,
    /// Debates that the expert has, in the order of the queue.
    has: Vec<&'a DebateId>,
}

pub(super) async fn run(connection: &ConnectionArgs, json: JsonArg) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let queue = queue::state(&EventSource::new(&broker).await?).await?;
    let rows: Vec<Row<'_>> = queue
        .experts
        .values()
        .map(|desk| row(&queue, desk))
        .collect();
    if json.json {
        output::json(&rows)?;
        return Ok(0);
    }
    if rows.is_empty() {
        output::print("Nobody is registered; see concord person register --help.\n")?;
        return Ok(0);
    }
    output::print(&table(&rows).to_string())?;
    Ok(0)
}

fn row<'a>(queue: &'a QueueState, desk: &'a RegisteredExpert) -> Row<'a> {
    let has = queue
        .held_by(&desk.expert.agent_id)
        .into_iter()
        .map(|debate| &debate.entry.debate_id)
        .collect();
    Row {
        expert: &desk.expert,
        has,
    }
}

fn table(rows: &[Row<'_>]) -> Table<6> {
    let mut table = Table::new(["EXPERT", "HAS", "NAME", "DOMAINS", "TOLD BY", "DEBATES"]);
    for Row { expert, has } in rows {
        let contact = &expert.contact;
        let ways = [
            ("email", contact.email.is_some()),
            ("webhook", contact.webhook.is_some()),
        ];
        let ways: Vec<&str> = ways
            .into_iter()
            .filter_map(|(way, known)| known.then_some(way))
            .collect();
        let full = has.len() >= expert.capacity as usize;
        let debates: Vec<&str> = has.iter().map(|debate| debate.as_str()).collect();
        let or_none = |text: String| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                text
            }
        };
        table.row([
            Cell::text(&expert.agent_id).with(NAMED),
            Cell::text(format!("{} of {}", has.len(), expert.capacity)).with(if full {
                DOUBTFUL
            } else {
                PLAIN
            }),
            Cell::text(or_none(one_line(
                expert.name.as_deref().unwrap_or_default(),
                30,
            ))),
            Cell::text(or_none(one_line(&expert.domains.join(", "), 50))),
            Cell::text(or_none(ways.join(", "))),
            Cell::text(or_none(debates.join(", "))),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_are_listed_with_what_they_have() {
        let expert: Expert = serde_json::from_str(
            r#"{"agent_id": "eva", "capacity": 1, "domains": ["tax"], "contact": {"email": "eva@example.org"}}"#,
        )
        .unwrap();
        let debate = DebateId::new("d-1").unwrap();
        let rows = [Row {
            expert: &expert,
            has: vec![&debate],
        }];
        let text = anstream::adapter::strip_str(&table(&rows).to_string()).to_string();
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "eva     1 of 1  -     tax      email    d-1"
        );
        assert_eq!(serde_json::to_value(&rows[0]).unwrap()["has"][0], "d-1");
    }
}

//! `concord person list` and `show`: who is registered, and what they may do.

use std::collections::BTreeMap;

use concord_domain::Versioned;
use concord_domain::aggregates::person::{PersonMachine, PersonState};
use concord_events::{Aggregate, AggregateEvent, PersonEvent, StoredEvent};
use concord_runtime::Broker;
use concord_wire::payload::{PersonKind, PersonRecord, Role};
use concord_wire::{AgentId, Timestamp, Token};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::output::{self, BAD, Cell, GOOD, NAMED, Table, one_line, styled};

/// Somebody who is registered.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) person: PersonRecord,
    /// Who registered them.
    by: Option<AgentId>,
    /// Since when they are as they are.
    since: Option<Timestamp>,
    /// Why they are suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) suspended: Option<String>,
}

impl Row {
    fn new(state: PersonState) -> Option<Self> {
        Some(Self {
            person: state.person?,
            by: state.by,
            since: state.since,
            suspended: state.suspended.map(|one| one.why),
        })
    }

    pub(super) fn standing(&self) -> String {
        match &self.suspended {
            None => "active".to_owned(),
            Some(why) => format!("suspended: {why}"),
        }
    }
}

/// The roles of somebody, each in a few words.
pub(super) fn roles(person: &PersonRecord) -> Vec<String> {
    let grants = person.roles.iter().map(|grant| {
        let limit = |word: &str, names: &[String]| match names {
            [] => String::new(),
            names => format!(" {word} {}", names.join(", ")),
        };
        let domains = limit("in", &grant.domains);
        let gates = limit("at the gate", &grant.gates);
        format!("{}{domains}{gates}", grant.role)
    });
    grants.collect()
}

/// Reads events of people: everybody whom the query names.
async fn read(broker: &Broker, query: &EventQuery) -> Result<Vec<Row>, Failure> {
    let mut people: BTreeMap<Token, Versioned<PersonMachine>> = BTreeMap::new();
    let source = EventSource::new(broker).await?;
    let read = source.for_each(query, "reading people", |stored| {
        let event = event_of::<PersonEvent>(&stored)?;
        let id = event.meta.id.clone();
        people.entry(id).or_default().apply(event);
        Ok(())
    });
    read.await?;
    let rows = people.into_values();
    Ok(rows
        .filter_map(|known| Row::new(known.into_state()))
        .collect())
}

pub(super) async fn list(
    connection: &ConnectionArgs,
    role: Option<Role>,
    json: JsonArg,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let mut rows = read(&broker, &EventQuery::of_kind(Aggregate::Person)).await?;
    if let Some(role) = role {
        rows.retain(|row| row.person.grant(role).is_some());
    }
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

/// Somebody who is registered; none where nobody is under this name.
pub(super) async fn known(broker: &Broker, name: &AgentId) -> Result<Option<Row>, Failure> {
    let query = EventQuery::of(Aggregate::Person, &name.token());
    Ok(read(broker, &query).await?.pop())
}

pub(super) async fn one(
    connection: &ConnectionArgs,
    name: &AgentId,
    json: JsonArg,
) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let (state, events) = source.aggregate::<PersonMachine>(&name.token()).await?;
    let row = Row::new(state).ok_or_else(|| {
        Failure::failed(format!(
            "nobody is registered as {name}; `concord person list` shows who is"
        ))
    })?;
    let history = events.iter().map(Change::of).collect();
    json.print(&Shown { row, history }, text)?;
    Ok(0)
}

/// Somebody who is registered, and what was done with them.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    row: Row,
    /// The oldest first.
    history: Vec<Change>,
}

/// What an operator did with somebody, and why.
#[derive(Debug, Serialize)]
struct Change {
    at: Timestamp,
    what: &'static str,
    by: AgentId,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
}

impl Change {
    fn of(stored: &StoredEvent<PersonEvent>) -> Self {
        let (by, why) = match &stored.event {
            PersonEvent::Registered(registered) => (&registered.by, ""),
            PersonEvent::Suspended(suspended) => (&suspended.by, suspended.why.as_str()),
            PersonEvent::Resumed(resumed) => (&resumed.by, resumed.why.as_str()),
        };
        Self {
            at: stored.meta.at,
            what: stored.event.name(),
            by: by.clone(),
            why: why.to_owned(),
        }
    }

    fn text(&self) -> String {
        let why = match self.why.as_str() {
            "" => String::new(),
            why => format!(": {}", one_line(why, 200)),
        };
        format!("  {}  {} by {}{why}", self.at, self.what, self.by)
    }
}

fn table(rows: &[Row]) -> Table<4> {
    let mut table = Table::new(["NAME", "STANDING", "ROLES", "CALLED"]);
    for row in rows {
        let style = if row.suspended.is_some() { BAD } else { GOOD };
        table.row([
            Cell::text(&row.person.name).with(NAMED),
            Cell::text(one_line(&row.standing(), 40)).with(style),
            Cell::text(one_line(&roles(&row.person).join("; "), 80)),
            Cell::text(one_line(
                row.person.display_name.as_deref().unwrap_or("-"),
                30,
            )),
        ]);
    }
    table
}

fn text(Shown { row, history }: &Shown) -> String {
    let person = &row.person;
    let kind = match person.kind {
        PersonKind::Person => "person",
        PersonKind::Agent => "agent",
    };
    let mut lines = vec![
        styled(NAMED, &person.name),
        format!("  {kind}, {}", one_line(&row.standing(), 200)),
    ];
    lines.extend(
        roles(person)
            .iter()
            .map(|role| format!("  {}", one_line(role, 400))),
    );
    if person.grant(Role::Arbiter).is_some() {
        lines.push(format!("  at most {} debates at a time", person.capacity));
    }
    let particulars = [
        ("called", &person.display_name),
        ("email", &person.contact.email),
        ("webhook", &person.contact.webhook),
        ("NATS user", &person.user),
        ("NATS account", &person.account),
        ("public key", &person.public_key),
    ];
    let given = particulars
        .into_iter()
        .filter_map(|(what, given)| Some(format!("  {what}: {}", one_line(given.as_ref()?, 200))));
    lines.extend(given);
    if let (Some(by), Some(since)) = (&row.by, row.since) {
        lines.push(format!("  registered by {by}; so since {since}"));
    }
    lines.extend(history.iter().map(Change::text));
    format!("{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn why_somebody_was_suspended_is_known_after_they_act_again() {
        let person = json!({ "name": "eva", "roles": [{ "role": "arbiter" }] });
        let events = [
            ("registered", json!({ "person": person, "by": "olga" })),
            (
                "suspended",
                json!({ "name": "eva", "by": "olga", "why": "on leave" }),
            ),
            ("resumed", json!({ "person": person, "by": "otto" })),
        ];
        let mut known = Versioned::<PersonMachine>::default();
        let mut history = Vec::new();
        for (at, (name, data)) in events.into_iter().enumerate() {
            let stored = json!({
                "fact": name, "aggregate": "person", "event_id": format!("e-{at}"), "id": "eva", "cause": format!("m-{at}"),
                "at": "2026-01-01T00:00:00.000Z", "data": data,
            });
            let bytes = serde_json::to_vec(&stored).unwrap();
            let stored = StoredEvent::<PersonEvent>::decode(&bytes, at as u64 + 1).unwrap();
            history.push(Change::of(&stored));
            known.apply(stored);
        }
        let row = Row::new(known.into_state()).unwrap();
        let shown = Shown { row, history };
        let text = anstream::adapter::strip_str(&text(&shown)).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[lines.len() - 2..],
            [
                "  2026-01-01T00:00:00.000Z  suspended by olga: on leave",
                "  2026-01-01T00:00:00.000Z  resumed by otto",
            ]
        );
        let printed = serde_json::to_value(&shown).unwrap();
        assert_eq!(printed["history"][1]["why"], "on leave");
        assert_eq!(printed["name"], "eva");
    }
}

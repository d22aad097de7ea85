//! An agent's card: what it can do and how it is spoken to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::action::BATCH;
use super::parameter_schema::{self, Schema};
use super::{ACTIONS, Batch, Request, check_name};
use crate::dialect::Dialect;
use crate::encoding::Encoding;
use crate::envelope::from_json;
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::AgentId;

/// Most skills of an agent.
pub const SKILLS_MAX: usize = 64;
/// Most examples, and most tags, of a skill.
pub const EXAMPLES_MAX: usize = 32;
/// Most domains, and most triggers, of an agent.
const DOMAINS_MAX: usize = 64;
/// Most actions of an agent.
pub const CARD_ACTIONS_MAX: usize = 32;
/// Longest description or example, in bytes.
pub const CARD_TEXT_BYTES_MAX: usize = 1_024;
/// Largest card as JSON, in bytes: every matcher keeps every card in memory.
pub const CARD_BYTES_MAX: usize = 65_536;
/// The most messages at a time that an agent can state.
pub const AGENT_CAPACITY_MAX: u32 = 10_000;
/// The shortest and the longest time between two heartbeats, in milliseconds.
pub const HEARTBEAT_MS: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// One thing that an agent can do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name, unique on the card.
    pub name: String,
    /// What it is, for people and for the matcher.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words by which it is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Messages that it is for, as somebody would write them. Three are enough for good matching.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// An action that an agent can be asked for, beside the standard ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CardAction {
    /// Its name, unique on the card and none of the standard actions'.
    #[schemars(extend("not" = { "enum": ["review_code", "run_tests", "update_documentation", "batch"] }))]
    pub name: String,
    /// What it does, for a reader.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its parameters: a request that does not fit is refused. Of the keywords `type`, `required`,
    /// `properties`, `additionalProperties`, `items`, `enum`, `minimum`, `maximum`, `minLength` and `maxLength`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Schema>,
    /// The same of its result, for whoever asks; it is not enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Schema>,
}

/// What an agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Under which id it speaks.
    pub agent_id: AgentId,
    /// For a reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it does, for a reader.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its own version, as it numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it can do: by these it is woken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// What it can be asked for by name, beside the standard actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<CardAction>,
    /// What it knows about; compared without regard to case and spacing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Words or phrases that wake it where meaning cannot be matched; compared without regard to case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// How it writes and wants to be written to.
    #[serde(default)]
    pub dialect: Dialect,
    /// In which encodings it reads the bodies of messages, besides as they are: what is large comes to it compressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encodings: Vec<Encoding>,
    /// Requests that it works on at a time; no limit is kept when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub capacity: Option<u32>,
    /// How often it sends a heartbeat, in milliseconds. It is unavailable when three are missed; one that states nothing
    /// is taken to be available until it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 3_600_000))]
    pub heartbeat_ms: Option<u64>,
}

impl Card {
    /// A card that says nothing but a name.
    pub fn new(agent_id: AgentId) -> Self {
        Self {
            agent_id,
            name: None,
            description: String::new(),
            version: None,
            skills: Vec::new(),
            actions: Vec::new(),
            domains: Vec::new(),
            triggers: Vec::new(),
            dialect: Dialect::default(),
            encodings: Vec::new(),
            capacity: None,
            heartbeat_ms: None,
        }
    }

    /// Checks ranges, lengths and numbers of things; `pointer` is where the card stands, for the fault.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        at_most(
            &format!("{pointer}/skills"),
            "skills",
            self.skills.len(),
            SKILLS_MAX,
        )?;
        for (place, skill) in self.skills.iter().enumerate() {
            let pointer = format!("{pointer}/skills/{place}");
            skill.check(&pointer)?;
            if self
                .skills
                .iter()
                .take(place)
                .any(|earlier| earlier.name == skill.name)
            {
                return Err(Fault::invalid(
                    format!("{pointer}/name"),
                    format!("There are two skills {:?}.", skill.name),
                    "Name each skill once; put its examples together.",
                ));
            }
        }
        self.check_actions(pointer)?;
        names(
            &format!("{pointer}/domains"),
            "domains",
            &self.domains,
            DOMAINS_MAX,
        )?;
        names(
            &format!("{pointer}/triggers"),
            "triggers",
            &self.triggers,
            DOMAINS_MAX,
        )?;
        for (field, name) in [("name", &self.name), ("version", &self.version)] {
            name.as_deref()
                .map_or(Ok(()), |name| filled(&format!("{pointer}/{field}"), name))?;
        }
        at_most(
            &format!("{pointer}/encodings"),
            "encodings",
            self.encodings.len(),
            Encoding::ALL.len(),
        )?;
        text(&format!("{pointer}/description"), &self.description)?;
        if let Some(capacity) = self
            .capacity
            .filter(|capacity| !(1..=AGENT_CAPACITY_MAX).contains(capacity))
        {
            return Err(Fault::invalid(
                format!("{pointer}/capacity"),
                format!("capacity is {capacity}."),
                format!("Give a number from 1 to {AGENT_CAPACITY_MAX}, or leave it out."),
            ));
        }
        if let Some(heartbeat_ms) = self
            .heartbeat_ms
            .filter(|every| !HEARTBEAT_MS.contains(every))
        {
            return Err(Fault::invalid(
                format!("{pointer}/heartbeat_ms"),
                format!("heartbeat_ms is {heartbeat_ms}."),
                format!(
                    "Give {} to {} milliseconds; usual is 10000.",
                    HEARTBEAT_MS.start(),
                    HEARTBEAT_MS.end()
                ),
            ));
        }
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |json| json.len());
        if bytes > CARD_BYTES_MAX {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                pointer,
                format!(
                    "The card has {bytes} bytes as JSON; at most {CARD_BYTES_MAX} are accepted."
                ),
                "Shorten descriptions, or give fewer examples; three for a skill are enough.",
            ));
        }
        Ok(())
    }
}

impl Card {
    fn check_actions(&self, pointer: &str) -> Result<(), Fault> {
        at_most(
            &format!("{pointer}/actions"),
            "actions",
            self.actions.len(),
            CARD_ACTIONS_MAX,
        )?;
        for (place, action) in self.actions.iter().enumerate() {
            let pointer = format!("{pointer}/actions/{place}");
            action.check(&pointer)?;
            if self
                .actions
                .iter()
                .take(place)
                .any(|earlier| earlier.name == action.name)
            {
                return Err(Fault::invalid(
                    format!("{pointer}/name"),
                    format!("There are two actions {:?}.", action.name),
                    "Name each action once.",
                ));
            }
        }
        Ok(())
    }

    /// Checks the parameters of a request, and of each request of a batch, against what this card says of its action. Of
    /// actions that it does not name it says nothing.
    pub fn check_request(&self, request: &Request) -> Result<(), Fault> {
        const PARAMETERS: &str = "/payload/parameters";
        if self.actions.is_empty() {
            return Ok(());
        }
        if request.action != BATCH {
            return self.check_parameters(request, PARAMETERS);
        }
        let batch: Batch = from_json(request.parameters.to_string().as_bytes(), PARAMETERS)?;
        let mut requests = batch.requests.iter().enumerate();
        requests.try_for_each(|(place, one)| {
            self.check_parameters(one, &format!("{PARAMETERS}/requests/{place}/parameters"))
        })
    }

    fn check_parameters(&self, request: &Request, pointer: &str) -> Result<(), Fault> {
        let action = self
            .actions
            .iter()
            .find(|action| action.name == request.action);
        let Some(schema) = action.and_then(|action| action.parameters.as_ref()) else {
            return Ok(());
        };
        // Who gives no parameters gives none of them.
        let none = serde_json::Value::Object(Schema::new());
        let parameters = if request.parameters.is_null() {
            &none
        } else {
            &request.parameters
        };
        parameter_schema::conforms(schema, parameters, pointer)
    }
}

impl CardAction {
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        filled(&format!("{pointer}/name"), &self.name)?;
        if ACTIONS.contains(&self.name.as_str()) {
            return Err(Fault::invalid(
                format!("{pointer}/name"),
                format!(
                    "{:?} is a standard action, which means the same of every agent.",
                    self.name
                ),
                "Give the action another name, or leave it out: everybody may be asked for a standard action.",
            ));
        }
        text(&format!("{pointer}/description"), &self.description)?;
        for (field, schema) in [("parameters", &self.parameters), ("result", &self.result)] {
            if let Some(schema) = schema {
                parameter_schema::check_schema(schema, &format!("{pointer}/{field}"))?;
            }
        }
        Ok(())
    }
}

impl Skill {
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        filled(&format!("{pointer}/name"), &self.name)?;
        text(&format!("{pointer}/description"), &self.description)?;
        names(&format!("{pointer}/tags"), "tags", &self.tags, EXAMPLES_MAX)?;
        at_most(
            &format!("{pointer}/examples"),
            "examples",
            self.examples.len(),
            EXAMPLES_MAX,
        )?;
        for (place, example) in self.examples.iter().enumerate() {
            text(&format!("{pointer}/examples/{place}"), example)?;
        }
        Ok(())
    }
}

fn at_most(pointer: &str, what: &str, count: usize, max: usize) -> Result<(), Fault> {
    if count <= max {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        format!("There are {count} {what}."),
        format!("Give at most {max}."),
    ))
}

fn names(pointer: &str, what: &str, names: &[String], max: usize) -> Result<(), Fault> {
    at_most(pointer, what, names.len(), max)?;
    names
        .iter()
        .enumerate()
        .try_for_each(|(place, name)| filled(&format!("{pointer}/{place}"), name))
}

fn filled(pointer: &str, name: &str) -> Result<(), Fault> {
    if name.trim().is_empty() {
        return Err(Fault::invalid(
            pointer,
            "It is blank.",
            "Give a name, or leave it out.",
        ));
    }
    check_name(pointer, name)
}

fn text(pointer: &str, text: &str) -> Result<(), Fault> {
    if text.len() <= CARD_TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        format!("It has {} bytes.", text.len()),
        format!("Write at most {CARD_TEXT_BYTES_MAX} bytes."),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn card(fields: Value) -> Card {
        let mut whole = json!({ "agent_id": "ann" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_card_needs_nothing_but_a_name() {
        let card = card(json!({}));
        assert_eq!(card, Card::new(AgentId::new("ann").unwrap()));
        assert_eq!(card.check(""), Ok(()));
        assert_eq!(
            serde_json::to_value(&card).unwrap(),
            json!({ "agent_id": "ann", "dialect": "concord" })
        );
        assert!(serde_json::from_value::<Card>(json!({ "agent_id": "ann", "skils": [] })).is_err());
    }

    #[test]
    fn what_is_good_is_accepted() {
        let skill = json!({ "name": "tax", "description": "Taxes", "tags": ["vat"], "examples": ["What is VAT?"] });
        for fields in [
            json!({ "skills": [skill], "domains": ["tax"], "triggers": ["vat"], "dialect": "panel" }),
            json!({ "capacity": 10_000, "heartbeat_ms": 100, "name": "Ann", "version": "2" }),
        ] {
            assert_eq!(card(fields.clone()).check("/p"), Ok(()), "{fields}");
        }
    }

    #[test]
    fn nonsense_is_refused_at_its_place() {
        let many: Vec<Value> = (0..10_000)
            .map(|n| json!({ "name": format!("s{n}") }))
            .collect();
        let long = "x".repeat(1_025);
        let wide: Vec<Value> = (0..64)
            .map(|n| json!({ "name": format!("s{n}"), "description": "x".repeat(1_024) }))
            .collect();
        for (fields, pointer) in [
            (json!({ "skills": many }), "/p/skills"),
            (
                json!({ "skills": [{ "name": "a" }, { "name": "a" }] }),
                "/p/skills/1/name",
            ),
            (json!({ "skills": [{ "name": " " }] }), "/p/skills/0/name"),
            (
                json!({ "skills": [{ "name": "a", "description": long }] }),
                "/p/skills/0/description",
            ),
            (
                json!({ "skills": [{ "name": "a", "examples": vec!["x"; 33] }] }),
                "/p/skills/0/examples",
            ),
            (
                json!({ "skills": [{ "name": "a", "examples": ["x", long] }] }),
                "/p/skills/0/examples/1",
            ),
            (
                json!({ "skills": [{ "name": "a", "tags": [""] }] }),
                "/p/skills/0/tags/0",
            ),
            (json!({ "skills": wide }), "/p"),
            (
                json!({ "actions": vec![json!({ "name": "x" }); 33] }),
                "/p/actions",
            ),
            (
                json!({ "actions": [{ "name": "x" }, { "name": "x" }] }),
                "/p/actions/1/name",
            ),
            (json!({ "actions": [{ "name": "" }] }), "/p/actions/0/name"),
            (
                json!({ "actions": [{ "name": "batch" }] }),
                "/p/actions/0/name",
            ),
            (
                json!({ "actions": [{ "name": "run_tests", "parameters": {} }] }),
                "/p/actions/0/name",
            ),
            (
                json!({ "actions": [{ "name": "x", "parameters": { "not": {} } }] }),
                "/p/actions/0/parameters/not",
            ),
            (
                json!({ "actions": [{ "name": "x", "result": { "type": "x" } }] }),
                "/p/actions/0/result/type",
            ),
            (json!({ "domains": vec!["tax"; 65] }), "/p/domains"),
            (json!({ "triggers": ["ok", ""] }), "/p/triggers/1"),
            (
                json!({ "encodings": ["gzip", "gzip", "gzip", "gzip"] }),
                "/p/encodings",
            ),
            (json!({ "name": "" }), "/p/name"),
            (json!({ "description": long }), "/p/description"),
            (json!({ "capacity": 0 }), "/p/capacity"),
            (json!({ "heartbeat_ms": 99 }), "/p/heartbeat_ms"),
        ] {
            assert_eq!(
                card(fields.clone()).check("/p").unwrap_err().pointer,
                pointer,
                "{fields}"
            );
        }
    }

    #[test]
    fn a_request_is_checked_by_the_card_where_it_names_the_action() {
        let parameters = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } });
        let card = card(
            json!({ "actions": [{ "name": "translate", "parameters": parameters }, { "name": "rest" }] }),
        );
        assert_eq!(card.check("/p"), Ok(()));
        let check = |action: &str, parameters: Value| {
            let request: Request =
                serde_json::from_value(json!({ "action": action, "parameters": parameters }))
                    .unwrap();
            card.check_request(&request).map_err(|fault| fault.pointer)
        };
        for (action, parameters) in [
            ("translate", json!({ "text": "x" })),
            ("rest", json!("whatever")),
            ("dance", json!(null)),
            (
                "batch",
                json!({ "requests": [{ "action": "translate", "parameters": { "text": "x" } }, { "action": "rest" }] }),
            ),
        ] {
            assert_eq!(check(action, parameters), Ok(()), "{action}");
        }
        for (action, parameters, pointer) in [
            ("translate", json!(null), "/payload/parameters"),
            (
                "translate",
                json!({ "text": 1 }),
                "/payload/parameters/text",
            ),
            (
                "batch",
                json!({ "requests": [{ "action": "rest" }, { "action": "translate", "parameters": { "text": 1 } }] }),
                "/payload/parameters/requests/1/parameters/text",
            ),
        ] {
            assert_eq!(
                check(action, parameters),
                Err(pointer.to_owned()),
                "{action}"
            );
        }
    }
}

//! An agent's card: what it can do and how it is spoken to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameter_schema::{self, Schema};
use super::{ACTIONS, BATCH, Batch, Request, check_name};
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
    /// A description, for people and for the matcher.
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
    /// A description, for people to read.
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

/// The description that an agent gives of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The id under which it sends messages.
    pub agent_id: AgentId,
    /// A name for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A description, for people to read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its own version, as it numbers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its skills: messages that match them wake it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Actions that it can be asked for, beside the standard ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<CardAction>,
    /// The domains it knows; compared without regard to case and spacing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Words or phrases that wake it where meaning cannot be matched; compared without regard to case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// The dialect in which it writes and reads messages.
    #[serde(default)]
    pub dialect: Dialect,
    /// The encodings in which it reads the bodies of messages, besides uncompressed ones: large messages to it are compressed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encodings: Vec<Encoding>,
    /// Tasks that it works on at a time; no limit is kept when absent. Requests are not counted.
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
        self.check_skills(pointer)?;
        self.check_actions(pointer)?;
        self.check_names(pointer)?;
        text(&format!("{pointer}/description"), &self.description)?;
        self.check_numbers(pointer)?;
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

    fn check_skills(&self, pointer: &str) -> Result<(), Fault> {
        at_most(
            &format!("{pointer}/skills"),
            "skills",
            self.skills.len(),
            SKILLS_MAX,
        )?;
        for (index, skill) in self.skills.iter().enumerate() {
            let pointer = format!("{pointer}/skills/{index}");
            skill.check(&pointer)?;
            let mut earlier = self.skills.iter().take(index);
            if earlier.any(|earlier| earlier.name == skill.name) {
                return Err(Fault::invalid(
                    format!("{pointer}/name"),
                    format!("There are two skills {:?}.", skill.name),
                    "Name each skill once; put its examples together.",
                ));
            }
        }
        Ok(())
    }

    fn check_names(&self, pointer: &str) -> Result<(), Fault> {
        for (field, list) in [("domains", &self.domains), ("triggers", &self.triggers)] {
            names(&format!("{pointer}/{field}"), field, list, DOMAINS_MAX)?;
        }
        for (field, name) in [("name", &self.name), ("version", &self.version)] {
            name.as_deref()
                .map_or(Ok(()), |name| filled(&format!("{pointer}/{field}"), name))?;
        }
        at_most(
            &format!("{pointer}/encodings"),
            "encodings",
            self.encodings.len(),
            Encoding::ALL.len(),
        )
    }

    fn check_numbers(&self, pointer: &str) -> Result<(), Fault> {
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
        Ok(())
    }

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
mod tests;

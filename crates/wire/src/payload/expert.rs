//! People who rule: what they register as, and how urgent the debates are that wait for them.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{check_name, shortened};
use crate::error_code::ErrorCode;
use crate::fault::Fault;
use crate::id::AgentId;

/// Debates that an expert has at most at a time, when nothing else is said.
pub const CAPACITY_USUAL: u32 = 3;
/// The largest capacity that can be stated.
pub const CAPACITY_MAX: u32 = 100;
/// Most domains of an expert.
const DOMAINS_MAX: usize = 64;
/// Longest address of a mailbox, in bytes (RFC 5321, with its angle brackets taken off).
const EMAIL_BYTES_MAX: usize = 254;
/// Longest address of a webhook, in bytes.
const WEBHOOK_BYTES_MAX: usize = 2_048;

/// How urgently a debate needs a person. The order is that of the queue: the most urgent first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = with_aliases)]
pub enum DebatePriority {
    /// The case cannot go on before it is settled.
    CriticalPath,
    /// It moves a valuation: assumptions, targets.
    #[serde(alias = "valuation-impact")]
    Valuation,
    /// Background that moves little.
    #[serde(alias = "supporting-analysis")]
    Supporting,
}

/// Names that are read as well, beside those that are written.
const ALIASES: [(&str, &str); 2] = [
    ("valuation-impact", "valuation"),
    ("supporting-analysis", "supporting"),
];

/// The schema's generator does not know of aliases.
fn with_aliases(schema: &mut Schema) {
    if let Some(variants) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        variants.extend(ALIASES.map(|(alias, name)| {
            json!({ "type": "string", "const": alias, "description": format!("The same as `{name}`.") })
        }));
    }
}

impl DebatePriority {
    /// All of them, the most urgent first.
    pub const ALL: [Self; 3] = [Self::CriticalPath, Self::Valuation, Self::Supporting];

    /// The priority as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CriticalPath => "critical-path",
            Self::Valuation => "valuation",
            Self::Supporting => "supporting",
        }
    }
}

/// What happens to a debate if the review queue is full.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It goes to the next level at once: the conservative default.
    Escalate,
    /// It waits for the next gate of its case.
    #[default]
    Defer,
}

/// Where an expert is told that a debate waits. Without either, nobody is told: `concord queue` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contact {
    /// A mailbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// An address that is called, `http://` or `https://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

impl Contact {
    /// Whether there is neither.
    pub fn is_empty(&self) -> bool {
        self.email.is_none() && self.webhook.is_none()
    }
}

/// A person who can rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expert {
    /// Under which id the person speaks.
    pub agent_id: AgentId,
    /// A name for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The domains that the person knows; compared without regard to case and spacing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Where the person is told that a debate waits.
    #[serde(default, skip_serializing_if = "Contact::is_empty")]
    pub contact: Contact,
    /// Debates that the person has at most at a time.
    #[serde(default = "capacity_usual")]
    #[schemars(range(min = 1, max = 100))]
    pub capacity: u32,
}

pub(super) fn capacity_usual() -> u32 {
    CAPACITY_USUAL
}

impl Expert {
    /// Checks ranges, lengths and forms; `pointer` is where the expert stands, for the fault.
    pub fn check(&self, pointer: &str) -> Result<(), Fault> {
        if !(1..=CAPACITY_MAX).contains(&self.capacity) {
            return Err(Fault::invalid(
                format!("{pointer}/capacity"),
                format!("capacity is {}.", self.capacity),
                format!("Give a number from 1 to {CAPACITY_MAX}; usual is {CAPACITY_USUAL}."),
            ));
        }
        if let Some(name) = &self.name {
            check_text(&format!("{pointer}/name"), name)?;
        }
        if self.domains.len() > DOMAINS_MAX {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                format!("{pointer}/domains"),
                format!("There are {} domains.", self.domains.len()),
                format!("Name at most {DOMAINS_MAX}."),
            ));
        }
        for (place, domain) in self.domains.iter().enumerate() {
            check_text(&format!("{pointer}/domains/{place}"), domain)?;
        }
        self.contact.check(&format!("{pointer}/contact"))
    }
}

pub(super) fn check_text(pointer: &str, text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(Fault::invalid(
            pointer,
            "It is blank.",
            "Give a name, or leave it out.",
        ));
    }
    check_name(pointer, text)
}

impl Contact {
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        if let Some(email) = self.email.as_deref().filter(|email| !is_mailbox(email)) {
            return Err(Fault::invalid(
                format!("{pointer}/email"),
                format!("{:?} is no address of a mailbox.", shortened(email)),
                "Write it as name@example.org.",
            ));
        }
        if let Some(webhook) = self
            .webhook
            .as_deref()
            .filter(|webhook| !is_web_address(webhook))
        {
            return Err(Fault::invalid(
                format!("{pointer}/webhook"),
                format!("{:?} is no address that can be called.", shortened(webhook)),
                "Write it as https://example.org/path.",
            ));
        }
        Ok(())
    }
}

/// What could end a header line, or an address inside one, is in no address.
fn is_one_word(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"'))
}

fn is_mailbox(text: &str) -> bool {
    let mut parts = text.split('@');
    let filled = |part: Option<&str>| part.is_some_and(|part| !part.is_empty());
    let one_at = filled(parts.next()) && filled(parts.next()) && parts.next().is_none();
    one_at && text.len() <= EMAIL_BYTES_MAX && is_one_word(text) && !text.contains([',', ';'])
}

/// Whether an address may be called, as far as it says so itself: the client that calls refuses one that holds a user name, too.
pub(super) fn is_web_address(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let is_callable = |host: &str| {
        let port = host.rsplit_once(':').filter(|_| !host.ends_with(']'));
        let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
        !host.is_empty() && !host.contains('@') && port.is_none_or(|(_, port)| is_port(port))
    };
    host.is_some_and(is_callable) && text.len() <= WEBHOOK_BYTES_MAX && is_one_word(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expert(fields: Value) -> Expert {
        let mut whole = json!({ "agent_id": "eva" });
        whole
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn an_expert_has_three_debates_and_no_contact_unless_more_is_said() {
        let expert = expert(json!({}));
        assert_eq!((expert.capacity, expert.check("")), (3, Ok(())));
        assert_eq!(
            serde_json::to_value(&expert).unwrap(),
            json!({ "agent_id": "eva", "capacity": 3 })
        );
        let misspelt = json!({ "agent_id": "eva", "capcity": 5 });
        assert!(serde_json::from_value::<Expert>(misspelt).is_err());
    }

    #[test]
    fn what_is_good_is_accepted() {
        for fields in [
            json!({ "capacity": 1 }),
            json!({ "capacity": 100, "name": "Eva Š.", "domains": vec!["tax"; 64] }),
            json!({ "contact": { "email": "eva+x@example.org", "webhook": "http://localhost:8080/hook?a=b" } }),
            json!({ "contact": { "webhook": "https://example.org" } }),
            json!({ "contact": { "webhook": "http://[::1]/a@b:c" } }),
            json!({ "contact": { "webhook": "http://[::1]:8080" } }),
        ] {
            assert_eq!(expert(fields.clone()).check("/p"), Ok(()), "{fields}");
        }
    }

    #[test]
    fn nonsense_is_refused_at_its_place() {
        let email = |text: &str| (json!({ "contact": { "email": text } }), "/p/contact/email");
        let webhook = |text: &str| {
            (
                json!({ "contact": { "webhook": text } }),
                "/p/contact/webhook",
            )
        };
        let long = "x".repeat(257);
        for (fields, pointer) in [
            (json!({ "capacity": 0 }), "/p/capacity"),
            (json!({ "capacity": 101 }), "/p/capacity"),
            (json!({ "name": long }), "/p/name"),
            (json!({ "name": " " }), "/p/name"),
            (json!({ "domains": ["tax", ""] }), "/p/domains/1"),
            (json!({ "domains": [long] }), "/p/domains/0"),
            (json!({ "domains": vec!["tax"; 65] }), "/p/domains"),
            email("eva"),
            email("eva@"),
            email("@example.org"),
            email("eva@b@example.org"),
            email("eva@example.org\r\nBcc: all@example.org"),
            email("eva@example.org,all"),
            email("<eva@example.org>"),
            email(&format!("{}@example.org", "x".repeat(250))),
            webhook("ftp://example.org"),
            webhook("example.org"),
            webhook("https://"),
            webhook("https:///path"),
            webhook("https://eva:secret@example.org"),
            webhook("https://example.org:99999/x"),
            webhook("https://example.org/a b"),
            webhook(&format!("https://example.org/{}", "x".repeat(2_048))),
        ] {
            assert_eq!(
                expert(fields.clone()).check("/p").unwrap_err().pointer,
                pointer,
                "{fields}"
            );
        }
    }

    #[test]
    fn priorities_are_ordered_and_known_by_the_names_of_the_specification_too() {
        assert!(DebatePriority::ALL.is_sorted());
        for priority in DebatePriority::ALL {
            assert_eq!(serde_json::to_value(priority).unwrap(), priority.as_str());
        }
        for (alias, name) in ALIASES {
            let read: DebatePriority = serde_json::from_value(json!(alias)).unwrap();
            assert_eq!(read.as_str(), name);
        }
        assert!(serde_json::from_value::<DebatePriority>(json!("urgent")).is_err());
        let schema = schemars::schema_for!(DebatePriority);
        assert_eq!(
            schema.get("oneOf").and_then(Value::as_array).map(Vec::len),
            Some(5)
        );
        assert_eq!(Overflow::default(), Overflow::Defer);
    }
}

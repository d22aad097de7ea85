//! Challenges, and what the agents say to each other about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::id::{AgentId, MessageId};
use crate::payload::{DebatePriority, DebateTerms, HistoricalContext, check_name};
use crate::timestamp::Timestamp;

/// Longest text of a challenge's fields and of what is said on the ladder, in bytes.
pub const LADDER_TEXT_BYTES_MAX: usize = 4_096;
/// Most items of evidence, asked for or given, in one message of the ladder.
pub const LADDER_ITEMS_MAX: usize = 32;
/// Longest timer that a challenge may ask for: thirty days, in seconds.
pub const ESCALATION_TIMER_MAX: u64 = 30 * 86_400;

/// The payload of `challenge`: one agent disputes another's finding on purpose. Sent to the coordinator, in the case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Challenge {
    /// The challenger's name for it; the message's id when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge_id: Option<MessageId>,
    /// The challenger; must be the sender.
    pub challenger: AgentId,
    /// The agent whose finding is disputed.
    pub challenged: AgentId,
    /// The disputed finding, in words.
    pub disputed_finding: String,
    /// The basis of the challenge.
    pub challenge_basis: String,
    /// The evidence that the challenger asks for.
    #[serde(default)]
    pub required_evidence: Vec<String>,
    /// The time in which evidence must be given, in seconds: no shorter than the policy's time to acknowledge and no longer than its time for
    /// evidence, which it is when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = ESCALATION_TIMER_MAX))]
    pub escalation_timer: Option<i64>,
    /// The priority in the review queue.
    #[serde(default = "priority_usual")]
    pub priority: DebatePriority,
    /// The position that the challenger wants to stand until the challenge is settled, in words or as a value. It is shown to
    /// who is challenged and to who rules; on level 4 it stands where no rule of caution compares the positions.
    #[serde(default)]
    pub provisional_resolution: Option<Value>,
    /// `message_id` of the disputed finding; the challenged agent's finding in the case when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding_id: Option<MessageId>,
    /// What the measure is called that the positions are values of, for example `price_target`: the policy's rule for it
    /// says which value is the cautious one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The domain in which expertise is needed and track records count, where the policy states none (`ladder.domain`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The value that the disputed finding has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenged_value: Option<Value>,
    /// The position of the challenger, in words; "not established" when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// The same as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Counter-evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Analyses that rest on the disputed finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// What the challenger says about earlier cases like this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub historical_context: Option<HistoricalContext>,
    /// Where a reviewer has the challenge debated again: what the parties did not know before. The facilitator tells it; a challenger has no
    /// use for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
}

fn priority_usual() -> DebatePriority {
    DebateTerms::default().priority
}

impl Challenge {
    /// Checks lengths and ranges; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self.challenger == self.challenged {
            return Err(Fault::invalid(
                "/payload/challenged",
                "An agent cannot challenge itself.",
                "Send a revision of your own finding instead.",
            ));
        }
        for (field, text) in [
            ("disputed_finding", Some(&self.disputed_finding)),
            ("challenge_basis", Some(&self.challenge_basis)),
            ("position", self.position.as_ref()),
        ] {
            check_text(
                &format!("/payload/{field}"),
                text.map_or("-", String::as_str),
            )?;
        }
        if let Some(wanted) = &self.provisional_resolution {
            let text = wanted
                .as_str()
                .map_or_else(|| wanted.to_string(), str::to_owned);
            check_text("/payload/provisional_resolution", &text)?;
        }
        for (field, name) in [("metric", &self.metric), ("domain", &self.domain)] {
            name.as_ref().map_or(Ok(()), |name| {
                check_name(&format!("/payload/{field}"), name)
            })?;
        }
        let lists = [
            ("required_evidence", &self.required_evidence),
            ("evidence", &self.evidence),
            ("dependants", &self.dependants),
        ];
        for (field, items) in lists {
            check_items(&format!("/payload/{field}"), items)?;
        }
        if let Some(context) = &self.historical_context {
            context.check("/payload/historical_context")?;
        }
        if let Some(timer) = self.escalation_timer
            && !u64::try_from(timer).is_ok_and(|timer| (1..=ESCALATION_TIMER_MAX).contains(&timer))
        {
            return Err(Fault::invalid(
                "/payload/escalation_timer",
                format!("escalation_timer is {timer} seconds."),
                format!(
                    "Give a number of seconds from 1 to {ESCALATION_TIMER_MAX}, for example 3600, or leave it out."
                ),
            ));
        }
        Ok(())
    }
}

/// Checks a text that is said on the ladder: something, and not too much.
pub(crate) fn check_text(pointer: &str, text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(Fault::invalid(pointer, "It is empty.", "Say it in words."));
    }
    if text.len() > LADDER_TEXT_BYTES_MAX {
        return Err(Fault::new(
            crate::ErrorCode::CapacityExceeded,
            pointer,
            format!(
                "It has {} bytes; at most {LADDER_TEXT_BYTES_MAX} are accepted.",
                text.len()
            ),
            "Say it more briefly and refer to where the whole can be read.",
        ));
    }
    Ok(())
}

/// Checks a list of such texts.
pub(crate) fn check_items(pointer: &str, items: &[String]) -> Result<(), Fault> {
    if items.len() > LADDER_ITEMS_MAX {
        return Err(Fault::new(
            crate::ErrorCode::CapacityExceeded,
            pointer,
            format!(
                "It has {} items; at most {LADDER_ITEMS_MAX} are accepted.",
                items.len()
            ),
            "Give the strongest ones.",
        ));
    }
    items
        .iter()
        .enumerate()
        .try_for_each(|(place, item)| check_text(&format!("{pointer}/{place}"), item))
}

/// The terms of a challenge, as the facilitator is given them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChallengeTerms {
    /// The challenger's name for it.
    pub challenge_id: MessageId,
    /// The challenger.
    pub challenger: AgentId,
    /// The agent whose finding is disputed.
    pub challenged: AgentId,
    /// The basis of the challenge.
    pub basis: String,
    /// The evidence that the challenger asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_evidence: Vec<String>,
    /// The time in which evidence must be given, in seconds, if the challenger stated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_timer: Option<u64>,
    /// The position that the challenger wants to stand until the challenge is settled, if it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisional_resolution: Option<Value>,
    /// What the challenger says about earlier cases like this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub historical_context: Option<HistoricalContext>,
}

/// The payload of `acknowledgement`: the challenged agent has seen the challenge.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledgement {
    /// The time until which it means to answer. It is recorded; the policy's time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_by: Option<Timestamp>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The payload of `clarification`: a question or an answer between challenger and challenged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clarification {
    /// The question or answer.
    pub text: String,
}

impl Clarification {
    /// Checks its length; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        check_text("/payload/text", &self.text)
    }
}

/// The payload of `evidence`: what supports a finding, and what it does not claim.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The evidence in words.
    #[serde(default)]
    pub statement: String,
    /// The single items of evidence.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What the finding does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limitation: Option<String>,
}

impl Evidence {
    /// Checks lengths; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self.statement.trim().is_empty() && self.evidence.is_empty() && self.limitation.is_none()
        {
            return Err(Fault::invalid(
                "/payload/evidence",
                "There is no evidence in it.",
                "Give evidence, a statement or a limitation.",
            ));
        }
        if !self.statement.is_empty() {
            check_text("/payload/statement", &self.statement)?;
        }
        if let Some(limitation) = &self.limitation {
            check_text("/payload/limitation", limitation)?;
        }
        check_items("/payload/evidence", &self.evidence)
    }
}

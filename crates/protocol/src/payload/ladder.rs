//! The ladder: how a disagreement climbs from the agents to a person, and what stands until a person has looked.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::id::{AgentId, CaseId, DebateId, MessageId, Token};
use crate::payload::{DebatePriority, Position, Precedent, Resolution, check_name};
use crate::timestamp::Timestamp;

/// The five levels of the specification. A debate never goes back to a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Level {
    /// 1: the agents settle it themselves.
    Agents,
    /// 2: the facilitator compares track records.
    Mediation,
    /// 3: a person rules.
    Person,
    /// 4: the cautious position stands, provisionally.
    Fallback,
    /// 5: the next gate reviews what stands.
    Gate,
}

impl Level {
    /// All five, in order.
    pub const ALL: [Self; 5] = [Self::Agents, Self::Mediation, Self::Person, Self::Fallback, Self::Gate];
}

impl From<Level> for u8 {
    fn from(level: Level) -> Self {
        match level {
            Level::Agents => 1,
            Level::Mediation => 2,
            Level::Person => 3,
            Level::Fallback => 4,
            Level::Gate => 5,
        }
    }
}

impl TryFrom<u8> for Level {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        let level = Self::ALL.into_iter().find(|level| u8::from(*level) == number);
        level.ok_or_else(|| format!("there is no level {number}; levels are 1 to 5"))
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", u8::from(*self))
    }
}

impl JsonSchema for Level {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Level".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer", "minimum": 1, "maximum": 5,
            "description": "1 agents, 2 mediation, 3 person, 4 fallback, 5 gate review.",
        })
    }
}

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
    /// Who disputes; must be the sender.
    pub challenger: AgentId,
    /// Whose finding is disputed.
    pub challenged: AgentId,
    /// What is disputed, in words.
    pub disputed_finding: String,
    /// Why it is disputed.
    pub challenge_basis: String,
    /// What the challenger wants to see.
    #[serde(default)]
    pub required_evidence: Vec<String>,
    /// Within how many seconds evidence must be given; the policy's time when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = ESCALATION_TIMER_MAX))]
    pub escalation_timer: Option<i64>,
    /// How much waits for it.
    #[serde(default = "priority_usual")]
    pub priority: DebatePriority,
    /// What the challenger would have stand until it is settled. Recorded; the conservative default decides.
    #[serde(default)]
    pub provisional_resolution: Option<Value>,
    /// `message_id` of the disputed finding; the challenged agent's finding in the case when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding_id: Option<MessageId>,
    /// What the measure is called that the positions are values of, for example `price_target`: the policy's rule for it
    /// says which value is the cautious one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// In which field expertise is needed, and track records count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The value that the disputed finding has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenged_value: Option<Value>,
    /// What the challenger holds instead, in words; "not established" when absent.
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
            check_text(&format!("/payload/{field}"), text.map_or("-", String::as_str))?;
        }
        for (field, name) in [("metric", &self.metric), ("domain", &self.domain)] {
            name.as_ref().map_or(Ok(()), |name| check_name(&format!("/payload/{field}"), name))?;
        }
        let lists = [
            ("required_evidence", &self.required_evidence),
            ("evidence", &self.evidence),
            ("dependants", &self.dependants),
        ];
        for (field, items) in lists {
            check_items(&format!("/payload/{field}"), items)?;
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
            format!("It has {} bytes; at most {LADDER_TEXT_BYTES_MAX} are accepted.", text.len()),
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
            format!("It has {} items; at most {LADDER_ITEMS_MAX} are accepted.", items.len()),
            "Give the strongest ones.",
        ));
    }
    items.iter().enumerate().try_for_each(|(place, item)| check_text(&format!("{pointer}/{place}"), item))
}

/// The terms of a challenge, as the facilitator is given them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChallengeTerms {
    /// The challenger's name for it.
    pub challenge_id: MessageId,
    /// Who disputes.
    pub challenger: AgentId,
    /// Whose finding is disputed.
    pub challenged: AgentId,
    /// Why.
    pub basis: String,
    /// What the challenger wants to see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_evidence: Vec<String>,
    /// Within how many seconds, where the challenger said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_timer: Option<u64>,
}

/// The payload of `acknowledgement`: the challenged agent has seen the challenge.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledgement {
    /// Until when it means to answer. Recorded; the policy's time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_by: Option<Timestamp>,
    /// A word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The payload of `clarification`: a question or an answer between challenger and challenged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clarification {
    /// What is asked or answered.
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
    /// In words.
    #[serde(default)]
    pub statement: String,
    /// Item by item.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What the finding does not cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limitation: Option<String>,
}

impl Evidence {
    /// Checks lengths; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        if self.statement.trim().is_empty() && self.evidence.is_empty() && self.limitation.is_none() {
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

/// The payload of `ruling`: a person's binding answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ruling {
    /// The debate.
    pub debate_id: DebateId,
    /// Digest of what the expert saw: that of the brief.
    pub digest: String,
    /// The chosen position: `position_id` of the brief.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position_id: Option<String>,
    /// A position of the expert's own, in words, in place of `position_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// The same as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Why.
    pub rationale: String,
}

impl Ruling {
    /// Checks that it says one thing, in words that fit.
    pub fn check(&self) -> Result<(), Fault> {
        check_text("/payload/rationale", &self.rationale)?;
        match (&self.position_id, &self.position) {
            (Some(_), None) => Ok(()),
            (None, Some(position)) => check_text("/payload/position", position),
            _ => Err(Fault::invalid(
                "/payload/position_id",
                "A ruling names either a position of the brief or one of its own.",
                "Give position_id, for example \"p1\", or position in words, not both.",
            )),
        }
    }
}

/// One position of a debate as a person sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BriefedPosition {
    /// `p1`, `p2`, ...
    pub position_id: String,
    /// In words.
    pub position: String,
    /// As a value, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Who holds it, with evidence and confidence.
    pub held_by: Vec<Position>,
}

/// Everything that an expert is shown. A ruling is bound to its digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    /// The debate.
    pub debate_id: DebateId,
    /// The case.
    pub case_id: CaseId,
    /// What is disputed.
    pub topic: String,
    /// How much waits for it.
    pub priority: DebatePriority,
    /// The challenge, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<ChallengeTerms>,
    /// The positions.
    pub positions: Vec<BriefedPosition>,
    /// What mediation found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mediation: Option<Mediation>,
    /// Earlier debates like this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precedents: Vec<Precedent>,
    /// What was added when the debate was opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
}

/// One side of a mediation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediatedSide {
    /// `p1`, `p2`, ...
    pub position_id: String,
    /// Whose track record speaks for it: the most credible of its holders.
    pub agent_id: AgentId,
    /// That agent's credibility, 0 to 1.
    pub credibility: f64,
    /// Half-width of its interval.
    pub half_width: f64,
    /// Data points behind it.
    pub data_points: f64,
}

/// What mediation by track record came to, with everything it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mediation {
    /// The sides, the most credible first.
    pub sides: Vec<MediatedSide>,
    /// Difference of the first two.
    pub gap: f64,
    /// What it had to exceed: the larger of 0.25 and the sum of the half-widths.
    pub threshold: f64,
    /// `gap_exceeds_threshold`, `gap_too_small` or `insufficient_data`.
    pub reason: Token,
    /// In a sentence.
    pub reasoning: String,
    /// Items of evidence that were before the facilitator.
    pub evidence_considered: u32,
    /// What a mediator said, where the policy names one. It never replaces the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<String>,
}

/// What a provisional decision must say besides its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provisional {
    /// Why this is the cautious position: the rule and what it compared.
    pub rationale: String,
    /// The other positions.
    pub alternatives: Vec<Resolution>,
    /// The gate that must review it; none when the case has no gate ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_at: Option<String>,
    /// Until when the window of the specification is open; it closes at the gate.
    pub until: Timestamp,
    /// What rests on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
}

/// What a person does with a provisional decision at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewAction {
    /// It becomes final.
    Confirm,
    /// Another position becomes final.
    Override,
    /// It is debated again, in a new debate that refers to this one.
    Redebate,
    /// The case passes the gate.
    Pass,
}

/// The payload of `review`: what a person decides at a gate. Sent to the coordinator, in the case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// The gate.
    pub gate: String,
    /// What to do.
    pub action: ReviewAction,
    /// The provisional decision; not for `pass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debate_id: Option<DebateId>,
    /// For `override`: the position in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// For `override`: the position as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Why; needed for `override`.
    #[serde(default)]
    pub rationale: String,
    /// For `redebate`: what the parties did not know before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl Review {
    /// Checks that the action has what it needs; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        check_name("/payload/gate", &self.gate)?;
        if (self.action == ReviewAction::Pass) != self.debate_id.is_none() {
            return Err(Fault::invalid(
                "/payload/debate_id",
                "A gate is passed as a whole; everything else is about one provisional decision.",
                "Name debate_id with confirm, override and redebate, and leave it out with pass.",
            ));
        }
        if self.action == ReviewAction::Override {
            check_text("/payload/position", self.position.as_deref().unwrap_or_default())?;
            check_text("/payload/rationale", &self.rationale)?;
        }
        if let Some(context) = &self.context {
            check_text("/payload/context", context)?;
        }
        if self.rationale.is_empty() { Ok(()) } else { check_text("/payload/rationale", &self.rationale) }
    }
}

/// What of a debate concerns the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DebateTerms {
    /// The challenge, where it began with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<ChallengeTerms>,
    /// How much waits for it.
    pub priority: DebatePriority,
    /// Which expertise it needs, and in which field track records count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Analyses that rest on what is disputed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// The gate that reviews a provisional decision: the next one of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The debate that this one takes up again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refers_to: Option<DebateId>,
    /// What the parties did not know then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
}

impl Default for DebateTerms {
    fn default() -> Self {
        Self {
            challenge: None,
            priority: DebatePriority::Valuation,
            domain: None,
            dependants: Vec::new(),
            gate: None,
            refers_to: None,
            added_context: None,
        }
    }
}

impl DebateTerms {
    /// Whether nothing is out of the ordinary; such terms are left out.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// Who decided, where a person did, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuledBy {
    /// The person.
    pub expert: AgentId,
    /// Why.
    pub rationale: String,
    /// Digest of the brief that was ruled on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

//! The ladder: how a disagreement climbs from the agents to a person, and what stands until a person has looked.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;
use crate::id::{AgentId, CaseId, DebateId, MessageId, Token};
use crate::payload::challenge::check_text;
use crate::payload::signature;
use crate::payload::track_record::Circumstances;
use crate::payload::{
    Background, ChallengeTerms, DebatePriority, Position, Precedent, PrecedentGuidance, Resolution,
    Signature, check_name,
};
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
    pub const ALL: [Self; 5] = [
        Self::Agents,
        Self::Mediation,
        Self::Person,
        Self::Fallback,
        Self::Gate,
    ];
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
        let level = Self::ALL
            .into_iter()
            .find(|level| u8::from(*level) == number);
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

/// The reason why a debate climbed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EscalationReason {
    /// The challenged agent did not acknowledge in time.
    Unacknowledged,
    /// The challenged agent gave no evidence in time.
    NoEvidence,
    /// The challenger did not say in time whether the evidence settles it.
    NotEvaluated,
    /// The challenger rejected the evidence.
    Rejected,
    /// The discussion rounds settled nothing.
    NotSettled,
    /// The vote's margin was below the policy's.
    NarrowVote,
    /// The track records are too close, or too little is known.
    CredibilityInconclusive,
    /// Mediation did not take place in time.
    MediationOverdue,
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
    /// The reason for the ruling.
    pub rationale: String,
    /// The expert's signature of [`signed_text`](Self::signed_text).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl Ruling {
    /// The text that the expert `by` signs: everything that is said, and in which message.
    pub fn signed_text(&self, by: &AgentId, case_id: &CaseId, message_id: &MessageId) -> String {
        signature::text("ruling", self, by, case_id, message_id)
    }

    /// Checks that it says one thing, in words that fit.
    pub fn check(&self) -> Result<(), Fault> {
        check_text("/payload/rationale", &self.rationale)?;
        signature::check(self.signature.as_ref(), self.value.as_ref())?;
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
    /// The position in words.
    pub position: String,
    /// As a value, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The agents that hold it, with evidence and confidence.
    pub held_by: Vec<Position>,
}

/// Everything that an expert is shown. A ruling is bound to its digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    /// The debate.
    pub debate_id: DebateId,
    /// The case.
    pub case_id: CaseId,
    /// The conflict.
    pub topic: String,
    /// The priority in the review queue.
    pub priority: DebatePriority,
    /// The challenge, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<ChallengeTerms>,
    /// The positions.
    pub positions: Vec<BriefedPosition>,
    /// The result of mediation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mediation: Option<Mediation>,
    /// Earlier debates like this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precedents: Vec<Precedent>,
    /// What they say about this one; absent where there is none of which this is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<PrecedentGuidance>>,
    /// The context that was added when the debate was opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
    /// The matter, what the parties found and said, and what depends on it; absent in briefs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<Background>>,
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

/// The result of mediation by track record, with everything it rests on.
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
    /// The opinion of the mediator, if the policy names one. It never replaces the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<String>,
}

/// What a provisional decision must say besides its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provisional {
    /// The reason why this is the cautious position: the rule and what it compared.
    pub rationale: String,
    /// The other positions.
    pub alternatives: Vec<Resolution>,
    /// The gate that must review it; none when the case has no gate ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_at: Option<String>,
    /// From when on the decision awaits its gate. It can be overridden until that gate is passed, before this time and after it.
    pub until: Timestamp,
    /// Analyses that rest on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
    /// The expert who had it when the time for a ruling was over, if anybody had; that expert does not review it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<AgentId>,
}

/// The decision of a person about a provisional decision at a gate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
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
    /// The decision of the person.
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
    /// The reason; required for `override`.
    #[serde(default)]
    pub rationale: String,
    /// For `redebate`: what the parties did not know before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Digest of what the reviewer saw: of the provisional decision, or for `pass` of the case's decision at the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The reviewer's signature of [`signed_text`](Self::signed_text).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

impl Review {
    /// The text that the reviewer `by` signs: everything that is said, and in which message.
    pub fn signed_text(&self, by: &AgentId, case_id: &CaseId, message_id: &MessageId) -> String {
        signature::text("review", self, by, case_id, message_id)
    }

    /// Checks that the action has what it needs; pointers begin with `/payload`.
    pub fn check(&self) -> Result<(), Fault> {
        check_name("/payload/gate", &self.gate)?;
        signature::check(self.signature.as_ref(), self.value.as_ref())?;
        if let Some(digest) = &self.digest {
            check_text("/payload/digest", digest)?;
        }
        if (self.action == ReviewAction::Pass) != self.debate_id.is_none() {
            return Err(Fault::invalid(
                "/payload/debate_id",
                "A gate is passed as a whole; everything else is about one provisional decision.",
                "Name debate_id with confirm, override and redebate, and leave it out with pass.",
            ));
        }
        if self.action == ReviewAction::Override {
            check_text(
                "/payload/position",
                self.position.as_deref().unwrap_or_default(),
            )?;
            check_text("/payload/rationale", &self.rationale)?;
        }
        if let Some(context) = &self.context {
            check_text("/payload/context", context)?;
        }
        if self.rationale.is_empty() {
            Ok(())
        } else {
            check_text("/payload/rationale", &self.rationale)
        }
    }
}

/// The terms of the ladder for one debate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DebateTerms {
    /// Who opened its case; none for cases of earlier versions. The review queue is fair between openers, and no opener
    /// makes up more than a share of a track record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<AgentId>,
    /// The challenge, where it began with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<ChallengeTerms>,
    /// The priority in the review queue.
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
    /// The context that the parties did not have before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_context: Option<String>,
    /// The circumstances in which the case is judged.
    #[serde(skip_serializing_if = "Circumstances::is_unknown")]
    pub circumstances: Circumstances,
    /// The share of the doubt about a party's finding that confirmations which count have taken away. They count for as long as the party
    /// holds the position with which the debate began.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub confirmed: BTreeMap<AgentId, f64>,
    /// Its share of the answers that the policy allows in one round of the case; as many as the policy says when absent.
    /// None at all means that no round is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers_per_round_max: Option<u32>,
}

impl Default for DebateTerms {
    fn default() -> Self {
        Self {
            opened_by: None,
            challenge: None,
            priority: DebatePriority::Valuation,
            domain: None,
            dependants: Vec::new(),
            gate: None,
            refers_to: None,
            added_context: None,
            circumstances: Circumstances::default(),
            confirmed: BTreeMap::new(),
            answers_per_round_max: None,
        }
    }
}

impl DebateTerms {
    /// Whether nothing is out of the ordinary; such terms are left out.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// The person who decided, and the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuledBy {
    /// The person.
    pub expert: AgentId,
    /// At a gate, the reviewer who said the same before, where the policy wants two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The reason that the first reviewer gave, where they gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_rationale: Option<String>,
    /// The reason for the ruling; of two reviewers that of `expert`.
    pub rationale: String,
    /// Digest of the brief that was ruled on, or of what was reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// First digits of the key with which it was signed ([`Signature::fingerprint`]); absent where nobody signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

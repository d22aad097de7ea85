//! What a case ends with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, DebateId, MessageId, Token};
use crate::payload::{
    Conflict, Figure, Level, Mediation, Position, Provisional, RuledBy, Severity, is_zero,
};
use crate::policy::VoteRule;
use crate::timestamp::Timestamp;

/// The way in which a debate ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The parties came to agree.
    Discussion,
    /// The vote chose.
    Vote,
    /// The voting rule of the policy chose nothing.
    Unresolved,
    /// Level 1: the challenger accepted what the challenged agent said.
    Accepted,
    /// Level 2: the position with the better track record stands.
    Mediation,
    /// Level 3: a person ruled.
    Ruling,
    /// Level 4: the cautious position stands until a gate has reviewed it.
    Provisional,
    /// Level 4: the cautious position stands for good, for the case has no gate ahead.
    Fallback,
    /// Level 5: a gate confirmed the provisional decision.
    Confirmed,
    /// Level 5: a gate put another position in its place.
    Overridden,
    /// Level 5: a gate had it debated again, in a debate of its own.
    Redebated,
    /// An operator cancelled it.
    Cancelled,
}

impl Status {
    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discussion => "discussion",
            Self::Vote => "vote",
            Self::Unresolved => "unresolved",
            Self::Accepted => "accepted",
            Self::Mediation => "mediation",
            Self::Ruling => "ruling",
            Self::Provisional => "provisional",
            Self::Fallback => "fallback",
            Self::Confirmed => "confirmed",
            Self::Overridden => "overridden",
            Self::Redebated => "redebated",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether a person has decided what stands.
    pub fn is_by_person(self) -> bool {
        matches!(self, Self::Ruling | Self::Confirmed | Self::Overridden)
    }

    /// Whether the parties, a vote, the track records or a person have decided.
    pub fn is_settled(self) -> bool {
        let is_by_agents = matches!(
            self,
            Self::Discussion | Self::Vote | Self::Accepted | Self::Mediation
        );
        is_by_agents || self.is_by_person()
    }

    /// Whether the cautious position stands because nobody has decided.
    pub fn is_by_default(self) -> bool {
        matches!(self, Self::Provisional | Self::Fallback)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A position that was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resolution {
    /// The position in words.
    pub position: String,
    /// The position as a value, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The agents that held it at the end.
    pub supporters: Vec<AgentId>,
}

/// One voter of an option, with the weight its vote had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Voter {
    /// The agent that voted.
    pub agent_id: AgentId,
    /// The confidence it stated, 0 to 1.
    pub confidence: f64,
    /// The weight that the rule gave to the vote.
    pub weight: f64,
}

/// One option of a vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VoteOption {
    /// `p1`, `p2`, ...: options in the order of their compared form.
    pub position_id: String,
    /// The position in words.
    pub position: String,
    /// As a value, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Sum of the voters' weights.
    pub weight: f64,
    /// The voters, ordered by agent id.
    pub voters: Vec<Voter>,
}

/// A vote with every weight, so that anyone can count again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// The rule by which votes were weighed.
    pub rule: VoteRule,
    /// The options, in the order of `position_id`.
    pub options: Vec<VoteOption>,
    /// `position_id` of the winner; none when the rule chose nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// Winner's weight minus the runner-up's, as a share of all weight.
    pub margin: f64,
    /// How a tie was broken: `caution` or `position_id`; none when there was no tie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie_broken_by: Option<String>,
}

/// One round of discussion in figures: talk buys agreement, not always accuracy, so before and after are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundRecord {
    /// The round, from 1.
    pub round: u32,
    /// The agents that answered in time.
    pub answered: Vec<AgentId>,
    /// The agents that were asked and did not answer.
    pub silent: Vec<AgentId>,
    /// How many of the answers agreed with a peer.
    pub agreements: u32,
    /// The number of different positions before the round.
    pub positions_before: u32,
    /// The number of different positions after the round.
    pub positions_after: u32,
}

/// The result of one debated conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictOutcome {
    /// The conflict; also the debate.
    pub conflict_id: DebateId,
    /// The result.
    pub status: Status,
    /// The chosen position, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// The vote, where one was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
    /// The rounds of discussion.
    pub rounds: Vec<RoundRecord>,
    /// The position of each party at the end.
    pub positions: Vec<Position>,
    /// The number of positions for which there is no room here; they, the tally and the rounds are in the events of the debate and
    /// in its announcement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub positions_omitted: u32,
    /// The time at which it ended.
    pub resolved_at: Timestamp,
    /// The level of the ladder on which it ended, where it was on the ladder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The result of mediation, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mediation: Option<Box<Mediation>>,
    /// The person who decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruled_by: Option<RuledBy>,
    /// What a provisional decision states besides its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisional: Option<Box<Provisional>>,
    /// The debate that takes it up again, where a gate had it debated again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debated_again_as: Option<DebateId>,
    /// The analyses of the case that rest on what was disputed, as far as that was known when the debate was opened; absent in outcomes
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependants: Vec<String>,
}

/// The reason why a message was not used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SetAsideReason {
    /// It came after the phase or round had closed.
    Late,
    /// The sender had already answered.
    Repeated,
}

/// A message that was recorded and not used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// The sender.
    pub agent_id: AgentId,
    /// The message.
    pub message_id: MessageId,
    /// The reason why it was not used.
    pub reason: SetAsideReason,
    /// The time at which it was received.
    pub at: Timestamp,
}

/// A finding that the decision rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingReference {
    /// The agent whose finding it is.
    pub agent_id: AgentId,
    /// The `message_id` of the message.
    pub message_id: MessageId,
    /// How sure, 0 to 1.
    pub confidence: f64,
}

/// Whether a clause is there, after deliberation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClauseOutcome {
    /// Whether it is there.
    pub present: bool,
    /// `undisputed`, `deferred`, how the debate about it ended (its status), or `cautious` where it ended with words that say neither: then the
    /// most cautious position counts.
    pub basis: String,
}

/// The result of the case: findings where they agreed, resolutions where they did not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Resolved score, else the confidence-weighted mean of undisputed ones; the highest where the dispute is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<f64>,
    /// The highest stated, of a finding that was challenged with success what was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Resolved or unanimous recommendation; the most cautious where the dispute is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
    /// The clauses, by clause type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clauses: BTreeMap<String, ClauseOutcome>,
    /// Clause types for which there is no room here, undisputed ones before disputed ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clauses_omitted: u32,
}

/// The decision of a case, in one of its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The number of the version, from 1. It is left out, and 0, in decisions of before there were versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub version: u32,
    /// The result.
    pub outcome: Outcome,
    /// The number of the rules by which the result was made: from 1, and 0, which is left out, by those of before they had numbers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rules: u32,
    /// The findings it rests on, ordered by agent id.
    pub findings: Vec<FindingReference>,
    /// Participants without a finding when the phase closed.
    pub missing: Vec<AgentId>,
    /// The messages that were recorded and not used until now.
    pub set_aside: Vec<SetAside>,
    /// Debated conflicts, in ranking order.
    pub conflicts: Vec<Conflict>,
    /// The results of the debated conflicts, in the same order; shorter when the case ran out of time.
    pub outcomes: Vec<ConflictOutcome>,
    /// Debates that have no outcome yet. When one ends, the decision gets a new version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<DebateId>,
    /// Debates whose outcome is provisional: a review at a gate confirms or replaces it. The decision is final when this and `open`
    /// are empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provisional: Vec<DebateId>,
    /// Conflicts beyond the policy's limit: recorded, not debated.
    pub deferred: Vec<Conflict>,
    /// Further conflicts, of lower rank, for which there is no room here; they follow from the findings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conflicts_omitted: u32,
    /// Gates that the case has ahead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The figures of analyses that were done again because of it, by analysis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<Token, RecordedFigures>,
    /// Further analyses of these, for which there is no room here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub figures_omitted: u32,
    /// Why the case ended: `settled`, `no_conflict`, `no_finding` or `timeout`.
    pub reason: String,
    /// SHA-256 of the policy, as frozen at the opening.
    pub policy_digest: String,
}

/// The figures of an analysis in one of its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedFigures {
    /// The version.
    pub version: u32,
    /// The figures, by metric.
    pub figures: BTreeMap<String, Figure>,
}

impl Decision {
    /// Whether nothing in it is open or provisional.
    pub fn is_final(&self) -> bool {
        self.open.is_empty() && self.provisional.is_empty()
    }

    /// Whether nothing follows it: it is final and no gate is ahead. False for decisions of before there were versions, which do not
    /// say so.
    pub fn is_last(&self) -> bool {
        self.version > 0 && self.is_final() && self.gates.is_empty()
    }
}

/// What made a new version of a decision, and what is different in its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionChange {
    /// The number of the new version.
    pub version: u32,
    /// The number of the version that it replaces; 0 where that version has no number.
    pub replaces: u32,
    /// The debate whose outcome changed the decision.
    pub debate_id: DebateId,
    /// The disputed subject, in words.
    pub topic: String,
    /// The way in which the debate ended.
    pub status: Status,
    /// The level of the ladder on which it ended; 1 for discussion and vote.
    pub level: Level,
    /// The person who decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AgentId>,
    /// At a gate, the reviewer who said the same before, where the policy wants two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_reviewer: Option<AgentId>,
    /// The parts of the result that are different. Empty where only the standing of a part changed, for example from provisional to
    /// confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedPart>,
    /// Further parts that are different, for which there is no room here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_omitted: u32,
}

/// One part of a decision's result that is different in a new version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedPart {
    /// The part as a path in `outcome`: `risk_score`, `recommendation`, `clauses/liability_cap`.
    pub part: String,
    /// The value before; null where there was none.
    pub before: Value,
    /// The value now; null where there is none.
    pub after: Value,
}

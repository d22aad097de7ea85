//! Policies: the named set of limits and rules of a case, frozen into it with a digest when it opens.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::fault::Fault;
use crate::payload::check_name;

mod bounds;
mod confirmations;
mod estimates;
mod impact;
mod importance;
mod ladder;
mod presets;
mod request;
pub mod stored;
mod vocabulary;

pub use bounds::{Bound, PolicyBounds};
pub use confirmations::Confirmations;
pub use estimates::{EstimatePolicy, Tolerance};
pub use impact::{ImpactPolicy, Reruns};
pub use importance::ImportancePolicy;
pub use ladder::{CautionRule, ConflictHandling, LadderPolicy, LevelTimes};
pub(crate) use request::requested_policy;
pub use request::{PolicyRequest, unknown_policy};
pub use vocabulary::{NameKind, Vocabulary, name_form, plain_form};

/// The rule by which votes are weighed.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum VoteRule {
    /// By stated confidence: the specification's rule.
    #[default]
    Confidence,
    /// One voter, one vote.
    Majority,
    /// By confidence rescaled as in ReConcile (Chen et al., 2023): 1 -> 1, >= 0.9 -> 0.8, >= 0.8 -> 0.5,
    /// > 0.6 -> 0.3, else 0.1.
    Reconcile,
    /// By track record: the log-odds of the credibility where 15 data points stand behind it, else rescaled confidence.
    Credibility,
    /// Chooses only what everyone holds.
    Unanimous,
}

/// When a case is decided.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// When all debates are settled, and at the latest when the time of the case is over. What is open then changes the decision later.
    #[default]
    AtTime,
    /// When all debates are settled, also where the ladder takes longer than the time of the case.
    WhenSettled,
}

impl Decide {
    /// Whether it is the usual value.
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// The limits and rules of a case. Durations are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The name of the policy that it was made from: a preset, or one that an operator has stored.
    pub preset: String,
    /// Phases 1 and 2: how long participants may take for their finding.
    pub finding_timeout_ms: u64,
    /// Phases 1 and 2: bytes of a finding, as JSON without spaces; a larger one is refused.
    #[serde(default = "finding_bytes_usual")]
    pub finding_bytes_max: u32,
    /// The whole case: when it passes, the case is decided with what there is, unless `decide` says otherwise.
    pub case_timeout_ms: u64,
    /// When the case is decided.
    #[serde(default, skip_serializing_if = "Decide::is_usual")]
    pub decide: Decide,
    /// Phase 3: risk scores further apart than this many points are a conflict.
    pub risk_spread_max: f64,
    /// Phase 3: numbers that differ by no more than this share of the larger are the same, so the years 2025 and 2026 are, too.
    pub number_tolerance: f64,
    /// Phase 3: how the estimates of different agents are compared.
    #[serde(default, skip_serializing_if = "EstimatePolicy::is_usual")]
    pub estimates: EstimatePolicy,
    /// Phase 3: names that mean the same.
    #[serde(default, skip_serializing_if = "Vocabulary::is_empty")]
    pub vocabulary: Vocabulary,
    /// Phase 3: conflicts debated; the rest is recorded as deferred, and counted where there is no room to record it.
    pub conflicts_max: u32,
    /// Phase 4: rounds of discussion.
    pub rounds_max: u32,
    /// Phase 4: answers asked for, and accepted, in one round of all debates about the conflicts of a case. Each debate
    /// has a share of them.
    pub messages_per_round_max: u32,
    /// Phase 4: tokens of an answer, estimated at four bytes each.
    pub tokens_per_message_max: u32,
    /// Phase 4: how long a party may take to answer.
    pub answer_timeout_ms: u64,
    /// Phase 4: answers needed in a round before it can settle a conflict; at least 2.
    pub answers_min: u32,
    /// Phase 4: whether the other parties of a debate are told each answer of a round, as `agreement` or `disagreement`.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub hear_answers: bool,
    /// Phase 4: how long the parties may take to write what they know into shared memory before a debate begins; 0 for no such time.
    /// The snapshot that is taken then is what the debate refers to.
    #[serde(default, skip_serializing_if = "is_none")]
    pub memory_sync_ms: u64,
    /// What becomes of analyses that rest on something that has changed.
    #[serde(default, skip_serializing_if = "ImpactPolicy::is_usual")]
    pub impact: ImpactPolicy,
    /// Phase 3: what confirmations of findings do.
    #[serde(default, skip_serializing_if = "Confirmations::is_usual")]
    pub confirmations: Confirmations,
    /// Which entries of shared memory are told to everybody in the case.
    #[serde(default, skip_serializing_if = "ImportancePolicy::is_usual")]
    pub importance: ImportancePolicy,
    /// Phase 5: how votes are weighed.
    pub vote_rule: VoteRule,
    /// Recommendations from the most to the least cautious; others count as least cautious.
    pub caution_order: Vec<String>,
    /// Late and repeated messages recorded for a case or debate; more are refused.
    pub set_aside_max: u32,
    /// What happens to detected conflicts.
    #[serde(default)]
    pub conflict_handling: ConflictHandling,
    /// The rules of the ladder. Left out if they are the defaults, because a policy is stored in many events.
    #[serde(default, skip_serializing_if = "LadderPolicy::is_usual")]
    pub ladder: LadderPolicy,
}

impl Policy {
    /// Makes the policy that is asked for of the presets alone: a preset's name, or an object with `preset` and the fields that
    /// differ. What an installation has stored under names is found by [`PolicyRequest`].
    ///
    /// `pointer` is where the request stands, for the fault.
    pub fn resolve(requested: &Value, pointer: &str) -> Result<Self, Fault> {
        let request = PolicyRequest::parse(requested, pointer)?;
        let Some(preset) = Self::preset(request.name()) else {
            return Err(Fault::invalid(
                pointer,
                format!("There is no preset {:?}.", request.name()),
                format!("Use one of: {}.", Self::PRESETS.join(", ")),
            ));
        };
        request.applied_to(&preset, pointer)
    }

    /// Every event of a case that depends on these limits fits into one message: decision record 0011 has the sum.
    fn check(&self, pointer: &str) -> Result<(), Fault> {
        const DAY_MS: u64 = 86_400_000;
        let whole = [
            (
                "finding_timeout_ms",
                self.finding_timeout_ms,
                1,
                30 * DAY_MS,
            ),
            (
                "case_timeout_ms",
                self.case_timeout_ms,
                self.finding_timeout_ms,
                365 * DAY_MS,
            ),
            ("answer_timeout_ms", self.answer_timeout_ms, 1, 30 * DAY_MS),
            (
                "finding_bytes_max",
                self.finding_bytes_max.into(),
                1_024,
                524_288,
            ),
            ("conflicts_max", self.conflicts_max.into(), 0, 32),
            ("rounds_max", self.rounds_max.into(), 0, 10),
            (
                "messages_per_round_max",
                self.messages_per_round_max.into(),
                2,
                1_000,
            ),
            (
                "tokens_per_message_max",
                self.tokens_per_message_max.into(),
                1,
                25_000,
            ),
            ("answers_min", self.answers_min.into(), 2, 1_000),
            ("set_aside_max", self.set_aside_max.into(), 0, 200),
            ("memory_sync_ms", self.memory_sync_ms, 0, 60_000),
        ];
        for (field, value, low, high) in whole {
            if !(low..=high).contains(&value) {
                return Err(out_of_range(
                    pointer,
                    field,
                    &value.to_string(),
                    &format!("{low} to {high}"),
                ));
            }
        }
        let real = [
            ("risk_spread_max", self.risk_spread_max, 100.0),
            ("number_tolerance", self.number_tolerance, 1.0),
        ];
        for (field, value, high) in real {
            if !(0.0..=high).contains(&value) {
                return Err(out_of_range(
                    pointer,
                    field,
                    &value.to_string(),
                    &format!("0 to {high}"),
                ));
            }
        }
        self.check_caution_order(&format!("{pointer}/caution_order"))?;
        self.estimates.check(&format!("{pointer}/estimates"))?;
        self.vocabulary.check(&format!("{pointer}/vocabulary"))?;
        self.importance.check(&format!("{pointer}/importance"))?;
        self.ladder.check(&format!("{pointer}/ladder"))
    }

    fn check_caution_order(&self, pointer: &str) -> Result<(), Fault> {
        const RECOMMENDATIONS_MAX: usize = 32;
        if self.caution_order.len() > RECOMMENDATIONS_MAX {
            return Err(Fault::invalid(
                pointer,
                format!(
                    "caution_order has {} recommendations.",
                    self.caution_order.len()
                ),
                format!("Name at most {RECOMMENDATIONS_MAX}; others count as least cautious."),
            ));
        }
        let mut named = self.caution_order.iter().enumerate();
        named.try_for_each(|(place, name)| check_name(&format!("{pointer}/{place}"), name))
    }

    /// Every field as it is written, those of objects by names with dots, also where it has the usual value and is left out of
    /// what is stored.
    pub fn fields(&self) -> BTreeMap<String, Value> {
        let mut fields = self.every_field();
        if let Some(Value::Object(ladder)) = fields.get_mut("ladder") {
            ladder.insert("signed".into(), json!(self.ladder.signed));
            let required = json!(self.ladder.digest_required);
            ladder.insert("digest_required".into(), required);
            let critical = json!(self.ladder.critical_where_used);
            ladder.insert("critical_where_used".into(), critical);
        }
        fields.insert("impact".into(), json!(self.impact));
        fields.insert("importance".into(), json!(self.importance));
        fields.insert("confirmations".into(), json!(self.confirmations));
        let mut leaves = BTreeMap::new();
        collect(&mut leaves, String::new(), Value::Object(fields));
        leaves
    }

    /// Every field as it is written, also where it has the usual value.
    fn every_field(&self) -> Map<String, Value> {
        // A policy has no map with other than text keys, so writing it cannot fail.
        let mut fields = match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        fields.insert("decide".into(), json!(self.decide));
        fields.insert("estimates".into(), json!(self.estimates));
        fields.insert("vocabulary".into(), json!(self.vocabulary));
        fields.insert("hear_answers".into(), json!(self.hear_answers));
        fields.insert("memory_sync_ms".into(), json!(self.memory_sync_ms));
        fields.insert("ladder".into(), json!(self.ladder));
        fields
    }

    /// SHA-256 of the policy's JSON, in hexadecimal.
    pub fn digest(&self) -> String {
        // A policy has no map with other than text keys, so writing it cannot fail.
        let json = serde_json::to_vec(self).unwrap_or_default();
        crate::hex::hex(&Sha256::digest(json))
    }
}

/// Adds the fields in `value` to `leaves`, by their whole names.
fn collect(leaves: &mut BTreeMap<String, Value>, name: String, value: Value) {
    let Value::Object(fields) = value else {
        leaves.insert(name, value);
        return;
    };
    for (field, value) in fields {
        let name = if name.is_empty() {
            field
        } else {
            format!("{name}.{field}")
        };
        collect(leaves, name, value);
    }
}

/// Also what holds for cases that were opened when there was no such limit.
fn finding_bytes_usual() -> u32 {
    262_144
}

/// Left out of what is stored, so that the digest of a policy from before there was such a choice stays the same.
fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference.
fn is_yes(choice: &bool) -> bool {
    *choice
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference.
fn is_none(millis: &u64) -> bool {
    *millis == 0
}

fn out_of_range(pointer: &str, field: &str, value: &str, range: &str) -> Fault {
    Fault::invalid(
        format!("{pointer}/{field}"),
        format!("{field} is {value}."),
        format!("Give a number from {range}."),
    )
}

#[cfg(test)]
mod tests;

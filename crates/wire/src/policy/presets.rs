//! The presets: policies that have a name.

use super::{
    Confirmations, ConflictHandling, Decide, EstimatePolicy, ImpactPolicy, ImportancePolicy,
    LadderPolicy, LevelTimes, Policy, Vocabulary, VoteRule, finding_bytes_usual,
};
use crate::payload::{CredibilityVersion, DebatePriority};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

impl Policy {
    /// Names of the presets; the first one is that of a case that names none.
    pub const PRESETS: [&'static str; 4] = ["contract-review", "investment", "incident", "quick"];

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "contract-review" => Some(Self::contract_review()),
            "investment" => Some(Self::investment()),
            "incident" => Some(Self::incident()),
            "quick" => Some(Self::quick()),
            _ => None,
        }
    }

    /// The limits of the specification for reviewing a contract.
    pub fn contract_review() -> Self {
        Self {
            preset: "contract-review".into(),
            finding_timeout_ms: 30 * SECOND,
            finding_bytes_max: finding_bytes_usual(),
            case_timeout_ms: 15 * MINUTE,
            decide: Decide::AtTime,
            risk_spread_max: 20.0,
            number_tolerance: 0.005,
            estimates: EstimatePolicy::default(),
            vocabulary: Vocabulary::default(),
            conflicts_max: 5,
            rounds_max: 2,
            messages_per_round_max: 10,
            tokens_per_message_max: 500,
            answer_timeout_ms: 10 * SECOND,
            answers_min: 2,
            hear_answers: true,
            memory_sync_ms: 0,
            impact: ImpactPolicy::default(),
            confirmations: Confirmations::default(),
            importance: ImportancePolicy::default(),
            vote_rule: VoteRule::Confidence,
            caution_order: ["reject", "escalate", "negotiate", "sign"]
                .map(Into::into)
                .to_vec(),
            set_aside_max: 50,
            conflict_handling: ConflictHandling::Vote,
            ladder: LadderPolicy::default(),
        }
    }

    /// For a decision that may take days and is looked at by people: what the parties do not settle climbs the ladder, by the
    /// formula of credibility that knows most, and a person has two days, because those who can rule on a valuation are few
    /// and do not work at night; only what holds up everything keeps the specification's six hours.
    pub fn investment() -> Self {
        let times = LevelTimes {
            person_ms: 2 * DAY,
            provisional_ms: 3 * DAY,
            ..LevelTimes::default()
        };
        Self {
            preset: "investment".into(),
            finding_timeout_ms: 15 * MINUTE,
            case_timeout_ms: 7 * DAY,
            number_tolerance: 0.01,
            estimates: EstimatePolicy::compared(),
            answer_timeout_ms: 5 * MINUTE,
            caution_order: ["sell", "reduce", "hold", "buy"].map(Into::into).to_vec(),
            conflict_handling: ConflictHandling::Ladder,
            ladder: LadderPolicy {
                credibility: CredibilityVersion::Specialised,
                times_by_priority: [(DebatePriority::CriticalPath, LevelTimes::default())].into(),
                times,
                ..LadderPolicy::default()
            },
            ..Self::contract_review()
        }
    }

    /// For what is broken now: one round of ten seconds, because a late answer is worth less than a quick repair; every
    /// conflict is urgent, and people are asked around the clock for ten minutes, after which the cautious step is taken.
    pub fn incident() -> Self {
        let times = LevelTimes {
            acknowledge_ms: MINUTE,
            evidence_ms: 3 * MINUTE,
            evaluation_ms: 2 * MINUTE,
            opinion_ms: MINUTE,
            mediation_ms: 3 * MINUTE,
            person_ms: 10 * MINUTE,
            provisional_ms: HOUR,
        };
        Self {
            preset: "incident".into(),
            finding_timeout_ms: MINUTE,
            case_timeout_ms: 30 * MINUTE,
            rounds_max: 1,
            caution_order: ["roll_back", "isolate", "repair", "watch"]
                .map(Into::into)
                .to_vec(),
            conflict_handling: ConflictHandling::VoteThenLadder,
            ladder: LadderPolicy {
                times,
                priority: DebatePriority::CriticalPath,
                ..LadderPolicy::default()
            },
            ..Self::contract_review()
        }
    }

    /// For small questions asked often: one short round about the three weightiest conflicts, then the vote, because nobody
    /// waits longer than a minute for an answer of little weight, nor pays for more.
    pub fn quick() -> Self {
        Self {
            preset: "quick".into(),
            finding_timeout_ms: 10 * SECOND,
            case_timeout_ms: MINUTE,
            conflicts_max: 3,
            rounds_max: 1,
            messages_per_round_max: 6,
            tokens_per_message_max: 250,
            answer_timeout_ms: 5 * SECOND,
            ..Self::contract_review()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_preset_can_be_asked_for_by_its_name_and_with_changes() {
        for name in Policy::PRESETS {
            let preset = Policy::resolve(&json!(name), "").unwrap();
            assert_eq!(
                (preset.preset.as_str(), &preset),
                (name, &Policy::preset(name).unwrap())
            );
            let changed = json!({ "preset": name, "rounds_max": 3, "ladder": { "queue_max": 7 } });
            let changed = Policy::resolve(&changed, "").unwrap();
            let mut expected = preset.clone();
            (expected.rounds_max, expected.ladder.queue_max) = (3, 7);
            assert_eq!(changed, expected, "{name}: the rest is that of the preset");
            let json = serde_json::to_string(&preset).unwrap();
            assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), preset);
        }
        assert_eq!(
            Policy::resolve(&json!(null), "").unwrap(),
            Policy::contract_review()
        );
    }

    #[test]
    fn what_earlier_versions_did_not_have_and_is_as_usual_is_left_out() {
        let json = serde_json::to_value(Policy::contract_review()).unwrap();
        assert!(json.get("hear_answers").is_none() && json.get("ladder").is_none());
    }
}

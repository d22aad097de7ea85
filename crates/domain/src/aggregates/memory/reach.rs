//! Whom an entry of a case reaches without being asked for.
//!
//! | importance                                       | reach     |
//! |--------------------------------------------------|-----------|
//! | above `broadcast_above`                          | broadcast |
//! | above `hold_above`, and not above the other      | held      |
//! | at most `hold_above`                             | kept      |
//!
//! The thresholds are those of the case's policy. While a debate of the case is open both are lower by `adapted_by`, because what was of
//! middling importance may settle it; and by as much when an alert has told of a change of regime while the case is open, because what was
//! usual says less then. For an agent most of whose last entries in the case were told at once they are higher by as much,
//! because importance is what the agent itself says. All may hold.

use std::collections::VecDeque;

use concord_events::MemoryPut;
use concord_wire::payload::{
    Adapted, INSIGHT_TAG_BYTES_MAX, INSIGHT_TAGS_MAX, INSIGHT_VALUE_BYTES_MAX, Insight,
    MemoryReach, Reach,
};
use concord_wire::policy::ImportancePolicy;
use concord_wire::{AgentId, CaseId};
use serde_json::Value;

use super::{MemoryEntry, MemoryState, ReceivedMemory};

/// How many of an agent's last entries in a case say whether it is told often.
const LAST: usize = 8;
/// How many entries are remembered, of all cases.
const REMEMBERED: usize = 64;

/// The case that an entry is written in, as the writer's message found it. Only where its policy tells of entries.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenIn {
    /// What its policy says.
    pub policy: ImportancePolicy,
    /// Who is told what concerns it.
    pub everyone: Vec<AgentId>,
    /// Whether one of its debates is open.
    pub debate_is_open: bool,
    /// Whether the regime has changed while it is open.
    pub regime_changed: bool,
}

/// What an agent's last entries in cases reached, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LastReaches(VecDeque<(CaseId, Reach)>);

impl LastReaches {
    pub(super) fn remember(&mut self, put: &MemoryPut) {
        let (Some(case_id), Some(reach)) = (&put.case_id, &put.reach) else {
            return;
        };
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((case_id.clone(), reach.reach));
    }

    /// Whether the last entries in the case are many, and most of them were told at once.
    fn is_often_told(&self, case_id: &CaseId) -> bool {
        let in_case = self.0.iter().rev().filter(|(case, _)| case == case_id);
        let told: Vec<bool> = in_case
            .take(LAST)
            .map(|(_, reach)| *reach == Reach::Broadcast)
            .collect();
        let times = told.iter().filter(|is_told| **is_told).count();
        told.len() == LAST && times * 2 > LAST
    }
}

/// Whom an entry reaches, and who is told of it now: everybody but its writer.
pub(super) fn reach(
    state: &MemoryState,
    received: &ReceivedMemory,
) -> Option<(MemoryReach, Vec<AgentId>)> {
    let written_in = received.written_in.as_ref()?;
    let case_id = received.case_id.as_ref()?;
    let mut adapted = Vec::new();
    let policy = &written_in.policy;
    if policy.adapted_by > 0.0 {
        if written_in.debate_is_open {
            adapted.push(Adapted::DebateOpen);
        }
        if written_in.regime_changed {
            adapted.push(Adapted::RegimeChanged);
        }
        if state.last_reaches.is_often_told(case_id) {
            adapted.push(Adapted::OftenTold);
        }
    }
    let threshold = |stands: f64| adapted_to(stands, policy.adapted_by, &adapted);
    let (broadcast_above, hold_above) = (
        threshold(policy.broadcast_above),
        threshold(policy.hold_above),
    );
    let reach = reach_of(received.entry.importance, broadcast_above, hold_above);
    let told = match reach {
        Reach::Broadcast => {
            let others = written_in.everyone.iter();
            let others = others.filter(|agent| **agent != received.heard.agent_id);
            others.cloned().collect()
        }
        Reach::Held | Reach::Kept => Vec::new(),
    };
    let reach = MemoryReach {
        reach,
        broadcast_above,
        hold_above,
        adapted,
    };
    Some((reach, told))
}

fn adapted_to(stands: f64, step: f64, adapted: &[Adapted]) -> f64 {
    let moved = adapted.iter().fold(stands, |value, why| match why {
        Adapted::DebateOpen | Adapted::RegimeChanged => value - step,
        Adapted::OftenTold => value + step,
    });
    // To a millionth: what is stored reads as the sum that it is.
    ((moved * 1e6).round() / 1e6).clamp(0.0, 1.0)
}

fn reach_of(importance: f64, broadcast_above: f64, hold_above: f64) -> Reach {
    if importance > broadcast_above {
        Reach::Broadcast
    } else if importance > hold_above {
        Reach::Held
    } else {
        Reach::Kept
    }
}

/// What does not follow from what is stored with an entry; a sentence each.
pub(super) fn differences(put: &MemoryPut) -> Vec<String> {
    let mut differences = Vec::new();
    let mut reached = Reach::Kept;
    if let Some(stored) = &put.reach {
        let importance = put.entry.importance;
        let follows = reach_of(importance, stored.broadcast_above, stored.hold_above);
        reached = stored.reach;
        if follows != reached {
            differences.push(format!(
                "The importance {importance} makes it {follows}, and it is {reached}."
            ));
        }
    }
    if reached != Reach::Broadcast && !put.told.is_empty() {
        let told = put.told.len();
        differences.push(format!("{told} are told of an entry that is {reached}."));
    }
    differences
}

/// An entry as everybody in the case is told of it.
pub fn insight_of(entry: &MemoryEntry) -> Insight {
    let listing = &entry.listing;
    let left_out = entry.value.to_string().len() > INSIGHT_VALUE_BYTES_MAX;
    Insight {
        agent: listing.agent.clone(),
        topic: listing.topic.clone(),
        version: listing.version,
        since: listing.since,
        importance: listing.importance,
        confidence: listing.confidence,
        tags: told_tags(&listing.tags),
        value: if left_out {
            Value::Null
        } else {
            entry.value.clone()
        },
        left_out,
    }
}

fn told_tags(tags: &[String]) -> Vec<String> {
    let short = tags.iter().filter(|tag| tag.len() <= INSIGHT_TAG_BYTES_MAX);
    short.take(INSIGHT_TAGS_MAX).cloned().collect()
}

/// About how many bytes are sent to those who may be told of an entry.
pub(super) fn fan_out_bytes(received: &ReceivedMemory) -> usize {
    /// The envelope with all that is not the value.
    const REST_BYTES: usize = 1_024;
    let Some(written_in) = &received.written_in else {
        return 0;
    };
    let value = received.entry.value.to_string().len();
    let each = REST_BYTES + value.min(INSIGHT_VALUE_BYTES_MAX);
    each.saturating_mul(written_in.everyone.len())
}

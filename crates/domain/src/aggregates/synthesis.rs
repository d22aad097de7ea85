//! What is held back in a case, until it is told at a checkpoint. Owned by the coordinator; its id is that of the case.
//!
//! | state                | Hold                                 | Checkpoint                     | the last Checkpoint | period due   |
//! |----------------------|--------------------------------------|--------------------------------|---------------------|--------------|
//! | nothing is held      | held                                 | ignored [4]                    | consolidated [3]    | -            |
//! | some are held        | held [1]; the 64th: consolidated [2] | consolidated                   | consolidated        | consolidated |
//! | the case is over     | consolidated [2]                     | ignored                        | ignored             | ignored      |
//!
//! [1] In the place of an earlier version of the same topic; a version that was held back already, or is not the last any more, is ignored. [2] With this one, so
//! that nothing is lost that was written in time and is heard of late. What entries of several agents have in common is told with them,
//! and so is what they have in common with entries that were told at once. [3] Tells nobody, and says that the case is over; but see [4].
//! [4] Consolidated where entries that were told at once, one of them since the last checkpoint, have something in common.
//!
//! What has led to a checkpoint leads to no other when it is delivered again.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{
    Deadline, DeadlineElapsed, InsightHeld, InsightsTold, StoredEvent, SynthesisEvent,
};
use concord_wire::payload::notification::InsightsConsolidated;
use concord_wire::payload::{Checkpoint, CheckpointReason, Insight, Pattern};
use concord_wire::{AgentId, CaseId, MessageId, Timestamp, Token};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine};

mod patterns;

pub use patterns::patterns;

/// The name of the deadline at which what is held back is told at the latest.
pub const PERIOD: &str = "period";
/// Most entries that are held back: so many make a checkpoint.
pub const HELD_MAX: usize = 64;

/// The state machine of what is held back in a case.
#[derive(Debug, Clone, Copy)]
pub struct SynthesisMachine;

/// Whose topic it is.
type Place = (Token, AgentId);

/// What is held back in a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SynthesisState {
    /// What is held back, by topic and agent.
    pub held: BTreeMap<Place, Insight>,
    /// The last version of each topic that was told at a checkpoint.
    pub told: BTreeMap<Place, u64>,
    /// The checkpoints so far.
    pub checkpoints: Vec<Checkpoint>,
    /// Whether the case is over, so that no other checkpoint comes.
    pub is_over: bool,
    /// The last version of each topic that was held back, whatever has become of it: an event that comes again leads to nothing.
    heard: BTreeMap<Place, u64>,
    /// What has led to a checkpoint: it leads to no other when it comes again.
    causes: BTreeSet<MessageId>,
    due: Option<Timestamp>,
    /// Where the last checkpoint is stored.
    last_at: u64,
}

/// One input of what is held back in a case.
#[derive(Debug, Clone, PartialEq)]
pub enum SynthesisInput {
    /// An entry is held back.
    Hold {
        /// The case.
        case_id: CaseId,
        /// What was written.
        insight: Insight,
        /// In how many milliseconds it is told at the latest; 0 for no such time.
        every_ms: u64,
        /// What is known of the case, for the checkpoint that this one may make.
        known: Known,
    },
    /// The case has come to a checkpoint.
    Checkpoint {
        /// The case.
        case_id: CaseId,
        /// What the checkpoint is.
        reason: CheckpointReason,
        /// What is known of the case.
        known: Known,
    },
    /// The time is over.
    Elapsed {
        /// The deadline.
        elapsed: DeadlineElapsed,
        /// The case.
        case_id: CaseId,
        /// What is known of the case.
        known: Known,
    },
}

/// What is known when a checkpoint may be made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// Who is told what concerns the case.
    pub everyone: Vec<AgentId>,
    /// The version that stands of topics which were written again since they were held back.
    pub standing: BTreeMap<(Token, AgentId), u64>,
    /// The entries that stand and were told at once: they are not told again, and have their part in patterns.
    pub shared: Vec<Insight>,
}

impl Machine for SynthesisMachine {
    type State = SynthesisState;
    type Event = SynthesisEvent;
    type Input = SynthesisInput;

    fn decide(
        state: &SynthesisState,
        context: &Context,
        input: &SynthesisInput,
    ) -> Decision<SynthesisEvent> {
        match input {
            SynthesisInput::Hold {
                case_id,
                insight,
                every_ms,
                known,
            } => hold(state, context, (case_id, insight), *every_ms, known),
            SynthesisInput::Checkpoint {
                case_id,
                reason,
                known,
            } => {
                let is_last = *reason == CheckpointReason::CaseOver;
                let was_made = state.is_over || state.causes.contains(&context.cause);
                let is_silent =
                    || state.held.is_empty() && in_common(state, &[], &known.shared).is_empty();
                if was_made || !is_last && is_silent() {
                    return Decision::Ignore(Ignored::AlreadyDone);
                }
                consolidated(state, case_id, *reason, known, None)
            }
            SynthesisInput::Elapsed {
                elapsed,
                case_id,
                known,
            } => {
                if state.due != Some(elapsed.due) || elapsed.name.as_str() != PERIOD {
                    return Decision::Ignore(Ignored::DeadlineNotOpen);
                }
                consolidated(state, case_id, CheckpointReason::Period, known, None)
            }
        }
    }

    fn apply(state: &mut SynthesisState, record: StoredEvent<SynthesisEvent>) {
        match record.event {
            SynthesisEvent::Held(held) => {
                state.due = state.due.or(held.due);
                let place = place_of(&held.insight);
                state.heard.insert(place.clone(), held.insight.version);
                state.held.insert(place, held.insight);
            }
            SynthesisEvent::Consolidated(told) => {
                for insight in &told.insights {
                    state.told.insert(place_of(insight), insight.version);
                    state.heard.insert(place_of(insight), insight.version);
                }
                state.held.clear();
                state.causes.insert(record.meta.cause);
                state.due = None;
                state.is_over |= told.reason == CheckpointReason::CaseOver;
                state.checkpoints.push(Checkpoint {
                    checkpoint: told.checkpoint,
                    reason: told.reason,
                    at: record.meta.at,
                    told: u32::try_from(told.insights.len()).unwrap_or(u32::MAX),
                    patterns: patterns_of(&told),
                });
                state.last_at = record.sequence;
            }
        }
    }

    fn deadlines(state: &SynthesisState) -> Vec<Deadline> {
        let deadline = state.due.map(|due| Deadline {
            name: Token::fixed(PERIOD),
            due,
        });
        deadline.into_iter().collect()
    }

    fn effects(record: &StoredEvent<SynthesisEvent>) -> Vec<Effect> {
        let SynthesisEvent::Consolidated(told) = &record.event else {
            return Vec::new();
        };
        let data = InsightsConsolidated {
            checkpoint: told.checkpoint,
            reason: told.reason,
            insights: told.insights.clone(),
            patterns: patterns_of(told),
        };
        let tell = |to: &AgentId| Effect::tell(to.clone(), data.clone());
        told.told.iter().map(tell).collect()
    }

    fn case_of(record: &StoredEvent<SynthesisEvent>) -> Option<CaseId> {
        match &record.event {
            SynthesisEvent::Held(held) => Some(held.case_id.clone()),
            SynthesisEvent::Consolidated(told) => Some(told.case_id.clone()),
        }
    }

    fn misplaced(before: &SynthesisState, event: &SynthesisEvent) -> Option<String> {
        match event {
            SynthesisEvent::Held(held) => {
                let insight = &held.insight;
                let is_late = before.is_over || is_known(before, insight);
                is_late.then(|| {
                    let (topic, version) = (&insight.topic, insight.version);
                    format!("Version {version} of {topic} is held back although it was told, or the case is over.")
                })
            }
            SynthesisEvent::Consolidated(told) => {
                let again = told.insights.iter().find(|insight| {
                    let version = before.told.get(&place_of(insight));
                    version.is_some_and(|version| *version >= insight.version)
                });
                let due = next_number(before);
                if told.checkpoint != due {
                    return Some(format!(
                        "It is checkpoint {}, and {due} is due.",
                        told.checkpoint
                    ));
                }
                again.map(|insight| {
                    let (topic, version) = (&insight.topic, insight.version);
                    format!("Version {version} of {topic} is told again.")
                })
            }
        }
    }
}

fn place_of(insight: &Insight) -> Place {
    (insight.topic.clone(), insight.agent.clone())
}

/// What a checkpoint tells as patterns.
fn patterns_of(told: &InsightsTold) -> Vec<Pattern> {
    match told.patterns.as_slice() {
        [] => patterns(&told.insights),
        stored => stored.to_vec(),
    }
}

/// What entries that are told now, and those that were told at once, have in common.
fn in_common(state: &SynthesisState, told: &[Insight], shared: &[Insight]) -> Vec<Pattern> {
    patterns::patterns_with(told, shared, state.last_at)
}

fn next_number(state: &SynthesisState) -> u32 {
    let last = state.checkpoints.last();
    last.map_or(1, |last| last.checkpoint.saturating_add(1))
}

/// Whether this version, or a later one, was held back, whatever has become of it.
fn is_known(state: &SynthesisState, insight: &Insight) -> bool {
    let last = state.heard.get(&place_of(insight));
    last.is_some_and(|last| *last >= insight.version)
}

/// Whether a later version stands.
fn is_replaced(known: &Known, insight: &Insight) -> bool {
    let stands = known.standing.get(&place_of(insight));
    stands.is_some_and(|stands| *stands > insight.version)
}

fn hold(
    state: &SynthesisState,
    context: &Context,
    (case_id, insight): (&CaseId, &Insight),
    every_ms: u64,
    known: &Known,
) -> Decision<SynthesisEvent> {
    if is_known(state, insight) || is_replaced(known, insight) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    if state.is_over {
        return consolidated(state, case_id, CheckpointReason::Late, known, Some(insight));
    }
    let is_new = !state.held.contains_key(&place_of(insight));
    if is_new && state.held.len() + 1 >= HELD_MAX {
        return consolidated(state, case_id, CheckpointReason::Full, known, Some(insight));
    }
    let due = state
        .due
        .or_else(|| (every_ms > 0).then(|| context.now.plus_millis(every_ms)));
    Decision::Append(SynthesisEvent::Held(InsightHeld {
        case_id: case_id.clone(),
        insight: insight.clone(),
        due,
    }))
}

fn consolidated(
    state: &SynthesisState,
    case_id: &CaseId,
    reason: CheckpointReason,
    known: &Known,
    last: Option<&Insight>,
) -> Decision<SynthesisEvent> {
    let mut held = state.held.clone();
    held.extend(last.map(|insight| (place_of(insight), insight.clone())));
    let before = held.len();
    held.retain(|_, insight| !is_replaced(known, insight));
    let replaced = u32::try_from(before - held.len()).unwrap_or(u32::MAX);
    let insights: Vec<Insight> = held.into_values().collect();
    let mut found = in_common(state, &insights, &known.shared);
    let told = if insights.is_empty() && found.is_empty() {
        Vec::new()
    } else {
        known.everyone.clone()
    };
    if found == patterns(&insights) {
        // They follow from the entries.
        found.clear();
    }
    Decision::Append(SynthesisEvent::Consolidated(InsightsTold {
        case_id: case_id.clone(),
        checkpoint: next_number(state),
        reason,
        insights,
        replaced,
        patterns: found,
        told,
    }))
}

#[cfg(test)]
pub(crate) mod tests;

//! A track record: how often one agent was right. Owned by the debate facilitator; its id is the
//! agent's.
//!
//! | state                                             | Observe                                      |
//! |---------------------------------------------------|----------------------------------------------|
//! | any                                               | refused: a future time, a bad name           |
//! | has one of the same debate and source             | ignored: repetition                          |
//! | has one that belongs to no debate, of this cause  | ignored: repetition                          |
//! | has one that was imported under this id           | ignored: repetition                          |
//! | fewer than 5,000                                  | observed                                     |
//! | 5,000, all of them later                          | ignored: already done                        |
//! | 5,000                                             | observed; the oldest observation is forgotten |
//!
//! **Repetitions.** An outcome may arrive twice, or another replica may repeat the step. In one
//! debate, one source says once whether the agent was right; a ruling and a later override are two
//! sources. An imported observation is identified by the id that it was given, and any other that
//! belongs to no debate by the message or event that brought it.
//!
//! **Forgetting.** An observation loses half of its weight in two years, and the oldest has the
//! least weight: at most a five-thousandth of the score, which is less than the width of its
//! interval. The limit is that of the whole record, so thousands of observations in one domain can
//! displace old ones in another. A forgotten observation that is brought again would be the oldest
//! and be forgotten at once, so it is not recorded.

use concord_events::{ImportOrigin, Observed, StoredEvent, ToldCredibility, TrackRecordEvent};
use concord_wire::payload::Observation;
use concord_wire::payload::notification::CredibilityChanged;
use concord_wire::payload::track_record::{Credibility, CredibilityScore, Query, Version};
use concord_wire::{AgentId, CaseId, DebateId, Fault, Timestamp};

mod state;

pub use state::{OBSERVATIONS_MAX, TrackRecordState};

use crate::effect::Effect;
use crate::machine::{Context, Decision, Ignored, Machine, forgetting};
use crate::rules::credibility;
use state::Origin;

/// The state machine of a track record.
#[derive(Debug, Clone, Copy)]
pub struct TrackRecordMachine;

/// The input of a track record: the agent proved right or wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Observe {
    /// The observation itself.
    pub observation: Observation,
    /// The debate in which the agent held the position that proved right or wrong, where there was
    /// one.
    pub debate_id: Option<DebateId>,
    /// The case of that debate.
    pub case_id: Option<CaseId>,
    /// Who opened that case, where it is known.
    pub opened_by: Option<AgentId>,
    /// The agent or person that reports it.
    pub by: AgentId,
    /// Where it is brought in from, where it is.
    pub imported: Option<ImportOrigin>,
    /// Who is to be told what it does to the agent's credibility, where somebody is.
    pub tell: Option<Tell>,
}

/// Who is told of a credibility that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tell {
    /// Who is in the case. The agent is told in any case.
    pub to: Vec<AgentId>,
    /// The disputed subject of the debate, for a reader.
    pub topic: String,
    /// The formula, which is that of the debate's policy.
    pub version: Version,
}

/// The JSON pointer of the observation in the message that brings it.
const POINTER: &str = "/payload/observation";

/// Checks that the observation is not of the future, and that its names can be compared.
fn check(observation: &Observation, now: Timestamp) -> Result<(), Fault> {
    if observation.at > now {
        return Err(Fault::invalid(
            format!("{POINTER}/at"),
            format!(
                "The observation is of {}, which is in the future.",
                observation.at
            ),
            "Say when it became known whether the agent was right; set the sender's clock if that was just now.",
        ));
    }
    observation.check(POINTER)
}

impl Machine for TrackRecordMachine {
    type State = TrackRecordState;
    type Event = TrackRecordEvent;
    type Input = Observe;

    fn state_bytes_max(state: &TrackRecordState) -> usize {
        forgetting(state.observations().len() * 512)
    }

    fn decide(
        state: &TrackRecordState,
        context: &Context,
        input: &Observe,
    ) -> Decision<TrackRecordEvent> {
        if let Err(fault) = check(&input.observation, context.now) {
            return Decision::Reject(fault);
        }
        let origin = Origin::of(
            input.imported.as_ref(),
            input.debate_id.as_ref(),
            &context.cause,
        );
        if state.has(&origin, input.observation.source) {
            return Decision::Ignore(Ignored::Repetition);
        }
        if state.is_past(input.observation.at, OBSERVATIONS_MAX) {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        let told = input
            .tell
            .as_ref()
            .map(|tell| Box::new(told(state, context.now, (input, &origin), tell)));
        let Observe {
            observation,
            debate_id,
            case_id,
            opened_by,
            by,
            imported,
            tell: _,
        } = input.clone();
        Decision::Append(TrackRecordEvent::Observed(Observed {
            observation,
            debate_id,
            case_id,
            opened_by,
            by,
            imported,
            told,
        }))
    }

    fn apply(state: &mut TrackRecordState, record: StoredEvent<TrackRecordEvent>) {
        let TrackRecordEvent::Observed(observed) = record.event;
        let origin = Origin::of(
            observed.imported.as_ref(),
            observed.debate_id.as_ref(),
            &record.meta.cause,
        );
        let (observation, opened_by) = (observed.observation, observed.opened_by);
        state.keep(origin, observation, opened_by, OBSERVATIONS_MAX);
    }

    fn effects(record: &StoredEvent<TrackRecordEvent>) -> Vec<Effect> {
        let TrackRecordEvent::Observed(observed) = &record.event;
        let (Some(told), Some(debate_id), Ok(agent_id)) = (
            &observed.told,
            &observed.debate_id,
            AgentId::new(record.meta.id.as_str()),
        ) else {
            return Vec::new();
        };
        let data = CredibilityChanged {
            agent_id: agent_id.clone(),
            domain: observed.observation.domain.clone(),
            debate_id: debate_id.clone(),
            topic: told.topic.clone(),
            correct: observed.observation.correct,
            source: observed.observation.source,
            by: observed.by.clone(),
            before: told.before,
            after: told.after,
        };
        let itself = Some(&agent_id).filter(|agent| !told.to.contains(agent));
        let to = told.to.iter().chain(itself);
        to.map(|to| Effect::tell(to.clone(), data.clone()))
            .collect()
    }

    fn case_of(record: &StoredEvent<TrackRecordEvent>) -> Option<CaseId> {
        let TrackRecordEvent::Observed(observed) = &record.event;
        observed.case_id.clone()
    }
}

/// What is told of an observation: what the agent's credibility was before, and is with it, in the circumstances of the observation.
fn told(
    state: &TrackRecordState,
    now: Timestamp,
    (input, origin): (&Observe, &Origin),
    tell: &Tell,
) -> ToldCredibility {
    let observation = &input.observation;
    let query = Query {
        now,
        domain: observation.domain.clone(),
        regime: observation.regime.clone(),
        context: observation.context.clone(),
    };
    let score = |state: &TrackRecordState| {
        CredibilityScore::from(&credibility_of(state, tell.version, &query))
    };
    let mut after = state.clone();
    after.keep(
        origin.clone(),
        observation.clone(),
        input.opened_by.clone(),
        OBSERVATIONS_MAX,
    );
    ToldCredibility {
        to: tell.to.clone(),
        topic: tell.topic.clone(),
        version: tell.version,
        before: score(state),
        after: score(&after),
    }
}

/// The credibility that follows from a track record.
pub fn credibility_of(state: &TrackRecordState, version: Version, query: &Query) -> Credibility {
    credibility::score(version, state.attributed(), query)
}

#[cfg(test)]
pub(crate) mod tests;

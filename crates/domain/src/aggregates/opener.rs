//! An opener: what one sender has of the quotas of the installation. Owned by the coordinator; its id is the sender's.
//!
//! The coordinator asks for a place before it opens a case or records a challenge, so that a quota is exact however many
//! replicas there are. Operators have no such aggregate: quotas do not hold them.
//!
//! | the case | Admit                                  | Challenge                              | Release  |
//! |----------|----------------------------------------|----------------------------------------|----------|
//! | unknown  | admitted, or refused: a quota is used up | ignored                              | ignored  |
//! | held     | ignored                                | challenged, or refused: a quota is used up; ignored if counted before | released |
//!
//! A task has a place of the same kind: AdmitTask leads to task_admitted or is refused, and is ignored where the task has a place;
//! ReleaseTask leads to task_released, and is ignored where it has none.
//!
//! Tell leads to quota_reached, and is ignored within [`TELL_AGAIN_MS`] of the last one about the same quota.
//!
//! A case of an earlier version, and one that an operator opened, has no place: challenges in it count for nobody. A place that
//! was asked for, and whose case was not opened or whose challenge was not recorded after all, is the coordinator's to release;
//! a challenge that was counted and then refused counts until its case ends.

use std::collections::{BTreeMap, BTreeSet};

use concord_events::{
    Admitted, CaseReleased, ChallengeAdmitted, OpenerEvent, QuotaKind, QuotaReached, Quotas,
    StoredEvent, TaskAdmitted, TaskReleased,
};
use concord_wire::{AgentId, CaseId, ErrorCode, Fault, MessageId, Timestamp, Token};
use serde::{Deserialize, Serialize};

use crate::machine::{Carry, Context, Decision, Ignored, Machine, forgetting};

/// How long nobody is told again that a quota is used up, in milliseconds: whoever floods is refused thousands of times.
pub const TELL_AGAIN_MS: u64 = 3_600_000;

/// The state machine of an opener.
#[derive(Debug, Clone, Copy)]
pub struct OpenerMachine;

/// The state of an opener.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OpenerState {
    /// The open cases.
    pub cases: BTreeMap<CaseId, HeldCase>,
    /// The tasks that have not ended, with since when they have a place.
    pub tasks: BTreeMap<Token, Timestamp>,
    /// When people were last told that a quota is used up.
    pub told: BTreeMap<QuotaKind, Timestamp>,
}

/// An open case of an opener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldCase {
    /// Since when.
    pub since: Timestamp,
    /// How many gates it has.
    pub gates: u32,
    /// The messages of its challenges.
    pub challenges: BTreeSet<MessageId>,
}

/// One input of an opener.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenerInput {
    /// Asks for a place for a case.
    Admit(Admitted),
    /// Asks for a place for a challenge.
    Challenge(ChallengeAdmitted),
    /// Gives back the place of a case, with its gates and challenges.
    Release(CaseId),
    /// Asks for a place for a task.
    AdmitTask(TaskAdmitted),
    /// Gives back the place of a task.
    ReleaseTask(Token),
    /// Something was refused because a quota is used up.
    Tell(QuotaReached),
}

impl OpenerState {
    /// How many of these the opener has.
    pub fn held(&self, quota: QuotaKind) -> u64 {
        let cases = self.cases.values();
        match quota {
            QuotaKind::OpenCases => self.cases.len() as u64,
            QuotaKind::Gates => cases.map(|case| u64::from(case.gates)).sum(),
            QuotaKind::Challenges => cases.map(|case| case.challenges.len() as u64).sum(),
            QuotaKind::OpenTasks => self.tasks.len() as u64,
        }
    }

    /// The quota that so many more would exceed; none where 0 stands for no limit.
    fn exceeded(&self, quota: QuotaKind, more: u32, limit: u32) -> Option<(QuotaKind, u32)> {
        let after = self.held(quota) + u64::from(more);
        (limit > 0 && more > 0 && after > u64::from(limit)).then_some((quota, limit))
    }

    /// The first quota that does not let in what is asked for, with its number.
    pub fn in_the_way_of(&self, input: &OpenerInput) -> Option<(QuotaKind, u32)> {
        match input {
            OpenerInput::Admit(asked) => self.in_the_way_of_case(asked),
            OpenerInput::Challenge(asked) => self.in_the_way_of_challenge(asked),
            OpenerInput::AdmitTask(asked) => self.in_the_way_of_task(asked),
            OpenerInput::Release(_) | OpenerInput::ReleaseTask(_) | OpenerInput::Tell(_) => None,
        }
    }

    /// Whether people were told within the last [`TELL_AGAIN_MS`] that the quota is used up.
    pub fn was_told(&self, quota: QuotaKind, now: Timestamp) -> bool {
        let last = self.told.get(&quota);
        last.is_some_and(|last| now.millis_since(*last) < TELL_AGAIN_MS)
    }

    fn in_the_way_of_case(&self, asked: &Admitted) -> Option<(QuotaKind, u32)> {
        let Quotas {
            open_cases, gates, ..
        } = asked.quotas;
        self.exceeded(QuotaKind::OpenCases, 1, open_cases)
            .or_else(|| self.exceeded(QuotaKind::Gates, asked.gates, gates))
    }

    fn in_the_way_of_task(&self, asked: &TaskAdmitted) -> Option<(QuotaKind, u32)> {
        self.exceeded(QuotaKind::OpenTasks, 1, asked.quota)
    }

    fn in_the_way_of_challenge(&self, asked: &ChallengeAdmitted) -> Option<(QuotaKind, u32)> {
        self.exceeded(QuotaKind::Challenges, 1, asked.quota)
    }
}

impl Machine for OpenerMachine {
    type State = OpenerState;
    type Event = OpenerEvent;
    type Input = OpenerInput;

    const CARRY: Option<Carry<Self::State>> = Some(Carry::as_json(1));

    fn state_bytes_max(state: &OpenerState) -> usize {
        let places = state.cases.len() + state.tasks.len();
        let challenges = state.held(QuotaKind::Challenges);
        let challenges = usize::try_from(challenges).unwrap_or(usize::MAX);
        forgetting(places.saturating_add(challenges).saturating_mul(192))
    }

    fn decide(
        state: &OpenerState,
        context: &Context,
        input: &OpenerInput,
    ) -> Decision<OpenerEvent> {
        match input {
            OpenerInput::Admit(asked) => admit(state, asked),
            OpenerInput::Challenge(asked) => challenge(state, asked),
            OpenerInput::Release(case_id) if state.cases.contains_key(case_id) => {
                let case_id = case_id.clone();
                Decision::Append(OpenerEvent::Released(CaseReleased { case_id }))
            }
            OpenerInput::Release(_) => Decision::Ignore(Ignored::AlreadyDone),
            OpenerInput::AdmitTask(asked) => admit_task(state, asked),
            OpenerInput::ReleaseTask(task_id) if state.tasks.contains_key(task_id) => {
                let task_id = task_id.clone();
                Decision::Append(OpenerEvent::TaskReleased(TaskReleased { task_id }))
            }
            OpenerInput::ReleaseTask(_) => Decision::Ignore(Ignored::AlreadyDone),
            OpenerInput::Tell(reached) => {
                if state.was_told(reached.quota, context.now) {
                    return Decision::Ignore(Ignored::AlreadyDone);
                }
                Decision::Append(OpenerEvent::QuotaReached(reached.clone()))
            }
        }
    }

    fn apply(state: &mut OpenerState, record: StoredEvent<OpenerEvent>) {
        match record.event {
            OpenerEvent::Admitted(admitted) => {
                let held = HeldCase {
                    since: record.meta.at,
                    gates: admitted.gates,
                    challenges: BTreeSet::new(),
                };
                state.cases.insert(admitted.case_id, held);
            }
            OpenerEvent::Challenged(challenged) => {
                if let Some(held) = state.cases.get_mut(&challenged.case_id) {
                    held.challenges.insert(challenged.message_id);
                }
            }
            OpenerEvent::Released(released) => {
                state.cases.remove(&released.case_id);
            }
            OpenerEvent::TaskAdmitted(admitted) => {
                state.tasks.insert(admitted.task_id, record.meta.at);
            }
            OpenerEvent::TaskReleased(released) => {
                state.tasks.remove(&released.task_id);
            }
            OpenerEvent::QuotaReached(reached) => {
                state.told.insert(reached.quota, record.meta.at);
            }
        }
    }

    fn misplaced(before: &OpenerState, event: &OpenerEvent) -> Option<String> {
        let beyond = |(quota, limit): (QuotaKind, u32)| {
            let held = before.held(quota);
            format!(
                "There are {held} {} before it, and the quota is {limit}.",
                quota.counted()
            )
        };
        match event {
            OpenerEvent::Admitted(admitted) => {
                if before.cases.contains_key(&admitted.case_id) {
                    return Some(format!("The case {} has a place.", admitted.case_id));
                }
                before.in_the_way_of_case(admitted).map(beyond)
            }
            OpenerEvent::Challenged(challenged) => {
                if !before.cases.contains_key(&challenged.case_id) {
                    return Some(format!("The case {} has no place.", challenged.case_id));
                }
                before.in_the_way_of_challenge(challenged).map(beyond)
            }
            OpenerEvent::Released(CaseReleased { case_id }) => {
                let is_held = before.cases.contains_key(case_id);
                (!is_held).then(|| format!("The case {case_id} has no place."))
            }
            OpenerEvent::TaskAdmitted(admitted) => {
                if before.tasks.contains_key(&admitted.task_id) {
                    return Some(format!("The task {} has a place.", admitted.task_id));
                }
                before.in_the_way_of_task(admitted).map(beyond)
            }
            OpenerEvent::TaskReleased(TaskReleased { task_id }) => {
                let is_held = before.tasks.contains_key(task_id);
                (!is_held).then(|| format!("The task {task_id} has no place."))
            }
            OpenerEvent::QuotaReached(_) => None,
        }
    }
}

fn admit(state: &OpenerState, asked: &Admitted) -> Decision<OpenerEvent> {
    if state.cases.contains_key(&asked.case_id) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    match state.in_the_way_of_case(asked) {
        Some(used_up) => Decision::Reject(refused(&asked.opener, used_up)),
        None => Decision::Append(OpenerEvent::Admitted(asked.clone())),
    }
}

fn admit_task(state: &OpenerState, asked: &TaskAdmitted) -> Decision<OpenerEvent> {
    if state.tasks.contains_key(&asked.task_id) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    match state.in_the_way_of_task(asked) {
        Some((_, limit)) => Decision::Reject(too_many_tasks(&asked.opener, limit)),
        None => Decision::Append(OpenerEvent::TaskAdmitted(asked.clone())),
    }
}

fn challenge(state: &OpenerState, asked: &ChallengeAdmitted) -> Decision<OpenerEvent> {
    match state.cases.get(&asked.case_id) {
        None => Decision::Ignore(Ignored::AlreadyDone),
        Some(held) if held.challenges.contains(&asked.message_id) => {
            Decision::Ignore(Ignored::Repetition)
        }
        Some(_) => match state.in_the_way_of_challenge(asked) {
            Some((_, limit)) => Decision::Reject(too_many_challenges(&asked.case_id, limit)),
            None => Decision::Append(OpenerEvent::Challenged(asked.clone())),
        },
    }
}

fn refused(opener: &AgentId, (quota, limit): (QuotaKind, u32)) -> Fault {
    let pointer = match quota {
        QuotaKind::Gates => "/payload/parameters/gates",
        QuotaKind::OpenCases | QuotaKind::Challenges | QuotaKind::OpenTasks => {
            "/payload/parameters"
        }
    };
    Fault::new(
        ErrorCode::CapacityExceeded,
        pointer,
        format!(
            "{opener} would have more than {limit} {}, which is the quota of each opener here.",
            quota.counted()
        ),
        format!(
            "Wait until a case ends, or cancel one: concord case cancel. An operator can raise the coordinator's setting service.quota.{quota}; \
             `concord quota {opener}` shows what is used."
        ),
    )
}

fn too_many_tasks(opener: &AgentId, limit: u32) -> Fault {
    Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload/parameters",
        format!(
            "{opener} would have more than {limit} open tasks, which is the quota of each opener here."
        ),
        format!(
            "Wait until a task ends, or cancel one: concord task cancel. An operator can raise the coordinator's setting \
             service.quota.open_tasks; `concord quota {opener}` shows what is used."
        ),
    )
}

fn too_many_challenges(case_id: &CaseId, limit: u32) -> Fault {
    Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload",
        format!(
            "Whoever opened {case_id} would have more than {limit} challenges in their open cases, which is the quota of each opener \
             here."
        ),
        "Wait until one of their cases ends. An operator can raise the coordinator's setting service.quota.challenges.",
    )
}

#[cfg(test)]
mod tests;

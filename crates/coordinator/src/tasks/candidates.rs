//! Who a task can be given to, in the order in which they are asked.

use std::sync::Arc;

use concord_domain::Context;
use concord_domain::aggregates::rotation::{self, RotationMachine, RotationState, Turn};
use concord_domain::aggregates::task::{AGENTS_MAX, OpenedTask, strategy};
use concord_domain::aggregates::worklist::WorklistMachine;
use concord_events::TaskCandidate;
use concord_runtime::delivery::HandleError;
use concord_runtime::event_store::step;
use concord_runtime::service::owned::OwnedAggregates;
use concord_runtime::service::{Binder, ServiceContext};
use concord_runtime::{Directory, Ports};
use concord_wire::payload::AgentStatus;
use concord_wire::{AgentId, Token};

/// Finds the candidates of tasks. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Candidates<P> {
    /// Whose turn it was for a task is learned from the step.
    rotations: Arc<OwnedAggregates<RotationMachine, P, Option<AgentId>>>,
    worklists: Arc<OwnedAggregates<WorklistMachine, P>>,
    directory: Arc<Directory>,
}

impl<P: Ports> Candidates<P> {
    pub(super) fn new(
        service: &ServiceContext<P>,
        worklists: &Arc<OwnedAggregates<WorklistMachine, P>>,
        directory: &Arc<Directory>,
        binder: &mut impl Binder,
    ) -> Self {
        let turn_of = |state: &RotationState, turn: &Turn| state.turn_of(&turn.task_id).cloned();
        let rotations = OwnedAggregates::reading(service, binder, turn_of);
        Self {
            rotations: Arc::new(rotations),
            worklists: Arc::clone(worklists),
            directory: Arc::clone(directory),
        }
    }

    /// The request with who fits it: those with room first, and of them who fits best; in the order of their ids where they take
    /// turns. One more than can be asked where there are more.
    pub(super) async fn find(&self, asked: OpenedTask) -> Result<OpenedTask, HandleError> {
        let rotates = strategy::named(&asked.terms.strategy).is_some_and(|one| one.rotates());
        let rotation = rotation::id_of(&asked.terms.criteria);
        let last = match rotates {
            true => {
                let known = self.rotations.to_read().peek(&rotation).await?.state;
                known.last.clone()
            }
            false => None,
        };
        let mut candidates = self.fitting(&asked, last.as_ref()).await?;
        if !rotates {
            let rank = |one: &TaskCandidate| (one.full, std::cmp::Reverse(ordered(one.score)));
            candidates.sort_by_key(rank);
            return Ok(OpenedTask {
                candidates,
                ..asked
            });
        }
        candidates.truncate(AGENTS_MAX);
        Ok(OpenedTask {
            candidates,
            ..asked
        })
    }

    /// The same with those first whose turn it is, where they take turns. To be called for what is opened next: nobody has a turn
    /// for what is refused.
    pub(super) async fn turn(
        &self,
        id: &Token,
        context: &Context,
        asked: OpenedTask,
    ) -> Result<OpenedTask, HandleError> {
        let rotates = strategy::named(&asked.terms.strategy).is_some_and(|one| one.rotates());
        if !rotates {
            return Ok(asked);
        }
        let rotation = rotation::id_of(&asked.terms.criteria);
        self.in_turn(id, &rotation, context, asked).await
    }

    /// Those who fit and are there, in the order of their ids from the one after `last` on.
    async fn fitting(
        &self,
        asked: &OpenedTask,
        last: Option<&AgentId>,
    ) -> Result<Vec<TaskCandidate>, step::Error> {
        let is_there = |agent: &AgentId, status: AgentStatus| {
            status != AgentStatus::Unavailable && *agent != asked.opened_by
        };
        let found = self.directory.find(
            &asked.terms.criteria,
            last,
            AGENTS_MAX + 1,
            |agent, known| is_there(agent, known.status),
        );
        let mut candidates = Vec::with_capacity(found.len());
        for (agent, score, known) in found {
            let capacity = known.card.as_ref().and_then(|card| card.capacity);
            let full = match (known.status, capacity) {
                (AgentStatus::Busy, _) => true,
                (_, None) => false,
                (_, capacity) => {
                    let worklist = self.worklists.to_read().peek(&agent.token()).await?;
                    worklist.state.is_full(capacity)
                }
            };
            candidates.push(TaskCandidate { agent, score, full });
        }
        Ok(candidates)
    }

    /// The candidates from the one on whose turn it is.
    async fn in_turn(
        &self,
        id: &Token,
        rotation: &Token,
        context: &Context,
        mut asked: OpenedTask,
    ) -> Result<OpenedTask, HandleError> {
        let all_full = asked.candidates.iter().all(|one| one.full);
        let eligible = asked.candidates.iter();
        let eligible = eligible.filter(|one| all_full || !one.full);
        let turn = Turn {
            task_id: id.clone(),
            eligible: eligible.map(|one| one.agent.clone()).collect(),
        };
        let stepped = self.rotations.step(rotation, context, &turn).await?;
        if let Some(first) = stepped.known {
            asked
                .candidates
                .sort_by_key(|one| (one.agent < first, one.agent.clone()));
        }
        Ok(asked)
    }
}

/// A score, 0 to 1, as a number that can be ordered.
fn ordered(score: f64) -> std::time::Duration {
    std::time::Duration::try_from_secs_f64(score).unwrap_or_default()
}

//! Steps that a process has another replica of its service do: the question travels, the step is done, and the answer travels back. Each
//! part may be slow or lost, and either process may be killed meanwhile.

use std::sync::Arc;

use bytes::Bytes;
use concord_events::Aggregate;
use concord_runtime::service::owned::{Answered, Owners};
use concord_wire::Token;
use concord_wire::subject::Service;

use crate::executor::{Executor, Incarnation};
use crate::network::{Cell, Connection, Reply};
use crate::process::Process;
use crate::world::{Action, Shared};

/// How long a process waits for another: less than a slow step takes, which then is done twice.
const PATIENCE_MS: u64 = 1_200;
/// How often what is to be done belongs to another process.
const ANOTHERS: f64 = 0.6;

/// The replicas of a service, as one of them sees the others.
pub(crate) struct SimOwners {
    pub(crate) connection: Connection,
    pub(crate) service: Service,
}

/// What one replica asks another for.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) service: Service,
    from: Incarnation,
    aggregate: Aggregate,
    request: Bytes,
    cell: Cell,
}

impl Owners for SimOwners {
    /// Any of them: replicas that come and go do not agree who owns what.
    fn owner_of(&self, _: &str) -> Option<Token> {
        let mut world = self.connection.world.lock();
        let is_anothers = world.random.chance(ANOTHERS);
        is_anothers.then(|| Token::fixed("another"))
    }

    fn ask(&self, _: Token, aggregate: Aggregate, request: Bytes) -> Answered {
        let cell = Cell::default();
        let question = Question {
            service: self.service,
            from: self.connection.incarnation,
            aggregate,
            request,
            cell: cell.clone(),
        };
        let mut world = self.connection.world.lock();
        let lost = world.faults.lost_request;
        if world.random.chance(lost) {
            world.counts.lost_requests += 1;
        } else {
            let delay = world.delay();
            world.plan(delay, Action::Ask(question));
        }
        world.plan(PATIENCE_MS, Action::GiveUp(cell.clone()));
        Box::pin(async move {
            match crate::oneshot::Answer(cell).await {
                Some(Reply::Answered(answer)) => Some(answer),
                _ => None,
            }
        })
    }
}

impl Question {
    /// Has one of the other processes do what is asked for. Where there is none, that is known at once.
    pub(crate) fn reach(
        self,
        world: &Shared,
        executor: &mut Executor,
        mut others: Vec<(Incarnation, Arc<Process>)>,
    ) {
        others.retain(|(incarnation, _)| incarnation.replica != self.from.replica);
        let Some((incarnation, process)) = world.lock().random.pick(&others).cloned() else {
            self.cell.settle(None);
            return;
        };
        let world = world.clone();
        executor.spawn(incarnation, async move {
            let answer = process.answer(self.aggregate, self.request).await;
            let mut world = world.lock();
            world.counts.asked += 1;
            let lost = world.faults.lost_answer;
            if world.random.chance(lost) {
                world.counts.lost_answers += 1;
                return;
            }
            let delay = world.delay();
            world.plan(
                delay,
                match answer {
                    Some(answer) => Action::Answer(self.cell, Reply::Answered(answer)),
                    None => Action::GiveUp(self.cell),
                },
            );
        });
    }
}

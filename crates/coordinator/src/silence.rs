//! Agents that do not answer: what they let pass is counted, and what they answer ends the count.

use std::sync::Arc;

use concord_domain::aggregates::agent::silence::Silence as Counted;
use concord_domain::aggregates::agent::{AgentInput, AgentMachine};
use concord_domain::aggregates::request::{Reply, RequestInput, RequestMachine};
use concord_domain::aggregates::task::BIDS;
use concord_events::{Release, RequestEvent, RequestOpened, SilenceBounds, StoredEvent, TaskEvent};
use concord_runtime::delivery::{ErrorChain, HandleError};
use concord_runtime::service::ServiceContext;
use concord_runtime::{Aggregates, Directory, Ports};
use concord_wire::subject::Service;
use concord_wire::{AgentId, ErrorCode, MessageId, Recipient, Token};

use crate::tasks::Tasks;

/// Tries those again whose time has come, after they had been unavailable because they did not answer. Each replica looks, and the
/// first to see it stores it; what fails is seen again at the next look.
pub async fn retry_due<P: Ports>(
    service: &ServiceContext<P>,
    agents: &Aggregates<AgentMachine, P>,
    directory: &Directory,
) {
    let now = service.ports.now();
    let mut due = Vec::new();
    directory.each(|agent, state| {
        if state.silence.retry_at.is_some_and(|at| at <= now) {
            due.push(agent.clone());
        }
    });
    for agent_id in due {
        let id = agent_id.token();
        store(service, agents, id, AgentInput::Retry { agent_id }).await;
    }
}

/// Stores what this replica has concluded of an agent.
pub(crate) async fn store<P: Ports>(
    service: &ServiceContext<P>,
    agents: &Aggregates<AgentMachine, P>,
    id: Token,
    input: AgentInput,
) {
    let cause = MessageId::of_operator_request(&service.ports.unique_id());
    let context = service.of_message(cause);
    match agents.step(&id, &context, &input, None).await {
        Ok(outcome) => service.count_step::<AgentMachine>(&outcome),
        // It is concluded again when the broker is back.
        Err(error) => {
            tracing::warn!(agent = %id, error = %ErrorChain(&error), "A status could not be stored.");
        }
    }
}

/// What is needed to count. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Silence<P> {
    service: ServiceContext<P>,
    agents: Arc<Aggregates<AgentMachine, P>>,
    directory: Arc<Directory>,
    bounds: SilenceBounds,
}

impl<P: Ports> Silence<P> {
    pub(crate) fn new(
        service: &ServiceContext<P>,
        agents: &Arc<Aggregates<AgentMachine, P>>,
        directory: &Arc<Directory>,
        bounds: SilenceBounds,
    ) -> Self {
        Self {
            service: service.clone(),
            agents: Arc::clone(agents),
            directory: Arc::clone(directory),
            bounds,
        }
    }

    /// What an event of a request says about whoever was asked.
    pub(crate) async fn heard_of_request(
        &self,
        record: &StoredEvent<RequestEvent>,
    ) -> Result<(), HandleError> {
        match &record.event {
            RequestEvent::Answered(answered) => {
                self.answered(&answered.answer.by, &record.meta.event_id)
                    .await
            }
            RequestEvent::Failed(failed) if failed.error_code == ErrorCode::Timeout => {
                let Recipient::Agent(agent) = &failed.request.to else {
                    return Ok(());
                };
                let request = &failed.request;
                if !self.could_answer(request.due.millis_since(request.asked_at)) {
                    return Ok(());
                }
                let about = (&record.meta.id, asker(request));
                self.silent(agent, about, &record.meta.event_id).await
            }
            _ => Ok(()),
        }
    }

    /// What an answer that has been stored says about whoever gave it: who answers late is heard of, although the answer does not
    /// count. Late answers are read here, and not as events: nothing else follows from these.
    pub(crate) async fn heard_late(
        &self,
        requests: &Aggregates<RequestMachine, P>,
        id: &Token,
        input: &RequestInput,
    ) -> Result<(), HandleError> {
        let RequestInput::Reply(reply) = input else {
            return Ok(());
        };
        let (Reply::Answer(answer) | Reply::Withheld(answer)) = &**reply else {
            return Ok(());
        };
        let request = requests.load_up_to(id, 1).await?.state;
        match request.late.contains(&answer.message_id) {
            true => self.answered(&answer.by, &answer.message_id).await,
            false => Ok(()),
        }
    }

    /// What an event of a task says about those who have it. Nobody must answer a call for proposals.
    pub(crate) async fn heard_of_task(
        &self,
        record: &StoredEvent<TaskEvent>,
        tasks: &Tasks<P>,
    ) -> Result<(), HandleError> {
        let id = &record.meta.id;
        let event_id = &record.meta.event_id;
        match &record.event {
            TaskEvent::Reported(reported) => self.answered(&reported.by, event_id).await,
            TaskEvent::BidMade(bid) => self.answered(&bid.by, event_id).await,
            TaskEvent::Declined(declined) => self.answered(&declined.by, event_id).await,
            TaskEvent::HandedOn(handed) => self.answered(&handed.handed.from, event_id).await,
            TaskEvent::Elapsed(elapsed) if elapsed.name.as_str() != BIDS => {
                // Those who worked on it are told that their time is over; how much is enough to be heard of is a setting here.
                let was_at_work =
                    |one: &&Release| one.told.is_some() && elapsed.silent.contains(&one.agent);
                for one in elapsed.next.release.iter().filter(was_at_work) {
                    let given = tasks.given_ms(id, record.sequence, &one.agent);
                    if !self.could_answer(given.await?) {
                        continue;
                    }
                    let cause = MessageId::derived(&format!("{event_id}/silent/{}", one.agent));
                    self.silent(&one.agent, (id, None), &cause).await?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether somebody who had so much time could have answered. What was over when it was stored was never theirs to answer, and with
    /// what nobody can answer in time one agent would make another unavailable.
    fn could_answer(&self, given_ms: u64) -> bool {
        given_ms > 0 && given_ms >= self.bounds.answer_ms_min
    }

    async fn silent(
        &self,
        agent: &AgentId,
        (about, asked_by): (&Token, Option<AgentId>),
        cause: &MessageId,
    ) -> Result<(), HandleError> {
        if self.bounds.silent_max == 0 || self.directory.agent(agent).is_none() {
            return Ok(());
        }
        let input = AgentInput::Silent {
            agent_id: agent.clone(),
            about: about.clone(),
            asked_by,
            bounds: self.bounds,
        };
        self.step(agent, cause, &input).await
    }

    /// Most have nothing to make up for: that is known from memory.
    async fn answered(&self, agent: &AgentId, cause: &MessageId) -> Result<(), HandleError> {
        let known = self.directory.agent(agent);
        if known.is_none_or(|known| known.silence == Counted::default()) {
            return Ok(());
        }
        let agent_id = agent.clone();
        self.step(agent, cause, &AgentInput::Answered { agent_id })
            .await
    }

    async fn step(
        &self,
        agent: &AgentId,
        cause: &MessageId,
        input: &AgentInput,
    ) -> Result<(), HandleError> {
        let context = self.service.of_event(cause.clone());
        let id = agent.token();
        let outcome = self.agents.step(&id, &context, input, None).await?;
        self.service.count_step::<AgentMachine>(&outcome);
        Ok(())
    }
}

/// The agent that has made a request; none where it was a service.
fn asker(request: &RequestOpened) -> Option<AgentId> {
    let is_service = Service::parse(request.from.as_str()).is_ok();
    (!is_service).then(|| request.from.clone())
}

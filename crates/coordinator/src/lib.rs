//! The coordinator: opens cases, collects findings, decides; knows who is registered, and ends every request between
//! agents. The machines of cases, agents and requests on the broker.

use std::sync::Arc;

use concord_domain::aggregates::agent::AgentMachine;
use concord_domain::aggregates::case::CaseMachine;
use concord_domain::aggregates::request::RequestMachine;
use concord_events::topology::ConsumerKind;
use concord_events::{LeaseBounds, MemoryBounds, QuestionBounds, Quotas, SilenceBounds};
use concord_runtime::delivery::handlers::MessageHandler;
use concord_runtime::service::operator_api;
use concord_runtime::service::{Binder, Run, ServiceContext, ServiceRunner};
use concord_runtime::service::{payloads, reading};
use concord_runtime::{Aggregates, Directory, People, Ports};
use concord_wire::subject::Service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use holdings::Holdings;
use openers::Openers;
use people::Names;
use policies::Policies;
use questions::Questions;
use route::shared::SharedBounds;
use shared::Shared;

mod analyses;
mod cancel_case;
mod estimates;
mod events;
mod exchange;
pub mod holdings;
mod inbox;
mod inboxes;
mod insights;
mod liveness;
mod memory;
mod open_case;
mod openers;
mod people;
mod policies;
mod published;
mod questions;
mod quotas;
mod register;
mod reruns;
pub mod route;
mod shared;
mod shared_reading;
pub mod silence;
mod tasks;
mod watch;

/// Settings of the coordinator alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoordinatorSettings {
    /// How much one opener may have at a time. Operators are not held by it.
    pub quota: Quotas,
    /// How long commitments of agents last, and how many an agent may have.
    pub commitment: LeaseBounds,
    /// How much is kept of what one agent writes into shared memory.
    pub memory: MemoryBounds,
    /// How long answers to a question to the group are awaited.
    pub question: QuestionBounds,
    /// When an agent that does not answer is not asked any more.
    pub silence: SilenceBounds,
}

/// The service.
pub struct Coordinator;

impl Run for Coordinator {
    const SERVICE: Service = Service::Coordinator;
    const ABOUT: &'static str = "Opens cases, collects findings and decides; keeps the register of agents and ends their requests";
    type Own = CoordinatorSettings;

    async fn start(
        mut runner: ServiceRunner,
        own: CoordinatorSettings,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let directory = Directory::follow(&runner);
        directory.loaded().await;
        let service = runner.context().clone();
        let holdings = Holdings::follow(&runner, own.commitment.lease_max_ms);
        let agents = bind(&service, (&directory, &holdings), &own, &mut runner);
        let beats = liveness::Liveness::start(&runner, &agents, &directory).await?;
        runner.answer("agents", liveness::verb(&directory, &beats));
        runner.answer("messages", reading::messages(&runner));
        runner.answer("inbox", inboxes::verb(&runner, &agents));
        runner.answer("acknowledge", inboxes::acknowledge(&runner));
        runner.answer(payloads::PUT_PAYLOAD, payloads::put(&runner));
        runner.answer(payloads::PAYLOAD, payloads::get(&runner));
        Ok(())
    }
}

const SERVICE: Service = Service::Coordinator;

/// Binds the service's handlers to its consumers, and its verbs to its API. Returns the agents that it knows.
pub fn bind<P: Ports>(
    service: &ServiceContext<P>,
    (directory, holdings): (&Arc<Directory>, &Arc<Holdings>),
    own: &CoordinatorSettings,
    binder: &mut impl Binder,
) -> Arc<Aggregates<AgentMachine, P>> {
    let (ports, cache) = (&service.ports, &service.cache);
    let cases = Arc::new(Aggregates::<CaseMachine, P>::new(ports.clone(), cache));
    let agents = Arc::new(Aggregates::<AgentMachine, P>::new(ports.clone(), cache));
    let requests = Arc::new(Aggregates::<RequestMachine, P>::new(ports.clone(), cache));
    let names = Names {
        people: People::new(service),
        agents: Arc::clone(&agents),
        policies: Policies::new(service),
        openers: Openers::new(service, &cases, own.quota, binder),
        boards: Arc::new(Aggregates::new(ports.clone(), cache)),
        commitments: Arc::new(Aggregates::new(ports.clone(), cache)),
    };
    let tasks = tasks::Tasks::new(service, &cases, &names, directory, binder);
    let bounds = SharedBounds {
        leases: own.commitment,
        memory: own.memory,
    };
    let shared = Shared::new(service, &cases, &names, (directory, holdings), bounds);
    let questions = Questions::new(service, &names, own.question);
    let silence = silence::Silence::new(service, &agents, directory, own.silence);
    let messages = || {
        let of_cases =
            MessageHandler::new(service, &cases, route::from_message).prepared_by(names.clone());
        let of_others = (&tasks, &shared, &questions);
        let of_requests = (&requests, &silence);
        inbox::InboxHandler::new(service, &names, of_requests, of_others, of_cases)
    };
    binder.handle(ConsumerKind::Inbox(SERVICE), messages());
    binder.handle(ConsumerKind::UrgentInbox(SERVICE), messages());
    binder.handle(
        ConsumerKind::Events(SERVICE),
        events::OthersEvents::new(
            service,
            &cases,
            &requests,
            &names.openers,
            (&tasks, &shared, &questions),
        ),
    );
    let exchange = exchange::Exchange::new(
        service,
        &requests,
        (&questions, &shared),
        directory,
        &silence,
    );
    let exchange = published::Published::new(service, &questions, exchange);
    binder.handle(ConsumerKind::Exchange, exchange);
    binder.handle(
        ConsumerKind::Effects(SERVICE),
        events::OwnEvents::new(
            service,
            directory,
            &names.openers,
            (&tasks, &shared),
            silence,
        ),
    );
    binder.answer("find_agents", tasks::find_verb(directory));
    answer_about_work(&tasks, &shared, binder);
    answer(service, &cases, &names, binder);
    agents
}

/// Binds the verbs about tasks, and about what is shared.
fn answer_about_work<P: Ports>(
    tasks: &tasks::Tasks<P>,
    shared: &Shared<P>,
    binder: &mut impl Binder,
) {
    binder.answer("open_task", tasks::open_verb(tasks));
    binder.answer("cancel_task", tasks::cancel_verb(tasks));
    binder.answer("board", shared_reading::board(shared));
    binder.answer("briefing", shared_reading::briefing(shared));
    binder.answer("commitments", shared_reading::commitments(shared));
    binder.answer("memory", memory::memory(shared));
    binder.answer("rerun_analyses", reruns::verb(shared));
    let put = operator_api::verb(&shared.service, &shared.watch, watch::read_put);
    binder.answer("put_alert_rules", put);
    binder.answer("alert_rules", watch::show_verb(shared));
}

/// Binds the verbs about cases, agents, people and rules.
fn answer<P: Ports>(
    service: &ServiceContext<P>,
    cases: &Arc<Aggregates<CaseMachine, P>>,
    names: &Names<P>,
    binder: &mut impl Binder,
) {
    let agents = &names.agents;
    let register = operator_api::prepared_verb(service, agents, register::read_card, names.clone());
    binder.answer("register_agent", register);
    let deregister = operator_api::verb(service, agents, register::read_departure);
    binder.answer("deregister_agent", deregister);
    binder.answer("open_case", open_case::verb(service, cases, names));
    let people = names.people.aggregates();
    let register =
        operator_api::prepared_verb(service, people, people::read_registration, names.clone());
    binder.answer("register_person", register);
    let suspend = operator_api::verb(service, people, people::read_suspension);
    binder.answer("suspend_person", suspend);
    let resume = operator_api::verb(service, people, people::read_resumption);
    binder.answer("resume_person", resume);
    let policies = &names.policies;
    let put = operator_api::verb(service, &policies.stored, policies::read_put);
    binder.answer("put_policy", put);
    binder.answer("quotas", quotas::verb(&names.openers));
    binder.answer("policies", policies.list_verb());
    binder.answer("policy", policies.show_verb());
    let cancel = operator_api::verb(service, cases, cancel_case::read);
    binder.answer("cancel_case", cancel);
    let add = operator_api::prepared_verb(service, cases, route::read_addition, names.clone());
    binder.answer("add_participant", add);
}

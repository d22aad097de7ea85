//! Steps on an aggregate that all replicas of a service need: the one that it belongs to does them, and the others ask it.
//!
//! Where each did its own, they would meet under the lock: one event is stored, and whoever lost reads what others have stored and tries
//! again. Whoever is asked does the step as whoever asks would have, with the same cause; so it may be done twice, and where no answer
//! comes it is done here. See `docs/adr/0100`.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{HeaderMap, Message, Request};
use bytes::Bytes;
use concord_domain::{Context, Machine};
use concord_events::{Aggregate, AggregateEvent};
use concord_wire::{Fault, Token};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error_chain::ErrorChain;
use crate::event_store::step::{Aggregates, Error, Outcome};
use crate::ports::Ports;
use crate::service::hand_off::{self, NOT_TAKEN};
use crate::service::{Binder, ServiceContext, ServiceRunner};

/// How long the owner has to answer: as long as a replica may be silent.
const ANSWERED_WITHIN: Duration = Duration::from_millis(1_200);
/// The kind of aggregate that another replica asks for a step on.
const HEADER: &str = "Concord-Asked-Aggregate";

/// An answer of another replica on its way; none where nothing came of the request.
pub type Answered = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;
/// Does what another replica asks for.
pub type Answerer = Arc<dyn Fn(Bytes) -> Answered + Send + Sync>;

/// The replicas of a service, for whoever asks them.
pub trait Owners: Send + Sync + 'static {
    /// The replica that `key` belongs to; none for this one.
    fn owner_of(&self, key: &str) -> Option<Token>;

    /// Asks a replica for a step on an aggregate of a kind. None where it does not answer in time, or could not do it.
    fn ask(&self, owner: Token, aggregate: Aggregate, request: Bytes) -> Answered;
}

/// The aggregates of one kind, on each of which one replica steps. `A` is what whoever steps learns of the state that the step has left.
pub struct OwnedAggregates<M: Machine, P, A = ()> {
    here: Here<M, P, A>,
    owners: Arc<dyn Owners>,
}

/// Those that this process has.
struct Here<M: Machine, P, A> {
    service: ServiceContext<P>,
    aggregates: Arc<Aggregates<M, P>>,
    read: Read<M, A>,
}

type Read<M, A> = fn(&<M as Machine>::State, &<M as Machine>::Input) -> A;

/// What came of a step, whoever has done it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stepped<A> {
    /// Why it was refused; none where it was not.
    pub fault: Option<Fault>,
    /// What is known of the state after it.
    pub known: A,
}

#[derive(Serialize)]
struct Asked<'a, I> {
    id: &'a Token,
    context: &'a Context,
    input: &'a I,
}

#[derive(Deserialize)]
struct Heard<I> {
    id: Token,
    context: Context,
    input: I,
}

impl<M: Machine, P: Clone, A> Clone for Here<M, P, A> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            aggregates: Arc::clone(&self.aggregates),
            read: self.read,
        }
    }
}

impl<M: Machine, P: Ports> OwnedAggregates<M, P>
where
    M::Input: Serialize + DeserializeOwned,
{
    /// Those of a service, whose other replicas are answered from now on.
    pub fn new(service: &ServiceContext<P>, binder: &mut impl Binder) -> Self {
        Self::reading(service, binder, |_, _| ())
    }
}

impl<M: Machine, P: Ports, A> OwnedAggregates<M, P, A>
where
    M::Input: Serialize + DeserializeOwned,
    A: Serialize + DeserializeOwned + Send + 'static,
{
    /// The same, with `read` for what is learned of the state after a step.
    pub fn reading(
        service: &ServiceContext<P>,
        binder: &mut impl Binder,
        read: Read<M, A>,
    ) -> Self {
        let here = Here {
            service: service.clone(),
            aggregates: Arc::new(Aggregates::new(service.ports.clone(), &service.cache)),
            read,
        };
        let of_others: Here<M, P, A> = here.clone();
        let answerer: Answerer = Arc::new(move |request| {
            let here = of_others.clone();
            Box::pin(async move { here.answer(&request).await })
        });
        let owners = binder.own(M::Event::AGGREGATE, answerer);
        Self { here, owners }
    }

    /// The aggregates as this process has them, for reading.
    pub fn to_read(&self) -> &Aggregates<M, P> {
        &self.here.aggregates
    }

    /// Does one step, or has it done by the replica that the aggregate belongs to.
    pub async fn step(
        &self,
        id: &Token,
        context: &Context,
        input: &M::Input,
    ) -> Result<Stepped<A>, Error> {
        let aggregate = M::Event::AGGREGATE;
        let owner = self.owners.owner_of(&format!("{aggregate}.{id}"));
        let asked = Asked { id, context, input };
        if let Some(owner) = owner
            && let Ok(request) = serde_json::to_vec(&asked)
            && let Some(answer) = self.owners.ask(owner, aggregate, request.into()).await
            && let Ok(stepped) = serde_json::from_slice(&answer)
        {
            return Ok(stepped);
        }
        self.here.step(id, context, input).await
    }
}

impl<M: Machine, P: Ports, A> Here<M, P, A> {
    async fn step(
        &self,
        id: &Token,
        context: &Context,
        input: &M::Input,
    ) -> Result<Stepped<A>, Error> {
        let read = |state: &M::State| (self.read)(state, input);
        let done = self
            .aggregates
            .step_and(id, (context, input), None, read)
            .await;
        let (outcome, known) = done?;
        self.service.count_step::<M>(&outcome);
        let fault = match outcome {
            Outcome::Rejected(fault) => Some(fault),
            Outcome::Appended { .. } | Outcome::Ignored(_) => None,
        };
        Ok(Stepped { fault, known })
    }
}

impl<M: Machine, P: Ports, A: Serialize> Here<M, P, A>
where
    M::Input: DeserializeOwned,
{
    async fn answer(&self, request: &Bytes) -> Option<Bytes> {
        // A later version may ask for what this one does not know: it does that itself.
        let Heard { id, context, input } = serde_json::from_slice(request).ok()?;
        match self.step(&id, &context, &input).await {
            Ok(stepped) => serde_json::to_vec(&stepped).ok().map(Bytes::from),
            Err(error) => {
                let error = ErrorChain(&error);
                tracing::debug!(%id, %error, "A step that another replica has asked for failed; it does it itself.");
                None
            }
        }
    }
}

/// Who answers other replicas, by the kind of aggregate. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Answerers(Arc<Mutex<BTreeMap<&'static str, Answerer>>>);

impl Answerers {
    pub(crate) fn add(&self, aggregate: Aggregate, answerer: Answerer) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(aggregate.as_str(), answerer);
    }

    fn of(&self, aggregate: &str) -> Option<Answerer> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(aggregate).cloned()
    }
}

/// Whether another replica asks for a step with this message.
pub(crate) fn is_asked(message: &Message) -> bool {
    asked_aggregate(message).is_some()
}

fn asked_aggregate(message: &Message) -> Option<&str> {
    Some(message.headers.as_ref()?.get(HEADER)?.as_str())
}

/// Does what another replica asks for, and answers it.
pub(crate) async fn answer(runner: ServiceRunner, message: Message) {
    let answerer = asked_aggregate(&message).and_then(|aggregate| runner.answerers.of(aggregate));
    let answer = match answerer {
        Some(answerer) => answerer(message.payload).await,
        None => None,
    };
    let answer = answer.unwrap_or_else(|| NOT_TAKEN.into());
    if let Some(reply) = message.reply
        && let Err(error) = runner.broker.client.publish(reply, answer).await
    {
        tracing::debug!(%error, "An answer to another replica could not be sent.");
    }
}

impl Owners for ServiceRunner {
    fn owner_of(&self, key: &str) -> Option<Token> {
        self.replicas.owner_of(key)
    }

    fn ask(&self, owner: Token, aggregate: Aggregate, request: Bytes) -> Answered {
        let runner = self.clone();
        Box::pin(async move {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, aggregate.as_str());
            let request = Request::new()
                .headers(headers)
                .payload(request)
                .timeout(Some(ANSWERED_WITHIN));
            let subject = hand_off::subject(&runner, &owner);
            match runner.broker.client.send_request(subject, request).await {
                Ok(answer) if answer.payload.as_ref() == NOT_TAKEN => None,
                Ok(answer) => {
                    runner.metrics.steps_asked.inc();
                    Some(answer.payload)
                }
                Err(error) => {
                    tracing::debug!(%owner, %error, "Another replica has not answered; its step is done here.");
                    None
                }
            }
        })
    }
}

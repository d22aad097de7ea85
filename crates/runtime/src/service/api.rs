//! The service's API. A NATS micro service says how it is: `nats micro ls` finds it, `concord doctor` asks it. All other verbs have
//! subscriptions of their own, in the form of micro services, which are drained when the service stops (record 109).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::service::{self, ServiceExt};
use async_nats::{HeaderMap, Message, Subscriber};
use bytes::Bytes;
use concord_domain::aggregates::person::{self, Authority};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::{Subject, SubjectSpace};
use concord_wire::{AgentId, ErrorCode, Fault, Timestamp};
use futures::StreamExt;
use serde_json::json;

use crate::broker::host;
use crate::clock;
use crate::delivery::Budget;
use crate::error_chain::ErrorChain;
use crate::event_store::nats::NatsPorts;
use crate::event_store::step;
use crate::ports::Ports;
use crate::service::ServiceRunner;
use crate::service::people::People;
use crate::service::under_way::{Place, UnderWay};
use crate::service::{reading, redo};

/// What a process notes why it cannot archive under.
pub const ARCHIVE: &str = "archive";
/// The verb by which a service says how it is.
const STATUS: &str = "status";
/// The replicas of a service are one queue group, which has the name that micro services give theirs.
const QUEUE: &str = "q";
/// How long a service that stops waits for requests that the broker had already sent.
const REST_MAX: Duration = Duration::from_secs(2);

/// An answer on its way.
pub type Answer = Pin<Box<dyn Future<Output = Result<Bytes, Fault>> + Send>>;
/// What answers a verb.
pub type Verb = Arc<dyn Fn(Call) -> Answer + Send + Sync>;

/// A verb that answers each request with `f`, to which it gives a clone of `state`.
pub fn verb<S, F>(state: S, f: fn(S, Call) -> F) -> Verb
where
    S: Clone + Send + Sync + 'static,
    F: Future<Output = Result<Bytes, Fault>> + Send + 'static,
{
    Arc::new(move |call| Box::pin(f(state.clone(), call)))
}

/// A request to a verb.
#[derive(Clone)]
pub struct Call {
    /// Who asks, where they ask under their name; they have a role that the verb needs. Without one it is an operator of the
    /// installation, who has the broker's permission to ask for everything.
    pub caller: Option<Caller>,
    /// The request, as JSON.
    pub body: Bytes,
    /// What whoever asks may still cause; none for an operator of the installation.
    budget: Option<Arc<dyn Budget>>,
}

/// Who asks under their name.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name, which the broker enforces.
    pub name: AgentId,
    /// What they may do, as the stream's leader has it.
    pub authority: Authority,
}

impl Call {
    /// A request of an operator of the installation.
    pub fn of_operator(body: Bytes) -> Self {
        Self {
            caller: None,
            body,
            budget: None,
        }
    }

    /// Counts bytes of messages that whoever asks causes, before they are caused, as if a message of theirs had asked for it.
    pub fn spend(&self, bytes: usize, now: Timestamp) -> Result<(), Fault> {
        match &self.budget {
            Some(budget) if bytes > 0 => {
                budget.spend(u64::try_from(bytes).unwrap_or(u64::MAX), now)
            }
            _ => Ok(()),
        }
    }
}

/// Keeps the service registered; its endpoints end when it is dropped.
pub(crate) struct Registration {
    _service: service::Service,
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Registers the service with `status` and the verbs it has added.
pub(crate) async fn register(
    runner: &ServiceRunner,
    http: Option<&str>,
) -> Result<Registration, AnyError> {
    let metadata = HashMap::from([
        ("pid".to_owned(), std::process::id().to_string()),
        ("http".to_owned(), http.unwrap_or("").to_owned()),
        ("host".to_owned(), host()),
        // Several installations may be in one account, where all are asked at once.
        (
            "prefix".to_owned(),
            runner.broker.subjects().prefix().to_owned(),
        ),
    ]);
    let noted = runner.clone();
    let service = runner
        .broker
        .heard
        .service_builder()
        .description(format!("Concord's {}", runner.service))
        .metadata(metadata)
        // By which `concord doctor` sees that the clock of a process is wrong, why one cannot archive, and which one is not ready: each
        // replica says it of itself.
        .stats_handler(move |_, _| {
            json!({
                "clock": clock::now(), "archive": noted.noted(ARCHIVE), "reasons": noted.readiness().reasons,
            })
        })
        .start(
            format!("concord-{}", runner.service),
            env!("CARGO_PKG_VERSION"),
        )
        .await?;
    let root = runner.broker.api_root(runner.service);
    let status = verb(runner.clone(), |runner, _| async move {
        answer(&runner.readiness())
    });
    let people = People::new(runner.context());
    let under_way = UnderWay::of_requests();
    let asked = |verb, handler| Asked {
        verb,
        handler,
        people: people.clone(),
        under_way: under_way.clone(),
        runner: runner.clone(),
    };
    let group = service.group(&root);
    for (name, subject) in [(STATUS, STATUS), ("status-as", "status.*")] {
        let endpoint = group.endpoint_builder().name(name).add(subject).await?;
        runner.spawn(serve_counted(asked(STATUS, Arc::clone(&status)), endpoint));
    }
    let common = [
        ("events", reading::events(runner)),
        ("redo", redo::verb(runner)),
    ];
    for (verb, handler) in runner.take_verbs().into_iter().chain(common) {
        // The name of whoever asks is the last token of the subject.
        for subject in [format!("{root}.{verb}"), format!("{root}.{verb}.*")] {
            let heard = &runner.broker.heard;
            let requests = heard.queue_subscribe(subject, QUEUE.to_owned()).await?;
            runner.spawn(serve(asked(verb, Arc::clone(&handler)), requests));
        }
    }
    Ok(Registration { _service: service })
}

/// A verb, and what is needed to say who may ask for it.
#[derive(Clone)]
struct Asked {
    verb: &'static str,
    handler: Verb,
    people: People<NatsPorts>,
    under_way: UnderWay,
    runner: ServiceRunner,
}

/// A request that may be looked at: of whom, and their place among those under way. An operator of the installation has no name and needs
/// no place.
type Admitted = Option<(AgentId, Place)>;

/// Answers what the micro service itself counts, until the service stops.
async fn serve_counted(asked: Asked, mut endpoint: service::endpoint::Endpoint) {
    loop {
        let request = tokio::select! {
            request = endpoint.next() => request,
            () = asked.runner.stop.cancelled() => None,
        };
        let Some(request) = request else { return };
        if !Asked::is_asked(&request.message) {
            continue;
        }
        let admitted = asked.admit(&request.message);
        let (one, is_admitted) = (asked.clone(), admitted.is_ok());
        let answering = async move {
            let Some(result) = one.result(&request.message, admitted).await else {
                return;
            };
            if let Err(error) = request.respond(result).await {
                unsent(&error);
            }
        };
        asked.begin(is_admitted, answering).await;
    }
}

/// Answers until the service stops, and then what the broker had already sent.
async fn serve(asked: Asked, mut requests: Subscriber) {
    let stop = asked.runner.stop.clone();
    loop {
        let request = tokio::select! {
            request = requests.next() => request,
            () = stop.cancelled() => break,
        };
        let Some(request) = request else { return };
        asked.take(request).await;
    }
    if requests.drain().await.is_err() {
        return;
    }
    let rest = async {
        while let Some(request) = requests.next().await {
            asked.take(request).await;
        }
    };
    // A broker that is away says nothing more.
    let _ = tokio::time::timeout(REST_MAX, rest).await;
}

impl Asked {
    async fn take(&self, request: Message) {
        if !Self::is_asked(&request) {
            return;
        }
        let admitted = self.admit(&request);
        let (one, is_admitted) = (self.clone(), admitted.is_ok());
        let answering = async move { one.respond(request, admitted).await };
        self.begin(is_admitted, answering).await;
    }

    /// Answers beside other requests; what is refused at once is answered before the next one is read, so that a flood of it makes no tasks.
    async fn begin(&self, is_admitted: bool, answering: impl Future<Output = ()> + Send + 'static) {
        if is_admitted {
            self.runner.spawn(answering);
        } else {
            answering.await;
        }
    }

    /// Whether a request may be looked at. To be asked before anything is looked up for it, which costs the broker something.
    fn admit(&self, request: &Message) -> Result<Admitted, Fault> {
        let subjects = self.runner.context().ports.subjects();
        let Ok(Subject::Api { caller, .. }) = subjects.parse::<Subject>(&request.subject) else {
            return Err(Fault::invalid(
                "",
                "The last token of the subject is no name of a caller.",
                "See docs/subjects.md.",
            ));
        };
        let Some(name) = caller else { return Ok(None) };
        let place = self.under_way.enter(&name)?;
        Ok(Some((name, place)))
    }

    async fn answer(&self, request: &Message, admitted: Admitted) -> Result<Bytes, Fault> {
        let (caller, _place) = match admitted {
            Some((name, place)) => (Some(self.caller(name).await?), Some(place)),
            None => (None, None),
        };
        let body = request.payload.clone();
        let runner = &self.runner;
        let budget = |caller: &Caller| runner.admission.budget(runner.service, &caller.name);
        let budget = caller.as_ref().map(budget);
        (self.handler)(Call {
            caller,
            body,
            budget,
        })
        .await
    }

    /// Who asks, if they have a role that the verb needs.
    async fn caller(&self, name: AgentId) -> Result<Caller, Fault> {
        let authority = self.people.authority(&name).await;
        let authority = authority.map_err(|error| unreadable(&error))?;
        person::check_verb(&authority, &name, self.verb)?;
        Ok(Caller { name, authority })
    }

    /// Whether somebody waits for the answer. The broker waits for none: where an agent has named a verb for the reply to something else, its
    /// acknowledgement would be done as if an operator had asked (record 35).
    fn is_asked(request: &Message) -> bool {
        let is_asked = request.reply.is_some();
        if !is_asked {
            tracing::debug!(subject = %request.subject, "Nobody waits for an answer; nothing is done.");
        }
        is_asked
    }

    /// What is to be answered; nothing where nobody may be answered there.
    async fn result(
        &self,
        request: &Message,
        admitted: Result<Admitted, Fault>,
    ) -> Option<Result<Bytes, service::error::Error>> {
        // The service may publish there, and whoever asks may not: what it answers would pass for its own word.
        let reply = request.reply.as_deref().unwrap_or_default();
        if is_of_installation(reply, self.runner.context().ports.subjects()) {
            let subject = &request.subject;
            tracing::warn!(%subject, %reply, "Somebody wants an answer on a subject of the installation; there is none.");
            return None;
        }
        let result = match admitted {
            Ok(admitted) => self.answer(request, admitted).await,
            Err(fault) => Err(fault),
        };
        Some(result.map_err(|fault| service::error::Error {
            status: error_body(&fault),
            code: status_code(fault.code),
        }))
    }

    /// Answers as a micro service does.
    async fn respond(&self, mut request: Message, admitted: Result<Admitted, Fault>) {
        let result = self.result(&request, admitted).await;
        let (Some(result), Some(reply)) = (result, request.reply.take()) else {
            return;
        };
        let client = &self.runner.broker.client;
        let sent = match result {
            Ok(body) => client.publish(reply, body).await,
            Err(service::error::Error { status, code }) => {
                let mut headers = HeaderMap::new();
                headers.insert(service::NATS_SERVICE_ERROR, status);
                headers.insert(service::NATS_SERVICE_ERROR_CODE, code.to_string());
                client
                    .publish_with_headers(reply, headers, Bytes::new())
                    .await
            }
        };
        if let Err(error) = sent {
            unsent(&error);
        }
    }
}

fn unsent(error: &async_nats::PublishError) {
    tracing::warn!(%error, "An answer could not be sent.");
}

/// Whether an answer would go where services, agents or the broker itself are spoken to.
fn is_of_installation(reply: &str, subjects: &SubjectSpace) -> bool {
    reply.starts_with('$') || reply.starts_with(&format!("{}.", subjects.prefix()))
}

/// It is not known who asks.
fn unreadable(error: &step::Error) -> Fault {
    Fault::new(
        ErrorCode::InternalError,
        "",
        format!(
            "Whoever asks could not be looked up: {}.",
            ErrorChain(error)
        ),
        "Ask again.",
    )
}

/// An answer as JSON.
pub fn answer(value: &impl serde::Serialize) -> Result<Bytes, Fault> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| {
        Fault::new(
            ErrorCode::InternalError,
            "",
            format!("The answer cannot be written: {error}."),
            "Report this.",
        )
    })
}

/// The fault as a header value: the JSON of an error payload, on one line.
fn error_body(fault: &Fault) -> String {
    serde_json::to_string(&ErrorReport::from(fault)).unwrap_or_else(|_| fault.to_string())
}

fn status_code(code: ErrorCode) -> usize {
    match code {
        ErrorCode::InvalidRequest => 400,
        ErrorCode::Unauthorized => 403,
        ErrorCode::CapacityExceeded => 429,
        ErrorCode::InternalError => 500,
        ErrorCode::AgentUnavailable => 503,
        ErrorCode::Timeout => 504,
    }
}

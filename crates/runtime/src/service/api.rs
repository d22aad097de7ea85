//! The service's API as a NATS micro service: `nats micro ls` finds it, `concord doctor` asks it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use async_nats::service::{self, ServiceExt};
use bytes::Bytes;
use concord_domain::aggregates::person::{self, Authority};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::{Subject, SubjectSpace};
use concord_wire::{AgentId, ErrorCode, Fault};
use futures::StreamExt;
use serde_json::json;

use crate::clock;
use crate::error_chain::ErrorChain;
use crate::event_store::step;
use crate::ports::Ports;
use crate::ports::nats::NatsPorts;
use crate::service::ServiceRunner;
use crate::service::people::People;
use crate::service::{reading, redo};

/// An answer on its way.
pub type Answer = Pin<Box<dyn Future<Output = Result<Bytes, Fault>> + Send>>;
/// What answers a verb.
pub type Verb = Arc<dyn Fn(Call) -> Answer + Send + Sync>;

/// A request to a verb.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who asks, where they ask under their name; they have a role that the verb needs. Without one it is an operator of the
    /// installation, who has the broker's permission to ask for everything.
    pub caller: Option<Caller>,
    /// The request, as JSON.
    pub body: Bytes,
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
        Self { caller: None, body }
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
    ]);
    let service = runner
        .broker
        .client
        .service_builder()
        .description(format!("Concord's {}", runner.service))
        .metadata(metadata)
        // By which `concord doctor` sees that the clock of a process is wrong.
        .stats_handler(|_, _| json!({ "clock": clock::now() }))
        .start(
            format!("concord-{}", runner.service),
            env!("CARGO_PKG_VERSION"),
        )
        .await?;
    let group = service.group(runner.broker.api_root(runner.service));
    let status = runner.clone();
    let status: Verb = Arc::new(move |_| {
        let readiness = status.readiness();
        Box::pin(async move { answer(&readiness) })
    });
    let people = People::new(runner.context());
    let common = [
        ("status", status),
        ("events", reading::events(runner)),
        ("redo", redo::verb(runner)),
    ];
    for (verb, handler) in runner.take_verbs().into_iter().chain(common) {
        let builder = || group.endpoint_builder();
        let endpoints = [
            builder().name(verb).add(verb).await?,
            // The name of whoever asks is the last token of the subject.
            builder()
                .name(format!("{verb}-as"))
                .add(format!("{verb}.*"))
                .await?,
        ];
        for endpoint in endpoints {
            let asked = Asked {
                verb,
                handler: Arc::clone(&handler),
                people: people.clone(),
                runner: runner.clone(),
            };
            runner.spawn(serve(asked, endpoint));
        }
    }
    Ok(Registration { _service: service })
}

/// The name of the machine, which is that of the pod where there are pods; empty where it is not known.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

/// A verb, and what is needed to say who may ask for it.
#[derive(Clone)]
struct Asked {
    verb: &'static str,
    handler: Verb,
    people: People<NatsPorts>,
    runner: ServiceRunner,
}

async fn serve(asked: Asked, mut endpoint: service::endpoint::Endpoint) {
    loop {
        let request = tokio::select! {
            request = endpoint.next() => request,
            () = asked.runner.stop.cancelled() => None,
        };
        let Some(request) = request else { return };
        let asked = asked.clone();
        let runner = asked.runner.clone();
        runner.spawn(async move { asked.respond(request).await });
    }
}

impl Asked {
    async fn answer(&self, request: &service::Request) -> Result<Bytes, Fault> {
        let subjects = self.runner.context().ports.subjects();
        let subject = subjects.parse::<Subject>(&request.message.subject);
        let caller = match subject {
            Ok(Subject::Api { caller, .. }) => caller,
            _ => {
                return Err(Fault::invalid(
                    "",
                    "The last token of the subject is no name of a caller.",
                    "See docs/subjects.md.",
                ));
            }
        };
        let caller = match caller {
            Some(name) => Some(self.caller(name).await?),
            None => None,
        };
        let body = request.message.payload.clone();
        (self.handler)(Call { caller, body }).await
    }

    /// Who asks, if they have a role that the verb needs.
    async fn caller(&self, name: AgentId) -> Result<Caller, Fault> {
        let authority = self.people.authority(&name).await;
        let authority = authority.map_err(|error| unreadable(&error))?;
        person::check_verb(&authority, &name, self.verb)?;
        Ok(Caller { name, authority })
    }

    async fn respond(&self, request: service::Request) {
        // The service may publish there, and whoever asks may not: what it answers would pass for its own word.
        let reply = request.message.reply.as_deref().unwrap_or_default();
        if is_of_installation(reply, self.runner.context().ports.subjects()) {
            let subject = &request.message.subject;
            tracing::warn!(%subject, %reply, "Somebody wants an answer on a subject of the installation; there is none.");
            return;
        }
        let result = self
            .answer(&request)
            .await
            .map_err(|fault| service::error::Error {
                status: error_body(&fault),
                code: status_code(fault.code),
            });
        if let Err(error) = request.respond(result).await {
            tracing::warn!(%error, "An answer could not be sent.");
        }
    }
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

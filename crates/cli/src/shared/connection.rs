//! The connection to an installation, and requests to its services.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::service::NATS_SERVICE_ERROR_CODE;
use async_nats::{Message, Request, RequestError, RequestErrorKind};
use bytes::Bytes;
use clap::Args;
use concord_runtime::Broker;
use concord_runtime::broker::Denials;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::settings::{
    self, BrokerSettings, Settings, Sources, StorageSettings,
};
use concord_wire::payload::ErrorReport;
use concord_wire::subject::{Service, Subject, SubjectSpace};
use concord_wire::{AgentId, Token};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::shared::args::{ByArgs, agent_id};
use crate::shared::failure::Failure;
use crate::shared::output::{NAMED, styled};
use crate::shared::rights::{rights_of, roles_for};

/// How long a service may take to answer a request.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long nobody answers before what may be asked again is.
const AGAIN: Duration = Duration::from_secs(1);
/// The verbs that only read. Each other request is an order of its own, and twice it might be done twice.
const READING: [&str; 14] = [
    "agents",
    "alert_rules",
    "armed",
    "board",
    "commitments",
    "context",
    "events",
    "find_agents",
    "memory",
    "messages",
    "policies",
    "policy",
    "quotas",
    "status",
];
/// The code of a service's answer to somebody of whom it has too much at once.
const TOO_MUCH: &str = "429";
/// What a failure of a service ends with.
pub(crate) const SEE_DOCTOR: &str = "; see `concord doctor`";

/// The arguments that say where the installation is.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Addresses of the broker, separated by commas [default: nats://127.0.0.1:4222].
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "CONCORD_SERVER",
        hide_env_values = true
    )]
    pub server: Option<String>,
    /// First token of the installation's subjects [default: concord].
    #[arg(long, global = true, value_name = "TOKEN", env = "CONCORD_PREFIX")]
    pub prefix: Option<String>,
    /// File with NATS credentials.
    #[arg(long, global = true, value_name = "FILE", env = "CONCORD_CREDENTIALS")]
    pub credentials: Option<PathBuf>,
    /// The files of a connection under TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Who you are: services are asked under this name, and check its roles [default: an operator of the installation].
    #[arg(long = "as", global = true, value_name = "NAME", env = "CONCORD_AS", value_parser = agent_id)]
    pub caller: Option<AgentId>,
    /// Where cases that are over are archived, as the services' setting storage.archive says: a folder, s3://BUCKET/PREFIX, or
    /// object-store.
    #[arg(long, global = true, value_name = "LOCATION", env = "CONCORD_ARCHIVE")]
    pub archive: Option<String>,
    /// Settings in the form of the services' own: the sections broker and storage are read.
    #[arg(long, global = true, value_name = "FILE", env = "CONCORD_CONFIG")]
    pub config: Option<PathBuf>,
    /// What the broker has not let the connections do.
    #[arg(skip)]
    pub denials: Denials,
}

/// The files with which the connection is made under TLS.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsArgs {
    /// File with the certificate (PEM) of the authority that has signed the broker's, where the system does not know it.
    #[arg(long, global = true, value_name = "FILE", env = "CONCORD_TLS_CA")]
    pub tls_ca: Option<PathBuf>,
    /// File with the certificate (PEM) that a broker which verifies its clients is shown; needs --tls-key.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "CONCORD_TLS_CERTIFICATE",
        requires = "tls_key"
    )]
    pub tls_certificate: Option<PathBuf>,
    /// File with the key of --tls-certificate (PEM).
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "CONCORD_TLS_KEY",
        requires = "tls_certificate"
    )]
    pub tls_key: Option<PathBuf>,
}

impl TlsArgs {
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.tls_ca, &self.tls_certificate, &self.tls_key]
            .into_iter()
            .flatten()
    }

    fn apply(&self, broker: &mut BrokerSettings) {
        for (given, setting) in [
            (&self.tls_ca, &mut broker.tls_ca),
            (&self.tls_certificate, &mut broker.tls_certificate),
            (&self.tls_key, &mut broker.tls_key),
        ] {
            if given.is_some() {
                setting.clone_from(given);
            }
        }
        // Whoever names files for TLS does not want to be talked out of it.
        broker.tls_required |= self.files().next().is_some();
    }
}

impl ConnectionArgs {
    /// Reads the settings from file, environment and flags. The section of a service is not read.
    pub fn settings(&self) -> Result<Settings<serde_json::Value>, Failure> {
        let credentials = self
            .credentials
            .as_ref()
            .map(|path| path.display().to_string());
        if let Some(missing) = self
            .config
            .iter()
            .chain(&self.credentials)
            .chain(self.tls.files())
            .find(|path| !path.is_file())
        {
            return Err(Failure::usage(format!(
                "there is no file {}",
                missing.display()
            )));
        }
        let mut settings: Settings<serde_json::Value> = settings::read(&self.sources())
            .map_err(|error| Failure::settings(ErrorChain(&error).to_string()))?;
        self.tls.apply(&mut settings.broker);
        let checked = settings.broker.check();
        checked.map_err(|error| Failure::settings(ErrorChain(&error).to_string()))?;
        if let Some(server) = &self.server {
            settings.broker.servers.clone_from(server);
        }
        if let Some(prefix) = &self.prefix {
            settings.storage.prefix = Token::new(prefix.as_str())
                .map_err(|error| Failure::usage(format!("--prefix {prefix:?} {error}")))?;
        }
        if let Some(caller) = &self.caller {
            // Whoever has a name may have the NATS user of that name, who hears answers there only.
            let own = || SubjectSpace::replies(caller);
            settings.broker.inbox_prefix.get_or_insert_with(own);
        }
        if let Some(archive) = &self.archive {
            settings.storage.archive = StorageSettings::archive_from_here(archive);
        }
        if credentials.is_some() {
            settings.broker.credentials = credentials.map(PathBuf::from);
        }
        Ok(settings)
    }

    /// Whether a file or a variable says what this setting of the services is.
    pub(crate) fn states(&self, key: &str) -> Result<bool, Failure> {
        settings::is_stated(&self.sources(), key)
            .map_err(|error| Failure::settings(ErrorChain(&error).to_string()))
    }

    fn sources(&self) -> Sources {
        Sources::of_process(self.config.clone(), Vec::new())
    }

    /// Connects to the broker.
    pub async fn connect(&self) -> Result<Broker, Failure> {
        let settings = self.settings()?;
        let mut broker = Broker::connect_and_tell(
            "concord-cli",
            (&settings.broker, &settings.storage),
            false,
            &self.denials,
        )
        .await?;
        broker.caller.clone_from(&self.caller);
        Ok(broker)
    }

    /// Waits until the broker does not let a connection do something. Whoever waits for the answer is told nothing, and would take
    /// it that there is nobody to answer.
    pub(crate) async fn denied(&self) -> Failure {
        let said = self.denials.first().await;
        match &self.caller {
            // What services are asked for, they refuse with the same exit code where the broker lets it through.
            Some(caller) if !said.contains("\"$") => {
                let prefix = self.settings().map(|settings| settings.storage.prefix);
                let roles = prefix.map_or_else(
                    |_| Vec::new(),
                    |prefix| roles_for(caller, &said, &SubjectSpace::new(&prefix)),
                );
                Failure::failed(format!(
                    "the broker does not let {caller} do this ({said}): {}",
                    rights_of(caller, &roles)
                ))
            }
            _ => Failure::unavailable(format!(
                "the broker does not let these credentials do this ({said}); it takes those of an operator of the installation, as \
                 `concord credentials issue` and `concord up --secure` make them. Verbs that show cases, debates and decisions ask the \
                 services in place of the broker for whoever names themselves with --as NAME"
            )),
        }
    }
}

/// Sends a request to a verb of a service's API and reads the answer. A refusal becomes a failure of one line, with exit code 1.
pub async fn ask<T: DeserializeOwned>(
    broker: &Broker,
    service: Service,
    verb: &'static str,
    request: &impl Serialize,
) -> Result<T, Failure> {
    ask_of_input(broker, service, verb, request)
        .await
        .map_err(Failure::of_service)
}

/// The same of a request that is what an input file says: of a refusal for what stands in it the exit code is 65.
pub async fn ask_of_input<T: DeserializeOwned>(
    broker: &Broker,
    service: Service,
    verb: &'static str,
    request: &impl Serialize,
) -> Result<T, Failure> {
    let subject = broker.subjects().build(&Subject::Api {
        service,
        verb: Token::fixed(verb),
        caller: broker.caller.clone(),
    });
    let body = serde_json::to_vec(request).map_err(|error| Failure::failed(error.to_string()))?;
    let is_reading = READING.contains(&verb);
    let answer = answer(broker, &subject, body.into(), is_reading).await;
    let answer = answer.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => Failure::failed(format!(
            "the {service} does not run on this installation; start it, or see `concord doctor`"
        )),
        RequestErrorKind::MaxPayloadExceeded => Failure::data(
            "the request is larger than the broker takes; send less, or a reference to it",
        ),
        _ if is_reading => unanswered(broker, service, &error),
        _ => unanswered(broker, service, &error)
            .and("whether it was done is not known, so look before you ask again"),
    })?;
    if let Some(refusal) = answer
        .headers
        .as_ref()
        .and_then(|headers| headers.get("Nats-Service-Error"))
    {
        return Err(refused(refusal.as_str()));
    }
    serde_json::from_slice(&answer.payload).map_err(|error| {
        Failure::failed(format!(
            "the answer of the {service} cannot be read: {error}"
        ))
    })
}

/// Sends a request, and sends it again and again where it may be while nobody answers: of several processes of a service one may stand
/// still, and the broker goes on giving it a part of what is asked. The first answer counts, also to what was sent before.
async fn answer(
    broker: &Broker,
    subject: &str,
    body: Bytes,
    may_repeat: bool,
) -> Result<Message, RequestError> {
    let until = Instant::now() + ANSWER_MAX;
    let send = || {
        let left = until.saturating_duration_since(Instant::now());
        let request = Request::new().payload(body.clone()).timeout(Some(left));
        broker.client.send_request(subject.to_owned(), request)
    };
    let mut sent = FuturesUnordered::from_iter([send()]);
    loop {
        tokio::select! {
            Some(answer) = sent.next() => {
                // Somebody is about to answer what was sent before.
                if !answer.as_ref().is_ok_and(is_too_much) || sent.is_empty() {
                    return answer;
                }
            }
            () = tokio::time::sleep(AGAIN), if may_repeat => sent.push(send()),
        }
    }
}

/// Whether a service refuses a request because it has as many of the same caller.
fn is_too_much(answer: &Message) -> bool {
    let headers = answer.headers.as_ref();
    let code = headers.and_then(|headers| headers.get(NATS_SERVICE_ERROR_CODE));
    code.is_some_and(|code| code.as_str() == TOO_MUCH)
}

/// The failure for a request that nobody answered.
fn unanswered(broker: &Broker, service: Service, error: &RequestError) -> Failure {
    let Some(caller) = &broker.caller else {
        return Failure::failed(format!("the {service} did not answer: {error}{SEE_DOCTOR}"));
    };
    // A broker in between, as of another account, drops what may not be asked without a word to anybody.
    Failure::failed(format!(
        "the {service} did not answer {caller}: {error}; it does not run, or the broker does not let {caller} ask: {}",
        rights_of(caller, &[])
    ))
}

/// The answer of a service to a command.
#[derive(Debug, Serialize, Deserialize)]
pub struct CommandResult {
    /// The name of the event that the command has led to; none where nothing had to be done.
    #[serde(rename = "fact")]
    pub event: Option<String>,
    /// The sequence of the event in its stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
}

/// Sends a command to a service. The exit code of a refusal is 1.
pub(crate) async fn command(
    broker: &Broker,
    service: Service,
    verb: &'static str,
    request: &impl Serialize,
) -> Result<CommandResult, Failure> {
    ask(broker, service, verb, request).await
}

/// An error report in one line: code, place in the payload, message, advice.
pub(crate) fn refusal(report: &ErrorReport) -> String {
    let place = report
        .details
        .get("pointer")
        .and_then(|pointer| pointer.as_str())
        .filter(|place| !place.is_empty());
    let place = place.map_or(String::new(), |place| format!(" at {place}"));
    let advice = report.recovery_suggestions.join(" ");
    format!(
        "{}{place}: {} {advice}",
        report.error_code, report.error_message
    )
    .trim_end()
    .to_owned()
}

fn refused(text: &str) -> Failure {
    let Ok(report) = serde_json::from_str::<ErrorReport>(text) else {
        return Failure::failed(text);
    };
    let message = refusal(&report);
    match report.error_code {
        concord_wire::ErrorCode::InvalidRequest | concord_wire::ErrorCode::CapacityExceeded => {
            Failure::data(message)
        }
        concord_wire::ErrorCode::Unauthorized => Failure::unauthorized(message),
        _ => Failure::failed(message),
    }
}

/// Cancels a case or a debate (`what`) at the service that owns it, and prints the result.
pub(crate) async fn cancel<T: Serialize + std::fmt::Display>(
    broker: &Broker,
    (service, verb): (Service, &'static str),
    (what, id): (&'static str, &T),
    args: &ByArgs,
    texts: [&'static str; 2],
) -> Result<u8, Failure> {
    let ByArgs { by, why, json } = args;
    let request = json!({ format!("{what}_id"): id, "by": by, "why": why });
    let done = command(broker, service, verb, &request).await?;
    let [cancelled, had_ended] = texts;
    let text = if done.event.is_some() {
        cancelled
    } else {
        had_ended
    };
    json.print(
        &json!({ "cancelled": id, "by": by, "why": why, "done": done }),
        |_| format!("{what} {} {text}\n", styled(NAMED, id)),
    )?;
    Ok(0)
}

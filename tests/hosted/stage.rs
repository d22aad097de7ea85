//! An installation whose adapter hosts agents that are HTTP servers of the test.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use concord_events::topology::StreamKind;
use concord_testkit::{
    Message, TestInstallation, consumer_is_done, free_address, layout, message_bodies, stored,
    unique, wait_for, with_adapter_settings,
};
use concord_wire::subject::{Lane, Service};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Longer than anything here takes, even on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The key that the adapter is given for the models. It must not be found anywhere else.
pub(crate) const KEY: &str = "sk-9f8e7d6c5b4a-not-to-be-seen";

/// A call as a server received it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) at: Instant,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

type Answer = Pin<Box<dyn Future<Output = (u16, String)> + Send>>;
type Respond = Arc<dyn Fn(Received) -> Answer + Send + Sync>;

/// An HTTP server of the test, with the calls that it received.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    respond: Respond,
}

impl Server {
    /// Starts one on a port of its own that answers with the status and the body that `respond` returns.
    pub(crate) async fn start<F: Future<Output = (u16, String)> + Send + 'static>(
        respond: impl Fn(Received) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let respond: Respond = Arc::new(move |received| Box::pin(respond(received)));
        let server = Self {
            url,
            received: Arc::default(),
            respond,
        };
        let router = Router::new()
            .fallback(post(receive))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// Starts a model that answers every call with the same words.
    pub(crate) async fn model(words: &'static str) -> Self {
        Self::start(move |_| async move { (200, completion(words)) }).await
    }

    /// Starts a server that takes calls and never answers.
    pub(crate) async fn silent() -> Self {
        Self::start(|_| async {
            std::future::pending::<()>().await;
            (200, String::new())
        })
        .await
    }

    /// All calls so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }
}

async fn receive(State(server): State<Server>, headers: HeaderMap, body: String) -> Response {
    let body = serde_json::from_str(&body).unwrap_or_default();
    let received = Received {
        at: Instant::now(),
        headers,
        body,
    };
    server
        .received
        .lock()
        .expect("no panic")
        .push(received.clone());
    let (status, body) = (server.respond)(received).await;
    (StatusCode::from_u16(status).expect("a status"), body).into_response()
}

/// The body with which an OpenAI-compatible API answers these words.
pub(crate) fn completion(words: &str) -> String {
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": words }, "finish_reason": "stop" });
    json!({ "id": "x", "object": "chat.completion", "choices": [choice], "usage": { "total_tokens": 50 } }).to_string()
}

/// The text of the message with this role (`user` or `system`) in a call of a model.
pub(crate) fn prompt(received: &Received, role: &str) -> String {
    let messages = received.body["messages"].as_array().expect("messages");
    let one = messages
        .iter()
        .find(|message| message["role"] == role)
        .expect("a message of that role");
    one["content"].as_str().expect("words").to_owned()
}

/// Settings of the address at which the adapter takes answers that come later.
pub(crate) fn callback_settings() -> String {
    let free = free_address();
    format!(
        "[service.callback]\nlisten = \"{free}\"\npublic_url = \"http://{free}\"\n\
         secret = \"0123456789abcdef0123456789abcdef\"\n"
    )
}

/// A running installation, and the name of an agent that asks the hosted ones.
pub(crate) struct Stage {
    pub(crate) installation: TestInstallation,
    pub(crate) asker: String,
}

impl Stage {
    /// Starts an installation with so many adapters, whose settings are this TOML; `{key}` in it is the file with the key.
    pub(crate) async fn start(adapters: usize, settings: &str) -> Self {
        let settings = settings.to_owned();
        let installation = TestInstallation::start_with(move |plan| {
            let key = plan.directory.join("key");
            std::fs::write(&key, KEY).expect("the key is written");
            let settings = settings.replace("{key}", &key.display().to_string());
            with_adapter_settings(plan, &settings).with_replicas(Service::AgentAdapter, adapters)
        });
        Self {
            installation: installation.await,
            asker: unique("asker"),
        }
    }

    /// Asks an agent something, with a deadline in so many milliseconds if there is one: the id of the message.
    pub(crate) async fn ask(
        &self,
        agent: &str,
        deadline_ms: Option<i64>,
        priority: &str,
    ) -> String {
        let request = json!({ "action": "say", "parameters": {} });
        let mut message = Message::new("_", &self.asker, agent, "request", request)
            .with("/requires_response", true)
            .with("/priority", priority);
        if let Some(deadline_ms) = deadline_ms {
            let now = concord_runtime::service::clock::now().unix_millis();
            let deadline = concord_wire::Timestamp::from_unix_millis(now + deadline_ms);
            message = message.with("/deadline", json!(deadline));
        }
        message.publish(self.installation.client()).await;
        message.id().to_owned()
    }

    /// The bodies of all answers so far.
    pub(crate) async fn answers(&self) -> Result<Vec<Value>, String> {
        let filter = format!("concord.v1.msg.*.*.{}.*", self.asker);
        message_bodies(self.installation.client(), &filter).await
    }

    /// Waits for so many answers: all answers.
    pub(crate) async fn all_answers(&self, count: usize) -> Vec<Value> {
        wait_for(format!("{count} answers"), PATIENCE, async || {
            let answers = self.answers().await?;
            if answers.len() >= count {
                Ok(answers)
            } else {
                Err(format!("{} answers", answers.len()))
            }
        })
        .await
    }

    /// Waits for the answer to one message.
    pub(crate) async fn answer(&self, to: &str) -> Value {
        wait_for(format!("the answer to {to}"), PATIENCE, async || {
            let answers = self.answers().await?;
            answers
                .into_iter()
                .find(|answer| answer["reply_to"] == to)
                .ok_or_else(|| "none yet".to_owned())
        })
        .await
    }

    /// Waits until all messages to an agent are acknowledged.
    pub(crate) async fn wait_until_done(&self, agent: &str) {
        let (stream, name, _) = layout().agent_inbox(Lane::Normal, &agent.parse().expect("a name"));
        wait_for("the messages to be done with", PATIENCE, async || {
            consumer_is_done(self.installation.client(), stream, &name).await
        })
        .await;
    }

    /// The state of a hosted agent, as `concord agents` shows it.
    pub(crate) async fn agent(&self, name: &str) -> Value {
        let agents = self
            .installation
            .ask(Service::AgentAdapter, "agents", &Value::Null)
            .await
            .expect("the agents");
        let mut agents = agents.as_array().expect("a list").clone().into_iter();
        agents
            .find(|agent| agent["agent_id"] == name)
            .expect("it is hosted")
    }

    /// Checks that the key is in no log, in no message and in no event.
    pub(crate) async fn keeps_its_secrets(&self) {
        for (service, replica) in self.installation.processes().collect::<Vec<_>>() {
            let log = self.installation.log(service, replica).expect("a log");
            let text = std::fs::read_to_string(log).expect("the log can be read");
            assert!(!text.contains("9f8e7d6c5b4a"), "the log of {service}");
        }
        for kind in [
            StreamKind::Messages,
            StreamKind::Events,
            StreamKind::Memory,
            StreamKind::Dead,
        ] {
            for stored in stored(self.installation.client(), kind, ">")
                .await
                .expect("the stream can be read")
            {
                let text = format!(
                    "{:?} {}",
                    stored.headers,
                    String::from_utf8_lossy(&stored.payload)
                );
                assert!(!text.contains("9f8e7d6c5b4a"), "{}: {text}", stored.subject);
            }
        }
    }
}

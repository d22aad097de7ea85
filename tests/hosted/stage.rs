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
use concord_testkit::{Message, TestInstallation, free_address, layout, stored, unique, until};
use concord_wire::subject::{Lane, Service};
use serde_json::{Value, json};
use tokio::net::TcpListener;

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
type Give = Arc<dyn Fn(Received) -> Answer + Send + Sync>;

/// A server of the test.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    give: Give,
}

impl Server {
    /// One on a port of its own that answers as `give` says: a status and a body.
    pub(crate) async fn start<F: Future<Output = (u16, String)> + Send + 'static>(
        give: impl Fn(Received) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let give: Give = Arc::new(move |received| Box::pin(give(received)));
        let server = Self {
            url,
            received: Arc::default(),
            give,
        };
        let router = Router::new()
            .fallback(post(receive))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    /// A model that says the same words to everything.
    pub(crate) async fn model(words: &'static str) -> Self {
        Self::start(move |_| async move { (200, completion(words)) }).await
    }

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
    let (status, body) = (server.give)(received).await;
    (StatusCode::from_u16(status).expect("a status"), body).into_response()
}

/// What an OpenAI-compatible API answers.
pub(crate) fn completion(words: &str) -> String {
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": words }, "finish_reason": "stop" });
    json!({ "id": "x", "object": "chat.completion", "choices": [choice], "usage": { "total_tokens": 50 } }).to_string()
}

/// The contents of the user's and the system's message of a call of a model.
pub(crate) fn said_to(received: &Received, role: &str) -> String {
    let messages = received.body["messages"].as_array().expect("messages");
    let one = messages
        .iter()
        .find(|message| message["role"] == role)
        .expect("a message of that role");
    one["content"].as_str().expect("words").to_owned()
}

/// Settings of where answers are posted that come later.
pub(crate) fn callback() -> String {
    let free = free_address();
    format!(
        "[service.callback]\nlisten = \"{free}\"\npublic_url = \"http://{free}\"\n\
         secret = \"0123456789abcdef0123456789abcdef\"\n"
    )
}

/// A running installation.
pub(crate) struct Stage {
    pub(crate) installation: TestInstallation,
    pub(crate) asker: String,
}

impl Stage {
    /// With so many adapters, whose settings are this TOML; `{key}` in it is the file with the key.
    pub(crate) async fn start(adapters: usize, settings: &str) -> Self {
        let settings = settings.to_owned();
        let installation = TestInstallation::start_with(move |mut plan| {
            let key = plan.directory.join("key");
            std::fs::write(&key, KEY).expect("the key is written");
            let config = plan.directory.join("adapter.toml");
            let settings = settings.replace("{key}", &key.display().to_string());
            std::fs::write(&config, settings).expect("the configuration is written");
            plan.adapter_config = Some(config);
            plan.with_replicas(Service::AgentAdapter, adapters)
        });
        Self {
            installation: installation.await,
            asker: unique("asker"),
        }
    }

    /// Asks an agent something; the id of the message.
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

    /// Everything that the agents have answered so far.
    pub(crate) async fn answers(&self) -> Result<Vec<Value>, String> {
        let filter = format!("concord.v1.msg.*.*.{}.*", self.asker);
        let said = stored(self.installation.client(), StreamKind::Messages, &filter).await?;
        Ok(said.iter().map(|said| said.json()).collect())
    }

    /// The answers, when there are so many.
    pub(crate) async fn all_answers(&self, count: usize) -> Vec<Value> {
        let all = until(format!("{count} answers"), PATIENCE, async || {
            let answers = self.answers().await?;
            if answers.len() >= count {
                Ok(answers)
            } else {
                Err(format!("{} answers", answers.len()))
            }
        });
        all.await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.log_tails()))
    }

    /// The answer to one message.
    pub(crate) async fn answer(&self, to: &str) -> Value {
        let found = until(format!("the answer to {to}"), PATIENCE, async || {
            let answers = self.answers().await?;
            answers
                .into_iter()
                .find(|answer| answer["reply_to"] == to)
                .ok_or_else(|| "none yet".to_owned())
        });
        found
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.log_tails()))
    }

    /// Waits until an agent's messages are done with.
    pub(crate) async fn is_done_with(&self, agent: &str) {
        let (stream, name, _) = layout().agent_inbox(Lane::Normal, &agent.parse().expect("a name"));
        let jetstream = async_nats::jetstream::new(self.installation.client().clone());
        let acknowledged = until("the messages are done with", PATIENCE, async || {
            let stream = jetstream
                .get_stream(layout().stream_name(stream))
                .await
                .map_err(|error| error.to_string())?;
            let info = stream
                .consumer_info(&name)
                .await
                .map_err(|error| error.to_string())?;
            let left = (info.num_pending, info.num_ack_pending);
            if left == (0, 0) {
                Ok(())
            } else {
                Err(format!("{left:?} wait and are under way"))
            }
        });
        acknowledged
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.log_tails()));
    }

    /// How a hosted agent stands, as `concord agents` shows it.
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

    /// The key stands in no log and in no message or fact.
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

//! A running installation whose adapter notifies people, and a challenge that nobody answers.

use std::path::PathBuf;

use concord_events::topology::{Channel, ConsumerKind, StreamKind};
use concord_testkit::{
    Message, Stored, TestInstallation, instances, layout, stored, unique, until,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::server::SECRET;

/// A running installation.
pub(crate) struct Stage {
    pub(crate) installation: TestInstallation,
    pub(crate) case: String,
    pub(crate) expert: String,
}

/// Where the adapter sends; what is absent is off.
#[derive(Default)]
pub(crate) struct Channels {
    pub(crate) smtp: Option<u16>,
    pub(crate) webhook: Option<u16>,
    /// With TLS, by this certificate, and for mails with a user name and the password in this file.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// The adapter's section `work`.
    pub(crate) work: &'static str,
}

impl Channels {
    fn toml(&self) -> String {
        let mut text = format!(
            "[work]\n{}\n[service.notify]\nwait_first_ms = 100\nwait_max_ms = 500\n",
            self.work
        );
        let mut login = "tls = \"none\"\n".to_owned();
        let mut scheme = "http://";
        if let Some((certificate, password)) = &self.tls {
            text.push_str(&format!("tls_ca = {certificate:?}\n"));
            login = format!("username = \"concord\"\npassword_file = {password:?}\n");
            scheme = "https://";
        }
        if let Some(port) = self.smtp {
            text.push_str(&format!(
                "[service.notify.email]\nhost = \"127.0.0.1\"\nport = {port}\nfrom = \"Concord <concord@example.org>\"\n\
                 gate_to = [\"board@example.org\", \"gail@example.org\"]\n{login}"
            ));
        }
        if let Some(port) = self.webhook {
            text.push_str(&format!(
                "[service.notify.webhook]\nhosts = [\"{scheme}127.0.0.1:{port}\"]\nallow_private = true\n\
                 secret = \"{SECRET}\"\ngate_url = \"{scheme}127.0.0.1:{port}/gates\"\n"
            ));
        }
        text
    }
}

impl Stage {
    pub(crate) async fn start(channels: &Channels) -> Self {
        let installation = TestInstallation::start_with(|mut plan| {
            let config = plan.directory.join("adapter.toml");
            std::fs::write(&config, channels.toml()).expect("the configuration is written");
            plan.adapter_config = Some(config);
            plan
        });
        Self {
            installation: installation.await,
            case: unique("case"),
            expert: unique("eve"),
        }
    }

    /// Registers the person who can rule.
    pub(crate) async fn register(&self, contact: Value) {
        let request =
            json!({ "expert": { "agent_id": self.expert, "contact": contact }, "by": "olga" });
        let answer = self
            .installation
            .ask(Service::DebateFacilitator, "register_expert", &request)
            .await;
        assert_eq!(answer.expect("an answer")["fact"], "expert_registered");
    }

    /// A challenge that comes to a person at once, who has `person_ms`; then it stands provisionally for
    /// `provisional_ms`.
    pub(crate) async fn challenge(&self, topic: &str, person_ms: u64, provisional_ms: u64) {
        let (finance, strategy) = (unique("finance"), unique("strategy"));
        let times = json!({ "acknowledge_ms": 1, "person_ms": person_ms, "provisional_ms": provisional_ms });
        let opening = json!({
            "case_id": self.case, "participants": [finance, strategy], "task": { "type": "test" },
            "gates": ["valuation"], "policy": { "ladder": { "times": times } },
        });
        self.installation.open_case(&opening).await;
        for agent in [&finance, &strategy] {
            self.send(&Message::finding(
                &self.case,
                agent,
                json!({ "summary": "Seen." }),
                0.8,
            ))
            .await;
        }
        self.fact("case", "decided").await;
        let challenge = json!({
            "challenge_id": "CH-001", "challenger": strategy, "challenged": finance, "disputed_finding": topic,
            "challenge_basis": "ROI declining despite claims", "required_evidence": ["Peer comparison"],
            "priority": "critical-path", "metric": "operating margin", "challenged_value": 25, "position": "30 %",
            "value": 30,
        });
        self.send(&Message::new(
            &self.case,
            &strategy,
            "coordinator",
            "challenge",
            challenge,
        ))
        .await;
    }

    async fn send(&self, message: &Message) {
        let context = async_nats::jetstream::new(self.installation.client().clone());
        let stored = context
            .publish(message.subject(), message.bytes().into())
            .await;
        stored
            .expect("the message is sent")
            .await
            .expect("the message is stored");
    }

    async fn found(
        &self,
        kind: StreamKind,
        filter: &str,
        is_it: impl Fn(&Stored) -> bool,
    ) -> Stored {
        let found = until(filter, PATIENCE, async || {
            let all = stored(self.installation.client(), kind, filter).await?;
            let number = all.len();
            all.into_iter()
                .find(|one| is_it(one))
                .ok_or_else(|| format!("{number} others"))
        });
        found.await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits for a fact: its contents.
    pub(crate) async fn fact(&self, aggregate: &str, fact: &str) -> Value {
        let filter = format!("concord.v1.event.{aggregate}.*.{fact}");
        self.found(StreamKind::Events, &filter, |_| true)
            .await
            .json()["data"]
            .clone()
    }

    /// Waits for the dead letter of a consumer: why.
    pub(crate) async fn dead(&self, reason: &str, consumer: &str) -> Stored {
        let filter = format!("concord.v1.dead.agent-adapter.{reason}");
        self.found(StreamKind::Dead, &filter, |letter| {
            letter.header("Concord-Dead-Consumer") == consumer
        })
        .await
    }

    /// Waits until the adapter has seen every fact that people are told of, by both channels.
    pub(crate) async fn told(&self) {
        let context = async_nats::jetstream::new(self.installation.client().clone());
        for channel in Channel::ALL {
            for consumer in layout().consumers_of(ConsumerKind::Notices(channel)) {
                let done = until(&consumer.name, PATIENCE, async || {
                    let stream = context
                        .get_stream_no_info(&consumer.stream)
                        .await
                        .map_err(|error| error.to_string())?;
                    let info = stream
                        .consumer_info(&consumer.name)
                        .await
                        .map_err(|error| error.to_string())?;
                    let left = (info.num_pending, info.num_ack_pending);
                    if left == (0, 0) {
                        Ok(())
                    } else {
                        Err(format!("{left:?} are left"))
                    }
                });
                done.await.unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    /// How often the adapter has counted this result of a channel.
    pub(crate) async fn counted(&self, channel: &str, result: &str) -> u64 {
        let is_adapter = |name: &str| name == "concord-agent-adapter";
        let client = self.installation.client();
        let found = instances(client, PATIENCE, |found| {
            found.iter().any(|one| is_adapter(&one.name))
        })
        .await;
        let found = found.expect("the services answer");
        let adapter = found
            .iter()
            .find(|one| is_adapter(&one.name))
            .expect("the adapter answers");
        let metrics = http_get(adapter.http().expect("it answers HTTP"), "/metrics").await;
        let name =
            format!("concord_notifications_total{{channel=\"{channel}\",result=\"{result}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.trim().parse().expect("a number"))
    }

    /// What the adapter has logged.
    pub(crate) fn log(&self) -> String {
        let log = self
            .installation
            .log(Service::AgentAdapter, 0)
            .expect("the adapter has a log");
        std::fs::read_to_string(log).expect("the log is read")
    }

    /// The invariants hold, all services live, and no log shows a secret.
    pub(crate) async fn holds(&self) {
        self.installation.holds(PATIENCE).await;
        assert!(
            !self.log().contains("MfKQ9r8"),
            "the key of the webhooks is in the log"
        );
    }
}

async fn http_get(address: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("the adapter listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the request is sent");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("the answer is text");
    answer
}

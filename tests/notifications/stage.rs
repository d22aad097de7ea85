//! A running installation whose adapter notifies people, and a challenge that nobody answers.

use std::path::PathBuf;

use concord_events::topology::{Channel, ConsumerKind, StreamKind};
use concord_testkit::{
    Message, Stored, TestInstallation, consumer_is_done, http_get, instances, layout, stored,
    unique, wait_for, with_adapter_settings,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::notifications::PATIENCE;
use crate::notifications::server::{SECRET, Server, free_port};

/// A running installation, with the names of its case and of the person who can rule.
pub(crate) struct Stage {
    pub(crate) installation: TestInstallation,
    pub(crate) case: String,
    pub(crate) expert: String,
}

/// The channels by which the adapter notifies people; one that is absent is off.
#[derive(Default)]
pub(crate) struct Channels {
    pub(crate) smtp: Option<u16>,
    pub(crate) webhook: Option<u16>,
    /// Both channels use TLS with this certificate, and mails a user name with the password in this file.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// More of the adapter's section `service.notify`.
    pub(crate) notify: &'static str,
    /// The adapter's section `work`.
    pub(crate) work: &'static str,
    /// The configuration of the broker's users, besides its own.
    pub(crate) users: String,
}

/// The address of eve's webhook, on a server of the test. It holds what may be a secret.
pub(crate) fn webhook_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/eve?key=t0ken")
}

/// Servers of both channels, which take everything.
pub(crate) struct Servers {
    pub(crate) smtp: Server,
    pub(crate) webhook: Server,
    pub(crate) webhook_port: u16,
}

impl Servers {
    /// Starts them, and an installation whose adapter uses both; webhooks are answered with this status.
    pub(crate) async fn start(status: &str) -> (Stage, Self) {
        Self::start_with_users(status, String::new()).await
    }

    /// The same with a broker that knows the users of this configuration.
    pub(crate) async fn start_with_users(status: &str, users: String) -> (Stage, Self) {
        let smtp_port = free_port();
        let webhook_port = free_port();
        let servers = Self {
            smtp: Server::smtp(smtp_port, &[]).await,
            webhook: Server::webhook(webhook_port, status).await,
            webhook_port,
        };
        let stage = Stage::start(&Channels {
            smtp: Some(smtp_port),
            webhook: Some(webhook_port),
            users,
            ..Channels::default()
        })
        .await;
        (stage, servers)
    }
}

impl Channels {
    fn toml(&self) -> String {
        let mut text = format!(
            "[work]\n{}\n[service.notify]\nwait_first_ms = 100\nwait_max_ms = 500\n{}\n",
            self.work, self.notify
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
        // Whoever is no operator may have one open case.
        let quota = "service.quota.open_cases=1";
        let installation = TestInstallation::start_with(|mut plan| {
            plan.nats_config.clone_from(&channels.users);
            with_adapter_settings(plan, &channels.toml())
                .with_service_setting(Service::Coordinator, quota)
        });
        Self {
            installation: installation.await,
            case: unique("case"),
            expert: unique("eve"),
        }
    }

    /// Registers the person who can rule, with these ways to reach them.
    pub(crate) async fn register(&self, contact: Value) {
        let expert = json!({ "agent_id": self.expert, "contact": contact });
        self.installation.register_expert(&expert).await;
    }

    /// Registers that person with a mailbox and this webhook.
    pub(crate) async fn register_eve(&self, webhook: &str) {
        self.register(json!({ "email": "eve@example.org", "webhook": webhook }))
            .await;
    }

    /// Sends a challenge that comes to a person at once. The person has `person_ms`; then there is a provisional decision
    /// for `provisional_ms`.
    pub(crate) async fn challenge(&self, topic: &str, person_ms: u64, provisional_ms: u64) {
        let (finance, strategy) = (unique("finance"), unique("strategy"));
        let times = json!({ "acknowledge_ms": 1, "person_ms": person_ms, "provisional_ms": provisional_ms });
        let opening = json!({
            "case_id": self.case, "participants": [finance, strategy], "task": { "type": "test" },
            "gates": ["valuation"], "policy": { "ladder": { "times": times } },
        });
        self.installation.open_case(&opening).await;
        for agent in [&finance, &strategy] {
            let finding = json!({ "summary": "Seen." });
            Message::finding(&self.case, agent, finding, 0.8)
                .store(self.installation.client())
                .await;
        }
        self.event("case", "decided").await;
        let challenge = json!({
            "challenge_id": "CH-001", "challenger": strategy, "challenged": finance, "disputed_finding": topic,
            "challenge_basis": "ROI declining despite claims", "required_evidence": ["Peer comparison"],
            "priority": "critical-path", "metric": "operating margin", "challenged_value": 25, "position": "30 %",
            "value": 30,
        });
        Message::new(&self.case, &strategy, "coordinator", "challenge", challenge)
            .store(self.installation.client())
            .await;
    }

    /// Rules on a debate that this expert has, with a value of their own.
    pub(crate) async fn rule(&self, expert: &str, value: u32) -> String {
        let filter = "concord.v1.event.debate.*.assigned";
        let is_theirs = |one: &Stored| one.json()["data"]["briefed"]["expert"] == expert;
        let assigned = self
            .wait_for_stored(StreamKind::Events, filter, is_theirs)
            .await
            .json();
        let debate = assigned["id"].as_str().expect("an id").to_owned();
        let ruling = json!({
            "debate_id": debate, "digest": assigned["data"]["briefed"]["digest"], "value": value,
            "position": format!("{value} %"), "rationale": "The filing says so.",
        });
        self.say(expert, "ruling", ruling).await;
        debate
    }

    /// Sends a message to the facilitator in the case.
    pub(crate) async fn say(&self, from: &str, kind: &str, payload: Value) {
        let message = Message::new(&self.case, from, "debate-facilitator", kind, payload);
        message.store(self.installation.client()).await;
    }

    /// Waits for a stored message for which `is_it` is true.
    async fn wait_for_stored(
        &self,
        kind: StreamKind,
        filter: &str,
        is_it: impl Fn(&Stored) -> bool,
    ) -> Stored {
        wait_for(filter, PATIENCE, async || {
            let all = stored(self.installation.client(), kind, filter).await?;
            let number = all.len();
            all.into_iter()
                .find(|one| is_it(one))
                .ok_or_else(|| format!("{number} others"))
        })
        .await
    }

    /// Waits for an event: its contents.
    pub(crate) async fn event(&self, aggregate: &str, event: &str) -> Value {
        let filter = format!("concord.v1.event.{aggregate}.*.{event}");
        self.wait_for_stored(StreamKind::Events, &filter, |_| true)
            .await
            .json()["data"]
            .clone()
    }

    /// Waits for the dead letter that a consumer has made for this reason.
    pub(crate) async fn dead(&self, reason: &str, consumer: &str) -> Stored {
        let filter = format!("concord.v1.dead.agent-adapter.{reason}");
        self.wait_for_stored(StreamKind::Dead, &filter, |letter| {
            letter.header("Concord-Dead-Consumer") == consumer
        })
        .await
    }

    /// Waits until the adapter has handled every event that people are told of, for both channels.
    pub(crate) async fn wait_until_all_are_told(&self) {
        for channel in Channel::ALL {
            for consumer in layout().consumers_of(ConsumerKind::Notices(channel)) {
                wait_for(&consumer.name, PATIENCE, async || {
                    let client = self.installation.client();
                    consumer_is_done(client, StreamKind::Events, &consumer.name).await
                })
                .await;
            }
        }
    }

    /// How many notifications of a channel had this result, by the adapter's metrics.
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
        let address = adapter.http().expect("it answers HTTP");
        let metrics = http_get(address, "/metrics").await.expect("an answer");
        let name =
            format!("concord_notifications_total{{channel=\"{channel}\",result=\"{result}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.trim().parse().expect("a number"))
    }

    /// The log of the adapter.
    pub(crate) fn log(&self) -> String {
        let log = self
            .installation
            .log(Service::AgentAdapter, 0)
            .expect("the adapter has a log");
        std::fs::read_to_string(log).expect("the log is read")
    }

    /// Checks that the invariants hold, that all services live, and that the log shows no key.
    pub(crate) async fn holds(&self) {
        self.installation.holds(PATIENCE).await;
        assert!(
            !self.log().contains("MfKQ9r8"),
            "the key of the webhooks is in the log"
        );
    }
}

//! Agents that are users of the broker, with permissions of their own.

use std::path::Path;

use async_nats::jetstream;
use async_nats::{Client, ConnectOptions, Event};
use concord_testkit::{TestInstallation, unique};
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::permissions::PATIENCE;

/// Names of agents that no other test has.
pub(crate) fn agents<const N: usize>(names: [&str; N]) -> [AgentId; N] {
    names.map(|name| AgentId::new(unique(name)).expect("an id"))
}

/// The configuration of the broker's users: one without limits for the services, and the agents.
pub(crate) fn users(agents: &[&AgentId]) -> String {
    let space = SubjectSpace::default();
    let user = |agent: &&AgentId| json!({ "user": agent, "password": "x", "permissions": space.permissions(agent) });
    let mut users: Vec<Value> = agents.iter().map(user).collect();
    users.push(json!({ "user": "services", "password": "x" }));
    let users = json!({ "users": users });
    format!("authorization: {users}\nno_auth_user: services")
}

/// An installation whose broker has this configuration besides its own.
pub(crate) async fn start(config: String) -> TestInstallation {
    TestInstallation::start_with(|mut plan| {
        plan.nats_config = config;
        plan
    })
    .await
}

/// An agent that is connected as a user of the broker.
pub(crate) struct User {
    pub(crate) client: Client,
    /// The errors of the broker: what it does not permit.
    errors: UnboundedReceiver<String>,
}

impl User {
    /// Connects an agent with the inbox that its permissions allow.
    pub(crate) async fn connect(installation: &TestInstallation, agent: &AgentId) -> Self {
        Self::connect_with_inbox(installation, agent, &SubjectSpace::replies(agent)).await
    }

    /// Connects an agent with this prefix of its inboxes.
    pub(crate) async fn connect_with_inbox(
        installation: &TestInstallation,
        agent: &AgentId,
        inbox: &str,
    ) -> Self {
        let options = ConnectOptions::with_user_and_password(agent.to_string(), "x".into());
        Self::with(installation, options.custom_inbox_prefix(inbox)).await
    }

    /// Connects with a file of credentials.
    pub(crate) async fn with_credentials(
        installation: &TestInstallation,
        agent: &AgentId,
        file: &Path,
    ) -> Self {
        let options = ConnectOptions::with_credentials_file(file).await;
        let options = options.expect("a file of credentials");
        let inbox = SubjectSpace::replies(agent);
        Self::with(installation, options.custom_inbox_prefix(inbox)).await
    }

    async fn with(installation: &TestInstallation, options: ConnectOptions) -> Self {
        let (sender, errors) = unbounded_channel();
        let options = options.event_callback(move |event| {
            let sender = sender.clone();
            async move {
                if let Event::ServerError(error) = event {
                    let _ = sender.send(error.to_string());
                }
            }
        });
        let client = options.connect(installation.server_url()).await;
        Self {
            client: client.expect("the agent's user is known"),
            errors,
        }
    }

    /// Waits until the broker has the subscriptions of an agent that may publish to no inbox: the broker acknowledges a
    /// message of the agent after it has read them.
    pub(crate) async fn wait_for_subscriptions(&self, agent: &AgentId) {
        let mut jetstream = jetstream::new(self.client.clone());
        jetstream.set_timeout(PATIENCE);
        let note = jetstream
            .publish(format!("concord.v1.msg._.{agent}.nobody.note"), "{}".into())
            .await
            .expect("sent");
        note.await.expect("stored");
    }

    /// Publishes something that the broker does not permit; `what` says what it is.
    pub(crate) async fn may_not_publish(&mut self, subject: String, body: &[u8], what: &str) {
        self.client
            .publish(subject, body.to_vec().into())
            .await
            .expect("sent");
        self.check_refused(what).await;
    }

    /// Subscribes to something that the broker does not permit.
    pub(crate) async fn may_not_subscribe(&mut self, subject: String) {
        let subscription = self.client.subscribe(subject.clone()).await;
        let _never = subscription.expect("asked for");
        self.check_refused(&subject).await;
    }

    /// Waits until the broker refuses something.
    async fn check_refused(&mut self, what: &str) {
        let error = timeout(PATIENCE, self.errors.recv()).await;
        let error = error
            .unwrap_or_else(|_| panic!("{what} was not refused"))
            .expect("the client is there");
        assert!(
            error.to_lowercase().contains("permissions violation"),
            "{what}: {error}"
        );
    }

    /// Checks that the broker has refused nothing more.
    pub(crate) fn check_nothing_refused(&mut self) {
        let error = self.errors.try_recv();
        assert!(error.is_err(), "this was refused: {error:?}");
    }
}

//! An installation of one test.

use std::ops::Deref;
use std::time::Duration;

use concord_events::Aggregate;
use concord_events::subject::SystemSubject;
use concord_installation::{Installation, Plan};
use concord_wire::subject::{Service, SubjectSpace};
use concord_wire::{CaseId, Token};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::programs::{binaries, nats_server};
use crate::{audit, events, settled, until};

/// A machine may stand still for longer than one try takes.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// A real broker and real services in a temporary directory; an [`Installation`] besides.
pub struct TestInstallation {
    // Before the directory, so that it has ended when the directory is removed.
    installation: Installation,
    client: async_nats::Client,
    directory: TempDir,
}

impl TestInstallation {
    /// One process of each service.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        Self::start_with(|plan| plan).await
    }

    /// One process of each service but the agent adapter: agents speak plain NATS, and nobody needs to host them.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_without_adapter() -> Self {
        Self::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await
    }

    /// As `change` wants it.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_with(change: impl FnOnce(Plan) -> Plan) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("concord-test-")
            .tempdir()
            .expect("a temporary directory");
        let mut plan = Plan::new(directory.path());
        plan.nats_server = Some(nats_server());
        plan.binaries = Some(binaries());
        let installation = Installation::start(change(plan), |_| {}).await;
        let installation = installation.unwrap_or_else(|error| panic!("{error}"));
        let client = until("a connection", CONNECT_MAX, async || {
            let client = installation.client().await;
            client.map_err(|error| error.to_string())
        })
        .await
        .unwrap_or_else(|error| panic!("{error}"));
        Self {
            installation,
            client,
            directory,
        }
    }

    /// Waits until nothing is under way; then every invariant must hold, and every service live.
    ///
    /// # Panics
    /// When that is not so.
    pub async fn holds(&self, patience: Duration) {
        settled(&self.client, patience)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let report = audit(&self.client).await.expect("the streams can be read");
        let violations: Vec<_> = report.violations().collect();
        assert!(report.holds(), "{violations:#?}");
        assert!(self.exited().is_empty(), "{:?}", self.exited());
    }

    /// A connection to its broker.
    pub fn client(&self) -> &async_nats::Client {
        &self.client
    }

    /// The temporary directory of the installation.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Asks a service: the answer, or the error it gave.
    pub async fn ask(
        &self,
        service: Service,
        verb: &'static str,
        request: &Value,
    ) -> Result<Value, String> {
        let subject = SubjectSpace::default().build(&concord_wire::subject::Subject::Api {
            service,
            verb: Token::fixed(verb),
            caller: None,
        });
        let answer = self
            .client
            .request(subject, request.to_string().into())
            .await
            .map_err(|e| e.to_string())?;
        if let Some(error) = answer
            .headers
            .as_ref()
            .and_then(|headers| headers.get("Nats-Service-Error"))
        {
            return Err(error.to_string());
        }
        serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())
    }

    /// Opens a case with the parameters of `open_case`.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn open_case(&self, parameters: &Value) -> CaseId {
        let answer = self
            .ask(Service::Coordinator, "open_case", parameters)
            .await;
        let answer = answer.unwrap_or_else(|error| panic!("the case was not opened: {error}"));
        CaseId::new(answer["case_id"].as_str().expect("a case id")).expect("a case id")
    }

    /// Stores a policy: `fields` are those of `put_policy` beside who and why.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn put_policy(&self, fields: &Value) {
        let mut request = json!({ "by": "olga", "why": "for a test" });
        for (name, value) in fields.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        let answer = self.ask(Service::Coordinator, "put_policy", &request).await;
        let answer = answer.unwrap_or_else(|error| panic!("the policy was not stored: {error}"));
        assert_eq!(answer["fact"], "put");
    }

    /// Replaces the usual preset by one of which every opener may change everything, for tests of other things whose agents open
    /// cases by message.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn free_openers(&self) {
        let bounds = json!({ "*": "any" });
        self.put_policy(&json!({ "name": "contract-review", "bounds": bounds }))
            .await;
    }

    /// Registers a person with the fields of `register_person`.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn register_person(&self, person: &Value) {
        let request = json!({ "person": person, "by": "olga" });
        let answer = self
            .ask(Service::Coordinator, "register_person", &request)
            .await;
        let answer = answer.unwrap_or_else(|error| panic!("nobody was registered: {error}"));
        assert_eq!(answer["fact"], "registered");
    }

    /// Registers somebody with these roles, without limits.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn register(&self, name: &str, roles: &[&str]) {
        let roles: Vec<Value> = roles.iter().map(|role| json!({ "role": role })).collect();
        self.register_person(&json!({ "name": name, "roles": roles }))
            .await;
    }

    /// Registers an arbiter, with the fields of an expert of the queue, and waits until the queue knows them.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn register_expert(&self, expert: &Value) {
        let mut person = expert.clone();
        let fields = person.as_object_mut().expect("the fields of an expert");
        let name = fields.remove("agent_id").expect("the id of an expert");
        let domains = fields.remove("domains").unwrap_or_else(|| json!([]));
        fields.insert("name".into(), name.clone());
        fields.insert(
            "roles".into(),
            json!([{ "role": "arbiter", "domains": domains }]),
        );
        self.register_person(&person).await;
        until(
            "the queue knows the expert",
            Duration::from_secs(60),
            async || {
                let events = events(&self.client, "queue.*.expert_registered").await?;
                let known = events
                    .iter()
                    .any(|event| event.json()["data"]["expert"]["agent_id"] == name);
                known
                    .then_some(())
                    .ok_or_else(|| format!("{name} is not known"))
            },
        )
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Waits for the decision of a case: the contents of its `decided` event.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn decision(&self, case: &CaseId, within: Duration) -> Value {
        let jetstream = async_nats::jetstream::new(self.client.clone());
        let subject = SubjectSpace::default().build(&SystemSubject::Event {
            aggregate: Aggregate::Case,
            id: case.token(),
            event: Token::fixed("decided"),
        });
        let decided = until(format!("the decision of case {case}"), within, async || {
            let stream = jetstream
                .get_stream_no_info("CONCORD_EVENTS")
                .await
                .map_err(|error| error.to_string())?;
            let event = stream
                .get_last_raw_message_by_subject(&subject)
                .await
                .map_err(|error| error.to_string())?;
            let event: Value =
                serde_json::from_slice(&event.payload).map_err(|error| error.to_string())?;
            Ok(event["data"].clone())
        });
        decided
            .await
            .unwrap_or_else(|error| panic!("{error}\n{}", self.installation.log_tails()))
    }
}

impl Deref for TestInstallation {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Drop for TestInstallation {
    fn drop(&mut self) {
        // The logs go with the directory, and a test that failed is only understood with them.
        if std::thread::panicking() {
            eprintln!("{}", self.installation.log_tails());
        }
    }
}

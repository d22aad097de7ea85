//! The steps of every test here: start an installation, send something, check what became of it, and check that the
//! services go on.

use std::time::Duration;

use concord_events::dead_letter::header;
use concord_runtime::delivery::dead_letter::COPIED_BYTES_MAX;
use concord_testkit::{
    Agent, Message, Plan, Stored, TestInstallation, audit, dead_letters, message_bodies, original,
    patient, settled, unique, wait_for,
};
use concord_wire::CaseId;
use concord_wire::subject::Service;
use serde_json::{Value, json};

/// Longer than anything here takes, even on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running installation with one process of each service.
pub(crate) struct Stage {
    installation: TestInstallation,
    pids: Vec<(Service, usize, Option<u32>)>,
}

/// A message that the broker has stored.
pub(crate) struct Sent {
    pub(crate) subject: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sequence: u64,
}

/// How a message that cannot be used is refused.
pub(crate) struct Refusal<'a> {
    /// The code of the error.
    pub(crate) code: &'a str,
    /// The place that the error names.
    pub(crate) pointer: &'a str,
    /// The last token of the dead letter's subject.
    pub(crate) reason: &'a str,
}

/// The message is malformed, at this place.
pub(crate) fn invalid(pointer: &str) -> Refusal<'_> {
    Refusal {
        code: "INVALID_REQUEST",
        pointer,
        reason: "invalid",
    }
}

/// The sender may not do this; the place says who or what it named.
pub(crate) fn unauthorized(pointer: &str) -> Refusal<'_> {
    Refusal {
        code: "UNAUTHORIZED",
        pointer,
        reason: "unauthorized",
    }
}

/// A limit is reached.
pub(crate) fn over_capacity(pointer: &str) -> Refusal<'_> {
    Refusal {
        code: "CAPACITY_EXCEEDED",
        pointer,
        reason: "capacity",
    }
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::start_with(|plan| plan).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(Plan) -> Plan) -> Self {
        // Agents here speak plain NATS, so nobody needs to host them.
        let installation = TestInstallation::start_with(|plan| {
            change(plan.with_replicas(Service::AgentAdapter, 0))
        })
        .await;
        installation.free_openers().await;
        let pids = pids(&installation);
        Self { installation, pids }
    }

    /// Kills the process of a service.
    pub(crate) fn kill(&self, service: Service) {
        self.installation.kill(service, 0).expect("it runs");
    }

    /// Starts the process of a service that was killed.
    pub(crate) async fn restart(&mut self, service: Service) {
        let started = self.installation.restart(service, 0).await;
        started.unwrap_or_else(|error| panic!("{error}"));
        self.pids = pids(&self.installation);
    }

    /// The most memory that each service has had resident, in megabytes.
    pub(crate) fn peak_mb(&self) -> Vec<(Service, u64)> {
        let peak = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            let status = status.expect("a running process");
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
            kilobytes.map_or(0, |kilobytes: u64| kilobytes / 1_024)
        };
        let pids = self.pids.iter();
        pids.filter_map(|(service, _, pid)| Some((*service, peak((*pid)?))))
            .collect()
    }

    pub(crate) fn client(&self) -> &async_nats::Client {
        self.installation.client()
    }

    pub(crate) fn installation(&self) -> &TestInstallation {
        &self.installation
    }

    /// Opens a case with a policy that waits as long as the test does.
    pub(crate) async fn open(&self, participants: &[&str]) -> String {
        self.open_with(participants, json!({})).await
    }

    pub(crate) async fn open_with(&self, participants: &[&str], policy: Value) -> String {
        let case = unique("case");
        self.installation
            .open_case(&opening(&case, participants, policy))
            .await;
        case
    }

    pub(crate) async fn decision(&self, case: &str) -> Value {
        let case = CaseId::new(case).expect("a case id");
        self.installation.decision(&case, PATIENCE).await["decision"].clone()
    }

    pub(crate) async fn send(&self, message: &Message) -> Sent {
        self.send_bytes(message.subject(), message.bytes()).await
    }

    /// Sends bytes as they are, without a header, and waits until they are stored.
    pub(crate) async fn send_bytes(&self, subject: String, bytes: Vec<u8>) -> Sent {
        let stored = patient(self.client())
            .publish(subject.clone(), bytes.clone().into())
            .await;
        let stored = stored
            .expect("the message is sent")
            .await
            .expect("the message is stored");
        Sent {
            subject,
            bytes,
            sequence: stored.sequence,
        }
    }

    /// Waits for the error that answers `sent`: the envelope.
    pub(crate) async fn error_to(&self, agent: &str, sent: &Sent) -> Value {
        let what = format!(
            "an error to {agent} about {} at {}",
            sent.subject, sent.sequence
        );
        wait_for(what, PATIENCE, async || {
            let errors = self.read_errors(agent).await?;
            let about = |error: &&Value| is_about(error, sent);
            errors
                .iter()
                .find(about)
                .cloned()
                .ok_or_else(|| format!("{} other errors", errors.len()))
        })
        .await
    }

    /// All errors sent to an agent until now: the envelopes.
    pub(crate) async fn errors(&self, agent: &str) -> Vec<Value> {
        self.read_errors(agent)
            .await
            .expect("the stream can be read")
    }

    async fn read_errors(&self, agent: &str) -> Result<Vec<Value>, String> {
        message_bodies(self.client(), &format!("concord.v1.msg.*.*.{agent}.error")).await
    }

    /// Waits for the dead letter that keeps `sent`; there is one, and it is the original byte for byte, or says where that is.
    pub(crate) async fn letter(&self, sent: &Sent) -> Stored {
        let what = format!("a dead letter of {} at {}", sent.subject, sent.sequence);
        let (letter, others) = wait_for(what, PATIENCE, async || {
            let letters = dead_letters(self.client()).await?;
            let mut of_it = letters.iter().filter(|letter| keeps(letter, sent));
            let first = of_it
                .next()
                .cloned()
                .ok_or_else(|| format!("{} other letters", letters.len()))?;
            Ok((first, of_it.count()))
        })
        .await;
        assert_eq!(others, 0, "one message, one dead letter");
        if sent.bytes.len() > COPIED_BYTES_MAX {
            assert!(letter.payload.is_empty(), "what is large is not copied");
        }
        let original = original(self.client(), &letter).await.expect("it is there");
        assert!(original == sent.bytes, "the dead letter is the original");
        letter
    }

    /// Whether no dead letter keeps `sent`.
    pub(crate) async fn is_alive(&self, sent: &Sent) -> bool {
        let letters = dead_letters(self.client())
            .await
            .expect("the stream can be read");
        !letters.iter().any(|letter| keeps(letter, sent))
    }

    /// Sends a message in its sender's name, and checks as [`Self::refused`] does that it is refused: the error.
    pub(crate) async fn send_refused(&self, message: &Message, expected: &Refusal<'_>) -> Value {
        let sent = self.send(message).await;
        self.refused(&message.from, &sent, expected).await
    }

    /// Checks that a message was refused: its sender is told what is wrong, where, and what to do, and the original is
    /// kept. Returns the error.
    pub(crate) async fn refused(&self, agent: &str, sent: &Sent, expected: &Refusal<'_>) -> Value {
        let error = self.error_to(agent, sent).await;
        let report = error["payload"].clone();
        assert_eq!(
            (&report["error_code"], &report["details"]["pointer"]),
            (&json!(expected.code), &json!(expected.pointer)),
            "{report}"
        );
        assert!(!text(&report["error_message"]).is_empty(), "{report}");
        assert!(
            !text(&report["recovery_suggestions"][0]).is_empty(),
            "{report}"
        );
        let letter = self.letter(sent).await;
        assert_eq!(
            letter.subject.rsplit('.').next(),
            Some(expected.reason),
            "{}",
            letter.subject
        );
        assert_eq!(letter.header(header::CODE), expected.code);
        assert_eq!(letter.header(header::POINTER), expected.pointer);
        error
    }

    /// Waits until nothing is under way.
    pub(crate) async fn settled(&self) {
        settled(self.client(), PATIENCE)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Checks that the services go on: no process has ended, a good case of new agents is decided, and everything
    /// stored keeps the invariants.
    pub(crate) async fn goes_on(&self) {
        self.decides_a_good_case().await;
        self.settled().await;
        let report = audit(self.client()).await.expect("the streams can be read");
        let violations: Vec<_> = report.violations().collect();
        assert!(report.holds(), "{violations:#?}");
    }

    /// Checks the same without the invariants, for tests that leave something in a stream that cannot be read.
    pub(crate) async fn decides_a_good_case(&self) {
        let client = self.client();
        let names = [unique("ann"), unique("ben")];
        let findings = [
            json!({"summary": "low", "risk_score": 20}),
            json!({"summary": "high", "risk_score": 90}),
        ];
        let _ann = Agent::steadfast(client, &names[0], findings[0].clone(), 0.9).await;
        let _ben = Agent::agreeable(client, &names[1], findings[1].clone(), 0.6).await;
        let case = self.open(&[&names[0], &names[1]]).await;
        let decision = self.decision(&case).await;
        assert_eq!(
            (&decision["reason"], &decision["outcome"]["risk_score"]),
            (&json!("settled"), &json!(20.0))
        );
        assert!(
            self.installation.exited().is_empty(),
            "{:?}",
            self.installation.exited()
        );
        assert_eq!(
            pids(&self.installation),
            self.pids,
            "every process is the one that was started"
        );
    }
}

/// A JSON text; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a dead letter keeps `sent`.
fn keeps(letter: &Stored, sent: &Sent) -> bool {
    letter.header(header::SUBJECT) == sent.subject
        && letter.header(header::SEQUENCE) == sent.sequence.to_string()
}

/// Whether an error is about `sent`: a refusal names subject and position, an error about a message that was recorded
/// and not used names its `message_id`.
fn is_about(error: &Value, sent: &Sent) -> bool {
    let details = &error["payload"]["details"];
    if details["sequence"].is_u64() {
        return details["sequence"] == sent.sequence && details["subject"] == sent.subject.as_str();
    }
    let original: Value = serde_json::from_slice(&sent.bytes).unwrap_or_default();
    details["message_id"].is_string() && details["message_id"] == original["message_id"]
}

fn pids(installation: &TestInstallation) -> Vec<(Service, usize, Option<u32>)> {
    let processes = installation.processes();
    processes
        .map(|(service, replica)| (service, replica, installation.pid(service, replica)))
        .collect()
}

/// The request of an agent to open a case with these parameters.
pub(crate) fn request_to_open(from: &str, parameters: &Value) -> Message {
    let request = json!({ "action": "open_case", "parameters": parameters });
    Message::new("_", from, "coordinator", "request", request)
}

/// Parameters of `open_case`, with limits that no test reaches.
pub(crate) fn opening(case: &str, participants: &[&str], policy: Value) -> Value {
    let mut limits = json!({ "finding_timeout_ms": 600_000, "answer_timeout_ms": 600_000 });
    for (name, value) in policy.as_object().into_iter().flatten() {
        limits[name] = value.clone();
    }
    json!({ "case_id": case, "policy": limits, "participants": participants, "task": { "type": "test" } })
}

/// A finding with nothing but a summary and a score.
pub(crate) fn finding(score: u32) -> Value {
    json!({ "summary": "What was found.", "risk_score": score })
}

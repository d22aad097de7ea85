//! Subjects and header blocks that no client library would send and that the broker takes all the same, written by hand on
//! the wire.

use concord_testkit::{Message, dead_letters, events, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::bad_input::stage::{PATIENCE, Stage, finding, opening, request_to_open};

/// A connection to the broker without a client library.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    async fn connect(stage: &Stage) -> Self {
        let address = stage
            .installation()
            .server_url()
            .trim_start_matches("nats://")
            .to_owned();
        let mut wire = Self {
            stream: BufReader::new(TcpStream::connect(address).await.expect("a connection")),
        };
        assert!(
            wire.line()
                .await
                .is_some_and(|line| line.starts_with("INFO")),
            "it is a nats-server"
        );
        wire.write(b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n")
            .await;
        wire
    }

    async fn write(&mut self, bytes: &[u8]) {
        // A broker that has closed the connection says so when it is read from.
        let _ = self.stream.get_mut().write_all(bytes).await;
    }

    /// The next line of the broker; none when it has closed the connection.
    async fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = self
            .stream
            .read_until(b'\n', &mut line)
            .await
            .unwrap_or_default();
        (read > 0).then(|| String::from_utf8_lossy(&line).trim().to_owned())
    }

    /// Waits until the broker has taken everything: its objection, if it has one.
    async fn objection(mut self) -> Option<String> {
        self.write(b"PING\r\n").await;
        let line = self
            .line()
            .await
            .unwrap_or_else(|| "it has closed the connection".to_owned());
        (line != "PONG").then_some(line)
    }

    /// Publishes with this block of headers, as it is: the broker's objection, if it has one.
    pub(crate) async fn publish(
        stage: &Stage,
        subject: &[u8],
        headers: &[u8],
        body: &[u8],
    ) -> Option<String> {
        let mut wire = Self::connect(stage).await;
        let sizes = if headers.is_empty() {
            format!(" {}\r\n", body.len())
        } else {
            format!(" {} {}\r\n", headers.len(), headers.len() + body.len())
        };
        let verb: &[u8] = if headers.is_empty() {
            b"PUB "
        } else {
            b"HPUB "
        };
        let message = [verb, subject, sizes.as_bytes(), headers, body, b"\r\n"].concat();
        wire.write(&message).await;
        wire.objection().await
    }
}

/// Four words where the broker expects three: it refuses the connection that says so, and nobody else notices.
async fn a_subject_with_spaces(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let good = Message::finding(&case, "alice", finding(50), 0.5);
    let subject = format!("{} or so", good.subject());
    assert!(
        Wire::publish(stage, subject.as_bytes(), b"", &good.bytes())
            .await
            .is_some(),
        "the broker refuses it"
    );
    stage.goes_on().await;
}

/// What the broker takes all the same: the kind of message that the subject names, and the block of headers.
const TAKEN: [(&str, &[u8]); 5] = [
    ("*", b""),
    (">", b""),
    // As the broker itself says that it has nothing to say.
    ("finding", b"NATS/1.0 100 Idle Heartbeat\r\n\r\n"),
    ("finding", b"NATS/1.0 409 Consumer Deleted\r\n\r\n"),
    // Headers of a trace that are none.
    (
        "finding",
        b"NATS/1.0\r\ntraceparent: x\r\ntracestate: ,,=\r\n\r\n",
    ),
];

/// The services take such messages out of the way, and go on.
#[tokio::test(flavor = "multi_thread")]
async fn subjects_and_headers_that_no_library_would_send() {
    let stage = Stage::start_with(|plan| {
        plan.with_setting("work.deliveries_max=2")
            .with_setting("work.ack_wait_ms=1000")
    })
    .await;
    a_subject_with_spaces(&stage).await;
    for (kind, headers) in TAKEN {
        let case = stage.open(&["alice"]).await;
        let good = Message::finding(&case, "alice", finding(50), 0.5);
        let subject = good.subject().replace("finding", kind);
        let objection = Wire::publish(&stage, subject.as_bytes(), headers, &good.bytes()).await;
        assert_eq!(objection, None, "the broker takes it");
        stage.settled().await;
        stage.decides_a_good_case().await;
    }
}

/// Messages that no client can parse and that the broker stores: what follows the subject, and the block of headers.
pub(crate) const UNPARSABLE: [(&[u8], &[u8]); 5] = [
    (b"\xff", b""),
    ("\u{2003}x".as_bytes(), b"NATS/1.0\r\nA: b\r\n\r\n"),
    (b"", b"no header at all\r\n\r\n"),
    (b"", b"NATS/1.0\r\nno colon\r\n\r\n"),
    (b"", b"NATS/1.0\r\nA: \xff\r\n\r\n"),
];

/// Each delivery of such a message ends the connection of the process that is given it, which then makes another.
#[tokio::test(flavor = "multi_thread")]
async fn services_go_on_beside_what_the_client_cannot_parse() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    let good = Message::finding(&case, "alice", finding(50), 0.5);
    for (suffix, headers) in UNPARSABLE {
        let subject = [good.subject().as_bytes(), suffix].concat();
        assert_eq!(
            Wire::publish(&stage, &subject, headers, &good.bytes()).await,
            None,
            "the broker takes it"
        );
    }
    decides_by_message(&stage).await;
}

/// The case is opened by a message, not by the API: a service that has no connection for a moment misses a request.
async fn decides_by_message(stage: &Stage) {
    let case = unique("case");
    let message = request_to_open("bob", &opening(&case, &["bob"], json!({})));
    stage.send(&message).await;
    wait_until_open(stage, &case).await;
    stage
        .send(&Message::finding(&case, "bob", finding(50), 0.5))
        .await;
    stage.decision(&case).await;
}

/// Waits until the case is open.
async fn wait_until_open(stage: &Stage, case: &str) {
    let filter = format!("case.{case}.opened");
    wait_for("the case to be open", PATIENCE, async || {
        let opened = events(stage.client(), &filter).await?;
        if opened.is_empty() {
            Err("it is not".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
}

/// Such a message becomes a dead letter, its sender is told, and no process is given it again.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_cannot_parse_is_taken_out() {
    let stage = Stage::start().await;
    let case = stage.open(&["alice"]).await;
    let good = Message::finding(&case, "alice", finding(50), 0.5);
    for (nth, (suffix, headers)) in (1..).zip(UNPARSABLE) {
        let subject = [good.subject().as_bytes(), suffix].concat();
        assert_eq!(
            Wire::publish(&stage, &subject, headers, &good.bytes()).await,
            None,
            "the broker takes it"
        );
        let (letters, errors) = wait_for("a dead letter and an error", PATIENCE, async || {
            let letters = dead_letters(stage.client()).await?;
            let errors = stage.errors("alice").await;
            if (letters.len(), errors.len()) == (nth, nth) {
                Ok((letters, errors))
            } else {
                Err(format!(
                    "{} letters, {} errors",
                    letters.len(),
                    errors.len()
                ))
            }
        })
        .await;
        assert!(
            letters[nth - 1].payload == good.bytes(),
            "the dead letter is the original"
        );
        assert_eq!(
            errors[nth - 1]["payload"]["error_code"],
            json!("INVALID_REQUEST")
        );
    }
    stage.goes_on().await;
}

/// Such a heartbeat ends the connection on which heartbeats are heard, and no other: the work goes on.
#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_that_no_client_can_parse_hold_up_no_work() {
    let stage = Stage::start().await;
    let log = stage.installation().log(Service::Coordinator, 0);
    let log = log.expect("a log").to_owned();
    let lost = || {
        let log = std::fs::read_to_string(&log).expect("readable");
        // The last line may still be written.
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lost = whole
            .lines()
            .filter(|line| line.contains("Lost the connection"));
        lost.map(str::to_owned).collect::<Vec<String>>()
    };
    let headers = UNPARSABLE
        .into_iter()
        .filter(|(suffix, _)| suffix.is_empty());
    for (_, headers) in headers {
        let before = lost().len();
        wait_for("a lost connection", PATIENCE, async || {
            // Again: what comes while there is no connection is heard by nobody.
            let beat = Wire::publish(&stage, b"concord.v1.beat.eve", headers, b"{}").await;
            assert_eq!(beat, None);
            let lost = lost();
            (lost.len() > before)
                .then_some(())
                .ok_or_else(|| lost.join("\n"))
        })
        .await;
    }
    let lost = lost();
    let others = lost
        .iter()
        .filter(|line| !line.contains("concord-coordinator-heard"));
    assert_eq!(others.count(), 0, "{lost:#?}");
    decides_by_message(&stage).await;
}

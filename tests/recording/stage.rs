//! A recording, and a broker that holds what the recorded one held.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap};
use concord_testkit::{TestBroker, concord};
use flate2::read::GzDecoder;
use futures::{StreamExt, TryStreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How many consumers are brought forward at once.
const CONSUMERS_AT_ONCE: usize = 8;

/// A stream or a consumer as it was defined on the broker.
#[derive(Deserialize)]
#[serde(untagged)]
enum Definition {
    Stream {
        stream: Value,
    },
    Consumer {
        consumer: Value,
        of: String,
        /// Messages that it had not acknowledged.
        left: u64,
    },
}

/// A stored message.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) subject: String,
    headers: std::collections::BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What one version of Concord has left on a broker.
pub(crate) struct Recording {
    definitions: Vec<Definition>,
    pub(crate) messages: Vec<Recorded>,
    /// What `concord check --json` of that version said of it.
    pub(crate) check: Value,
    /// What `concord replay --all --json` of that version said of it.
    pub(crate) replay: Value,
}

impl Recording {
    /// Every recording in the folder of this test.
    pub(crate) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recording");
        let entries = std::fs::read_dir(folder).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let recordings: Vec<Self> = paths
            .filter(|path| path.join("messages.jsonl.gz").is_file())
            .map(|path| Self::read(&path))
            .collect();
        assert!(!recordings.is_empty(), "there is no recording");
        recordings
    }

    fn read(folder: &Path) -> Self {
        let report = |name: &str| {
            let bytes = std::fs::read(folder.join(name)).expect("the report is there");
            serde_json::from_slice(&bytes).expect("it is JSON")
        };
        Self {
            definitions: lines(folder.join("streams.jsonl.gz")),
            messages: lines(folder.join("messages.jsonl.gz")),
            check: report("check.json"),
            replay: report("replay.json"),
        }
    }

    /// Starts a broker with the recorded streams and consumers. A service that starts on it goes on where the recorded
    /// one ended.
    pub(crate) async fn restore(&self) -> TestBroker {
        let broker = TestBroker::start().await;
        let client = broker.client().await;
        let jetstream = jetstream::new(client.clone());
        for definition in &self.definitions {
            if let Definition::Stream { stream } = definition {
                let name = stream["name"].as_str().expect("a name");
                create(&jetstream, format!("STREAM.CREATE.{name}"), stream).await;
            }
        }
        self.publish(&client, &jetstream).await;
        futures::stream::iter(&self.definitions)
            .for_each_concurrent(CONSUMERS_AT_ONCE, |definition| {
                consumer(&jetstream, definition)
            })
            .await;
        broker
    }

    /// Publishes every message, so that it has the sequence that it had. Where one was deleted, another takes its place.
    async fn publish(&self, client: &Client, jetstream: &Context) {
        let mut filled = HashSet::new();
        let mut last = ("", 0);
        for message in &self.messages {
            let mut next = if last.0 == message.stream {
                last.1 + 1
            } else {
                1
            };
            while next < message.sequence {
                // <prefix>.v1.<kind>
                let kind: Vec<&str> = message.subject.split('.').take(3).collect();
                let filler = format!("{}.filler", kind.join("."));
                store(jetstream, &filler, HeaderMap::new(), "").await;
                filled.insert((&message.stream, filler));
                next += 1;
            }
            let mut headers = HeaderMap::new();
            for (name, value) in &message.headers {
                headers.insert(name.as_str(), value.as_str());
            }
            let place = store(jetstream, &message.subject, headers, &message.body).await;
            let recorded = (message.stream.clone(), message.sequence);
            assert_eq!(place, recorded, "{}", message.subject);
            last = (message.stream.as_str(), message.sequence);
        }
        for (stream, filler) in filled {
            let stream = jetstream.get_stream(stream).await.expect("the stream");
            stream.purge().filter(filler).await.expect("it is purged");
        }
        client.flush().await.expect("the broker answers");
    }
}

fn lines<T: DeserializeOwned>(path: PathBuf) -> Vec<T> {
    let file = std::fs::File::open(path).expect("the recording is there");
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("it can be expanded");
    let read = |line| serde_json::from_str(line).expect("a line is JSON of its form");
    text.lines().map(read).collect()
}

async fn create(jetstream: &Context, what: String, request: &Value) {
    let answer: Value = jetstream
        .request(what.clone(), request)
        .await
        .expect("the broker answers");
    assert!(answer.get("error").is_none(), "{what}: {answer}");
}

async fn store(
    jetstream: &Context,
    subject: &str,
    headers: HeaderMap,
    body: &str,
) -> (String, u64) {
    let sent = jetstream.publish_with_headers(subject.to_owned(), headers, body.to_owned().into());
    let stored = async { sent.await?.await }.await;
    let stored = stored.unwrap_or_else(|error| panic!("{subject}: {error}"));
    assert!(!stored.duplicate, "{subject} is stored already");
    (stored.stream, stored.sequence)
}

/// Creates a consumer, and brings it to where it was.
async fn consumer(jetstream: &Context, definition: &Definition) {
    let Definition::Consumer { consumer, of, left } = definition else {
        return;
    };
    let name = consumer["name"].as_str().expect("a name");
    let request = json!({ "stream_name": of, "config": consumer });
    create(jetstream, format!("CONSUMER.CREATE.{of}.{name}"), &request).await;
    acknowledge(jetstream, of, name, *left).await;
}

/// Takes what a consumer is given, but for what was left for it.
async fn acknowledge(jetstream: &Context, stream: &str, name: &str, left: u64) {
    let stream = jetstream.get_stream(stream).await.expect("the stream");
    let consumer: PullConsumer = stream
        .get_consumer::<pull::Config>(name)
        .await
        .expect("the consumer");
    let mut waiting = consumer.cached_info().num_pending - left;
    while waiting > 0 {
        let batch = consumer.fetch().max_messages(waiting.min(200) as usize);
        let messages = batch.messages().await.expect("the broker answers");
        let messages: Vec<_> = messages.try_collect().await.expect("messages");
        for message in &messages {
            message.double_ack().await.expect("it is acknowledged");
        }
        waiting -= messages.len() as u64;
    }
}

/// Runs a verb of the command on a broker: its exit code and its JSON.
pub(crate) fn said(broker: &TestBroker, verb: &[&str]) -> (Option<i32>, Value) {
    let url = broker.url();
    let output = concord(&[verb, &["--json", "--server", &url]].concat());
    let json = serde_json::from_slice(&output.stdout);
    let json = json.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), json)
}

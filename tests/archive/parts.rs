//! Small parts of a stream are read as a reader of the whole stream finds them.

use std::ops::ControlFlow;

use async_nats::HeaderMap;
use concord_archive::ArchivedMessage;
use concord_events::topology::StreamKind;
use concord_runtime::Broker;
use concord_runtime::broker::subject_reader::SubjectReader;
use concord_runtime::broker::{log_reader, provision};
use concord_runtime::service::settings::{BrokerSettings, StorageSettings};
use concord_testkit::TestBroker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const KIND: StreamKind = StreamKind::Messages;

async fn connected(test_broker: &TestBroker) -> Broker {
    let settings = BrokerSettings {
        servers: test_broker.url(),
        ..BrokerSettings::default()
    };
    let storage = StorageSettings::default();
    let broker = Broker::connect("test", &settings, &storage, true).await;
    let broker = broker.unwrap();
    provision::streams(&broker).await.unwrap();
    broker
}

fn subject(case: &str, kind: &str) -> String {
    format!("concord.v1.msg.{case}.ann.coordinator.{kind}")
}

fn filter(case: &str) -> String {
    format!("concord.v1.msg.{case}.>")
}

/// What the reader of a whole stream finds on subjects of a case.
async fn by_log(broker: &Broker, case: &str) -> Vec<ArchivedMessage> {
    let (mut found, begin) = (Vec::new(), format!("concord.v1.msg.{case}."));
    let read = log_reader::read(broker, KIND, 1, |message| {
        if message.subject.starts_with(&begin) {
            found.push(message.archived(KIND));
        }
        ControlFlow::Continue(())
    });
    read.await.unwrap();
    found
}

async fn by_subject(broker: &Broker, case: &str) -> Vec<ArchivedMessage> {
    let mut reader = SubjectReader::new(broker).await.unwrap();
    let read = reader.read(KIND, &filter(case)).await.unwrap();
    read.iter().map(|message| message.archived(KIND)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_read_as_it_stands_in_the_whole() {
    let test_broker = TestBroker::start().await;
    let broker = connected(&test_broker).await;
    let mut pretending = HeaderMap::new();
    for name in [
        "Nats-Stream",
        "Nats-Subject",
        "Nats-Sequence",
        "Nats-Time-Stamp",
    ] {
        pretending.append(name, "one");
        pretending.append(name, "two");
    }
    pretending.append("Nats-Num-Pending", "0");
    pretending.append("Nats-Last-Sequence", "9");
    // More than the reader asks for at once.
    for number in 0..1_203 {
        let case = ["c-1", "c-2"][number % 2];
        let headers = match number % 7 {
            0 => pretending.clone(),
            1 => HeaderMap::new(),
            _ => HeaderMap::from_iter([(
                "Nats-Msg-Id".parse().unwrap(),
                number.to_string().parse().unwrap(),
            )]),
        };
        let body = number.to_string().repeat(1 + number % 5);
        let stored =
            broker
                .jetstream
                .publish_with_headers(subject(case, "finding"), headers, body.into());
        stored.await.unwrap().await.unwrap();
    }
    for case in ["c-1", "c-2", "none"] {
        assert_eq!(by_subject(&broker, case).await, by_log(&broker, case).await);
    }
    let whole = by_subject(&broker, "c-1").await;
    assert_eq!(whole.len(), 602);

    // The last on each subject, and one message by its sequence.
    let stored = broker
        .jetstream
        .publish(subject("c-1", "question"), "".into());
    stored.await.unwrap().await.unwrap();
    let mut reader = SubjectReader::new(&broker).await.unwrap();
    let filters = ["c-1", "none", "c-2"].map(filter);
    let last = reader.last_of_each(KIND, &filters).await.unwrap();
    let last: Vec<ArchivedMessage> = last.iter().map(|one| one.archived(KIND)).collect();
    let sequences: Vec<u64> = last.iter().map(|one| one.sequence).collect();
    assert_eq!(sequences, [1_202, 1_203, 1_204]);
    assert_eq!(last[1], whole[601]);
    // With headers that pretend, without any, and with one.
    let sequences = whole[..7].iter().map(|message| message.sequence);
    let found = reader.at(KIND, sequences.chain([9_999])).await.unwrap();
    let found = found.iter().map(|message| message.archived(KIND));
    assert_eq!(found.collect::<Vec<_>>(), whole[..7]);
}

/// The broker lists the last messages of a thousand subjects at once, and refuses more.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_many_subjects_is_read_too() {
    let test_broker = TestBroker::start().await;
    let broker = connected(&test_broker).await;
    for number in 0..1_100 {
        let subject = subject("c-1", &format!("kind-{number}"));
        let stored = broker.jetstream.publish(subject, "".into()).await.unwrap();
        stored.await.unwrap();
    }
    let read = by_subject(&broker, "c-1").await;
    assert_eq!(read.len(), 1_100);
    assert_eq!(read, by_log(&broker, "c-1").await);
}

/// A message that says of itself that there is no message ends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_looks_like_the_end_is_a_message() {
    let test_broker = TestBroker::start().await;
    let broker = connected(&test_broker).await;
    for status in ["404 Message Not Found", "204 EOB"] {
        let header = format!("NATS/1.0 {status}\r\nNats-Num-Pending: 0\r\n\r\n");
        let text = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true}}\r\nHPUB {} {} {}\r\n{header}\r\nPING\r\n",
            subject("c-1", "finding"),
            header.len(),
            header.len()
        );
        let address = test_broker.url().replace("nats://", "");
        let mut raw = TcpStream::connect(address).await.unwrap();
        raw.write_all(text.as_bytes()).await.unwrap();
        // A connection that is closed before the broker has read from it takes along what was sent.
        let mut heard = String::new();
        while !heard.contains("PONG\r\n") {
            let mut buffer = [0; 4096];
            let length = raw.read(&mut buffer).await.unwrap();
            assert!(length > 0, "the broker hung up: {heard}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        let stored = broker
            .jetstream
            .publish(subject("c-1", "finding"), "after".into());
        stored.await.unwrap().await.unwrap();
    }
    let read = by_subject(&broker, "c-1").await;
    let bodies: Vec<&[u8]> = read.iter().map(|message| &*message.payload).collect();
    assert_eq!(bodies.iter().filter(|body| **body == b"after").count(), 2);
    assert_eq!(read.len(), 4, "{read:#?}");
    let mut reader = SubjectReader::new(&broker).await.unwrap();
    let found = reader.at(KIND, 1..=4).await.unwrap();
    let found = found.iter().map(|message| message.archived(KIND));
    assert_eq!(found.collect::<Vec<_>>(), read);
}

/// Whoever holds what is read in memory is told when there is more, whichever way it is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_with_more_bytes_than_may_be_read_fails_and_others_do_not() {
    let test_broker = TestBroker::start().await;
    let broker = connected(&test_broker).await;
    // More than is asked for at once, in one message and in several.
    for (case, kinds, bytes) in [
        ("large", 1, 3 << 20),
        ("several", 3, 600 << 10),
        ("many", 1_100, 1),
    ] {
        for number in 0..kinds {
            let subject = subject(case, &format!("kind-{number}"));
            let body = vec![b'x'; bytes].into();
            let stored = broker.jetstream.publish(subject, body).await.unwrap();
            stored.await.unwrap();
        }
        let whole = by_subject(&broker, case).await;
        assert_eq!(whole.len(), kinds, "{case}");
        let reader = SubjectReader::new(&broker).await.unwrap();
        let mut reader = reader.within(bytes * kinds);
        assert!(reader.read(KIND, &filter(case)).await.is_err(), "{case}");
        assert!(reader.is_exhausted());
        let reader = SubjectReader::new(&broker).await.unwrap();
        let mut reader = reader.within((bytes + 100) * kinds);
        let read = reader.read(KIND, &filter(case)).await.unwrap();
        assert_eq!((read.len(), reader.is_exhausted()), (kinds, false));
    }
}

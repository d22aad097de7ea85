//! What could not be processed: listed, shown, sent again.

use async_nats::jetstream::stream::Stream;
use concord_testkit::{COMMAND_MAX, Message, TestInstallation, settled};
use serde_json::{Value, json};

use crate::command::{Session, case, doctor_until, length};

/// A subject whose message is no JSON.
const HOPELESS: &str = "concord.v1.msg.c-1.ben.coordinator.finding";
/// The consumer in which it waits.
const INBOX: &str = "coordinator-inbox";

#[tokio::test]
async fn a_refused_message_is_shown_and_sent_again() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    let session = Session::new(installation.server_url());
    let none = session.good("dead list").await;
    assert!(none.contains("There are no dead letters."), "{none}");
    for number in [0, 1] {
        let missing = format!("there is no dead letter {number}");
        session
            .refused(&format!("dead show {number}"), &missing)
            .await;
    }
    let unsaid = session.run("dead retry").await.refused(2);
    assert!(unsaid.contains("--all"), "{unsaid}");

    let (good, bad) = refused(&session, client).await;
    shown(&session, good, bad).await;
    sent_again(&session, good).await;
    refused_again(&session, bad).await;
    settled(client, COMMAND_MAX).await.unwrap();
    let check = session.good("check").await;
    assert!(check.contains("Every invariant holds."), "{check}");
}

/// Two refused messages: a finding of a case that is opened only afterwards, and one that is no JSON. The numbers of their
/// letters.
async fn refused(session: &Session, client: &async_nats::Client) -> (u64, u64) {
    let early = Message::finding("c-1", "ann", json!({ "summary": "Read." }), 0.8)
        .with("/message_id", "m-early");
    early.publish(client).await;
    client
        .publish(HOPELESS, "not JSON \u{1b}[31m".into())
        .await
        .unwrap();
    client.flush().await.unwrap();
    let letters = session
        .until("dead list", |letters| length(letters) == 2)
        .await;
    let number = |from: &str| -> u64 {
        let mut all = letters.as_array().unwrap().iter();
        let of = |letter: &&Value| letter["subject"].as_str().unwrap().contains(from);
        all.find(of).unwrap()["sequence"].as_u64().unwrap()
    };
    (number(".ann."), number(".ben."))
}

async fn shown(session: &Session, good: u64, bad: u64) {
    let shown = session.json(&format!("dead show {good}")).await;
    assert_eq!(
        (&shown["original"]["message_id"], &shown["pointer"]),
        (&json!("m-early"), &json!("/case_id")),
        "{shown}"
    );
    let text = session.good(&format!("dead show {bad}")).await;
    for part in ["INVALID_REQUEST", HOPELESS, "not JSON \\u{1b}", INBOX] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let listed = session.good("dead list").await;
    assert!(listed.contains(INBOX), "{listed}");
    let raw = session.run(&format!("dead show {bad} --raw")).await;
    assert_eq!(raw.out, "not JSON \u{1b}[31m");
    // A refusal is no fault.
    let server = session.arguments("");
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    doctor_until(&server, |doctor| {
        doctor.code == 0 && doctor.out.contains("2 messages refused")
    })
    .await;
}

/// The finding is good when it is sent again after its case was opened.
async fn sent_again(session: &Session, good: u64) {
    let request = case("c-1", &["ann"]).to_string();
    session.with_input("case open -", &request).await.good();
    let retry = format!("dead retry {good}");
    session.good(&retry).await;
    let decided = session
        .until("case show c-1", |case| case["phase"] == "decided")
        .await;
    assert_eq!(decided["findings"][0]["message_id"], "m-early");
    let again = session.run(&retry).await;
    assert_eq!(again.code, 1, "a letter is sent again once");
}

/// What is still wrong is refused again, under a new number.
async fn refused_again(session: &Session, bad: u64) {
    let retried = session.json("dead retry --all").await;
    assert_eq!(length(&retried), 1, "{retried}");
    let refused = session
        .until("dead list", |letters| length(letters) == 1)
        .await;
    assert!(refused[0]["sequence"].as_u64().unwrap() > bad);
    let all = session.json("dead list --all").await;
    let letters = all.as_array().unwrap().iter();
    let marked = letters.filter(|letter| letter["retried"].is_string());
    assert_eq!((length(&all), marked.count()), (3, 2), "{all}");
}

/// A letter has room for a description besides the original, and an original at the broker's limit leaves none.
#[tokio::test]
async fn what_is_too_large_for_a_letter_is_sent_again_from_its_stream() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    let session = Session::new(installation.server_url());
    let stream = async_nats::jetstream::new(client.clone())
        .get_stream("CONCORD_MESSAGES")
        .await
        .unwrap();
    let max = client.server_info().max_payload;
    // With room for the headers of a message that is sent again, and without.
    for (sent, room) in [1_000, 0].into_iter().enumerate() {
        let subject = format!("concord.v1.msg.c-{sent}.ann.coordinator.finding");
        let original = "x".repeat(max - room);
        client
            .publish(subject.clone(), original.clone().into())
            .await
            .unwrap();
        client.flush().await.unwrap();
        large_sent_again(&session, &stream, &subject, &original).await;
    }
    let refused = session
        .until("dead list", |letters| length(letters) == 2)
        .await;
    stream.purge().await.unwrap();
    let number = &refused[0]["sequence"];
    let retried = session.run(&format!("dead retry {number}")).await;
    assert!(
        retried.code == 1 && retried.out.contains("the original is gone"),
        "{retried:?}"
    );
    let shown = session.good(&format!("dead show {number}")).await;
    assert!(shown.contains("the original is gone"), "{shown}");
    let raw = format!("dead show {number} --raw");
    session.run(&raw).await.refused(1);
    let open = session.json("dead list").await;
    assert_eq!(
        length(&open),
        2,
        "a letter that was not sent again stays open: {open}"
    );
}

/// The letter of a large message shows it, and sends it again.
async fn large_sent_again(session: &Session, stream: &Stream, subject: &str, original: &str) {
    let is_of = |letter: &Value| letter["subject"] == subject;
    let letters = session
        .until("dead list", |letters| {
            letters.as_array().unwrap().iter().any(is_of)
        })
        .await;
    let mut letters = letters.as_array().unwrap().iter();
    let number = &letters.find(|letter| is_of(letter)).unwrap()["sequence"];
    let raw = session.run(&format!("dead show {number} --raw")).await;
    assert!(raw.out == original, "it is read from its stream");
    let last = async || stream.get_last_raw_message_by_subject(subject).await;
    let first = last().await.unwrap();
    session.good(&format!("dead retry {number}")).await;
    let again = last().await.unwrap();
    assert!(
        again.payload == original && again.sequence > first.sequence,
        "the original is stored once more"
    );
}

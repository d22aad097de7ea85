//! What could not be processed: listed, shown, sent again.

use async_nats::jetstream::stream::Stream;
use concord_events::dead_letter::header;
use concord_events::topology::StreamKind;
use concord_testkit::{
    COMMAND_MAX, Message, TestInstallation, dead_letters, messages, settled, stored, until,
};
use concord_wire::header::MESSAGE_ID;
use serde_json::{Value, json};

use crate::command::{Session, case, doctor_until, length};

/// A subject whose message is no JSON.
const HOPELESS: &str = "concord.v1.msg.c-1.ben.coordinator.finding";
/// The consumer in which it waits.
const INBOX: &str = "coordinator-inbox";

#[tokio::test]
async fn a_refused_message_is_shown_and_sent_again() {
    let installation = TestInstallation::start().await; // doctor misses a service that does not run
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
    session
        .until("check", |check| {
            check["holds"] == true && check["under_way"] == 0
        })
        .await;
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
    // A subject that nobody can read is no service's to keep where it leads to an agent.
    client
        .publish("concord.v1.msg.c$.mal.ben.request", "{\"a\":1}".into())
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

/// What was refused would be refused again, and its sender told twice: it is left, unless its reason is named. Then it has a new number.
async fn refused_again(session: &Session, bad: u64) {
    let before = session.json("dead list --all").await;
    let left = json!([{ "sequence": bad, "subject": HOPELESS, "left": "invalid" }]);
    assert_eq!(session.json("dead retry --all").await, left);
    assert_eq!(session.json("dead list --all").await, before);
    let text = session.good("dead retry --all").await;
    for part in [
        "1 left: 1 invalid",
        "concord dead retry --all --reason invalid",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let one = format!("dead retry {bad} --reason invalid");
    session.run(&one).await.refused(2);

    let retried = session.json("dead retry --all --reason invalid").await;
    assert_eq!(retried, json!([{ "sequence": bad, "subject": HOPELESS }]));
    let refused = session
        .until("dead list", |letters| length(letters) == 1)
        .await;
    assert!(refused[0]["sequence"].as_u64().unwrap() > bad);
    let all = session.json("dead list --all").await;
    let letters = all.as_array().unwrap().iter();
    let marked = letters.filter(|letter| letter["retried"].is_string());
    assert_eq!((length(&all), marked.count()), (3, 2), "{all}");
}

/// Only what services failed to process is sent again by `--all`; other reasons are named.
#[tokio::test]
async fn all_are_those_whose_message_was_not_at_fault() {
    let installation = TestInstallation::start_without_adapter().await;
    let session = Session::new(installation.server_url());
    // What agents say to each other no service refuses.
    let note = Message::new("_", "ann", "ben", "note", json!({}));
    let kept = [
        ("invalid", "INVALID_REQUEST"),
        ("unauthorized", "UNAUTHORIZED"),
        ("capacity", "CAPACITY_EXCEEDED"),
        ("exhausted", "TIMEOUT"),
        ("exhausted", "INTERNAL_ERROR"),
        ("undeliverable", "INTERNAL_ERROR"),
        ("capacity", "CAPACITY_EXCEEDED"),
    ];
    for (reason, code) in kept {
        keep(installation.client(), &note, reason, code).await;
    }
    let outcome = |letters: &Value| -> Vec<String> {
        let letters = letters.as_array().unwrap().iter();
        let left = letters.map(|letter| letter["left"].as_str().unwrap_or("sent").to_owned());
        left.collect()
    };
    let retried = session.json("dead retry --all").await;
    let refused = ["invalid", "unauthorized", "capacity", "late"];
    let expected = [&refused[..], &["sent", "sent", "capacity"]].concat();
    assert_eq!(outcome(&retried), expected, "{retried}");
    let text = session.good("dead retry --all").await;
    for part in [
        "There are no dead letters to send again.",
        "5 left: 2 capacity, 1 invalid, 1 late, 1 unauthorized",
        "concord dead retry --all --reason capacity,invalid,late,unauthorized",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let named = "dead retry --all --reason late --reason capacity";
    let retried = session.json(named).await;
    let expected = ["invalid", "unauthorized", "sent", "sent", "sent"];
    assert_eq!(outcome(&retried), expected, "{retried}");
    let typo = session.run("dead retry --all --reason exausted");
    let typo = typo.await.refused(2);
    assert!(typo.contains("exhausted"), "{typo}");
}

/// Keeps a message as a service would that has given it up for this reason.
async fn keep(client: &async_nats::Client, original: &Message, reason: &str, code: &str) {
    let mut headers = async_nats::HeaderMap::new();
    headers.insert(header::SUBJECT, original.subject());
    headers.insert(header::STREAM, "CONCORD_MESSAGES");
    headers.insert(header::CODE, code);
    let subject = format!("concord.v1.dead.coordinator.{reason}");
    let stream = async_nats::jetstream::new(client.clone());
    let sent = stream.publish_with_headers(subject, headers, original.bytes().into());
    sent.await.unwrap().await.unwrap();
}

/// The id under which a message is sent again can be foreseen, and the broker knows a message by its id alone.
#[tokio::test]
async fn what_is_sent_again_is_stored_once_whoever_has_taken_its_id() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let session = Session::new(installation.server_url());
    let stream = async_nats::jetstream::new(client.clone());
    let note = |from| Message::new("_", from, "ben", "note", json!({ "of": from }));
    let [ann, mallory] = ["ann", "mallory"].map(note);
    keep(client, &ann, "exhausted", "INTERNAL_ERROR").await;
    keep(client, &ann, "exhausted", "INTERNAL_ERROR").await;
    // Another's message, and then that of a retry that was interrupted before it marked its letter.
    for (number, taker, sent) in [(1, &mallory, 1), (2, &ann, 2)] {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert(MESSAGE_ID, format!("retry-CONCORD_MESSAGES-{number}"));
        let taken = stream.publish_with_headers(taker.subject(), headers, taker.bytes().into());
        taken.await.unwrap().await.unwrap();
        session.good(&format!("dead retry {number}")).await;
        let found = messages(client, &ann.subject()).await.unwrap();
        let bodies: Vec<_> = found.iter().map(|one| one.payload.to_vec()).collect();
        assert_eq!(bodies, vec![ann.bytes(); sent], "letter {number}");
    }
}

/// Whoever names a subject of letters for the reply to a message has the broker store its acknowledgement there.
#[tokio::test]
async fn what_no_service_has_put_among_the_letters_is_none() {
    let installation = TestInstallation::start().await; // doctor misses a service that does not run
    let client = installation.client();
    let session = Session::new(installation.server_url());
    let reply = "concord.v1.dead.coordinator.exhausted";
    let own = "concord.v1.msg._.mallory.mallory.note";
    let sent = client.publish_with_reply(own, reply, "{}".into());
    sent.await.unwrap();
    let letters = async || stored(client, StreamKind::Dead, ">").await;
    let is_there = until("an acknowledgement", COMMAND_MAX, async || {
        let letters = letters().await?;
        (letters.len() == 1)
            .then_some(())
            .ok_or_else(|| format!("{} letters", letters.len()))
    });
    is_there.await.unwrap();
    // A copy of a message of its own has the headers that its sender likes.
    let mut headers = async_nats::HeaderMap::new();
    headers.insert(header::SUBJECT, own);
    headers.insert("Nats-Stream", "CONCORD_MESSAGES");
    let stream = async_nats::jetstream::new(client.clone());
    let sent = stream.publish_with_headers(reply, headers, "{}".into());
    sent.await.unwrap().await.unwrap();

    assert_eq!(session.json("dead list --all").await, json!([]));
    let listed = session.good("dead list").await;
    assert!(
        listed.contains("2 messages among them that no service has put there"),
        "{listed}"
    );
    assert_eq!(session.json("dead retry --all").await, json!([]));
    session
        .refused("dead show 1", "there is no dead letter 1")
        .await;
    session
        .refused("dead retry 2", "there is no dead letter 2")
        .await;
    let server = session.arguments("");
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    doctor_until(&server, |doctor| {
        doctor.code == 0 && !doctor.out.contains("failed to process")
    })
    .await;
    let check = session.json("check").await;
    assert_eq!(
        (&check["dead"], &check["foreign"]["number"]),
        (&json!(0), &json!(2)),
        "{check}"
    );
}

/// A letter does not copy more than a few kilobytes, so that what is refused takes no room twice; and an original at the broker's limit would
/// leave none for a description.
#[tokio::test]
async fn what_a_letter_does_not_copy_is_sent_again_from_its_stream() {
    let installation = TestInstallation::start_without_adapter().await;
    let client = installation.client();
    let session = Session::new(installation.server_url());
    let stream = async_nats::jetstream::new(client.clone())
        .get_stream("CONCORD_MESSAGES")
        .await
        .unwrap();
    let max = client.server_info().max_payload;
    // What an envelope may have, and more: with room for the headers of a message that is sent again, and without.
    let sizes = [5_000, 1 << 20, max - 1_000, max];
    for (sent, bytes) in sizes.into_iter().enumerate() {
        let subject = format!("concord.v1.msg.c-{sent}.ann.coordinator.finding");
        let original = "x".repeat(bytes);
        client
            .publish(subject.clone(), original.clone().into())
            .await
            .unwrap();
        client.flush().await.unwrap();
        large_sent_again(&session, &stream, &subject, &original).await;
    }
    let refused = session
        .until("dead list", |letters| length(letters) == sizes.len())
        .await;
    for letter in dead_letters(client).await.unwrap() {
        assert!(letter.payload.is_empty(), "{}", letter.subject);
    }
    stream.purge().await.unwrap();
    let number = &refused[0]["sequence"];
    let retried = session.run(&format!("dead retry {number}")).await;
    assert!(
        retried.code == 1 && retried.out.contains("the original is gone"),
        "{retried:?}"
    );
    let shown = session.good(&format!("dead show {number}")).await;
    assert!(shown.contains("the original is gone"), "{shown}");
    let shown = session.json(&format!("dead show {number}")).await;
    let missing = shown["missing"].as_str().unwrap();
    assert!(
        missing.contains("the original is gone") && shown["original"].is_null(),
        "{shown}"
    );
    let raw = format!("dead show {number} --raw");
    session.run(&raw).await.refused(1);
    let open = session.json("dead list").await;
    assert_eq!(
        length(&open),
        sizes.len(),
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
    let letter = letters.find(|letter| is_of(letter)).unwrap();
    assert_eq!(letter["bytes"], original.len(), "{letter}");
    let number = &letter["sequence"];
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

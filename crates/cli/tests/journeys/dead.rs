//! What could not be processed: listed, shown, sent again.

use concord_testkit::{Message, TestInstallation, settled, until};
use serde_json::{Value, json};

use crate::command::{case, run, run_with};
use concord_testkit::COMMAND_MAX;

#[tokio::test]
async fn a_refused_message_is_shown_and_sent_again() {
    let installation = TestInstallation::start().await;
    let (client, url) = (installation.client(), installation.server_url());
    let say =
        async |verb: &str| run(&verb.split(' ').chain(["--server", url]).collect::<Vec<_>>()).await;
    assert!(
        say("dead list")
            .await
            .good()
            .contains("There are no dead letters.")
    );
    say("dead show 1").await.refused(1);

    // A finding of a case that is opened only afterwards: refused first, good when it is sent again.
    let early = Message::finding("c-1", "ann", json!({ "summary": "Read." }), 0.8)
        .with("/message_id", "m-early");
    early.publish(client).await;
    let hopeless = "concord.v1.msg.c-1.ben.coordinator.finding";
    client
        .publish(hopeless, "not JSON \u{1b}[31m".into())
        .await
        .unwrap();
    client.flush().await.unwrap();
    let letters = until("both letters", COMMAND_MAX, async || {
        let letters = say("dead list --json").await.json();
        if letters.as_array().is_some_and(|all| all.len() == 2) {
            Ok(letters)
        } else {
            Err(letters.to_string())
        }
    });
    let letters = letters.await.unwrap();
    let number = |from: &str| -> u64 {
        let of = |letter: &&Value| {
            letter["subject"]
                .as_str()
                .is_some_and(|subject| subject.contains(from))
        };
        letters.as_array().unwrap().iter().find(of).unwrap()["sequence"]
            .as_u64()
            .unwrap()
    };
    let (good, bad) = (number(".ann."), number(".ben."));

    let shown = say(&format!("dead show {good} --json")).await.json();
    assert_eq!(
        (&shown["original"]["message_id"], &shown["pointer"]),
        (&json!("m-early"), &json!("/case_id")),
        "{shown}"
    );
    let text = say(&format!("dead show {bad}")).await.good();
    assert!(
        text.contains("INVALID_REQUEST")
            && text.contains(hopeless)
            && text.contains("not JSON \\u{1b}"),
        "{text}"
    );
    assert_eq!(
        say(&format!("dead show {bad} --raw")).await.out,
        "not JSON \u{1b}[31m"
    );
    let doctor = say("doctor").await;
    assert!(
        doctor.code == 0 && doctor.out.contains("2 messages refused"),
        "a refusal is no fault: {doctor:?}"
    );

    run_with(
        &["case", "open", "-", "--server", url],
        case("c-1", &["ann"]).to_string().as_bytes(),
    )
    .await
    .good();
    say(&format!("dead retry {good}")).await.good();
    let decided = until("the decision", COMMAND_MAX, async || {
        let case = say("case show c-1 --json").await.json();
        if case["phase"] == "decided" {
            Ok(case)
        } else {
            Err(case["phase"].to_string())
        }
    });
    assert_eq!(
        decided.await.unwrap()["findings"][0]["message_id"],
        "m-early"
    );
    assert!(
        say(&format!("dead retry {good}")).await.code == 1,
        "a letter is sent again once"
    );

    // What is still wrong is refused again, under a new number.
    let retried = say("dead retry --all --json").await.json();
    assert_eq!(retried.as_array().unwrap().len(), 1, "{retried}");
    let refused = until("the second refusal", COMMAND_MAX, async || {
        let open = say("dead list --json").await.json();
        if open.as_array().is_some_and(|all| all.len() == 1) {
            Ok(open)
        } else {
            Err(open.to_string())
        }
    });
    assert!(refused.await.unwrap()[0]["sequence"].as_u64().unwrap() > bad);
    let all = say("dead list --all --json").await.json();
    let marked = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|letter| letter["retried"].is_string())
        .count();
    assert_eq!((all.as_array().unwrap().len(), marked), (3, 2), "{all}");

    settled(client, COMMAND_MAX).await.unwrap();
    let check = say("check").await.good();
    assert!(check.contains("Every invariant holds."), "{check}");
}

/// A letter has room for a description besides the original, and an original at the broker's limit leaves none.
#[tokio::test]
async fn what_is_too_large_for_a_letter_is_sent_again_from_its_stream() {
    let installation = TestInstallation::start().await;
    let (client, url) = (installation.client(), installation.server_url());
    let say =
        async |verb: &str| run(&verb.split(' ').chain(["--server", url]).collect::<Vec<_>>()).await;
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
        let number = until("a letter", COMMAND_MAX, async || {
            let letters = say("dead list --json").await.json();
            let of = |letter: &&Value| letter["subject"] == subject.as_str();
            let found = letters
                .as_array()
                .unwrap()
                .iter()
                .find(of)
                .map(|letter| letter["sequence"].to_string());
            found.ok_or_else(|| letters.to_string())
        });
        let number = number.await.unwrap();
        assert!(
            say(&format!("dead show {number} --raw")).await.out == original,
            "it is read from its stream"
        );
        let first = stream
            .get_last_raw_message_by_subject(&subject)
            .await
            .unwrap();
        say(&format!("dead retry {number}")).await.good();
        let again = stream
            .get_last_raw_message_by_subject(&subject)
            .await
            .unwrap();
        assert!(
            again.payload == original && again.sequence > first.sequence,
            "the original is stored once more"
        );
    }
    let refused = until(
        "the refusals of what was sent again",
        COMMAND_MAX,
        async || {
            let open = say("dead list --json").await.json();
            if open.as_array().is_some_and(|all| all.len() == 2) {
                Ok(open)
            } else {
                Err(open.to_string())
            }
        },
    );
    let refused = refused.await.unwrap();
    stream.purge().await.unwrap();
    let number = &refused[0]["sequence"];
    let said = say(&format!("dead retry {number}")).await;
    assert!(
        said.code == 1 && said.out.contains("the original is gone"),
        "{said:?}"
    );
    assert!(
        say(&format!("dead show {number}"))
            .await
            .good()
            .contains("the original is gone")
    );
    say(&format!("dead show {number} --raw")).await.refused(1);
    let open = say("dead list --json").await.json();
    assert_eq!(
        open.as_array().unwrap().len(),
        2,
        "a letter that was not sent again stays open: {open}"
    );
}

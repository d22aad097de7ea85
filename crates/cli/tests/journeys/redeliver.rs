//! What a broker has passed over is handed out again.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::{self, consumer::PullConsumer, stream::Stream};
use concord_testkit::{COMMAND_MAX, Message, TestInstallation, settled, wait_for};
use concord_wire::subject::Service;
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::command::{Session, case, length};

const INBOX: &str = "coordinator-inbox";
/// Is given what is said to agents.
const WAKING: &str = "agent-adapter-wake-msg-task_assignment";

/// An installation in which `ann` is asked for a finding.
async fn with_a_case() -> (TestInstallation, Session) {
    let installation = TestInstallation::start().await;
    let session = Session::new(installation.server_url());
    let mut request = case("c-1", &["ann"]);
    // Nothing is decided without what is handed out again.
    request["policy"]["finding_timeout_ms"] = json!(600_000);
    let request = request.to_string();
    session.with_input("case open -", &request).await.good();
    settled(installation.client(), COMMAND_MAX).await.unwrap();
    (installation, session)
}

/// Sets a consumer, which nobody reads, to behind the last message, as nats-server does where its disk is full.
async fn pass_over(client: &Client, last: u64) {
    let body = json!({ "seq": last + 1 }).to_string();
    let subject = format!("$JS.API.CONSUMER.RESET.CONCORD_MESSAGES.{INBOX}");
    let answer = client.request(subject, body.into()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
    assert_eq!(answer["num_pending"], 0, "{answer}");
}

/// A finding that is stored and that the coordinator is never given.
async fn lost_finding(installation: &TestInstallation) {
    let client = installation.client();
    installation.kill(Service::Coordinator, 0).expect("it runs");
    let jetstream = jetstream::new(client.clone());
    let mut stream = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    // What it asked for before it was killed is answered until the broker knows that its connection is gone.
    wait_for("nobody who reads the inbox", COMMAND_MAX, async || {
        let consumer: PullConsumer = stream.get_consumer(INBOX).await.unwrap();
        match consumer.cached_info().num_waiting {
            0 => Ok(()),
            waiting => Err(format!("{waiting} requests for messages")),
        }
    })
    .await;
    let before = stream.info().await.unwrap().state.last_sequence;
    let finding = Message::finding("c-1", "ann", json!({ "summary": "Read." }), 0.8);
    finding.publish(client).await;
    let last = wait_for("the finding in its stream", COMMAND_MAX, async || {
        let last = stream.info().await.unwrap().state.last_sequence;
        (last > before)
            .then_some(last)
            .ok_or_else(|| last.to_string())
    })
    .await;
    let consumer: PullConsumer = stream.get_consumer(INBOX).await.unwrap();
    assert!(consumer.cached_info().delivered.stream_sequence < last);
    pass_over(client, last).await;
    let launched = installation.launch(Service::Coordinator, 0);
    launched.expect("it starts");
    settled(client, COMMAND_MAX).await.unwrap();
}

/// Whoever keeps something under way hides nothing that is older.
async fn found_under_load(client: &Client, session: &Session) {
    let trickle = async {
        let mut often = tokio::time::interval(Duration::from_millis(20));
        loop {
            often.tick().await;
            let said = Message::new("_", "mal", "ben", "info_update", json!({ "x": 1 }));
            said.publish(client).await;
        }
    };
    let found = wait_for(
        "a violation that is found under load",
        COMMAND_MAX,
        async || {
            let check = session.run("check --json").await;
            let report: Value = serde_json::from_str(&check.out).unwrap();
            let is_found = report["under_way"] != 0 && check.code == 1;
            is_found.then_some(report).ok_or(check.out)
        },
    );
    let report = tokio::select! {
        report = found => report,
        () = trickle => unreachable!("it goes on"),
    };
    assert!(report["judged_until"].is_string(), "{report}");
    assert_eq!(report["holds"], false, "{report}");
}

#[tokio::test]
async fn what_the_broker_has_passed_over_is_handed_out_again() {
    let (installation, session) = with_a_case().await;
    let client = installation.client();
    let whole = session.good("check").await;
    assert!(!whole.contains("redeliver"), "{whole}");
    lost_finding(&installation).await;

    let shown = session.json("case show c-1").await;
    assert_ne!(shown["phase"], "decided", "{shown}");
    let check = session.run("check").await;
    assert_eq!(check.code, 1, "{check:?}");
    for part in [
        "messages_kept, first violation",
        "concord redeliver --since WHEN",
    ] {
        assert!(check.out.contains(part), "{part}: {check:?}");
    }

    found_under_load(client, &session).await;
    let planned = session.json("redeliver --since 1h --dry-run").await;
    let names = |report: &Value| -> Vec<String> {
        let rows = report["consumers"].as_array().unwrap().iter();
        rows.map(|row| row["consumer"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(planned["applied"], false, "{planned}");
    assert!(names(&planned).contains(&INBOX.to_owned()), "{planned}");
    assert_eq!(session.run("check").await.code, 1, "nothing is changed");

    let one = session
        .json(&format!("redeliver --since 1h --consumer {INBOX}"))
        .await;
    assert_eq!(
        (names(&one), length(&one["consumers"])),
        (vec![INBOX.to_owned()], 1)
    );
    assert_eq!(one["consumers"][0]["messages"], 1, "{one}");
    let decided = session
        .until("case show c-1", |case| case["phase"] == "decided")
        .await;
    assert_eq!(length(&decided["findings"]), 1, "{decided}");

    // Everything again changes nothing.
    let all = session.good("redeliver --since 1h").await;
    assert!(
        all.contains("Messages that are handed out again: "),
        "{all}"
    );
    settled(client, COMMAND_MAX).await.unwrap();
    session
        .until("check", |check| {
            check["holds"] == true && check["under_way"] == 0
        })
        .await;
    let after = session.json("case show c-1").await;
    assert_eq!(
        (&after["decision"], &after["findings"]),
        (&decided["decision"], &decided["findings"])
    );
}

/// The names of the consumers of messages that are paused.
async fn paused(stream: &Stream) -> Vec<String> {
    let consumers = stream.consumers().try_collect::<Vec<_>>().await.unwrap();
    let paused = consumers.into_iter().filter(|consumer| consumer.paused);
    paused.map(|consumer| consumer.name).collect()
}

#[tokio::test]
async fn a_consumer_is_read_again_afterwards_unless_somebody_else_has_paused_it() {
    let (installation, session) = with_a_case().await;
    let client = installation.client();
    let stream = jetstream::new(client.clone())
        .get_stream("CONCORD_MESSAGES")
        .await
        .unwrap();
    session.good("redeliver --since 1h").await;
    assert_eq!(paused(&stream).await, Vec::<String>::new());
    settled(client, COMMAND_MAX).await.unwrap();

    let until = OffsetDateTime::now_utc() + Duration::from_secs(3_600);
    stream.pause_consumer(WAKING, until).await.unwrap();
    let again = session.json("redeliver --since 1h").await;
    let mut rows = again["consumers"].as_array().unwrap().iter();
    let row = rows.find(|row| row["consumer"] == WAKING);
    assert_eq!(
        row.expect("it was given something")["messages"],
        1,
        "{again}"
    );
    assert_eq!(paused(&stream).await, [WAKING]);
}

#[tokio::test]
async fn times_and_names_that_are_none_are_refused() {
    let installation = TestInstallation::start().await;
    let session = Session::new(installation.server_url());
    let nothing = session.good("redeliver --since 2100-01-01T00:00:00Z").await;
    assert!(
        nothing.contains("Nothing was handed out since"),
        "{nothing}"
    );
    for (line, part) in [
        ("redeliver --since yesterday", "90s, 30m, 24h, 7d"),
        ("redeliver", "--since <WHEN>"),
        (
            "redeliver --since 1h --consumer nobody",
            "there is no consumer nobody",
        ),
    ] {
        let refused = session.run(line).await;
        assert_eq!(refused.code, 2, "{line}: {refused:?}");
        assert!(refused.err.contains(part), "{line}: {refused:?}");
    }
}

/// A durable inbox begins with what is new, and the broker sets no such consumer back.
#[tokio::test]
async fn inboxes_that_cannot_be_set_back_are_named() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    let session = Session::new(installation.server_url());
    let card = json!({ "agent_id": "ann" }).to_string();
    let registered = session.with_input("agents register - --inbox", &card);
    registered.await.good();
    let jetstream = jetstream::new(client.clone());
    let stream = jetstream.get_stream("CONCORD_MESSAGES").await.unwrap();
    let mut inboxes = stream.consumers();
    let inbox = loop {
        let consumer = inboxes.try_next().await.unwrap().expect("ann's inbox");
        if consumer.config.filter_subject.contains(".ann.") {
            break consumer;
        }
    };
    let (to, group) = (inbox.config.deliver_subject, inbox.config.deliver_group);
    let queue = client.queue_subscribe(to.unwrap(), group.unwrap()).await;
    let request = case("c-1", &["ann"]).to_string();
    session.with_input("case open -", &request).await.good();
    let given = queue.unwrap().next().await.expect("the assignment");
    let accepted = client.publish(given.reply.unwrap(), "+ACK".into()).await;
    accepted.unwrap();
    settled(client, COMMAND_MAX).await.unwrap();

    let redelivered = session.run("redeliver --since 1h").await;
    assert_eq!(redelivered.code, 1, "{redelivered:?}");
    for part in [
        inbox.name.as_str(),
        "could not be set back",
        "began with what was new",
    ] {
        assert!(redelivered.out.contains(part), "{part}: {redelivered:?}");
    }
}

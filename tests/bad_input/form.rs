//! Messages whose bytes cannot be read, or not as the type that their subject names.

use concord_events::dead_letter::header;
use concord_testkit::{Message, dead_letters};
use serde_json::{Value, json};

use crate::bad_input::stage::{Stage, finding, invalid, over_capacity, text};

/// Levels of nesting that no recursive reader survives.
const LEVELS: usize = 100_000;

fn subject(case: &str) -> String {
    Message::finding(case, "alice", json!({}), 0.5).subject()
}

/// Checks that bytes which are no message are refused as a whole.
async fn unreadable(stage: &Stage, bytes: &[u8]) {
    let case = stage.open(&["alice"]).await;
    let sent = stage.send_bytes(subject(&case), bytes.to_vec()).await;
    let error = stage.refused("alice", &sent, &invalid("")).await;
    assert_eq!(
        (&error["case_id"], &error["from_agent"]),
        (&json!(case), &json!("coordinator"))
    );
}

async fn not_json(stage: &Stage) {
    unreadable(stage, b"Dear coordinator, the contract is fine.").await;
}

async fn nothing_at_all(stage: &Stage) {
    unreadable(stage, b"").await;
}

async fn json_that_ends_too_early(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let whole = Message::finding(&case, "alice", finding(50), 0.5).bytes();
    for length in [1, whole.len() / 2, whole.len() - 1] {
        let sent = stage
            .send_bytes(subject(&case), whole[..length].to_vec())
            .await;
        // The place in the error is where reading stopped, so it differs.
        assert_eq!(
            stage.error_to("alice", &sent).await["payload"]["error_code"],
            "INVALID_REQUEST"
        );
        stage.letter(&sent).await;
    }
}

async fn invalid_utf8(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let good = Message::finding(&case, "alice", json!({ "summary": "ABC" }), 0.5).bytes();
    let place = good
        .windows(3)
        .position(|three| three == b"ABC")
        .expect("the summary");
    let bad: Vec<u8> = [&good[..place], &[0xc3, 0x28, 0xff], &good[place + 3..]].concat();
    let sent = stage.send_bytes(subject(&case), bad).await;
    stage.refused("alice", &sent, &invalid("/payload")).await;
    // In a place that is read as text, too.
    let id = good
        .windows(5)
        .position(|five| five == b"alice")
        .expect("the id");
    let bad: Vec<u8> = [&good[..id], &[0xff], &good[id + 1..]].concat();
    let sent = stage.send_bytes(subject(&case), bad).await;
    stage.error_to("alice", &sent).await;
    stage.letter(&sent).await;
}

/// Findings of alice with one field that is missing or has the wrong shape, each with the place of the fault.
fn misshapen(case: &str) -> Vec<(Message, &'static str)> {
    let good = || Message::finding(case, "alice", finding(50), 0.5);
    let without = |field: &str| {
        let mut message = good();
        let body = message.body.as_object_mut().expect("an object");
        body.remove(field);
        message
    };
    let claim = json!([{ "subject": "s", "attribute": "a", "value": [1] }]);
    vec![
        (without("payload"), "/payload"),
        (without("message_id"), "/message_id"),
        (good().with("/message_id", 7), "/message_id"),
        (good().with("/message_id", "x".repeat(129)), "/message_id"),
        (good().with("/timestamp", "yesterday"), "/timestamp"),
        (good().with("/priority", "soon"), "/priority"),
        (good().with("/round", -1), "/round"),
        (
            good().with("/requires_response", "yes"),
            "/requires_response",
        ),
        (good().with("/payload", "text"), "/payload"),
        (good().with("/payload", json!([])), "/payload"),
        (good().with("/payload", Value::Null), "/payload"),
        (
            good().with("/payload", json!({ "summary": "" })),
            "/payload/summary",
        ),
        (
            good().with("/payload/summary", json!({})),
            "/payload/summary",
        ),
        (
            good().with("/payload/severity", "terrible"),
            "/payload/severity",
        ),
        (
            good().with("/payload/risk_score", 101),
            "/payload/risk_score",
        ),
        (
            good().with("/payload/risk_score", "high"),
            "/payload/risk_score",
        ),
        (
            good().with("/payload/facts", claim),
            "/payload/facts/0/value",
        ),
        (
            good().with("/payload/clauses", json!([{ "type": "t", "present": 1 }])),
            "/payload/clauses/0/present",
        ),
        (
            good().with("/metadata/confidence", "sure"),
            "/metadata/confidence",
        ),
        (good().with("/metadata/version", "2.0"), "/metadata/version"),
        (good().with("/metadata/version", "one"), "/metadata/version"),
    ]
}

async fn json_of_the_wrong_shape_is_answered_with_the_place(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    for (message, pointer) in misshapen(&case) {
        stage.send_refused(&message, &invalid(pointer)).await;
    }
    // The fields of an envelope in a list: some readers would take it.
    let list = json!([
        "m-1",
        "2026-11-21T20:15:00.000Z",
        "alice",
        "coordinator",
        "finding"
    ]);
    let sent = stage
        .send_bytes(subject(&case), list.to_string().into_bytes())
        .await;
    stage.refused("alice", &sent, &invalid("")).await;
    // None of it counts: the case still waits for its finding.
    stage
        .send(&Message::finding(&case, "alice", finding(50), 0.5))
        .await;
    assert_eq!(stage.decision(&case).await["outcome"]["risk_score"], 50.0);
}

async fn confidence_of_more_than_one(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    for confidence in [1.7, -0.1] {
        let message = Message::finding(&case, "alice", finding(50), confidence);
        stage
            .send_refused(&message, &invalid("/metadata/confidence"))
            .await;
    }
    // JSON has no such number, and some writers write it.
    let text = Message::finding(&case, "alice", finding(50), 0.123)
        .body
        .to_string();
    for number in ["NaN", "Infinity", "1e999"] {
        let sent = stage
            .send_bytes(subject(&case), text.replace("0.123", number).into_bytes())
            .await;
        stage
            .refused("alice", &sent, &invalid("/metadata/confidence"))
            .await;
    }
}

async fn an_unknown_message_type(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    for service in ["coordinator", "debate-facilitator"] {
        let message = Message::new(&case, "alice", service, "gossip", json!({}));
        let error = stage
            .send_refused(&message, &invalid("/message_type"))
            .await;
        let advice = text(&error["payload"]["recovery_suggestions"][0]);
        assert!(
            advice.contains("finding") && advice.contains("agreement"),
            "{advice}"
        );
    }
}

async fn five_megabytes(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let message = Message::finding(
        &case,
        "alice",
        json!({ "summary": "x".repeat(5 << 20) }),
        0.5,
    );
    let error = stage.send_refused(&message, &over_capacity("")).await;
    assert!(
        text(&error["payload"]["error_message"]).contains("1048576"),
        "{error}"
    );
}

/// It leaves no room for a description in a message beside it, so it could not be copied into its letter anyway.
async fn the_largest_message_that_the_broker_takes(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    stage.settled().await;
    let letters = async || dead_letters(stage.client()).await;
    let before = letters().await.expect("the stream can be read").len();
    let max = stage.client().server_info().max_payload;
    let sent = stage.send_bytes(subject(&case), vec![b'x'; max]).await;
    let error = stage.error_to("alice", &sent).await;
    assert_eq!(error["payload"]["error_code"], "CAPACITY_EXCEEDED");
    stage.settled().await;
    // The letter says where the original is.
    let letters = letters().await.expect("the stream can be read");
    assert_eq!(letters.len(), before + 1, "one message, one dead letter");
    let letter = &letters[before];
    assert_eq!(
        (
            letter.header(header::STREAM),
            letter.header(header::SEQUENCE),
            letter.payload.len()
        ),
        ("CONCORD_MESSAGES", sent.sequence.to_string().as_str(), 0)
    );
    assert!(
        letter.header(header::ERROR).contains("in CONCORD_MESSAGES"),
        "{}",
        letter.header(header::ERROR)
    );
}

/// Nesting inside a field that no reader needs does no harm: the field is skipped without recursion.
async fn a_hundred_thousand_levels_of_nesting(stage: &Stage) {
    let case = stage.open(&["alice"]).await;
    let nested = "[".repeat(LEVELS) + &"]".repeat(LEVELS);
    let objects = "{\"a\":".repeat(LEVELS) + "1" + &"}".repeat(LEVELS);
    let good = Message::finding(&case, "alice", json!({ "summary": "HERE" }), 0.5);
    let with_claim = good.clone().with(
        "/payload/facts",
        json!([{ "subject": "s", "attribute": "a", "value": "HERE" }]),
    );
    let nesting = |message: &Message, with: &str| {
        message
            .body
            .to_string()
            .replace("\"HERE\"", with)
            .into_bytes()
    };
    for (bytes, pointer) in [
        (nested.clone().into_bytes(), ""),
        (objects.clone().into_bytes(), ""),
        ("[".repeat(LEVELS).into_bytes(), ""),
        (nesting(&good, &nested), "/payload/summary"),
        (
            nesting(&good.clone().with("/payload", "HERE"), &nested),
            "/payload",
        ),
        (
            nesting(&with_claim.clone().with("/payload/summary", "s"), &objects),
            "/payload/facts/0/value",
        ),
    ] {
        let sent = stage.send_bytes(subject(&case), bytes).await;
        let error = stage.error_to("alice", &sent).await;
        let found = text(&error["payload"]["details"]["pointer"]);
        assert!(
            found.starts_with(pointer),
            "{found} is not in {pointer}: {error}"
        );
        assert_eq!(error["payload"]["error_code"], "INVALID_REQUEST");
        stage.letter(&sent).await;
    }
    let extra = good
        .with("/payload/summary", "s")
        .with("/payload/extra", "HERE")
        .with("/metadata/other", "HERE");
    stage
        .send_bytes(
            subject(&case),
            nesting(&extra.with("/other", "HERE"), &nested),
        )
        .await;
    assert_eq!(stage.decision(&case).await["reason"], "no_conflict");
}

/// One installation for all of them: each is told what is wrong with it, and the services go on after the last as before the first.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_cannot_be_read_are_answered_and_kept() {
    let stage = Stage::start().await;
    not_json(&stage).await;
    nothing_at_all(&stage).await;
    json_that_ends_too_early(&stage).await;
    invalid_utf8(&stage).await;
    json_of_the_wrong_shape_is_answered_with_the_place(&stage).await;
    confidence_of_more_than_one(&stage).await;
    an_unknown_message_type(&stage).await;
    a_hundred_thousand_levels_of_nesting(&stage).await;
    five_megabytes(&stage).await;
    the_largest_message_that_the_broker_takes(&stage).await;
    stage.goes_on().await;
}

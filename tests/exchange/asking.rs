//! A caller that asks a service very often at once is told so, each request is answered once, and others are answered as always.

use std::collections::BTreeMap;

use async_nats::Client;
use concord_testkit::TestInstallation;
use futures::StreamExt;
use tokio::time::timeout;

use crate::exchange::PATIENCE;

/// So many requests at once.
const REQUESTS: usize = 3_000;

/// Asks so often under a name: how many answers had which code, by reply subject.
async fn answers(
    client: &Client,
    verb: &str,
    name: &str,
    number: usize,
) -> BTreeMap<String, usize> {
    let inbox = client.new_inbox();
    let mut replies = client.subscribe(format!("{inbox}.*")).await.unwrap();
    let subject = format!("concord.v1.api.coordinator.{verb}.{name}");
    for request in 0..number {
        let reply = format!("{inbox}.{request}");
        let asked = client.publish_with_reply(subject.clone(), reply, "{}".into());
        asked.await.unwrap();
    }
    let (mut codes, mut answered) = (BTreeMap::new(), std::collections::BTreeSet::new());
    while answered.len() < number {
        let answer = timeout(PATIENCE, replies.next()).await;
        let answer = answer.unwrap_or_else(|_| panic!("{} are answered", answered.len()));
        let answer = answer.expect("the client is connected");
        let headers = answer.headers.as_ref();
        let code = headers.and_then(|headers| headers.get("Nats-Service-Error-Code"));
        let code = code.map_or("answer", |code| code.as_str());
        *codes.entry(code.to_owned()).or_insert(0) += 1;
        assert!(answered.insert(answer.subject.to_string()), "once each");
    }
    codes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_asks_very_often_at_once_is_told_so() {
    let installation = TestInstallation::start().await;
    let client = installation.client();
    // Who is not registered may ask for nothing, which is known only after it was looked up.
    for verb in ["cancel_case", "status"] {
        let (flooded, quiet) = tokio::join!(
            answers(client, verb, "flo", REQUESTS),
            answers(client, verb, "quinn", 20)
        );
        assert!(flooded["429"] > 0, "{verb}: {flooded:?}");
        assert!(
            flooded.len() > 1,
            "{verb}: some have their places: {flooded:?}"
        );
        assert!(!quiet.contains_key("429"), "{verb}: {quiet:?}");
        // Places are given back.
        let later = answers(client, verb, "flo", 20).await;
        assert!(!later.contains_key("429"), "{verb}: {later:?}");
    }
}

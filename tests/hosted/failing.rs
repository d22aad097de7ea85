//! Agents that do not do what they should: their askers are told, once each, and others are not concerned.

use concord_testkit::{free_address, unique, until};
use serde_json::json;

use crate::stage::{PATIENCE, Server, Stage, completion};

fn code(answer: &serde_json::Value) -> &str {
    answer["payload"]["error_code"].as_str().unwrap_or_default()
}

/// An address where nobody listens.
fn nobody() -> String {
    format!("http://{}", free_address())
}

#[tokio::test]
async fn each_failure_is_told_to_the_asker_and_concerns_nobody_else() {
    let garbage = Server::model("I am sorry, Dave.").await;
    let no_completion =
        Server::start(|_| async { (200, "<html>It works!</html>".to_owned()) }).await;
    let silent = Server::start(|_| async {
        std::future::pending::<()>().await;
        (200, String::new())
    })
    .await;
    let leaky = Server::start(|received| async move {
        // Some servers say in their errors what they were sent.
        (
            401,
            format!("wrong key: {:?}", received.headers.get("authorization")),
        )
    })
    .await;
    let good = Server::model(r#"{"status":"success","result":{"said":"yes"}}"#).await;
    let later = Server::start(|_| async { (202, String::new()) }).await;
    let names = [
        "garbage", "html", "silent", "leaky", "gone", "good", "later",
    ]
    .map(unique);
    let [garbled, html, hangs, leaks, gone, works, promises] = &names;
    let model = |name: &str, url: &str, more: &str| {
        format!(
            "[[service.agents]]\nagent_id = \"{name}\"\ntimeout_ms = 1000\n{more}\n\
             openai = {{ base_url = \"{url}/v1\", model = \"m\", api_key_file = \"{{key}}\" }}\n"
        )
    };
    let nobody = nobody();
    let settings = [
        model(garbled, &garbage.url, ""),
        model(html, &no_completion.url, ""),
        model(
            hangs,
            &silent.url,
            "breaker = { failures_max = 2, open_ms = 60000 }",
        ),
        model(leaks, &leaky.url, ""),
        model(
            gone,
            &nobody,
            "breaker = { failures_max = 3, open_ms = 60000 }",
        ),
        model(works, &good.url, ""),
        format!(
            "[[service.agents]]\nagent_id = \"{promises}\"\nhttp = {{ url = \"{}/x\" }}\n",
            later.url
        ),
    ]
    .join("\n");
    let stage = Stage::start(1, &settings).await;

    for (agent, expected, part) in [
        (garbled, "INTERNAL_ERROR", "nor that to a second asking"),
        (html, "INTERNAL_ERROR", "no chat completion"),
        (hangs, "TIMEOUT", "no end within 1000 ms"),
        (hangs, "TIMEOUT", "no end within 1000 ms"),
        (leaks, "INTERNAL_ERROR", "401"),
        (gone, "AGENT_UNAVAILABLE", "could not connect"),
        (promises, "INTERNAL_ERROR", "service.callback.listen"),
        // Both have failed often enough: not asked any more.
        (hangs, "AGENT_UNAVAILABLE", "circuit breaker"),
        (gone, "AGENT_UNAVAILABLE", "circuit breaker"),
    ] {
        let asked = stage.ask(agent, None, "normal").await;
        let answer = stage.answer(&asked).await;
        assert_eq!(
            (code(&answer), &answer["message_type"]),
            (expected, &json!("error")),
            "{agent}: {answer}"
        );
        assert!(
            answer["payload"]["error_message"]
                .as_str()
                .unwrap()
                .contains(part),
            "{agent}: {answer}"
        );
        assert!(
            !answer["payload"]["recovery_suggestions"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{answer}"
        );
    }
    assert_eq!(garbage.received().len(), 2, "asked once more, and no more");
    assert_eq!(
        silent.received().len(),
        2,
        "what may have arrived is not sent again"
    );
    let stands = stage.agent(hangs).await;
    assert_eq!(stands["breaker"], "open", "{stands}");
    assert!(stands["refuses_until"].is_string(), "{stands}");

    let asked = stage.ask(works, None, "critical").await;
    let answer = stage.answer(&asked).await;
    assert_eq!(
        answer["payload"]["result"],
        json!({ "said": "yes" }),
        "{answer}"
    );
    assert_eq!(
        stage.answers().await.unwrap().len(),
        10,
        "each message has one answer"
    );
    stage.keeps_its_secrets().await;
}

#[tokio::test]
async fn over_the_bound_the_rest_is_told_so_at_once_and_urgent_messages_go_first() {
    let (release, released) = tokio::sync::watch::channel(false);
    let slow = Server::start(move |_| {
        let mut released = released.clone();
        async move {
            let _ = released.wait_for(|released| *released).await;
            (200, completion(r#"{"status":"success","result":{}}"#))
        }
    })
    .await;
    let agent = unique("slow");
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{agent}\"\ninstances = 1\nqueue_max = 3\ntimeout_ms = 60000\n\
         openai = {{ base_url = \"{}/v1\", model = \"m\" }}\n",
        slow.url
    );
    let stage = Stage::start(1, &settings).await;
    let waiting = async |count: usize| {
        let seen = until(format!("{count} that wait"), PATIENCE, async || {
            let stands = stage.agent(&agent).await;
            if stands["working"] == 1 && stands["waiting"] == count {
                Ok(())
            } else {
                Err(stands.to_string())
            }
        });
        seen.await.unwrap_or_else(|error| panic!("{error}"));
    };
    let first = stage.ask(&agent, None, "normal").await;
    waiting(0).await;
    let mut normal = Vec::new();
    for count in 1..=3 {
        normal.push(stage.ask(&agent, None, "normal").await);
        waiting(count).await;
    }
    let refused = stage.ask(&agent, None, "normal").await;
    assert_eq!(code(&stage.answer(&refused).await), "CAPACITY_EXCEEDED");
    // An urgent one takes the place of the last, and goes before the others.
    let urgent = stage.ask(&agent, None, "critical").await;
    assert_eq!(code(&stage.answer(&normal[2]).await), "CAPACITY_EXCEEDED");
    waiting(3).await;
    // One whose time is over while it waits is told so.
    let late = stage.ask(&agent, Some(400), "critical").await;
    assert_eq!(code(&stage.answer(&late).await), "TIMEOUT");

    release.send_replace(true);
    stage.all_answers(7).await;
    // It had taken the place of one more of those that are not urgent.
    assert_eq!(code(&stage.answer(&normal[1]).await), "CAPACITY_EXCEEDED");
    let answers = stage.answers().await.unwrap();
    let order: Vec<_> = answers
        .iter()
        .map(|answer| answer["reply_to"].as_str().unwrap())
        .collect();
    assert_eq!(
        order[order.len() - 3..],
        [first.as_str(), urgent.as_str(), normal[0].as_str()]
    );
    stage.installation.holds(PATIENCE).await;
}

//! Hosted agents that fail: each asker is told once, and other agents are not affected.

use concord_installation::{Instance, instances};
use concord_testkit::{Message, free_address, http_get, unique, wait_for};
use serde_json::{Value, json};

use crate::hosted::stage::{PATIENCE, Server, Stage, callback_settings, completion};

/// The code of an error.
fn code(answer: &Value) -> &str {
    answer["payload"]["error_code"].as_str().unwrap_or_default()
}

/// An address where nobody listens.
fn unreachable_url() -> String {
    format!("http://{}", free_address())
}

/// Servers that fail, each in its own way, and one that does not.
struct Servers {
    /// A model whose words are no JSON.
    garbage: Server,
    /// A server that is no model.
    html: Server,
    /// A model that never answers.
    silent: Server,
    /// A server that refuses the key, and repeats in its error what it was sent.
    leaky: Server,
    /// A model that answers well.
    good: Server,
    /// A server that promises an answer for later.
    later: Server,
}

impl Servers {
    async fn start() -> Self {
        Self {
            garbage: Server::model("I am sorry, Dave.").await,
            html: Server::start(|_| async { (200, "<html>It works!</html>".to_owned()) }).await,
            silent: Server::silent().await,
            leaky: Server::start(|received| async move {
                let key = received.headers.get("authorization");
                (401, format!("wrong key: {key:?}"))
            })
            .await,
            good: Server::model(r#"{"status":"success","result":{"said":"yes"}}"#).await,
            later: Server::start(|_| async { (202, String::new()) }).await,
        }
    }

    /// The settings of an agent for each server, and of one whose server cannot be reached.
    fn settings(&self, names: &[String; 7]) -> String {
        let [garbage, html, silent, leaky, gone, good, later] = names;
        let model = |name: &str, url: &str, more: &str| {
            format!(
                "[[service.agents]]\nagent_id = \"{name}\"\n{more}\n\
                 openai = {{ base_url = \"{url}/v1\", model = \"m\", api_key_file = \"{{key}}\" }}\n"
            )
        };
        let patient = "timeout_ms = 20000";
        let breaker =
            |failures: usize| format!("breaker = {{ failures_max = {failures}, open_ms = 60000 }}");
        [
            model(garbage, &self.garbage.url, patient),
            model(html, &self.html.url, patient),
            model(
                silent,
                &self.silent.url,
                &format!("timeout_ms = 1000\n{}", breaker(2)),
            ),
            model(leaky, &self.leaky.url, patient),
            model(gone, &unreachable_url(), &breaker(3)),
            model(good, &self.good.url, patient),
            format!(
                "[[service.agents]]\nagent_id = \"{later}\"\nhttp = {{ url = \"{}/x\" }}\n",
                self.later.url
            ),
        ]
        .join("\n")
    }
}

/// Asks an agent something that is answered by an error with this code, whose message contains `part`.
async fn check_failure(stage: &Stage, agent: &str, expected: &str, part: &str) {
    let asked = stage.ask(agent, None, "normal").await;
    let answer = stage.answer(&asked).await;
    assert_eq!(
        (code(&answer), &answer["message_type"]),
        (expected, &json!("error")),
        "{agent}: {answer}"
    );
    let report = &answer["payload"];
    assert!(
        report["error_message"].as_str().unwrap().contains(part),
        "{agent}: {answer}"
    );
    let suggestions = report["recovery_suggestions"].as_array().unwrap();
    assert!(!suggestions.is_empty(), "{answer}");
}

#[tokio::test]
async fn an_answer_that_has_no_room_is_told_as_such() {
    let server = Server::start(|_| async { (200, "x".repeat(1_100_000)) }).await;
    let [served, program] = ["served", "program"].map(unique);
    let endless = "import sys\nfor line in sys.stdin:\n    print('x' * 1_100_000, flush=True)";
    let settings = format!(
        "[[service.agents]]\nagent_id = {served:?}\nhttp = {{ url = \"{}/x\" }}\n\
         [[service.agents]]\nagent_id = {program:?}\ncommand = [\"python3\", \"-c\", {endless:?}]\n",
        server.url
    );
    let stage = Stage::start(1, &settings).await;
    for agent in [&served, &program] {
        check_failure(&stage, agent, "CAPACITY_EXCEEDED", "longer than").await;
    }
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test]
async fn each_failure_is_told_to_the_asker_and_concerns_nobody_else() {
    let servers = Servers::start().await;
    let names = [
        "garbage", "html", "silent", "leaky", "gone", "good", "later",
    ]
    .map(unique);
    let [garbage, html, silent, leaky, gone, good, later] = &names;
    let stage = Stage::start(1, &servers.settings(&names)).await;
    for (agent, expected, part) in [
        (garbage, "INTERNAL_ERROR", "nor that to a second asking"),
        (html, "INTERNAL_ERROR", "no chat completion"),
        (silent, "TIMEOUT", "no end within 1000 ms"),
        (silent, "TIMEOUT", "no end within 1000 ms"),
        (leaky, "INTERNAL_ERROR", "401"),
        (gone, "AGENT_UNAVAILABLE", "could not connect"),
        (later, "INTERNAL_ERROR", "service.callback.listen"),
        // Both have failed often enough: they are not asked any more.
        (silent, "AGENT_UNAVAILABLE", "circuit breaker"),
        (gone, "AGENT_UNAVAILABLE", "circuit breaker"),
    ] {
        check_failure(&stage, agent, expected, part).await;
    }
    let calls = servers.garbage.received().len();
    assert_eq!(calls, 2, "asked once more, and no more");
    let calls = servers.silent.received().len();
    assert_eq!(calls, 2, "what may have arrived is not sent again");
    let state = stage.agent(silent).await;
    assert_eq!(state["breaker"], "open", "{state}");
    assert!(state["refuses_until"].is_string(), "{state}");

    let asked = stage.ask(good, None, "critical").await;
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

/// What the adapter's metrics say of the breaker of an agent.
async fn standing(stage: &Stage, agent: &str) -> Result<String, String> {
    let name = format!("concord_breaker_standing{{agent=\"{agent}\"}} ");
    shown(stage, &name).await
}

/// The number behind `name` in the adapter's metrics.
async fn shown(stage: &Stage, name: &str) -> Result<String, String> {
    let is_adapter = |one: &Instance| one.name == "concord-agent-adapter";
    let client = stage.installation.client();
    let found = instances(client, PATIENCE, |found| found.iter().any(is_adapter)).await;
    let found = found.map_err(|error| error.to_string())?;
    let adapter = found.iter().find(|one| is_adapter(one)).ok_or("none")?;
    let address = adapter.http().ok_or("no HTTP")?;
    let metrics = http_get(address, "/metrics").await;
    let metrics = metrics.map_err(|error| error.to_string())?;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.map(str::to_owned)
        .ok_or_else(|| "not shown".to_owned())
}

#[tokio::test]
async fn a_breaker_whose_time_is_over_is_not_shown_as_open_though_nobody_calls() {
    let [once, for_long] = ["once", "long"].map(unique);
    let agent = |name: &str, open_ms: u32| {
        format!(
            "[[service.agents]]\nagent_id = \"{name}\"\nhttp = {{ url = \"{}/x\" }}\ntries_max = 1\n\
             breaker = {{ failures_max = 1, open_ms = {open_ms} }}\n",
            unreachable_url()
        )
    };
    let settings = agent(&once, 200) + &agent(&for_long, 60_000);
    let stage = Stage::start(1, &settings).await;
    assert_eq!(standing(&stage, &once).await.as_deref(), Ok("0"));
    for agent in [&once, &for_long] {
        check_failure(&stage, agent, "AGENT_UNAVAILABLE", "could not connect").await;
    }
    wait_for("the time to be over", PATIENCE, async || {
        match standing(&stage, &once).await?.as_str() {
            "1" => Ok(()),
            other => Err(other.to_owned()),
        }
    })
    .await;
    assert_eq!(standing(&stage, &for_long).await.as_deref(), Ok("2"));
}

/// Waits until the adapter's metrics say so of an agent: how many messages wait, and how many were not given to it, by result.
async fn until_shown(stage: &Stage, agent: &str, waiting: u32, dropped: &[(&str, u32)]) {
    let wanted = dropped.iter().map(|(result, count)| {
        let labels = format!("agent=\"{agent}\",result=\"{result}\"");
        (format!("concord_hosted_calls_total{{{labels}}} "), *count)
    });
    let waits = format!("concord_hosted_waiting{{agent=\"{agent}\"}} ");
    for (name, count) in wanted.chain([(waits, waiting)]) {
        wait_for(format!("{name}{count}"), PATIENCE, async || {
            let found = shown(stage, &name).await?;
            let is_it = found == count.to_string();
            is_it.then_some(()).ok_or(found)
        })
        .await;
    }
}

#[tokio::test]
async fn what_waits_for_a_slow_agent_is_shown_and_what_is_dropped_is_counted() {
    let slow = Server::silent().await;
    let [agent, other] = ["slow", "other"].map(unique);
    let hosted = |name: &str| {
        format!(
            "[[service.agents]]\nagent_id = \"{name}\"\ninstances = 1\nqueue_max = 2\ntimeout_ms = 120000\n\
             wait_max_ms = 120000\nhttp = {{ url = \"{}/x\" }}\n",
            slow.url
        )
    };
    let stage = Stage::start(1, &(hosted(&agent) + &hosted(&other))).await;
    until_shown(&stage, &agent, 0, &[]).await;
    for agent in [&agent, &other] {
        stage.ask(agent, Some(120_000), "normal").await;
    }
    wait_for("the first to be worked on", PATIENCE, async || {
        let calls = slow.received().len();
        (calls == 2).then_some(()).ok_or_else(|| calls.to_string())
    })
    .await;
    // For the other one waits until its deadline.
    let late = stage.ask(&other, Some(8_000), "normal").await;
    for count in 1..=2 {
        stage.ask(&agent, Some(120_000), "normal").await;
        until_shown(&stage, &agent, count, &[]).await;
    }
    let refused = stage.ask(&agent, None, "normal").await;
    assert_eq!(code(&stage.answer(&refused).await), "CAPACITY_EXCEEDED");
    // Nobody is told of this one.
    let told = Message::new(
        "_",
        &stage.asker,
        &agent,
        "info_update",
        json!({ "read": 1 }),
    );
    told.publish(stage.installation.client()).await;
    until_shown(&stage, &agent, 2, &[("queue_full", 2)]).await;
    assert_eq!(code(&stage.answer(&late).await), "TIMEOUT");
    until_shown(&stage, &other, 0, &[("expired", 1)]).await;
}

#[tokio::test]
async fn answers_that_are_promised_and_not_given_are_counted() {
    let later = Server::start(|_| async { (202, String::new()) }).await;
    let [agent, other] = ["later", "other"].map(unique);
    let hosted = |name: &str| {
        format!(
            "[[service.agents]]\nagent_id = \"{name}\"\nqueue_max = 1\nhttp = {{ url = \"{}/x\" }}\n",
            later.url
        )
    };
    let settings = callback_settings() + &hosted(&agent) + &hosted(&other);
    let stage = Stage::start(1, &settings).await;
    // Of one the promise lasts long, of the other not.
    stage.ask(&agent, Some(120_000), "normal").await;
    let promised = stage.ask(&other, Some(8_000), "normal").await;
    wait_for("both to be promised", PATIENCE, async || {
        let calls = later.received().len();
        (calls == 2).then_some(()).ok_or_else(|| calls.to_string())
    })
    .await;
    until_shown(&stage, &agent, 0, &[("answered", 1)]).await;
    let refused = stage.ask(&agent, None, "normal").await;
    assert_eq!(code(&stage.answer(&refused).await), "CAPACITY_EXCEEDED");
    assert_eq!(code(&stage.answer(&promised).await), "TIMEOUT");
    until_shown(&stage, &agent, 0, &[("answered", 2), ("later_full", 1)]).await;
    until_shown(&stage, &other, 0, &[("answered", 1), ("later_missing", 1)]).await;
}

/// The consumer of a hosted agent belongs to all replicas: by its backlog the chart scales the adapter.
#[tokio::test]
async fn replicas_share_what_is_sent_to_an_agent() {
    let slow = Server::silent().await;
    let agent = unique("slow");
    let settings = format!(
        "[[service.agents]]\nagent_id = \"{agent}\"\ninstances = 1\ntimeout_ms = 120000\nhttp = {{ url = \"{}/x\" }}\n",
        slow.url
    );
    let stage = Stage::start(2, &settings).await;
    for _ in 0..20 {
        stage.ask(&agent, Some(120_000), "normal").await;
    }
    // Each has the server work on one.
    wait_for("both replicas to work", PATIENCE, async || {
        let calls = slow.received().len();
        (calls == 2).then_some(()).ok_or_else(|| calls.to_string())
    })
    .await;
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
        "[[service.agents]]\nagent_id = \"{agent}\"\ninstances = 1\nqueue_max = 3\ntimeout_ms = 120000\n\
         wait_max_ms = 120000\nopenai = {{ base_url = \"{}/v1\", model = \"m\" }}\n",
        slow.url
    );
    let stage = Stage::start(1, &settings).await;
    let waiting = async |count: usize| {
        wait_for(format!("{count} that wait"), PATIENCE, async || {
            let state = stage.agent(&agent).await;
            if state["working"] == 1 && state["waiting"] == count {
                Ok(())
            } else {
                Err(state.to_string())
            }
        })
        .await;
    };
    let long = Some(120_000);
    let first = stage.ask(&agent, long, "normal").await;
    waiting(0).await;
    let mut normal = Vec::new();
    for count in 1..=3 {
        normal.push(stage.ask(&agent, long, "normal").await);
        waiting(count).await;
    }
    let refused = stage.ask(&agent, long, "normal").await;
    assert_eq!(code(&stage.answer(&refused).await), "CAPACITY_EXCEEDED");
    // An urgent one takes the place of the last, and goes before the others.
    let urgent = stage.ask(&agent, long, "critical").await;
    assert_eq!(code(&stage.answer(&normal[2]).await), "CAPACITY_EXCEEDED");
    waiting(3).await;
    // A request whose deadline passes while it waits is answered by an error. It must have come before that.
    let late = stage.ask(&agent, Some(8_000), "critical").await;
    assert_eq!(code(&stage.answer(&late).await), "TIMEOUT");

    release.send_replace(true);
    stage.all_answers(7).await;
    // That request, too, had taken the place of one that is not urgent.
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

//! An agent of the Rust library closes while its handlers are under way.

use std::sync::Arc;
use std::time::Duration;

use concord_agent::{Agent, AgentId, Error, Message, MessageType, Recipient};
use concord_testkit::{unique, wait_for};
use futures::FutureExt;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::clients::stage::Stage;
use crate::clients::trouble::{ask, next_to};

/// Longer than the close of an agent that waits for nobody takes.
const SOON: Duration = Duration::from_secs(20);

/// Tells the observer something, in words of the test.
async fn tell(agent: &Agent, what: &str) -> Result<(), Error> {
    let observer = Recipient::Agent(AgentId::fixed("observer"));
    let payload = json!({ "told": what });
    agent
        .publish(&agent.message(observer, MessageType::InfoUpdate, &payload)?)
        .await
}

/// Connects ann with this handler of requests, whom the broker then hears: it has read her subscriptions when it has stored what
/// she says after them.
async fn connected<F, R>(stage: &mut Stage, builder: concord_agent::Builder, handler: F) -> Agent
where
    F: Fn(Agent, Message) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), Error>> + Send + 'static,
{
    let builder = builder.on(MessageType::Request, handler);
    let agent = builder.connect(&stage.broker.url()).await;
    let agent = agent.expect("it connects");
    tell(&agent, "connected").await.expect("it is stored");
    next_to(stage, "observer").await;
    agent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_under_way_has_its_answer_when_the_agent_closes_and_nothing_new_is_begun() {
    for durable in [false, true] {
        let mut stage = Stage::start().await;
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let builder = Agent::builder("ann");
        let builder = if durable { builder.durable() } else { builder };
        let agent = connected(&mut stage, builder, move |agent, request| {
            let held = Arc::clone(&held);
            async move {
                tell(&agent, request.message_id.as_str()).await?;
                held.acquire().await.map_err(Error::handler)?.forget();
                let ben = AgentId::fixed("ben");
                let result = agent.request(ben, "help", &json!({})).await?;
                agent.respond(&request, &result).await
            }
        })
        .await;
        ask(&stage, "r-1", "think").await;
        next_to(&mut stage, "observer").await;
        // It has begun to close when this returns.
        let mut closing = Box::pin(agent.close());
        assert!((&mut closing).now_or_never().is_none(), "it waits");
        let closing = tokio::spawn(closing);
        ask(&stage, "r-2", "think").await;
        sleep(Duration::from_millis(300)).await;
        gate.add_permits(2);
        let (_, message) = stage.next("a request").await;
        assert_eq!(message["to_agent"], "ben", "r-2 is not begun: {message:#}");
        let answer = json!({ "message_type": "response", "payload": { "status": "success", "result": { "x": 1 } } });
        stage.answer(&message, &answer).await;
        let (kind, answer) = next_to(&mut stage, "zoe").await;
        assert_eq!(kind, "response", "{answer:#}");
        assert_eq!(answer["payload"]["result"], json!({ "x": 1 }));
        let closed = timeout(SOON, closing).await.expect("it ends in time");
        closed.expect("it runs").expect("it is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_closes_its_agent_and_still_answers() {
    for durable in [false, true] {
        let mut stage = Stage::start().await;
        let builder = Agent::builder("ann");
        let builder = if durable { builder.durable() } else { builder };
        let agent = connected(&mut stage, builder, |agent, request| async move {
            let closed = timeout(SOON, agent.clone().close()).await;
            closed.map_err(Error::handler)??;
            agent.respond(&request, &json!({})).await
        })
        .await;
        ask(&stage, "r-1", "go").await;
        let (kind, answer) = next_to(&mut stage, "zoe").await;
        assert_eq!(kind, "response", "{answer:#}");
        // Whoever closes it as well waits until it is closed.
        let closed = timeout(SOON, agent.close()).await;
        closed.expect("it ends in time").expect("it is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_does_not_end_is_cut_off_and_its_sender_is_told() {
    let mut stage = Stage::start().await;
    let agent = hanging(&mut stage, Agent::builder("ann")).await;
    ask(&stage, "r-1", "hang").await;
    next_to(&mut stage, "observer").await;
    let closed = timeout(SOON, agent.close()).await;
    closed.expect("it ends in time").expect("it is closed");
    let (kind, error) = next_to(&mut stage, "zoe").await;
    assert_eq!(
        (kind.as_str(), &error["payload"]["error_code"]),
        ("error", &json!("INTERNAL_ERROR")),
        "{error:#}"
    );
    assert_eq!(error["reply_to"], "r-1");
}

/// An agent whose handlers never end, and who closes soon all the same.
async fn hanging(stage: &mut Stage, builder: concord_agent::Builder) -> Agent {
    let builder = builder.close_within(Duration::from_millis(200));
    connected(stage, builder, |agent, request| async move {
        tell(&agent, request.message_id.as_str()).await?;
        std::future::pending().await
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cut_off_comes_again_from_an_inbox_that_keeps_it() {
    let mut stage = Stage::start().await;
    let agent = hanging(&mut stage, Agent::builder("ann").durable()).await;
    ask(&stage, "r-1", "think").await;
    next_to(&mut stage, "observer").await;
    let closed = timeout(SOON, agent.close()).await;
    closed.expect("it ends in time").expect("it is closed");
    let again = Agent::builder("ann").durable();
    let again = again.on(
        MessageType::Request,
        |agent: Agent, request: Message| async move {
            agent.respond(&request, &json!({ "x": 1 })).await
        },
    );
    let again = again.connect(&stage.broker.url()).await;
    let (kind, answer) = next_to(&mut stage, "zoe").await;
    assert_eq!(
        kind, "response",
        "nobody is told that it failed: {answer:#}"
    );
    assert_eq!(answer["reply_to"], "r-1");
    again
        .expect("it connects")
        .close()
        .await
        .expect("it is closed");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_runs_closes_in_good_order_when_it_is_told_to_stop() {
    use rustix::process::{Signal, getpid, kill_process};
    use tokio::signal::unix::{SignalKind, signal};

    let mut stage = Stage::start().await;
    // The process of this test goes on.
    let _heard = signal(SignalKind::terminate()).expect("signals are noticed");
    let builder = Agent::builder("ann").on(
        MessageType::Request,
        |agent: Agent, request: Message| async move {
            tell(&agent, "begun").await?;
            sleep(Duration::from_millis(500)).await;
            agent.respond(&request, &json!({ "x": 1 })).await
        },
    );
    let url = stage.broker.url();
    let running = tokio::spawn(async move { builder.run(&url).await });
    wait_for("ann to hear", SOON, async || {
        ask(&stage, &unique("r"), "think").await;
        let begun = timeout(Duration::from_secs(1), next_to(&mut stage, "observer")).await;
        begun.map_err(|_| "nothing is begun".to_owned())
    })
    .await;
    wait_for("ann to stop", SOON, async || {
        kill_process(getpid(), Signal::TERM).expect("it is sent");
        running
            .is_finished()
            .then_some(())
            .ok_or("she goes on".to_owned())
    })
    .await;
    running.await.expect("it runs").expect("it is closed");
    let (kind, answer) = next_to(&mut stage, "zoe").await;
    assert_eq!(kind, "response", "{answer:#}");
}

//! Both libraries let an agent into a case, read what it sees of it, and ask for several things at once.

use std::time::Duration;

use concord_agent::payload::Request;
use concord_agent::protocol::Fault;
use concord_agent::{Agent, AgentId, CaseId, Error, ErrorCode, Message, MessageType};
use concord_testkit::{TestInstallation, unique, wait_for};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::clients::python::python;
use crate::clients::stage::{PATIENCE, is_heard};

const PROGRAM: &str = r#"
import asyncio, sys
from concord_agent import Agent, RequestError

async def sees(agent, case, name):
    while True:
        try:
            window = await agent.context(case, name)
        except RequestError as why:
            # The adapter has not heard of the case, or of who has joined.
            assert why.code in ("INVALID_REQUEST", "UNAUTHORIZED"), why
        else:
            if window["messages"]:
                return window
        await asyncio.sleep(0.05)

async def main(server, case, bob):
    opener, cleo = Agent("opener-py"), Agent("cleo-py")
    async with await opener.connect(server), await cleo.connect(server):
        opening = {"case_id": case, "participants": ["ann"], "task": {"type": "test"}}
        await opener.request("coordinator", "open_case", opening)
        joined = await opener.add_participant(case, "cleo-py")
        assert joined == {"agent_id": "cleo-py"}, joined
        window = await asyncio.wait_for(sees(cleo, case, None), 60)
        assert window["agent_id"] == "cleo-py" and len(window["messages"]) == 1, window
        try:
            await cleo.add_participant(case, "dan")
        except RequestError as why:
            assert why.code == "UNAUTHORIZED", why
        else:
            raise AssertionError("it is refused")
        requests = [{"action": action, "parameters": {}} for action in ("count", "refuse", "ponder")]
        # On a slow machine bob is asked when the time is over, and once more.
        for patience in (1.5, 20):
            try:
                counted, refused, late = await cleo.request_batch(bob, requests, timeout=patience)
            except RequestError as why:
                assert why.code == "TIMEOUT" and patience < 20, why
            else:
                if counted == {"asked": "count"} and getattr(refused, "code", None) == "UNAUTHORIZED":
                    break
        assert counted == {"asked": "count"}, counted
        assert refused.code == "UNAUTHORIZED" and late.code == "TIMEOUT", (refused, late)

asyncio.run(main(*sys.argv[1:]))
"#;

/// Starts an agent that answers one request, refuses another, and never answers a third.
async fn start_bob(url: &str, name: &str) -> Agent {
    let handler = async |agent: Agent, asked: Message| {
        let request: Request = asked.payload()?;
        match request.action.as_str() {
            "count" => {
                let counted = json!({ "asked": request.action });
                agent.respond(&asked, &counted).await
            }
            "refuse" => {
                let fault = Fault::new(ErrorCode::Unauthorized, "", "Not you.", "Ask ann.");
                agent.refuse(&asked, &fault).await
            }
            _ => Ok(()),
        }
    };
    let builder = Agent::builder(name).on(MessageType::Request, handler);
    let bob = builder.connect(url).await.expect("it connects");
    is_heard(&bob).await;
    bob
}

fn agent_id(name: &str) -> AgentId {
    AgentId::new(name).expect("a name")
}

/// The Rust library does what the program does.
async fn check_rust(url: &str, case: &CaseId, bob: &str) {
    let connect = async |name| {
        Agent::builder(name)
            .connect(url)
            .await
            .expect("it connects")
    };
    let (opener, cleo) = (connect("opener-rs").await, connect("cleo-rs").await);
    let opening = json!({ "case_id": case, "participants": ["ann"], "task": { "type": "test" } });
    let coordinator = Service::Coordinator.agent_id();
    opener
        .request(coordinator, "open_case", &opening)
        .await
        .expect("the case is opened");
    let joined = opener.add_participant(case, cleo.id()).await.unwrap();
    assert_eq!(joined, *cleo.id());
    let window = wait_for("what she sees", PATIENCE, async || {
        let window = cleo.context(case, None).await;
        let window = window.map_err(|error| error.to_string())?;
        (!window.messages.is_empty())
            .then_some(window)
            .ok_or_else(|| "nothing".into())
    })
    .await;
    assert_eq!((&window.agent_id, window.messages.len()), (cleo.id(), 1));
    let refused = cleo.add_participant(case, &agent_id("dan")).await;
    assert!(
        matches!(refused, Err(Error::Refused(why)) if why.error_code == ErrorCode::Unauthorized)
    );
    let expected = [
        json!({ "asked": "count" }),
        json!("UNAUTHORIZED"),
        json!("TIMEOUT"),
    ];
    let mut ended = asked(&cleo, bob, Duration::from_millis(1_500)).await;
    if ended != expected {
        // On a slow machine bob is asked when the time is over.
        ended = asked(&cleo, bob, Duration::from_secs(20)).await;
    }
    assert_eq!(ended, expected);
    for agent in [opener, cleo] {
        agent.close().await.expect("it is closed");
    }
}

/// How three requests to bob have ended that are asked in one batch; how the whole has, where it is refused.
async fn asked(cleo: &Agent, bob: &str, within: Duration) -> Vec<Value> {
    let requests = ["count", "refuse", "ponder"].map(|action| {
        serde_json::from_value(json!({ "action": action, "parameters": {} })).expect("a request")
    });
    let ended = cleo.request_batch(agent_id(bob), requests.into(), Some(within));
    match ended.await {
        Ok(ended) => ended.into_iter().map(told).collect(),
        Err(refused) => vec![told(Err(refused))],
    }
}

fn told(ended: Result<Value, Error>) -> Value {
    match ended {
        Ok(result) => result,
        Err(Error::Refused(why)) => json!(why.error_code),
        Err(Error::Timeout { .. }) => json!("no answer"),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_libraries_let_an_agent_in_and_ask_for_several_things_at_once() {
    let installation = TestInstallation::start().await;
    installation.free_openers().await;
    let url = installation.server_url();
    let bob = unique("bob");
    let agent = start_bob(url, &bob).await;
    let done = python()
        .args(["-c", PROGRAM, url, &unique("case"), &bob])
        .output()
        .await
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let case = CaseId::new(unique("case")).expect("a case");
    check_rust(url, &case, &bob).await;
    agent.close().await.expect("it is closed");
    installation.holds(PATIENCE).await;
}

//! The Python library remembers, and looks into the memory of others; nobody but the facilitator has an agent write for a snapshot.

use concord_agent::{Agent, AgentId, Error, MessageType};
use concord_testkit::{Message, TestInstallation, event_data, now, unique, wait_for};
use serde_json::json;

use crate::clients::python::python;
use crate::clients::stage::{PATIENCE, Stage};
use crate::clients::trouble::next_to;

const PROGRAM: &str = r#"
import asyncio, sys
from concord_agent import Agent, RequestError

async def main(server, case, finding):
    ann, ben = (Agent(name, skills=[{"name": "economy"}]) for name in ("ann", "ben"))
    told = asyncio.get_running_loop().create_future()

    @ben.on("insight_shared")
    async def heard(message):
        told.set_result(message.payload["data"]["insight"]["topic"])

    async with await ann.connect(server), await ben.connect(server):
        kept = await ann.memory.put("margin", 0.25, 0.95, case_id=case)
        assert kept["reach"] == "broadcast", kept
        assert await asyncio.wait_for(told, 30) == "margin"
        insights = await ben.memory.insights(case)
        assert [one["value"] for one in insights["entries"]] == [0.25], insights
        with_ben = await ben.confirm(case, finding, 0.6, author="ann", reasoning="The same page.")
        assert with_ben is None, with_ben
        first = await ann.memory.put("regime", "BULL_LOW_RATES", 0.9, confidence=0.85, evidence=["minutes"])
        second = await ann.memory.put("regime", "BEAR_HIGH_RATES", 0.9, based_on=first["version"])
        assert second["version"] == 2, second
        now = await ben.memory.get("ann", "regime")
        assert now["value"] == "BEAR_HIGH_RATES", now
        then = await ben.memory.get("ann", "regime", as_of=first["since"])
        assert then["value"] == "BULL_LOW_RATES" and then["evidence"] == ["minutes"], then
        history = await ben.memory.history("ann", "regime")
        assert [one["version"] for one in history] == [1, 2], history
        listed = await ben.memory.list("ann")
        assert [one["topic"] for one in listed["entries"]] == ["margin", "regime"], listed
        assert (await ben.memory.list())["agents"] == ["ann"]
        assert await ben.memory.get("ann", "nothing") is None
        for wrong in (
            ann.confirm(case, finding, 0.6),
            ann.memory.put("regime", 1, 0.9, based_on=1),
            ann.memory.put("regime", 1, 1.5),
            ben.memory.get("ann", "regime", as_of="snap_999999999"),
        ):
            try:
                await wrong
            except RequestError as why:
                assert why.code == "INVALID_REQUEST", why
            else:
                raise AssertionError("it is refused")

asyncio.run(main(*sys.argv[1:]))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_remembers_and_looks_into_the_memory_of_others() {
    let installation = TestInstallation::start_without_adapter().await;
    let case = unique("case");
    let opening = json!({
        "case_id": case, "participants": ["ann", "ben"], "task": { "type": "test" },
        "policy": { "finding_timeout_ms": 600_000, "importance": { "filtered": true } },
    });
    installation.open_case(&opening).await;
    let finding = Message::finding(&case, "ann", json!({ "summary": "Seen." }), 0.8);
    finding.store(installation.client()).await;
    wait_for("the finding", PATIENCE, async || {
        let filter = format!("case.{case}.finding_recorded");
        let recorded = event_data(installation.client(), &filter).await?;
        (recorded.len() == 1).then_some(()).ok_or("none".to_owned())
    })
    .await;
    let done = python()
        .args([
            "-c",
            PROGRAM,
            installation.server_url(),
            &case,
            finding.id(),
        ])
        .output()
        .await
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

/// Tells zoe which handler has been given this.
async fn tells(agent: Agent, handler: &str, given: concord_agent::Message) -> Result<(), Error> {
    let told = json!({ "handler": handler, "from": given.from_agent });
    let zoe = AgentId::fixed("zoe").into();
    let message = agent.message(zoe, MessageType::InfoUpdate, &told)?;
    agent.publish(&message).await
}

/// Which handler of ann was given something next, and whose message it was.
async fn next_told(stage: &mut Stage) -> [String; 2] {
    let (_, told) = next_to(stage, "zoe").await;
    ["handler", "from"].map(|field| {
        told["payload"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_that_writes_before_a_snapshot_runs_for_the_facilitator_alone() {
    let mut stage = Stage::start().await;
    let builder = Agent::builder("ann")
        .durable()
        .on_memory_sync(|agent, asked| tells(agent, "memory_sync", asked))
        .on(MessageType::Notification, |_, _| async { Ok(()) })
        .on_other(|agent, message| tells(agent, "other", message));
    let connected = builder.connect(&stage.broker.url()).await;
    let agent = connected.expect("it connects");
    let parties = ["ann", "ben"];
    let data =
        json!({ "debate_id": "d-1", "parties": parties, "until": now().plus_millis(60_000) });
    let of_that_type = Message::new("_", "mallory", "ann", "memory_sync", data.clone());
    of_that_type.publish(&stage.client).await;
    assert_eq!(next_told(&mut stage).await, ["other", "mallory"]);
    let notification = json!({ "event": "memory_sync", "data": data });
    for from in ["mallory", "debate-facilitator"] {
        let told = Message::new("_", from, "ann", "notification", notification.clone());
        told.publish(&stage.client).await;
    }
    let expected = ["memory_sync", "debate-facilitator"];
    assert_eq!(next_told(&mut stage).await, expected);
    let (kind, _) = next_to(&mut stage, "debate-facilitator").await;
    assert_eq!(kind, "acknowledgement");
    agent.close().await.expect("it is closed");
}

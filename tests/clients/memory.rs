//! The Python library remembers, and looks into the memory of others.

use concord_testkit::{Message, TestInstallation, event_data, unique, wait_for};
use serde_json::json;

use crate::python::python;
use crate::stage::PATIENCE;

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
        with_ben = await ben.confirm(case, finding, 0.6, reasoning="The same page.")
        assert with_ben == 0.86, with_ben
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
        "policy": { "importance": { "filtered": true } },
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

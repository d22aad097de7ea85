//! The Python library remembers, and looks into the memory of others.

use concord_testkit::TestInstallation;

use crate::python::python;

const PROGRAM: &str = r#"
import asyncio, sys
from concord_agent import Agent, RequestError

async def main(server):
    ann, ben = (Agent(name, skills=[{"name": "economy"}]) for name in ("ann", "ben"))
    async with await ann.connect(server), await ben.connect(server):
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
        assert [one["topic"] for one in listed["entries"]] == ["regime"], listed
        assert (await ben.memory.list())["agents"] == ["ann"]
        assert await ben.memory.get("ann", "nothing") is None
        for wrong in (
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

asyncio.run(main(sys.argv[1]))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_remembers_and_looks_into_the_memory_of_others() {
    let installation = TestInstallation::start_without_adapter().await;
    let done = python()
        .args(["-c", PROGRAM, installation.server_url()])
        .output()
        .await
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

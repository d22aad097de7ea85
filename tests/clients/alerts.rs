//! The Python library alerts everybody, and hears of an alert before what waits in its durable inbox.

use concord_testkit::{TestInstallation, concord};

use crate::clients::python::python;

const PROGRAM: &str = r#"
import asyncio, sys
from concord_agent import Agent, RequestError

BACKLOG = 500

async def main(server):
    macro, ann, ben = Agent("macro"), Agent("ann", durable=True), Agent("ben")
    handled, heard, both = [], [], asyncio.Event()
    release = asyncio.Event()

    @ann.on("info_update")
    async def note(message):
        await release.wait()
        handled.append(message)

    for name, agent in (("ann", ann), ("ben", ben)):
        @agent.on("alert")
        async def alerted(message, name=name):
            heard.append((name, message.payload["new_regime"], message.payload["raised_by"], len(handled)))
            if len(heard) == 2:
                both.set()

    async with await macro.connect(server), await ann.connect(server), await ben.connect(server):
        try:
            for number in range(BACKLOG):
                await macro.send("ann", "info_update", {"summary": str(number)})
            alert = {"event_type": "regime_change", "new_regime": "BEAR_HIGH_RATES", "confidence": 0.85}
            try:
                await ben.alert(alert)
            except RequestError as why:
                assert why.code == "UNAUTHORIZED", why
            else:
                raise AssertionError("it is refused")
            raised = await macro.alert(alert, message_id="fed-1")
            assert raised["alert"], raised
            await asyncio.wait_for(both.wait(), 60)
            assert sorted(heard) == [("ann", "BEAR_HIGH_RATES", "macro", 0), ("ben", "BEAR_HIGH_RATES", "macro", 0)], heard
        finally:
            release.set()

asyncio.run(main(sys.argv[1]))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_alerts_and_hears_alerts_first() {
    let installation = TestInstallation::start_without_adapter().await;
    let server = installation.server_url();
    let register = [
        "person", "register", "macro", "--agent", "--role", "alerter",
    ];
    let registered = concord(&[&register[..], &["--server", server]].concat());
    let said = String::from_utf8_lossy(&registered.stderr);
    assert!(registered.status.success(), "{said}");
    let done = python()
        .args(["-c", PROGRAM, server])
        .output()
        .await
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
}

//! The Python library asks the group, and agents by it are told to stand down.

use std::path::Path;

use concord_testkit::{TestInstallation, command, finish};
use serde_json::json;

use crate::questions::PATIENCE;
use crate::questions::stage::register;

/// Ann answers nothing until she is told to stand down; ben answers; dan publishes a result, and says no more than what it is; coder asks,
/// and prints what it is told.
const PROGRAM: &str = r#"
import asyncio, json, sys
from contextlib import AsyncExitStack
from concord_agent import Agent, Message, RequestError

async def main() -> None:
    ann, ben, coder, dan = (Agent(name) for name in ("ann", "ben", "coder", "dan"))
    told = asyncio.get_running_loop().create_future()
    beside = asyncio.get_running_loop().create_future()

    @ann.on("group_query")
    async def wait(question: Message) -> None:
        pass

    @ann.on("stand_down")
    async def stand_down(message: Message) -> None:
        told.set_result(message.payload["data"]["question"])

    @ben.on("group_query")
    async def answer(question: Message) -> None:
        await ben.respond(question, {"content": "Ben says so."}, confidence=0.6)

    @dan.on("group_query")
    async def publish(question: Message) -> None:
        await dan.publish_task_result("Dan says so.", "conv-1", metadata={"confidence": 0.9})

    @coder.on("response")
    async def hear(message: Message) -> None:
        beside.set_result(message.from_agent)

    async with AsyncExitStack() as connected:
        for agent in (ann, ben, coder, dan):
            await connected.enter_async_context(await agent.connect(sys.argv[1]))
        found = await coder.ask_group("@ann @ben who knows?", mode="first_responder")
        published = await coder.ask_group("@dan who knows?", "conv-1")
        try:
            await coder.ask_group("Nice weather today, isn't it?")
            failed = None
        except RequestError as why:
            failed = str(why)
        stood_down = await asyncio.wait_for(told, 60)
        print(json.dumps({"by": found["primary"]["by"], "question": found["question"], "stood_down": stood_down,
                          "published": published["primary"],
                          "failed": failed, "beside": await asyncio.wait_for(beside, 60)}))

asyncio.run(main())
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_library_asks_the_group_and_agents_are_told_to_stand_down() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben", "dan"]).await;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tools = finish(&mut command(root.join("scripts/python-tools"))).await;
    assert_eq!(tools.code, 0, "{tools:?}");
    let paths = [root.join("clients/python/src"), root.join(".tools")];
    let mut python = command("python3");
    python.env("PYTHONPATH", std::env::join_paths(paths).unwrap());
    python.args(["-c", PROGRAM, installation.server_url()]);
    let found = finish(&mut python).await.json();
    assert_eq!(found["by"], "ben", "{found}");
    assert_eq!(
        found["beside"], "ben",
        "the answer itself comes too: {found}"
    );
    let published = &found["published"];
    assert_eq!(published["by"], "dan", "{found}");
    assert_eq!(published["payload"]["content"], "Dan says so.", "{found}");
    assert_eq!(published["confidence"], 0.9, "{found}");
    assert_eq!(found["stood_down"], found["question"], "{found}");
    assert_ne!(found["failed"], json!(null), "{found}");
    let failed = found["failed"].as_str().unwrap();
    assert!(failed.contains("wakes nobody"), "{found}");
    installation.holds(PATIENCE).await;
}

//! Tasks by the command of an operator: opened, waited for, listed, cancelled.

use std::path::Path;

use concord_testkit::{CommandOutput, TestInstallation, binaries, command, finish};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tasks::stage::work;

/// The command with a task in a file; the installation is that of the test.
struct Operator<'a> {
    installation: &'a TestInstallation,
    folder: TempDir,
}

impl Operator<'_> {
    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = command(binaries().join("concord"));
        command.args(arguments);
        command.args(["--server", self.installation.server_url()]);
        finish(&mut command).await
    }

    async fn open(&self, terms: Value, more: &[&str]) -> CommandOutput {
        let file = self.folder.path().join("task.json");
        std::fs::write(&file, terms.to_string()).unwrap();
        let arguments = [&["task", "open", path(&file)], more].concat();
        self.run(&arguments).await
    }
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

fn translation(strategy: &str) -> Value {
    json!({
        "strategy": strategy, "task": { "type": "translation", "title": "The annex" },
        "criteria": { "skills": ["translation"] }, "deadline_ms": 30_000
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_opens_a_task_and_waits_for_its_end() {
    let installation = TestInstallation::start_without_adapter().await;
    let skilled = || json!({ "skills": [{ "name": "translation" }] });
    let done = json!({ "status": "success", "result": { "pages": 3 } });
    let ann = move |kind: &str, _: &Value| {
        (kind == "task_assignment").then(|| ("task_result", done.clone()))
    };
    let _ann = work(&installation, "ann", skilled(), ann).await;
    let undone = json!({ "status": "failure", "why": "The page is missing." });
    let ben = move |kind: &str, _: &Value| {
        (kind == "task_assignment").then(|| ("task_result", undone.clone()))
    };
    let _ben = work(&installation, "ben", skilled(), ben).await;
    let operator = Operator {
        installation: &installation,
        folder: tempfile::tempdir().unwrap(),
    };

    let whole = operator.open(translation("round_robin"), &["--wait", "--json"]);
    let whole = whole.await.json();
    assert_eq!(whole["status"], "completed", "{whole}");
    assert_eq!(
        whole["outcome"]["completed"]["result"],
        json!({ "pages": 3 }),
        "{whole}"
    );
    // The only one who is asked fails: the command does, too, and says why.
    let mut alone = translation("round_robin");
    alone["criteria"] = json!({ "agents": ["ben"] });
    let failed = operator.open(alone, &["--wait"]).await;
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("The page is missing."), "{failed:?}");
    // Nobody is in the swarm and nobody joins: it is cancelled by hand.
    let mut empty = translation("swarm");
    empty["criteria"] = json!({ "skills": ["cooking"] });
    let late = operator.open(empty.clone(), &["--wait", "--timeout", "1"]);
    let late = late.await.refused(1);
    assert!(late.contains("has not ended after 1 s"), "{late}");
    let listed = operator.run(&["task", "list", "--open", "--json"]).await;
    let listed = listed.json();
    let id = listed[0]["task_id"].as_str().unwrap().to_owned();
    let cancel = ["task", "cancel", &id, "--why", "nobody came"];
    operator.run(&cancel).await.good();
    let shown = operator.run(&["task", "show", &id]).await.good();
    assert!(
        shown.contains("cancelled by operator: nobody came"),
        "{shown}"
    );

    let unknown = operator.open(translation("lottery"), &[]).await.refused(65);
    assert!(
        unknown.contains("There is no strategy \"lottery\""),
        "{unknown}"
    );
    let help = operator.run(&["task", "open", "--help"]).await.good();
    for (strategy, _) in concord_domain::aggregates::task::strategy::ALL {
        assert!(help.contains(strategy), "{strategy}: {help}");
    }
}

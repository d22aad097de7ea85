//! Whom messages wake: decided once, recorded, told to those who wake, and answered by a hosted agent to whoever asked.

use concord_testkit::{Message, TestInstallation, concord, settled, stored, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::PATIENCE;
use crate::stage::{answer_to, becomes, card, facts, names, read, to_coordinator};

fn skills(of: &str) -> Value {
    let examples = match of {
        "tax" => [
            "Who bears the value added tax?",
            "Is VAT included in the price?",
            "Does reverse charge apply here?",
        ],
        _ => [
            "Which indexes does this query need?",
            "How large should the connection pool be?",
            "Normalise this schema.",
        ],
    };
    json!({ "skills": [{ "name": of, "examples": examples }] })
}

fn query(from: &str, text: &str) -> Message {
    Message::new("_", from, "_any", "group_query", json!({ "content": text }))
}

async fn decided(installation: &TestInstallation, message: &Message) -> Value {
    let found = until(
        format!("a decision about {}", message.id()),
        PATIENCE,
        async || {
            let all = facts(installation.client(), "wake", "decided").await;
            all.into_iter()
                .find(|one| one["said"]["message_id"] == message.id())
                .ok_or_else(|| "there is none".to_owned())
        },
    );
    found.await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_to_the_group_wakes_whom_it_concerns_and_a_mention_wakes_whom_it_names() {
    let [ann, tax, base, prog] = names(["ann", "tax", "base", "prog"]);
    let hosted = prog.clone();
    let installation = TestInstallation::start_with(move |mut plan| {
        let (program, config) = (plan.directory.join("answers.py"), plan.directory.join("adapter.toml"));
        std::fs::write(&program, ANSWERS).unwrap();
        let settings = format!(
            "[[service.agents]]\nagent_id = {hosted:?}\ntriggers = [\"coffee\"]\ncommand = [\"python3\", {:?}]\n",
            program.display().to_string()
        );
        std::fs::write(&config, settings).unwrap();
        plan.adapter_config = Some(config);
        plan
    })
    .await;
    let client = installation.client();
    for (agent, of) in [(&tax, "tax"), (&base, "database")] {
        to_coordinator(agent, "register_agent", card(agent, &skills(of)))
            .publish(client)
            .await;
        becomes(&installation, agent, Some("available")).await;
    }
    becomes(&installation, &prog, Some("available")).await;

    let about_tax = query(&ann, "Is the value added tax included in the price?");
    about_tax.publish(client).await;
    let decision = decided(&installation, &about_tax).await;
    let woken: Vec<&str> = decision["woken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["agent_id"].as_str().unwrap())
        .collect();
    assert_eq!(woken, [tax.as_str()], "{decision}");
    assert_eq!(decision["woken"][0]["reason"], "semantic:tax");
    let told = until("the agent to be told", PATIENCE, async || {
        let filter = format!("concord.v1.msg.*.*.{tax}.notification");
        let said = stored(
            client,
            concord_events::topology::StreamKind::Messages,
            &filter,
        );
        said.await?
            .into_iter()
            .next()
            .ok_or_else(|| "it is not".to_owned())
    });
    let told = told.await.unwrap_or_else(|error| panic!("{error}")).json();
    assert_eq!(
        told["payload"]["data"]["message"]["message_id"],
        about_tax.id(),
        "{told}"
    );

    // A mention wakes the hosted agent, which answers whoever asked and was given what was said before.
    let thread = query(&ann, &format!("@{prog} what do you say?"))
        .with("/correlation_id", json!(about_tax.id()));
    thread.publish(client).await;
    let (kind, said) = answer_to(client, &about_tax).await;
    assert_eq!(
        (kind.as_str(), &said["reason"]),
        ("info_update", &json!("mention")),
        "{said}"
    );

    // By what it matches is said where operators look.
    let adapter = (Service::AgentAdapter, 1);
    let metrics = read(&installation, adapter, "/metrics").await.concat();
    for (way, is) in [("letters", 1), ("model", 0), ("server", 0)] {
        assert!(
            metrics.contains(&format!("concord_wake_matching{{by=\"{way}\"}} {is}\n")),
            "{metrics}"
        );
    }
    let ready = read(&installation, adapter, "/readyz").await.concat();
    assert!(
        ready.contains(r#""ready":true,"reasons":[],"notes":["there is no model"#),
        "{ready}"
    );

    // Without skills that fit, its phrase wakes it.
    let coffee = query(&ann, "Is there any coffee left?");
    coffee.publish(client).await;
    let decision = decided(&installation, &coffee).await;
    let reasons: Vec<&Value> = decision["woken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["reason"])
        .collect();
    assert_eq!(reasons, ["keyword:coffee"], "{decision}");

    // Of whatever type: what everyone hears is observed, and wakes whom it names.
    let note = Message::new(
        "_",
        &ann,
        "_all",
        "note",
        json!({ "text": format!("Done, as @{prog} knows.") }),
    );
    note.publish(client).await;
    let decision = decided(&installation, &note).await;
    let woken: Vec<&Value> = decision["woken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["agent_id"])
        .collect();
    assert_eq!(
        (woken, &decision["observing"]),
        (vec![&json!(prog)], &json!(2)),
        "{decision}"
    );

    // The command says of each what decided.
    for (message, how) in [
        (&coffee, "compared by letters, without a model"),
        (&note, "by whom it names"),
    ] {
        let output = concord(&[
            "wake",
            "explain",
            message.id(),
            "--server",
            installation.server_url(),
        ]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains(how) && said.contains(prog.as_str()),
            "{said}"
        );
    }
    let output = concord(&[
        "wake",
        "explain",
        "no-such-message",
        "--server",
        installation.server_url(),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("nothing was decided about no-such-message"),
        "{said}"
    );

    // Everyone is mentioned; so many are woken by it and no more.
    let nobody = query(&ann, "Nice weather today, isn't it?");
    nobody.publish(client).await;
    assert_eq!(decided(&installation, &nobody).await["woken"], Value::Null);
    settled(client, PATIENCE).await.unwrap();
    installation.holds(PATIENCE).await;
}

/// A program that says why it was woken.
const ANSWERS: &str = r#"
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    print(json.dumps({"message_type": "info_update", "payload": {"reason": m.get("reason"), "context": m.get("context")}}), flush=True)
"#;

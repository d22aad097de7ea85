//! Rulings that count and rulings that do not.

use concord_testkit::{COMMAND_MAX, CommandOutput, message_bodies, wait_for};
use serde_json::{Value, json};

use super::Stage;

async fn rule(
    stage: &Stage,
    debate: &str,
    expert: &str,
    position: &str,
    more: &str,
) -> CommandOutput {
    let line = format!(
        "rule {debate} --expert {expert} --position {position} --rationale 'The filing says so.' {more}"
    );
    stage.run(line.trim_end()).await
}

/// Rulings that do not count, and the one that does.
pub(super) async fn rulings(stage: &Stage, debate: &str, digest: &Value) {
    for (expert, position, reason) in [
        ("eva", "p9", "/payload/position_id"),
        ("fay", "p1", "UNAUTHORIZED"),
    ] {
        let refused = rule(stage, debate, expert, position, "").await.refused(1);
        assert!(refused.contains(reason), "{refused}");
    }
    changed(stage, debate, digest).await;

    let reassign = format!("queue reassign {debate} --to fay --why 'eva is away'");
    stage.good(&reassign).await;
    stage
        .until("queue next --expert fay", |next| !next.is_null())
        .await;
    told_that_somebody_else_has_it(stage, debate).await;
    let late = rule(stage, debate, "eva", "p2", "").await.refused(1);
    assert!(late.contains("UNAUTHORIZED"), "{late}");
    let ruled = rule(stage, debate, "fay", "p2", "--json").await.json();
    assert_eq!(
        (&ruled["counts"], &ruled["digest_of_latest_brief"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(ruled["data"]["outcome"]["resolution"]["value"], 30);
    let again = rule(stage, debate, "fay", "p1", "").await.refused(1);
    assert!(again.contains("The debate is resolved (ruling)"), "{again}");
    let why = "fay: The filing says so.";
    let shown = stage.good(&format!("debate show {debate}")).await;
    for seen in ["resolved (ruling): 30 %", why, "ruling_set_aside"] {
        assert!(shown.contains(seen), "{seen:?} is missing:\n{shown}");
    }
    let shown = stage.good("case show c-1").await;
    assert!(shown.contains(why), "{shown}");
}

/// `eva` had it before `fay` was given it.
async fn told_that_somebody_else_has_it(stage: &Stage, debate: &str) {
    let client = stage.installation.client();
    let told = wait_for("eva to be told", COMMAND_MAX, async || {
        let messages = message_bodies(
            client,
            "concord.v1.msg.*.debate-facilitator.eva.notification",
        )
        .await?;
        let mut payloads = messages
            .into_iter()
            .map(|message| message["payload"].clone());
        payloads
            .find(|payload| payload["event"] == "debate_unassigned")
            .ok_or_else(|| "she is not".to_owned())
    })
    .await;
    assert_eq!(
        (&told["data"]["debate_id"], &told["data"]["reason"]),
        (&json!(debate), &json!("reassigned"))
    );
    let shown = stage.good(&format!("debate show {debate}")).await;
    assert!(shown.contains("to fay, instead of eva"), "{shown}");
}

/// What comes in between changes the brief: the ruling on the old one does not count.
async fn changed(stage: &Stage, debate: &str, digest: &Value) {
    let evidence = json!({ "evidence": ["The peers' reports"] });
    stage.send(debate, "sid", "evidence", evidence).await;
    stage
        .until("queue next --expert eva", |next| next["digest"] != *digest)
        .await;
    let old = format!("--digest {}", digest.as_str().unwrap());
    let changed = rule(stage, debate, "eva", "p2", &old).await.refused(1);
    for part in [
        "does not count",
        "has changed",
        "sid: new evidence \"The peers' reports\"",
    ] {
        assert!(changed.contains(part), "{changed}");
    }
    let aside = rule(stage, debate, "eva", "p2", &format!("{old} --json")).await;
    let printed: Value = serde_json::from_str(&aside.out).unwrap();
    assert_eq!(
        (aside.code, &printed["counts"], &printed["fact"]),
        (1, &json!(false), &json!("ruling_set_aside"))
    );
}

/// Another challenge, ruled with a position of the expert's own and without waiting.
pub(super) async fn own_position(stage: &Stage) {
    let debate = stage.challenge().await;
    let early = format!("outcome {debate} --held-by fin --because x --from eva");
    stage.refused(&early, "not resolved yet").await;
    stage.answered(&debate).await;
    stage.disagree(&debate, "Still last year's.").await;
    let next = stage
        .until("queue", |queue| {
            queue["assigned"][0]["debate_id"] == debate.as_str()
        })
        .await;
    let expert = next["assigned"][0]["expert"].as_str().unwrap();
    stage
        .until(&format!("queue next --expert {expert}"), |next| {
            !next.is_null()
        })
        .await;
    let own = format!(
        "rule {debate} --own '27 %' --value 27 --rationale 'between the two' --expert {expert} --no-wait"
    );
    assert!(stage.good(&own).await.contains("is sent as"));
    let show = format!("debate show {debate}");
    let ruled = stage
        .until(&show, |shown| shown["outcome"]["status"] == "ruling")
        .await;
    assert_eq!(ruled["outcome"]["resolution"]["value"], 27);
}

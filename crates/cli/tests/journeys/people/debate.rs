//! A debate is given to a person, who rules; operators control its deadlines.

use serde_json::{Value, json};

use super::{Stage, outcome, ruling};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_given_a_debate_and_rules() {
    let stage = Stage::start(60).await;
    register(&stage).await;
    let debate = stage.challenge().await;
    controls(&stage, &debate).await;
    let digest = given(&stage, &debate).await;
    ruling::rulings(&stage, &debate, &digest).await;
    logged(&stage).await;
    outcome::outcomes(&stage, &debate).await;
    ruling::own_position(&stage).await;
    cancelled(&stage).await;
    people(&stage).await;
    stage.holds().await;
}

/// Registers two experts.
async fn register(stage: &Stage) {
    let nobody = stage.good("queue").await;
    assert!(
        nobody.starts_with("No debate waits for a person (0 experts registered"),
        "{nobody}"
    );
    let eva = "person register eva --role arbiter --role outcome_source --domain valuation --name 'Eva S.' \
               --email e@example.org";
    let registered = stage.good(eva).await;
    assert!(
        registered.contains("eva is registered: arbiter in valuation; outcome_source in valuation"),
        "{registered}"
    );
    stage
        .good("person register fay --role arbiter --capacity 1")
        .await;
    stage
        .until("expert list", |experts| {
            experts.as_array().unwrap().len() == 2
        })
        .await;
}

/// People are listed, shown, suspended and resumed; an arbiter who is suspended leaves the queue.
async fn people(stage: &Stage) {
    let names = |people: &Value| -> Vec<String> {
        let people = people.as_array().unwrap().iter();
        people
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&stage.json("person list").await),
        ["eva", "fay", "gail"]
    );
    let reviewers = stage.json("person list --role reviewer").await;
    assert_eq!(names(&reviewers), ["gail"]);
    let suspend = "person suspend eva --why 'on holiday' --by olga";
    assert!(stage.good(suspend).await.contains("is suspended"));
    assert!(stage.good(suspend).await.contains("already"));
    let shown = stage.json("person show eva").await;
    assert_eq!(
        (&shown["suspended"], &shown["roles"][0]["role"]),
        (&json!("on holiday"), &json!("arbiter"))
    );
    assert!(
        stage
            .good("person show eva")
            .await
            .contains("suspended: on holiday")
    );
    let is_known = |experts: &Value| experts.as_array().unwrap().len() == 2;
    stage
        .until("expert list", |experts| !is_known(experts))
        .await;
    let next = "queue next --expert eva";
    stage.refused(next, "is not registered").await;
    let again = "person register eva --role arbiter";
    stage.refused(again, "concord person resume eva").await;
    kept(stage).await;
    stage.until("expert list", is_known).await;
    stage
        .refused("person suspend nobody --why so", "Nobody is registered")
        .await;
    stage
        .refused("person show nobody", "nobody is registered")
        .await;
}

/// With --keep somebody who is suspended is left alone, and what is not given stays as it is. Eva may act again then.
async fn kept(stage: &Stage) {
    let again = "person register eva --keep --role arbiter --role reviewer";
    let suspended = stage.json("person show eva").await;
    let left = stage.run(again).await;
    assert_eq!((left.code, left.out.as_str()), (0, ""));
    assert!(
        left.err
            .contains("warning: eva stays as they are (suspended: on holiday)"),
        "{left:?}"
    );
    assert_eq!(stage.json("person show eva").await, suspended);
    stage.good("person resume eva").await;
    stage.good(again).await;
    let shown = stage.json("person show eva").await;
    assert_eq!(
        (
            &shown["roles"][1]["role"],
            &shown["display_name"],
            &shown["contact"]
        ),
        (
            &json!("reviewer"),
            &suspended["display_name"],
            &suspended["contact"]
        )
    );
    assert_eq!(shown["display_name"], "Eva S.");
    let nobody = stage.run("person register nobody --keep").await.refused(2);
    assert!(nobody.contains("nobody is registered as nobody yet"));
}

/// The debate goes to eva; the digest of her brief.
async fn given(stage: &Stage, debate: &str) -> Value {
    stage.answered(debate).await;
    let too_early = format!("rule {debate} --position p1 --rationale so --expert eva");
    stage
        .refused(&too_early, "nobody has been given the debate")
        .await;
    stage.disagree(debate, "That is last year's.").await;

    let next = stage
        .until("queue next --expert eva", |next| !next.is_null())
        .await;
    assert_eq!(next["brief"]["debate_id"], debate);
    let text = stage.good("queue next --expert eva").await;
    let named = format!("queue next --expert eva --debate {debate}");
    assert_eq!(stage.json(&named).await["brief"]["debate_id"], debate);
    let other = stage.good("queue next --expert eva --debate d-other").await;
    assert!(other.contains("eva has no brief of d-other now"), "{other}");
    for seen in [
        "sid disputes fin",
        "ROI of five years",
        "evidence: 10-K page 45",
        next["digest"].as_str().unwrap(),
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let queue = stage.json("queue").await;
    assert_eq!(
        (&queue["assigned"][0]["expert"], &queue["waiting"]),
        (&json!("eva"), &json!([]))
    );
    assert_eq!(queue["assigned"][0]["due"], next["due"]);
    assert!(stage.good("queue").await.contains("critical-path"));
    assert_eq!(stage.json("expert list").await[0]["has"], json!([debate]));
    held(stage, debate).await;
    next["digest"].clone()
}

/// While an operator holds the time, it is not over for whoever has the debate.
async fn held(stage: &Stage, debate: &str) {
    let control = async |verb: &str| {
        let line = format!("debate {verb} {debate} --by olga --why 'a window'");
        stage.good(&line).await
    };
    control("hold").await;
    let text = stage.good("queue next --expert eva").await;
    assert!(text.contains("and later: an operator holds it"), "{text}");
    control("resume").await;
}

/// What an operator can do to the deadlines of a debate.
async fn controls(stage: &Stage, debate: &str) {
    let control = async |verb: &str, more: &str| {
        let line = format!("debate {verb} {debate} --by olga --why 'a window' {more}");
        stage.json(line.trim_end()).await
    };
    let show = format!("debate show {debate}");
    let before = stage.json(&show).await;
    let waits_for = before["waits_for"].as_array().unwrap();
    assert_eq!((&before["level"], waits_for.len()), (&json!(1), 2));
    let held = control("hold", "").await;
    assert_eq!(
        (&held["waits_for"], &held["done"]["fact"]),
        (&json!([]), &json!("deadlines_moved"))
    );
    let again = control("hold", "").await;
    assert_eq!(again["done"]["fact"], Value::Null, "it is held already");
    let shown = stage.json(&show).await;
    assert_eq!(shown["held"], before["waits_for"]);
    control("extend", "--hours 1").await;
    let resumed = control("resume", "").await;
    assert!(
        resumed["waits_for"][0]["due"].as_str() > before["waits_for"][0]["due"].as_str(),
        "{resumed}"
    );
    let unknown = "debate hold d-none --by olga --why 'a window'";
    stage.refused(unknown, "there is no debate d-none").await;
}

/// The ruling is in the decision log.
async fn logged(stage: &Stage) {
    stage
        .until("queue", |queue| queue["assigned"] == json!([]))
        .await;
    let listed = stage
        .until("decisions list c-1", |entries| {
            entries[0]["entry"]["method"] == "ruling"
        })
        .await;
    assert_eq!(listed[0]["entry"]["by"], "fay");
    let entry = listed[0]["entry"]["entry_id"].as_str().unwrap();
    let text = stage.good(&format!("decisions show {entry}")).await;
    assert!(
        text.contains("as it was written") && text.contains("The filing says so."),
        "{text}"
    );
    stage
        .refused("decisions show c-1-9", "has no entry 9")
        .await;
    stage.refused("decisions show c-1", "c-1 is a case").await;
}

/// An operator cancels a debate.
async fn cancelled(stage: &Stage) {
    let debate = stage.challenge().await;
    let cancel = format!("debate cancel {debate} --by olga --why 'a mistake'");
    stage.good(&cancel).await;
    let shown = stage.json(&format!("debate show {debate}")).await;
    assert_eq!(
        (&shown["outcome"]["status"], &shown["waits_for"]),
        (&json!("cancelled"), &json!([]))
    );
}

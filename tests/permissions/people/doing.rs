//! What each role sees and does, and what it is refused.

use concord_testkit::{CommandOutput, Message, concord, events, unique, wait_for};
use concord_wire::AgentId;
use serde_json::{Value, json};

use super::{Cast, Stage};
use crate::permissions::PATIENCE;

/// A case that is decided, and a debate that a challenge in it has led to.
pub(super) struct Matter {
    pub(super) case: String,
    pub(super) debate: String,
    ann: String,
}

/// Opens a case in the name of an operator and has a finding in it challenged. Time is divided by `scale`.
pub(super) async fn challenged(stage: &Stage, scale: u32) -> Matter {
    let client = stage.installation.client();
    let [case, ann, ben] = ["case", "ann", "ben"].map(unique);
    let opening = json!({
        "case_id": case, "participants": [ann, ben], "task": { "type": "test" }, "gates": ["valuation"],
        "policy": { "ladder": { "time_scale": scale } },
    });
    let id = stage.installation.open_case(&opening).await;
    for agent in [&ann, &ben] {
        let finding = json!({ "summary": "Seen." });
        Message::finding(&case, agent, finding, 0.8)
            .store(client)
            .await;
    }
    stage.installation.decision(&id, PATIENCE).await;
    let challenge = json!({
        "challenger": ann, "challenged": ben, "disputed_finding": "Operating margin of 25 %",
        "challenge_basis": "ROI declining despite claims", "metric": "operating margin", "challenged_value": 25, "value": 30,
        "domain": "valuation",
    });
    Message::new(&case, &ann, "coordinator", "challenge", challenge)
        .store(client)
        .await;
    // The debate is there when it can be answered in, which is a moment after the challenge.
    let debate = wait_for("the debate", PATIENCE, async || {
        let opened = events(client, "debate.*.opened").await?;
        let mut data = opened.iter().map(|event| event.json());
        let of_case = data.find(|one| one["data"]["case_id"] == case.as_str());
        of_case
            .map(|one| one["id"].clone())
            .ok_or_else(|| "none".to_owned())
    });
    let debate = debate.await.as_str().expect("an id").to_owned();
    if scale == 1 {
        let evidence = json!({ "evidence": ["10-K page 45"] });
        stage
            .say(&case, &debate, &ben, "acknowledgement", json!({}))
            .await;
        stage.say(&case, &debate, &ben, "evidence", evidence).await;
        let given = format!("debate.{debate}.evidence_given");
        wait_for(&given, PATIENCE, async || {
            let events = events(client, &given).await?;
            events.first().map(|_| ()).ok_or_else(|| "none".to_owned())
        })
        .await;
        let reasoning = json!({ "reasoning": "Still last year's." });
        stage
            .say(&case, &debate, &ann, "disagreement", reasoning)
            .await;
    }
    Matter { case, debate, ann }
}

/// An arbiter sees the queue and the brief, and rules; then a source of outcomes says what proved right.
pub(super) async fn check_ruling(stage: &Stage, matter: &Matter) {
    let Cast { amy, rob, otto, .. } = &stage.cast;
    let Matter { debate, ann, case } = matter;
    let has_it = |queue: &Value| queue["assigned"][0]["debate_id"] == debate.as_str();
    stage.until(amy, "queue", has_it).await;
    reassigned(stage, debate).await;
    // Who asks under a name need not say it again.
    let brief = stage.until(amy, "queue next", |next| !next.is_null());
    let brief = brief.await;
    assert_eq!(brief["brief"]["debate_id"], debate.as_str());
    let experts = stage.good(amy, "expert list --json").await;
    assert!(experts.contains(amy.as_str()) && !experts.contains("example.org"));

    let rule = |who: &AgentId| {
        format!("rule {debate} --expert {who} --position p2 --rationale 'The filing says so.'")
    };
    stage.refused(rob, &rule(rob), "does not let").await;
    let as_another = stage.run(amy, &rule(rob)).await.refused(2);
    assert!(as_another.contains("you are amy"), "{as_another}");
    let ruled = stage.json(amy, &rule(amy)).await;
    assert_eq!(
        (&ruled["counts"], &ruled["fact"]),
        (&json!(true), &json!("resolved"))
    );
    // A refusal comes as a message to whoever sent what is refused, and is heard.
    let again = stage.run(amy, &rule(amy)).await.refused(1);
    assert!(again.contains("The debate is resolved"), "{again}");

    let outcome =
        |who: &AgentId| format!("outcome {debate} --held-by {ann} --because report --from {who}");
    stage.refused(amy, &outcome(amy), "does not let").await;
    let known = stage.good(otto, &outcome(otto)).await;
    assert!(known.contains(&format!("{ann} was ")), "{known}");
    let show = format!("record show {ann} --domain valuation");
    let two = |record: &Value| record["domains"][0]["credibility"]["observations"] == 2;
    stage.until(rob, &show, two).await;
    stage.good(rob, &format!("debate show {debate}")).await;
    stage
        .good(amy, &format!("case show {case} --version 1"))
        .await;
}

/// An operator gives the debate to somebody else, and back.
async fn reassigned(stage: &Stage, debate: &str) {
    let amy = stage.cast.amy.to_string();
    let ida = unique("ida");
    let expert = json!({ "agent_id": ida, "contact": { "email": "ida@example.org" } });
    stage.installation.register_expert(&expert).await;
    for to in [ida, amy] {
        let reassign = [
            "queue",
            "reassign",
            debate,
            "--to",
            &to,
            "--why",
            "Holidays.",
        ];
        let server = ["--server", stage.installation.server_url()];
        CommandOutput::from(concord(&[&reassign[..], &server].concat())).good();
        let assigned = format!("debate.{debate}.assigned");
        wait_for("the debate to hear of it", PATIENCE, async || {
            let events = events(stage.installation.client(), &assigned).await?;
            let last = events.last().map(|event| event.json()["data"].clone());
            let last = last.ok_or_else(|| "none".to_owned())?;
            let is_it =
                last["briefed"]["expert"] == to.as_str() && last.get("instead_of").is_some();
            is_it.then_some(()).ok_or_else(|| last.to_string())
        })
        .await;
    }
}

/// A reviewer sees the gate, reviews what stands provisionally, and lets the case pass.
pub(super) async fn check_review(stage: &Stage, matter: &Matter) {
    let Cast { rob, amy, .. } = &stage.cast;
    let Matter { debate, case, .. } = matter;
    let show = format!("gate show {case}");
    let waits = |shown: &Value| shown["provisional"][0]["conflict_id"] == debate.as_str();
    stage.until(rob, &show, waits).await;
    let waiting = stage.json(rob, "gate list").await;
    assert_eq!(waiting[0]["case_id"], case.as_str(), "{waiting:#}");
    let review = |who: &AgentId, what: &str| {
        format!("gate review {case} --gate valuation --by {who} {what}")
    };
    stage
        .refused(amy, &review(amy, "--pass"), "does not let")
        .await;
    let confirmed = stage
        .good(rob, &review(rob, &format!("--confirm {debate}")))
        .await;
    assert!(confirmed.contains("is final"), "{confirmed}");
    let in_own_name = format!("gate review {case} --gate valuation --pass");
    let passed = stage.good(rob, &in_own_name).await;
    assert!(passed.contains("passed"), "{passed}");
    let listed = stage.json(rob, &format!("gate list {case}")).await;
    assert_eq!(listed["gates"][0]["passed"]["by"], rob.as_str());
    let wrong = stage.run(rob, &review(rob, "--pass")).await;
    assert!(wrong.refused(1).contains("INVALID_REQUEST"));
}

/// What the views of cases and decisions show to whom.
pub(super) async fn check_views(stage: &Stage, matter: &Matter) {
    let Cast {
        amy,
        rob,
        adam,
        otto,
        olga,
        nora,
    } = &stage.cast;
    let case = &matter.case;
    for line in [
        format!("case show {case}"),
        format!("case transcript {case}"),
        format!("case watch {case} --from-start"),
        format!("decisions list {case}"),
        format!("decisions show {case}-1"),
        "decisions list".to_owned(),
        "decisions export".to_owned(),
        "case list --limit 0".to_owned(),
    ] {
        let shown = stage.good(rob, &line).await;
        assert!(
            shown.contains(case.as_str()) || line.contains("watch"),
            "{line}: {shown}"
        );
        let audited = stage.good(adam, &line).await;
        assert_eq!(shown.lines().count(), audited.lines().count(), "{line}");
        let why = if line.contains("transcript") {
            "does not let"
        } else {
            "may not read"
        };
        stage.refused(otto, &line, why).await;
        stage.refused(nora, &line, "may not ask").await;
    }
    for line in ["queue", "expert list", "record show ann"] {
        stage.refused(olga, line, "may not read").await;
        stage.refused(otto, line, "may not read").await;
    }
    let show = format!("person show {amy}");
    stage.refused(rob, &show, "may not read").await;
    assert!(stage.good(adam, &show).await.contains("amy@example.org"));
    let experts = stage.good(adam, "expert list --json").await;
    assert!(experts.contains("amy@example.org"));
}

/// An opener opens a case and sees it, and nothing of the cases of others.
pub(super) async fn check_opener(stage: &Stage, other: &Matter) {
    let (olga, client) = (&stage.cast.olga, stage.installation.client());
    let [case, ann] = ["own", "ann"].map(unique);
    let opening = json!({ "case_id": case, "participants": [ann], "task": { "type": "test" } });
    let file = stage.installation.directory().join("case.json");
    std::fs::write(&file, opening.to_string()).expect("written");
    let open = format!("case open '{}' --wait", file.display());
    let opened = format!("case.{case}.opened");
    let answered = async {
        wait_for(&opened, PATIENCE, async || {
            let events = events(client, &opened).await?;
            events.first().map(|_| ()).ok_or_else(|| "none".to_owned())
        })
        .await;
        let finding = json!({ "summary": "Seen." });
        Message::finding(&case, &ann, finding, 0.8)
            .store(client)
            .await;
    };
    let (shown, ()) = tokio::join!(stage.good(olga, &open), answered);
    assert!(shown.contains("Decision, version 1"), "{shown}");
    let listed = stage.json(olga, "case list --limit 0").await;
    let listed: Vec<&Value> = listed.as_array().expect("a list").iter().collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["case_id"], case.as_str());
    let decisions = stage.json(olga, "decisions list").await;
    let of_others = decisions.as_array().expect("a list").iter();
    assert_eq!(
        of_others
            .filter(|entry| entry["case_id"] != case.as_str())
            .count(),
        0
    );
    for line in [
        format!("case show {}", other.case),
        format!("case transcript {}", other.case),
        format!("gate list {}", other.case),
        format!("decisions export {}", other.case),
        format!("debate show {}", other.debate),
        "case show nowhere".to_owned(),
    ] {
        stage.refused(olga, &line, "may not read the ").await;
    }
}

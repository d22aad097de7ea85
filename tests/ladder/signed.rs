//! People who read the whole brief, and sign what they rule and review; and what becomes of it when somebody changes that.

use std::path::Path;

use concord_testkit::{CommandOutput, Message, concord_at, wait_for};
use serde_json::{Value, json};

use crate::ladder::PATIENCE;
use crate::ladder::stage::Stage;

/// Positions of the expert's own, that stand nowhere else.
const OWN: &str = "Twenty-one, by annex 7.";

/// Runs `concord` on the installation of a stage.
async fn concord(stage: &Stage, arguments: &[&str]) -> CommandOutput {
    concord_at(stage.installation.server_url(), arguments).await
}

/// What it prints as JSON; it must succeed.
async fn printed(stage: &Stage, arguments: &[&str]) -> Value {
    concord(stage, &[arguments, &["--json"]].concat())
        .await
        .json()
}

/// It fails with exit code 1 and says this.
#[track_caller]
fn refused(output: &CommandOutput, said: &[&str]) {
    assert_eq!(output.code, 1, "{output:?}");
    for words in said {
        assert!(output.err.contains(words), "{words}: {output:?}");
    }
}

/// Makes a pair of keys: the file of the secret one, and that of the public one.
async fn keys(stage: &Stage, name: &str) -> [String; 2] {
    let file = stage.installation.directory().join(name);
    let file = file.to_str().expect("a path").to_owned();
    concord(stage, &["keys", "generate", &file]).await.good();
    let public = format!("{file}.pub");
    [file, public]
}

/// A case about a risk score of 20 or 80 whose people sign, and in which strategy has spoken in the only round.
async fn asked(person_ms: u64) -> Stage {
    let stage = Stage::empty().await;
    ask(&stage, person_ms).await;
    stage
}

/// Opens that case.
async fn ask(stage: &Stage, person_ms: u64) {
    let times = json!({
        "opinion_ms": 1, "mediation_ms": 30_000, "person_ms": person_ms, "provisional_ms": 60_000,
    });
    let terms = json!({
        "gates": ["release"],
        "task": { "type": "contract", "title": "The lease", "input": "Clause one.\nClause two." },
        "policy": {
            "conflict_handling": "ladder", "case_timeout_ms": 3_600_000, "finding_timeout_ms": 600_000, "rounds_max": 1,
            "answer_timeout_ms": 600_000, "decide": "when_settled",
            "ladder": { "domain": "valuation", "signed": true, "digest_required": true, "times": times },
        },
    });
    stage.open(terms).await;
    let finding = |score: u32, evidence: &str| json!({ "summary": "Seen.", "risk_score": score, "evidence": [evidence] });
    stage
        .give_findings([finding(20, "annex 7"), finding(80, "annex 8")])
        .await;
    for (agent, kind) in [
        (&stage.finance, "disagreement"),
        (&stage.strategy, "disagreement"),
    ] {
        let question = stage.message_to(agent, "question", |_| true).await;
        let answer = json!({ "reasoning": format!("{agent} has reasons.") });
        let answer = Message::new(&stage.case, agent, "debate-facilitator", kind, answer)
            .with("/reply_to", question["message_id"].clone());
        stage.send(&answer).await;
    }
}

/// Registers somebody with this role and public key, by the command.
async fn register(stage: &Stage, name: &str, role: &str, public: &str) {
    let arguments = [
        "person",
        "register",
        name,
        "--role",
        role,
        "--public-key",
        public,
    ];
    printed(stage, &arguments).await;
}

/// The brief that the expert reads, once they have one.
async fn brief(stage: &Stage, expert: &str) -> Value {
    wait_for("a brief", PATIENCE, async || {
        let next = concord(stage, &["queue", "next", "--expert", expert, "--json"]).await;
        let read: Value = serde_json::from_str(&next.out).map_err(|error| error.to_string())?;
        let is_there = read["digest"].is_string();
        is_there.then_some(read).ok_or_else(|| next.out.clone())
    })
    .await
}

/// Everything that a person needs to rule is in the brief.
fn check_brief(stage: &Stage, read: &Value) {
    let background = &read["brief"]["background"];
    assert_eq!(background["task"]["input"], "Clause one.\nClause two.");
    let found = background["findings"].as_array().expect("findings");
    let evidence: Vec<&Value> = found.iter().map(|one| &one["evidence"][0]).collect();
    assert_eq!(evidence, ["annex 7", "annex 8"], "{background:#}");
    let said = background["said"].as_array().expect("what was said");
    let words: Vec<&str> = said
        .iter()
        .filter_map(|one| one["words"].as_str())
        .collect();
    for agent in [&stage.finance, &stage.strategy] {
        assert!(words.contains(&format!("{agent} has reasons.").as_str()));
        let known = &background["credibility"][agent.as_str()];
        assert_eq!(
            known["factors"][0]["name"], "base_accuracy",
            "{background:#}"
        );
    }
    assert_eq!(background["depends"]["awaited"], true);
    assert_eq!(background["depends"]["gate"], "release");
    let rest = ["positions", "mediation"].map(|part| &read["brief"][part]);
    assert!(rest.iter().all(|part| !part.is_null()), "{read:#}");
}

/// What does not count as a ruling: unsigned, with another's key, on another brief, on no brief.
async fn check_refused_rulings(stage: &Stage, rule: &[&str], digest: &str, key: &str, other: &str) {
    let run = async |more: &[&str]| concord(stage, &[rule, more].concat()).await;
    refused(
        &run(&["--key", key]).await,
        &["asks for the digest", "--digest"],
    );
    let unsigned = run(&["--digest", digest]).await;
    refused(
        &unsigned,
        &["asks for a signature", "concord rule --key FILE"],
    );
    let strange = run(&["--digest", digest, "--key", other]).await;
    refused(
        &strange,
        &["It is signed with the key", "registered for eve"],
    );
    let stale = run(&["--digest", &"0".repeat(64), "--key", key]).await;
    refused(&stale, &["does not count", digest]);
}

/// `check` finds nothing, and has looked at so many signatures.
async fn check_signatures(stage: &Stage, number: u64) {
    wait_for("a clean check", PATIENCE, async || {
        let output = concord(stage, &["check", "--json"]).await;
        let report: Value = serde_json::from_str(&output.out).map_err(|error| error.to_string())?;
        let signatures = report["invariants"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["name"] == "signatures"))
            .ok_or("no invariant")?;
        let is_good = output.code == 0 && signatures["examined"] == number;
        is_good.then_some(()).ok_or_else(|| output.out.clone())
    })
    .await;
}

/// Replaces the first occurrence of a text in the events of a bundle.
fn change(bundle: &Path, from: &str, to: &str) {
    let path = bundle.join("events.jsonl");
    let text = std::fs::read_to_string(&path).expect("the events");
    assert!(text.contains(from), "no {from}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("it is written");
}

/// Whoever changes the ruling in what is stored is found out.
async fn check_tampering(stage: &Stage) {
    let bundle = stage.installation.directory().join("bundle");
    let path = bundle.to_str().expect("a path");
    concord(stage, &["audit", "export", path]).await.good();
    change(&bundle, OWN, "Ninety, by annex 9.");
    let output = concord(stage, &["audit", "verify", path, "--json"]).await;
    let report: Value = serde_json::from_str(&output.out).expect("JSON");
    let invariants = report["invariants"].as_array().expect("the invariants");
    let signatures = invariants.iter().find(|one| one["name"] == "signatures");
    let first = signatures.expect("the invariant")["first"]["what"].as_str();
    let named =
        "It is not what eve has signed: the resolution is not the position that was signed.";
    assert_eq!((output.code, first), (1, Some(named)), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_signs_a_ruling_on_the_whole_brief() {
    let stage = asked(600_000).await;
    let [key, public] = keys(&stage, "eve.key").await;
    let [other, _] = keys(&stage, "other.key").await;
    register(&stage, "eve", "arbiter", &public).await;
    let read = brief(&stage, "eve").await;
    check_brief(&stage, &read);
    let [debate, digest] = [&read["brief"]["debate_id"], &read["digest"]];
    let (debate, digest) = (debate.as_str().unwrap(), digest.as_str().unwrap());
    let rule = [
        "rule",
        debate,
        "--expert",
        "eve",
        "--own",
        OWN,
        "--value",
        "21",
        "--rationale",
        "It says so.",
    ];
    check_refused_rulings(&stage, &rule, digest, &key, &other).await;
    let ruled = concord(
        &stage,
        &[&rule[..], &["--digest", digest, "--key", &key]].concat(),
    )
    .await;
    let ruled = ruled.good();
    assert!(ruled.contains("signed by eve (key "), "{ruled:?}");

    // The case is decided by it, and says who has signed.
    stage.event("case", "decided", |_| true).await;
    let shown = concord(&stage, &["case", "show", &stage.case]).await.good();
    assert!(shown.contains("signed by eve (key "), "{shown:?}");

    let [gail, public] = keys(&stage, "gail.key").await;
    register(&stage, "gail", "reviewer", &public).await;
    check_gate(&stage, &gail).await;
    check_signatures(&stage, 2).await;

    // A key that is replaced leaves good what was signed with it.
    let [_, newer] = keys(&stage, "newer.key").await;
    register(&stage, "eve", "arbiter", &newer).await;
    check_signatures(&stage, 2).await;
    check_tampering(&stage).await;
    stage.holds().await;
}

/// The case passes its gate by a signed review of the decision as it is, and by no other.
async fn check_gate(stage: &Stage, key: &str) {
    let gate = printed(stage, &["gate", "show", &stage.case]).await;
    let digest = gate["digest"].as_str().expect("a digest");
    let pass = [
        "gate",
        "review",
        &stage.case,
        "--gate",
        "release",
        "--by",
        "gail",
        "--pass",
    ];
    let run = async |more: &[&str]| concord(stage, &[&pass[..], more].concat()).await;
    let without = run(&["--key", key]).await;
    refused(&without, &["asks for the digest", "concord gate show"]);
    let stale = run(&["--digest", &"0".repeat(64), "--key", key]).await;
    refused(&stale, &["other than what that digest is of", digest]);
    let unsigned = run(&["--digest", digest]).await;
    refused(&unsigned, &["asks for a signature"]);
    run(&["--digest", digest, "--key", key]).await.good();
    let passed = stage.event("case", "gate_passed", |_| true).await;
    let kept = &passed["data"]["review"];
    assert_eq!(kept["digest"], digest, "{passed:#}");
    assert!(kept["signature"]["value"].is_string(), "{passed:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expert_who_is_suspended_after_the_brief_does_not_rule_and_another_does() {
    let stage = asked(600_000).await;
    let [key, public] = keys(&stage, "eve.key").await;
    let [other, others] = keys(&stage, "fay.key").await;
    register(&stage, "eve", "arbiter", &public).await;
    let read = brief(&stage, "eve").await;
    let debate = read["brief"]["debate_id"].as_str().unwrap();
    printed(&stage, &["person", "suspend", "eve", "--why", "on leave"]).await;
    let rule = async |by: &str, digest: &Value, key: &str| {
        let digest = digest.as_str().unwrap();
        let arguments = [
            "rule",
            debate,
            "--expert",
            by,
            "--position",
            "p1",
            "--rationale",
            "So.",
            "--digest",
            digest,
            "--key",
            key,
        ];
        concord(&stage, &arguments).await
    };
    let late = rule("eve", &read["digest"], &key).await;
    refused(&late, &["suspended: on leave"]);
    stage
        .event("debate", "unassigned", |data| data["expert"] == "eve")
        .await;
    register(&stage, "fay", "arbiter", &others).await;
    let again = brief(&stage, "fay").await;
    assert_eq!(again["brief"]["debate_id"], debate);
    rule("fay", &again["digest"], &other).await.good();
    let resolved = stage.event("debate", "resolved", |_| true).await;
    let ruled_by = &resolved["data"]["outcome"]["ruled_by"]["expert"];
    assert_eq!(ruled_by, "fay");
    check_signatures(&stage, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_another_expert_the_debate_falls_back_in_its_time() {
    let stage = Stage::empty().await;
    let [_, public] = keys(&stage, "eve.key").await;
    register(&stage, "eve", "arbiter", &public).await;
    // All of the time is for reading the brief and being suspended, which must come before it is over.
    ask(&stage, 10_000).await;
    brief(&stage, "eve").await;
    printed(&stage, &["person", "suspend", "eve", "--why", "on leave"]).await;
    let fell = stage.event("debate", "fell_back", |_| true).await;
    let outcome = &fell["data"]["outcome"];
    assert_eq!(outcome["resolution"]["value"], 80.0, "{fell:#}");
    assert_eq!(outcome["provisional"]["expert"], Value::Null, "{fell:#}");
    stage.event("case", "decided", |_| true).await;
    check_signatures(&stage, 0).await;
}

//! A disagreement on its way to a person and past a gate, with nothing but the command line.

use concord_testkit::{Message, TestInstallation, settled, until};
use concord_wire::subject::Service;
use serde_json::{Value, json};

use crate::command::{run, run_with};
use concord_testkit::{COMMAND_MAX, CommandOutput};

/// An installation with a decided case `c-1` of two analysts, at the gate `valuation`.
struct Stage {
    installation: TestInstallation,
}

const CHALLENGE: &str = r#"{
    "challenger": "sid", "challenged": "fin", "disputed_finding": "Operating margin of 25 %",
    "challenge_basis": "ROI declines despite claims", "required_evidence": ["ROI of five years"],
    "priority": "critical-path", "metric": "operating margin", "challenged_value": 25, "position": "30 %", "value": 30,
    "domain": "valuation", "dependants": ["dcf"]
}"#;

impl Stage {
    /// Times are divided by `scale`.
    async fn start(scale: u32) -> Self {
        let installation =
            TestInstallation::start_with(|plan| plan.with_replicas(Service::AgentAdapter, 0)).await;
        let stage = Self { installation };
        let opening = json!({
            "case_id": "c-1", "participants": ["fin", "sid"], "task": { "type": "test" }, "gates": ["valuation"],
            "policy": { "ladder": { "time_scale": scale } },
        });
        stage
            .say_with("case open -", &opening.to_string())
            .await
            .good();
        for agent in ["fin", "sid"] {
            Message::finding("c-1", agent, json!({ "summary": "Seen." }), 0.8)
                .publish(stage.installation.client())
                .await;
        }
        stage
            .until("case show c-1", |case| case["phase"] == "decided")
            .await;
        stage
    }

    async fn say(&self, words: &[&str]) -> CommandOutput {
        run(&[words, &["--server", self.installation.server_url()]].concat()).await
    }

    async fn words(&self, line: &str) -> CommandOutput {
        self.say(&line.split(' ').collect::<Vec<_>>()).await
    }

    async fn json(&self, line: &str) -> Value {
        self.words(&format!("{line} --json")).await.json()
    }

    async fn say_with(&self, line: &str, input: &str) -> CommandOutput {
        let arguments: Vec<&str> = line
            .split(' ')
            .chain(["--server", self.installation.server_url()])
            .collect();
        run_with(&arguments, input.as_bytes()).await
    }

    /// Asks until the answer is as it should be.
    async fn until(&self, line: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let asked = until(line, COMMAND_MAX, async || {
            let answer = self.json(line).await;
            if is_it(&answer) {
                Ok(answer)
            } else {
                Err(answer.to_string())
            }
        });
        asked.await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Challenges from the command line; the debate.
    async fn challenge(&self) -> String {
        let made = self
            .say_with("challenge c-1 - --json", CHALLENGE)
            .await
            .json();
        assert_eq!(
            (&made["became"], &made["fact"]),
            (&json!("recorded"), &json!("challenged"))
        );
        made["debate_id"].as_str().unwrap().to_owned()
    }

    async fn speak(&self, debate: &str, from: &str, kind: &str, payload: Value) {
        let message = Message::new("c-1", from, "debate-facilitator", kind, payload)
            .with("/correlation_id", debate);
        message.publish(self.installation.client()).await;
    }

    /// The challenged agent gives evidence, and that is recorded.
    async fn answered(&self, debate: &str) {
        self.speak(debate, "fin", "acknowledgement", json!({}))
            .await;
        self.speak(
            debate,
            "fin",
            "evidence",
            json!({ "evidence": ["10-K page 45"] }),
        )
        .await;
        let given = |shown: &Value| facts(shown).any(|fact| fact == "evidence_given");
        self.until(&format!("debate show {debate}"), given).await;
    }

    async fn holds(&self) {
        settled(self.installation.client(), COMMAND_MAX)
            .await
            .unwrap();
        let check = self.words("check").await;
        assert_eq!(check.code, 0, "{check:?}");
    }
}

/// The names of what has happened in a debate that is shown.
fn facts(shown: &Value) -> impl Iterator<Item = &str> {
    shown["facts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|fact| fact["fact"].as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_given_a_debate_and_rules() {
    let stage = Stage::start(60).await;
    let nobody = stage.words("queue").await.good();
    assert!(
        nobody.starts_with("No debate waits for a person (0 experts registered"),
        "{nobody}"
    );
    let register = [
        "expert",
        "register",
        "eva",
        "--domain",
        "valuation",
        "--name",
        "Eva S.",
        "--email",
        "e@example.org",
    ];
    assert!(
        stage
            .say(&register)
            .await
            .good()
            .contains("eva is registered: valuation; at most 3 debates")
    );
    stage.words("expert register fay --capacity 1").await.good();

    let debate = stage.challenge().await;
    controls(&stage, &debate).await;
    stage.answered(&debate).await;
    let too_early = stage
        .words(&format!(
            "rule {debate} --position p1 --rationale so --expert eva"
        ))
        .await
        .refused(1);
    assert!(
        too_early.contains("nobody has been given the debate"),
        "{too_early}"
    );
    stage
        .speak(
            &debate,
            "sid",
            "disagreement",
            json!({ "reasoning": "That is last year's." }),
        )
        .await;

    let next = stage
        .until("queue next --expert eva", |next| !next.is_null())
        .await;
    assert_eq!(next["brief"]["debate_id"], debate.as_str());
    let text = stage.words("queue next --expert eva").await.good();
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
    assert!(stage.words("queue").await.good().contains("critical-path"));
    assert_eq!(stage.json("expert list").await[0]["has"], json!([debate]));

    rulings(&stage, &debate, &next["digest"]).await;
    stage
        .until("queue", |queue| queue["assigned"] == json!([]))
        .await;
    let listed = stage
        .until("decisions list c-1", |entries| {
            entries[0]["entry"]["method"] == "ruling"
        })
        .await;
    assert_eq!(listed[0]["entry"]["by"], "fay");
    let entry = listed[0]["entry"]["entry_id"].as_str().unwrap().to_owned();
    let text = stage.words(&format!("decisions show {entry}")).await.good();
    assert!(
        text.contains("as it was written") && text.contains("The filing says so."),
        "{text}"
    );
    assert!(
        stage
            .words("decisions show c-1-9")
            .await
            .refused(1)
            .contains("has no entry 9")
    );
    outcomes(&stage, &debate).await;
    another(&stage).await;
    stage
        .say(&["expert", "leave", "eva", "--why", "on holiday"])
        .await
        .good();
    let error = stage
        .say(&["expert", "leave", "eva", "--why", "again"])
        .await
        .refused(1);
    assert!(error.contains("eva"), "{error}");
    assert!(
        stage
            .words("queue next --expert eva")
            .await
            .refused(1)
            .contains("is not registered")
    );
    stage.holds().await;
}

/// What an operator can do to the deadlines of a debate.
async fn controls(stage: &Stage, debate: &str) {
    let control = async |verb: &str, more: &[&str]| {
        stage
            .say(
                &[
                    &[
                        "debate", verb, debate, "--by", "olga", "--why", "a window", "--json",
                    ],
                    more,
                ]
                .concat(),
            )
            .await
            .json()
    };
    let before = stage.json(&format!("debate show {debate}")).await;
    assert_eq!(
        (
            &before["level"],
            before["waits_for"].as_array().unwrap().len()
        ),
        (&json!(1), 2)
    );
    let held = control("hold", &[]).await;
    assert_eq!(
        (&held["waits_for"], &held["done"]["fact"]),
        (&json!([]), &json!("deadlines_moved"))
    );
    assert_eq!(
        control("hold", &[]).await["done"]["fact"],
        Value::Null,
        "it is held already"
    );
    let shown = stage.json(&format!("debate show {debate}")).await;
    assert_eq!(shown["held"], before["waits_for"]);
    control("extend", &["--hours", "1"]).await;
    let resumed = control("resume", &[]).await;
    assert!(
        resumed["waits_for"][0]["due"].as_str() > before["waits_for"][0]["due"].as_str(),
        "{resumed}"
    );
    let unknown = [
        "debate", "hold", "d-none", "--by", "olga", "--why", "a window",
    ];
    assert!(
        stage
            .say(&unknown)
            .await
            .refused(1)
            .contains("there is no debate d-none")
    );
}

/// Rulings that do not count, and the one that does.
async fn rulings(stage: &Stage, debate: &str, digest: &Value) {
    let rule = async |expert: &str, position: &str, more: &[&str]| {
        let why = ["--rationale", "The filing says so."];
        stage
            .say(
                &[
                    &["rule", debate, "--expert", expert, "--position", position],
                    &why[..],
                    more,
                ]
                .concat(),
            )
            .await
    };
    assert!(
        rule("eva", "p9", &[])
            .await
            .refused(1)
            .contains("/payload/position_id")
    );
    assert!(
        rule("fay", "p1", &[])
            .await
            .refused(1)
            .contains("UNAUTHORIZED")
    );
    // What comes in between changes the brief: the ruling on the old one does not count.
    stage
        .speak(
            debate,
            "sid",
            "evidence",
            json!({ "evidence": ["The peers' reports"] }),
        )
        .await;
    stage
        .until("queue next --expert eva", |next| next["digest"] != *digest)
        .await;
    let old = ["--digest", digest.as_str().unwrap()];
    let changed = rule("eva", "p2", &old).await.refused(1);
    assert!(
        changed.contains("does not count") && changed.contains("has changed"),
        "{changed}"
    );
    assert!(
        changed.contains("sid: new evidence \"The peers' reports\""),
        "{changed}"
    );
    let aside = rule("eva", "p2", &[&old[..], &["--json"]].concat()).await;
    let printed: Value = serde_json::from_str(&aside.out).unwrap();
    assert_eq!(
        (aside.code, &printed["counts"], &printed["fact"]),
        (1, &json!(false), &json!("ruling_set_aside"))
    );

    let why = [
        "queue",
        "reassign",
        debate,
        "--to",
        "fay",
        "--why",
        "eva is away",
    ];
    stage.say(&why).await.good();
    stage
        .until("queue next --expert fay", |next| !next.is_null())
        .await;
    assert!(
        rule("eva", "p2", &[])
            .await
            .refused(1)
            .contains("UNAUTHORIZED")
    );
    let ruled = rule("fay", "p2", &["--json"]).await.json();
    assert_eq!(
        (&ruled["counts"], &ruled["digest_of_latest_brief"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(ruled["data"]["outcome"]["resolution"]["value"], 30);
    assert!(
        rule("fay", "p1", &[])
            .await
            .refused(1)
            .contains("The debate is resolved (ruling)")
    );
    let shown = stage.words(&format!("debate show {debate}")).await.good();
    assert!(
        shown.contains("resolved (ruling): 30 %") && shown.contains("ruling_set_aside"),
        "{shown}"
    );
}

/// What proved right is said once, by somebody who had no part in it, and enters the records.
async fn outcomes(stage: &Stage, debate: &str) {
    let tell = async |from: &str, more: &[&str]| {
        stage
            .say(
                &[
                    &[
                        "outcome",
                        debate,
                        "--because",
                        "annual report",
                        "--from",
                        from,
                    ],
                    more,
                ]
                .concat(),
            )
            .await
    };
    assert!(
        tell("sid", &["--held-by", "fin"])
            .await
            .refused(1)
            .contains("sid was a party")
    );
    assert!(
        tell("nosy", &["--held-by", "fin"])
            .await
            .refused(1)
            .contains("UNAUTHORIZED")
    );
    assert!(
        tell("eva", &["--held-by", "nosy"])
            .await
            .refused(1)
            .contains("held no position")
    );
    assert!(
        tell("eva", &["--held-by", "fin", "--at", "2999-01-01T00:00:00Z"])
            .await
            .refused(1)
            .contains("in the future")
    );
    let told = tell(
        "eva",
        &[
            "--position",
            "a quarter",
            "--value",
            "25",
            "--regime",
            "recession",
        ],
    )
    .await
    .good();
    assert!(
        told.contains("fin was right") && told.contains("sid was wrong"),
        "{told}"
    );
    let second = tell("eva", &["--held-by", "sid", "--json"]).await;
    let printed: Value = serde_json::from_str(&second.out).unwrap();
    assert_eq!((second.code, &printed["became"]), (1, &json!("refused")));
    // The person ruled for the other side: both are in the records, each from its source.
    let line = "record show fin --domain valuation";
    stage
        .until(line, |record| {
            record["domains"][0]["credibility"]["observations"] == 2
        })
        .await;
    assert!(
        stage
            .say(&[
                "outcome",
                "d-none",
                "--held-by",
                "fin",
                "--because",
                "x",
                "--from",
                "eva"
            ])
            .await
            .code
            == 1
    );
}

/// Another challenge, ruled with a position of the expert's own and without waiting; and one that an operator cancels.
async fn another(stage: &Stage) {
    let debate = stage.challenge().await;
    let early = [
        "outcome",
        &debate,
        "--held-by",
        "fin",
        "--because",
        "x",
        "--from",
        "eva",
    ];
    assert!(
        stage
            .say(&early)
            .await
            .refused(1)
            .contains("not resolved yet")
    );
    stage.answered(&debate).await;
    stage
        .speak(
            &debate,
            "sid",
            "disagreement",
            json!({ "reasoning": "Still last year's." }),
        )
        .await;
    let next = stage
        .until("queue", |queue| {
            queue["assigned"][0]["debate_id"] == debate.as_str()
        })
        .await;
    let expert = next["assigned"][0]["expert"].as_str().unwrap().to_owned();
    stage
        .until(&format!("queue next --expert {expert}"), |next| {
            !next.is_null()
        })
        .await;
    let own = [
        "rule",
        &debate,
        "--own",
        "27 %",
        "--value",
        "27",
        "--rationale",
        "between the two",
        "--expert",
        &expert,
    ];
    assert!(
        stage
            .say(&[&own[..], &["--no-wait"]].concat())
            .await
            .good()
            .contains("is sent as")
    );
    let show = format!("debate show {debate}");
    let ruled = stage
        .until(&show, |shown| shown["outcome"]["status"] == "ruling")
        .await;
    assert_eq!(ruled["outcome"]["resolution"]["value"], 27);

    let debate = stage.challenge().await;
    let cancel = [
        "debate",
        "cancel",
        &debate,
        "--by",
        "olga",
        "--why",
        "a mistake",
    ];
    stage.say(&cancel).await.good();
    let shown = stage.json(&format!("debate show {debate}")).await;
    assert_eq!(
        (&shown["outcome"]["status"], &shown["waits_for"]),
        (&json!("cancelled"), &json!([]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provisional_decision_is_reviewed_at_its_gate() {
    let stage = Stage::start(14_400).await;
    let debate = stage.challenge().await;
    let shown = stage
        .until("gate show c-1", |shown| shown["requires_review"] == 1)
        .await;
    assert_eq!(
        (&shown["gate"], &shown["provisional"][0]["conflict_id"]),
        (&json!("valuation"), &json!(debate))
    );
    let text = stage.words("gate show c-1").await.good();
    for seen in [
        "1 provisional decision requires review",
        "alternative   30 %",
        "rest on it    dcf",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let review = async |more: &[&str]| {
        stage
            .say(
                &[
                    &[
                        "gate",
                        "review",
                        "c-1",
                        "--gate",
                        "valuation",
                        "--by",
                        "gail",
                    ],
                    more,
                ]
                .concat(),
            )
            .await
    };
    assert!(
        review(&["--pass"])
            .await
            .refused(1)
            .contains("require review")
    );
    assert!(
        review(&["--confirm", "d-none"])
            .await
            .refused(1)
            .contains("d-none")
    );
    let again = review(&[
        "--redebate",
        &debate,
        "--context",
        "The filing is out.",
        "--json",
    ])
    .await
    .json();
    let again = again["again"].as_str().unwrap().to_owned();
    let taken_up = |shown: &Value| shown["provisional"][0]["conflict_id"] == again.as_str();
    stage.until("gate show c-1", taken_up).await;
    assert_eq!(
        stage.json(&format!("debate show {again}")).await["terms"]["refers_to"],
        debate.as_str()
    );
    let guidance = [
        "--override",
        &again,
        "--position",
        "28 %",
        "--value",
        "28",
        "--rationale",
        "Guidance.",
    ];
    assert!(review(&guidance).await.good().contains("is overridden"));
    assert!(review(&["--pass"]).await.good().contains("it was the last"));
    let gates = stage.json("gate list c-1").await;
    assert_eq!(
        (&gates["gates"][0]["standing"], &gates["requires_review"]),
        (&json!("passed"), &json!(0))
    );
    assert_eq!(gates["gates"][0]["passed"]["by"], "gail");
    assert!(review(&["--pass"]).await.refused(1).contains("no gate"));

    let methods = |entries: &Value| -> Vec<String> {
        entries
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["entry"]["method"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = ["provisional", "redebated", "provisional", "overridden"];
    let listed = stage
        .until("decisions list", |entries| {
            methods(entries).len() == all.len()
        })
        .await;
    assert_eq!(methods(&listed), all);
    let lines = stage.words("decisions export").await.good();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((lines.lines().count(), &first), (4, &listed[0]["entry"]));
    let file = stage.installation.directory().join("decisions.csv");
    let export = [
        "decisions",
        "export",
        "c-1",
        "--format",
        "csv",
        "--out",
        file.to_str().unwrap(),
    ];
    stage.say(&export).await.good();
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 5);

    confirmed(&stage).await;
    cancelled(&stage).await;
    stage.holds().await;
}

/// What stands provisionally in another case is confirmed.
async fn confirmed(stage: &Stage) {
    let opening = json!({
        "case_id": "c-3", "participants": ["fin", "sid"], "task": { "type": "test" }, "gates": ["release"],
        "policy": { "ladder": { "time_scale": 14_400 } },
    });
    stage
        .say_with("case open -", &opening.to_string())
        .await
        .good();
    for agent in ["fin", "sid"] {
        Message::finding("c-3", agent, json!({ "summary": "Seen." }), 0.8)
            .publish(stage.installation.client())
            .await;
    }
    stage
        .until("case show c-3", |case| case["phase"] == "decided")
        .await;
    let made = stage
        .say_with("challenge c-3 - --json", CHALLENGE)
        .await
        .json();
    stage
        .until("gate show c-3", |shown| shown["requires_review"] == 1)
        .await;
    let debate = made["debate_id"].as_str().unwrap();
    let confirm = [
        "gate",
        "review",
        "c-3",
        "--gate",
        "release",
        "--by",
        "gail",
        "--confirm",
        debate,
    ];
    assert!(stage.say(&confirm).await.good().contains("is final"));
    let listed = stage
        .until("decisions list c-3", |entries| {
            entries.as_array().unwrap().len() == 2
        })
        .await;
    assert_eq!(listed[1]["entry"]["method"], "confirmed");
}

async fn cancelled(stage: &Stage) {
    let request = json!({ "case_id": "c-2", "participants": ["fin"], "task": { "type": "test" } })
        .to_string();
    stage.say_with("case open -", &request).await.good();
    let cancel = [
        "case",
        "cancel",
        "c-2",
        "--by",
        "olga",
        "--why",
        "the deal is off",
    ];
    assert!(stage.say(&cancel).await.good().contains("is cancelled"));
    assert_eq!(stage.json("case show c-2").await["phase"], "cancelled");
    let refused = stage
        .say_with("challenge c-2 -", CHALLENGE)
        .await
        .refused(1);
    assert!(refused.contains("The case is over"), "{refused}");
    assert!(
        stage
            .say_with("challenge c-9 -", CHALLENGE)
            .await
            .refused(1)
            .contains("there is no case c-9")
    );
    assert!(
        stage
            .words("gate show c-9")
            .await
            .refused(1)
            .contains("there is no case c-9")
    );
}

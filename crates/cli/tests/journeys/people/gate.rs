//! Provisional decisions, and the gates at which they are reviewed.

use concord_testkit::{COMMAND_MAX, message_bodies, wait_for};
use serde_json::{Value, json};

use super::{CHALLENGE, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_provisional_decision_is_reviewed_at_its_gate() {
    let stage = Stage::start(14_400).await;
    let debate = stage.challenge().await;
    provisional(&stage, &debate).await;
    overridden(&stage, &debate).await;
    passed(&stage).await;
    logged(&stage).await;
    confirmed(&stage).await;
    stands_beside(&stage).await;
    cancelled(&stage).await;
    cancelled_at_its_gate(&stage).await;
    late_is_no_fault(&stage).await;
    stage.holds().await;
}

fn review(more: &str) -> String {
    format!("gate review c-1 --gate valuation --by gail {more}")
}

/// The decision stands provisionally, and the gate cannot be passed without its review.
async fn provisional(stage: &Stage, debate: &str) {
    let shown = stage
        .until("gate show c-1", |shown| shown["requires_review"] == 1)
        .await;
    assert_eq!(
        (&shown["gate"], &shown["provisional"][0]["conflict_id"]),
        (&json!("valuation"), &json!(debate))
    );
    let text = stage.good("gate show c-1").await;
    for seen in [
        "1 provisional decision requires review",
        "alternative   30 %",
        "rest on it    dcf",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    // Whoever meets about it reads what stands meanwhile, and why.
    let text = stage.good("case package c-1").await;
    assert!(!text.contains("Not settled yet."), "{text}");
    let said = "Provisional, to be reviewed at the gate valuation: ";
    assert!(text.contains(said), "{text}");
    // Without a case every case that waits is listed.
    let waiting = stage.json("gate list").await;
    assert_eq!(waiting.as_array().map(Vec::len), Some(1), "{waiting:#}");
    assert_eq!(
        (
            &waiting[0]["case_id"],
            &waiting[0]["gate"],
            &waiting[0]["requires_review"]
        ),
        (&json!("c-1"), &json!("valuation"), &json!(1))
    );
    let text = stage.good("gate list").await;
    assert!(
        text.contains("1 provisional decision requires review"),
        "{text}"
    );
    stage
        .refused(&review("--pass"), "1 provisional decision requires review")
        .await;
    assert!(names_the_gate_ahead(stage, "c-1").await);
    stage.refused(&review("--confirm d-none"), "d-none").await;
}

/// The decision is debated again, and then overridden.
async fn overridden(stage: &Stage, debate: &str) {
    let redebate = format!("--redebate {debate} --context 'The filing is out.'");
    let again = stage.json(&review(&redebate)).await;
    let again = again["again"].as_str().unwrap().to_owned();
    let taken_up = |shown: &Value| shown["provisional"][0]["conflict_id"] == again.as_str();
    stage.until("gate show c-1", taken_up).await;
    let shown = stage.json(&format!("debate show {again}")).await;
    assert_eq!(shown["terms"]["refers_to"], debate);
    // Whoever is challenged again hears what they did not know before.
    let presented = "concord.v1.msg.c-1.debate-facilitator.fin.challenge";
    let presented = wait_for("both to be presented", COMMAND_MAX, async || {
        let presented = message_bodies(stage.installation.client(), presented).await?;
        let are_there = presented.len() >= 2;
        are_there
            .then_some(presented)
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
    let added: Vec<&Value> = presented
        .iter()
        .map(|one| &one["payload"]["added_context"])
        .collect();
    assert_eq!(added, [&Value::Null, &json!("The filing is out.")]);
    let in_its_place = |value: &str| {
        format!("--override {again} --position '28 %' --value {value} --rationale Guidance.")
    };
    let unlike = review(&in_its_place("'{ \"x\": 1 }'"));
    stage.refused(&unlike, "cannot be compared").await;
    let guidance = in_its_place("28");
    let text = stage.good(&review(&guidance)).await;
    assert!(text.contains("is overridden"), "{text}");
}

async fn passed(stage: &Stage) {
    let text = stage.good(&review("--pass")).await;
    assert!(text.contains("it was the last"), "{text}");
    let gates = stage.json("gate list c-1").await;
    assert_eq!(
        (&gates["gates"][0]["standing"], &gates["requires_review"]),
        (&json!("passed"), &json!(0))
    );
    assert_eq!(gates["gates"][0]["passed"]["by"], "gail");
    let text = stage.good("gate list").await;
    assert_eq!(text, "No case waits at a gate.\n");
    stage.refused(&review("--pass"), "no gate").await;
    assert!(!names_the_gate_ahead(stage, "c-1").await);
}

async fn names_the_gate_ahead(stage: &Stage, case: &str) -> bool {
    let text = stage.good(&format!("case show {case}")).await;
    text.contains("gate ahead")
}

/// Nothing that would be refused is advised at the gate of a case that is cancelled.
async fn cancelled_at_its_gate(stage: &Stage) {
    assert!(names_the_gate_ahead(stage, "c-3").await);
    let text = stage.good("gate show c-3").await;
    assert!(text.contains("--pass"), "{text}");
    stage
        .good("case cancel c-3 --by olga --why 'the deal is off'")
        .await;
    assert!(!names_the_gate_ahead(stage, "c-3").await);
    let text = stage.good("gate show c-3").await;
    assert!(
        text.contains("is cancelled") && !text.contains("--pass"),
        "{text}"
    );
    let gates = stage.json("gate list c-3").await;
    assert_eq!(gates["gates"][0]["standing"], "not_reached", "{gates}");
    let text = stage.good("case package c-3").await;
    let said = "was cancelled by olga at ";
    assert!(
        text.contains(said) && text.contains("the deal is off"),
        "{text}"
    );
    assert!(!text.contains("final)"), "{text}");
}

/// Whoever writes to a case that is over was told so: sending it again helps nobody, and no service has failed.
async fn late_is_no_fault(stage: &Stage) {
    let letters = stage.json("dead list").await;
    let mut letters = letters.as_array().unwrap().iter();
    assert!(letters.any(|letter| letter["code"] == "TIMEOUT"));
    let doctor = stage.run("doctor").await;
    assert!(
        doctor.out.contains("refused; their senders were told")
            && !doctor.out.contains("services failed to process"),
        "{doctor:?}"
    );
    // What ConcordDeadLetters alerts of has another reason.
    let counted = async |reason: &str| {
        let name = format!("concord_dead_total{{reason=\"{reason}\"}}");
        wait_for(&name, COMMAND_MAX, async || {
            let count = stage.installation.counter(&name).await;
            count.map_err(|error| error.to_string())
        })
        .await
    };
    assert!(counted("late").await > 0);
    assert_eq!(counted("exhausted").await, 0);
}

/// The decision log has every step, and can be exported.
async fn logged(stage: &Stage) {
    let methods = |entries: &Value| -> Vec<String> {
        let entries = entries.as_array().unwrap().iter();
        entries
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
    let lines = stage.good("decisions export").await;
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((lines.lines().count(), &first), (4, &listed[0]["entry"]));
    let file = stage.installation.directory().join("decisions.csv");
    let export = format!(
        "decisions export c-1 --format csv --out '{}'",
        file.display()
    );
    stage.good(&export).await;
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 5);
}

/// What stands provisionally in another case is confirmed.
async fn confirmed(stage: &Stage) {
    stage.decide("c-3", "release", 14_400).await;
    let made = stage
        .with_input("challenge c-3 - --json", CHALLENGE)
        .await
        .json();
    stage
        .until("gate show c-3", |shown| shown["requires_review"] == 1)
        .await;
    let debate = made["debate_id"].as_str().unwrap();
    let confirm = format!("gate review c-3 --gate release --by gail --confirm {debate}");
    assert!(stage.good(&confirm).await.contains("is final"));
    let listed = stage
        .until("decisions list c-3", |entries| {
            entries.as_array().unwrap().len() == 2
        })
        .await;
    assert_eq!(listed[1]["entry"]["method"], "confirmed");
}

/// What does not stand is not shown as what stands, and whoever confirms it is told what that displaces.
async fn stands_beside(stage: &Stage) {
    stage.decide("c-4", "release", 14_400).await;
    let challenge = async |text: &str| {
        let made = stage.with_input("challenge c-4 - --json", text).await;
        let made = made.json()["debate_id"].as_str().unwrap().to_owned();
        let about = |shown: &Value| shown["provisional"][0]["conflict_id"] == made.as_str();
        stage.until("gate show c-4", about).await;
        made
    };
    let by = "gate review c-4 --gate release --by gail";
    let first = challenge(CHALLENGE).await;
    let guidance = "--position '28 %' --value 28 --rationale Guidance.";
    stage
        .good(&format!("{by} --override {first} {guidance}"))
        .await;
    let second = challenge(&CHALLENGE.replace("30", "20")).await;
    let overridden =
        |shown: &Value| shown["provisional"][0]["now_stands"]["status"] == "overridden";
    stage.until("gate show c-4", overridden).await;
    let stands = "28 %  [28], decided at a gate by gail";
    let text = stage.good("gate show c-4").await;
    for seen in ["  would stand   20 %", &format!("  now stands    {stands}")] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let nothing_new = format!("{by} --redebate {second}");
    let refused = stage.run(&nothing_new).await.refused(2);
    assert!(refused.contains("--context"), "{refused}");
    let text = stage.good(&format!("{by} --confirm {second}")).await;
    for seen in ["is final", &format!("  stood until now: {stands}")] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
}

async fn cancelled(stage: &Stage) {
    let request =
        json!({ "case_id": "c-2", "participants": ["fin", "sid"], "task": { "type": "test" } });
    stage
        .with_input("case open -", &request.to_string())
        .await
        .good();
    let cancel = "case cancel c-2 --by olga --why 'the deal is off'";
    assert!(stage.good(cancel).await.contains("is cancelled"));
    let shown = stage.json("case show c-2").await;
    let said = ["by", "why"].map(|field| &shown["cancelled"][field]);
    assert_eq!(said, ["olga", "the deal is off"], "{shown:#}");
    assert_eq!(shown["phase"], "cancelled");
    let text = stage.good("case show c-2").await;
    assert!(
        text.contains(" by olga, ") && text.contains("ago: the deal is off"),
        "{text}"
    );
    for (case, reason) in [("c-2", "The case is over"), ("c-9", "there is no case c-9")] {
        let challenge = format!("challenge {case} -");
        let refused = stage.with_input(&challenge, CHALLENGE).await.refused(1);
        assert!(refused.contains(reason), "{refused}");
    }
    let unknown = "there is no case c-9";
    stage.refused("gate show c-9", unknown).await;
}

/// Where two must say the same, the second sees what the first has said.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_reviewer_sees_what_the_first_has_said() {
    let stage = Stage::start(14_400).await;
    stage.good("person register hal --role reviewer").await;
    let ladder = json!({ "time_scale": 14_400, "reviewers_min": 2 });
    stage.decide_by("c-2", "release", ladder).await;
    let made = stage
        .with_input("challenge c-2 - --json", CHALLENGE)
        .await
        .json();
    let debate = made["debate_id"].as_str().unwrap();
    let waits = |shown: &Value| shown["requires_review"] == 1;
    stage.until("gate show c-2", waits).await;
    let says = async |who: &str, value: u32| {
        let over = format!(
            "--override {debate} --position '{value} %' --value {value} --rationale 'Guidance of {who}.'"
        );
        let line = format!("gate review c-2 --gate release --by {who} {over}");
        stage.good(&line).await
    };
    let context = "--context 'The filing is out.' --rationale 'Nobody knew it.'";
    let again = format!("gate review c-2 --gate release --by gail --redebate {debate} {context}");
    stage.good(&again).await;
    let text = stage.good("gate show c-2").await;
    let said = "gail          would have it debated again, adding \"The filing is out.\", because \"Nobody knew it.\"; it counts";
    assert!(text.contains(said), "{text}");
    says("gail", 28).await;
    let text = stage.good("gate show c-2").await;
    assert!(
        text.contains("gail          would put 28 % [28] in its place"),
        "{text}"
    );
    for list in ["gate list", "gate list c-2"] {
        let text = stage.good(list).await;
        let waits = "1 provisional decision requires review, a second reviewer after gail";
        assert!(text.contains(waits), "{list}: {text}");
    }
    let other = says("hal", 31).await;
    assert!(
        other.contains("what gail has said is not the same: would put 28 % [28] in its place"),
        "{other}"
    );
    let shown = stage.json("gate show c-2").await;
    assert_eq!(shown["first_reviews"][1]["by"], "hal", "{shown:#}");
    let text = says("hal", 28).await;
    for seen in ["is overridden", "in its place: 28 %  [28]"] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let both = |shown: &Value| {
        let ruled = &shown["decision"]["outcomes"][0]["ruled_by"];
        (&ruled["first_reviewer"], &ruled["expert"]) == (&json!("gail"), &json!("hal"))
    };
    stage.until("case show c-2", both).await;
    for line in ["case show c-2".to_owned(), format!("debate show {debate}")] {
        let text = stage.good(&line).await;
        for reason in ["gail: Guidance of gail.", "hal: Guidance of hal."] {
            assert!(text.contains(reason), "{line}: {text}");
        }
    }
    both_are_named(&stage).await;
    let text = stage.good(&format!("debate show {debate}")).await;
    let level = "level     5: the review at a gate";
    assert!(text.contains(level), "{text}");
    let shown = stage.json("gate show c-2").await;
    assert_eq!(shown["first_reviews"], Value::Null, "{shown:#}");
}

/// In the log and in the change of the decision, for people and for programs.
async fn both_are_named(stage: &Stage) {
    for list in ["case show c-2", "decisions list c-2"] {
        let text = stage.good(list).await;
        assert!(text.contains("gail and hal"), "{list}: {text}");
    }
    let log = stage.json("decisions list c-2").await;
    let last = &log.as_array().unwrap().last().unwrap()["entry"];
    let named = (&last["first_reviewer"], &last["by"]);
    assert_eq!(named, (&json!("gail"), &json!("hal")), "{log:#}");
    let shown = stage.json("case show c-2").await;
    let last = shown["changes"].as_array().unwrap().last().unwrap();
    assert_eq!(last["first_reviewer"], "gail", "{shown:#}");
}

/// Who lets a case pass sees what it has decided; and who was the first of two and may not review any more is not one of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_lets_pass_is_shown_and_who_may_say_so() {
    let stage = Stage::start(14_400).await;
    stage.good("person register hal --role reviewer").await;
    let ladder = json!({ "time_scale": 14_400, "reviewers_min": 2 });
    stage.decide_by("c-2", "release", ladder).await;
    let text = stage.good("gate show c-2").await;
    for seen in [
        "Decision, version 1 (no_conflict)",
        "title           The annual report",
    ] {
        assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
    }
    let shown = stage.json("gate show c-2").await;
    assert_eq!(
        (&shown["stands"]["title"], &shown["stands"]["version"]),
        (&json!("The annual report"), &json!(1)),
        "{shown:#}"
    );
    let pass = async |who: &str| {
        let line = format!("gate review c-2 --gate release --by {who} --pass");
        stage.good(&line).await
    };
    pass("gail").await;
    stage.good("person suspend gail --why 'on leave'").await;
    let no_more = "it does not count any more, because gail may not review now";
    let text = stage.good("gate show c-2").await;
    assert!(text.contains(no_more), "{text}");
    let shown = stage.json("gate show c-2").await;
    assert_eq!(shown["first_reviews"][0]["may_review"], false, "{shown:#}");
    let text = stage.good("gate list").await;
    assert!(!text.contains("gail"), "{text}");
    let text = pass("hal").await;
    let no_more = "what gail has said does not count any more, because gail may not review now";
    assert!(text.contains(no_more), "{text}");
}

//! The three modes, as a person has them by the command.

use concord_testkit::TestInstallation;
use serde_json::{Value, json};

use crate::questions::PATIENCE;
use crate::questions::stage::{answers, ask, hears, register, response, says};

const NAMES: [&str; 4] = ["ann", "ben", "cyd", "lead"];

/// Whether a message is the request to make one answer of all.
fn is_synthesis(asked: &Value) -> bool {
    asked["payload"]["action"] == "synthesise"
}

#[tokio::test(flavor = "multi_thread")]
async fn one_answer_comes_back_in_each_mode() {
    let installation = TestInstallation::start().await;
    register(&installation, &NAMES).await;
    let _ann = answers(&installation, "ann", |_| says("Ann says so.", 0.7)).await;
    // It knows only the types of before.
    let _ben = answers(&installation, "ben", |_| {
        Some(("task_result", json!({ "content": "Ben says so." }), 0.95))
    })
    .await;
    let _cyd = answers(&installation, "cyd", |asked| {
        let declines = json!({ "status": "success", "result": { "accepted": false } });
        (asked["payload"]["mode"] != "first_responder").then_some(("response", declines, 1.0))
    })
    .await;
    let _lead = answers(&installation, "lead", |asked| {
        let given = asked["payload"]["parameters"]["answers"].as_array();
        let text = format!("{} say so.", given.map_or(0, Vec::len));
        is_synthesis(asked).then_some(("response", response(&text), 0.5))
    })
    .await;

    let question = "@ann @ben @cyd who bears the tax?";
    let confident = ask(&installation, question, &["--all"]).await;
    assert_eq!(confident.code, 0, "{confident:?}");
    for line in [
        "3 agents asked",
        "ben (0.95): Ben says so.",
        "ann (0.70): Ann says so.",
        "declined",
    ] {
        assert!(confident.out.contains(line), "{confident:?}");
    }

    // Only one of the two answers at once; the other is told that it need not.
    let first = ask(
        &installation,
        "@ann @cyd who is there?",
        &["--mode", "first_responder", "--json"],
    )
    .await;
    let found = first.json();
    assert_eq!(
        (&found["became"], &found["answer"]["primary"]["by"]),
        (&json!("answered"), &json!("ann")),
        "{found}"
    );
    let told = hears(installation.client(), "cyd", |body| {
        body["payload"]["event"] == "stand_down"
    })
    .await;
    assert_eq!(told["payload"]["data"]["question"], found["question"]);
    assert_eq!(told["payload"]["data"]["asker"], "eva");

    check_synthesis(&installation, question).await;
    installation.holds(PATIENCE).await;
}

/// All answers go to the synthesiser; where it is not there, they come as they are.
async fn check_synthesis(installation: &TestInstallation, question: &str) {
    let collaborative = ["--mode", "collaborative", "--synthesiser", "lead", "--json"];
    let together = ask(installation, question, &collaborative).await.json();
    let answer = &together["answer"];
    assert_eq!(answer["primary"]["by"], "lead", "{together}");
    assert_eq!(
        answer["primary"]["payload"]["result"]["content"],
        "2 say so."
    );
    assert_eq!(answer["supplementary"].as_array().unwrap().len(), 2);
    assert_eq!(
        answer["synthesis"],
        json!({ "by": "lead", "status": "done" })
    );

    // Nobody of this name is there: the answers, which must come before the time is over, come as they are, and it is said so.
    let missing = [
        "--mode",
        "collaborative",
        "--synthesiser",
        "nobody",
        "--wait",
        "8",
    ];
    let missed = ask(installation, question, &missing).await;
    assert!(
        missed.out.contains("nobody made no synthesis in time"),
        "{missed:?}"
    );
    assert!(missed.out.contains("primary ben"), "{missed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_in_the_domain_weighs_more_than_what_an_agent_says_of_itself() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben"]).await;
    let rows: String = (1..=25)
        .map(|day| format!("ann,tax,right,2026-10-{day:02}T00:00:00Z,back-test,r-{day}\n"))
        .collect();
    import(&installation, &rows).await;
    let _ann = answers(&installation, "ann", |_| says("Ann says so.", 0.3)).await;
    let _ben = answers(&installation, "ben", |_| says("Ben says so.", 0.99)).await;
    for (options, primary) in [
        (&["--json"][..], "ben"),
        (&["--json", "--domain", "tax"], "ann"),
    ] {
        let found = ask(&installation, "@ann @ben who bears it?", options)
            .await
            .json();
        assert_eq!(found["answer"]["primary"]["by"], primary, "{found}");
    }
    installation.holds(PATIENCE).await;
}

/// Imports observations of agents.
async fn import(installation: &TestInstallation, rows: &str) {
    let file = installation.directory().join("records.csv");
    let head = "agent,domain,outcome,at,source,id\n";
    std::fs::write(&file, format!("{head}{rows}")).unwrap();
    let program = concord_testkit::programs_of(&["concord-cli"]).join("concord");
    let file = file.to_str().unwrap();
    let server = installation.server_url();
    let arguments = ["record", "import", file, "--by", "olga", "--server", server];
    let done = concord_testkit::finish(concord_testkit::command(program).args(arguments)).await;
    assert_eq!(done.code, 0, "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_its_peers_and_gets_one_response_beside_their_answers() {
    let installation = TestInstallation::start().await;
    register(&installation, &["ann", "ben", "coder"]).await;
    let client = installation.client();
    let asked =
        json!({ "content": "I need help with this schema.", "preferred_agents": ["ann", "ben"] });
    let request = concord_testkit::Message::new("_", "coder", "_any", "peer_request", asked);
    let _ann = answers(&installation, "ann", |_| says("Ann helps.", 0.7)).await;
    let _ben = answers(&installation, "ben", |_| {
        Some((
            "error",
            json!({ "error_code": "CAPACITY_EXCEEDED", "error_message": "No time." }),
            0.5,
        ))
    })
    .await;
    request.publish(client).await;
    let end = crate::questions::stage::end_of(client, "coder", request.id()).await;
    assert_eq!(end["message_type"], "response", "{end}");
    let answer = &end["payload"]["result"];
    assert_eq!(answer["primary"]["by"], "ann", "{end}");
    assert_eq!(answer["declined"][0]["by"], "ben");
    let reasons: Vec<&Value> = answer["asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["reason"])
        .collect();
    assert_eq!(reasons, ["preferred_peer", "preferred_peer"]);
    installation.holds(PATIENCE).await;
}

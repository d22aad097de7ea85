//! What there is not: the id is named, and the exit code is 1. What there is and has nothing in it is empty, and fine.

use concord_testkit::TestInstallation;

use crate::command::{Session, case};

/// Verbs about a case, which stands for `CASE`.
const OF_CASES: [&str; 8] = [
    "board show CASE",
    "board show CASE --history",
    "commitment list CASE",
    "case insights CASE",
    "memory list --case CASE",
    "memory list ann --case CASE",
    "impact show CASE",
    "case context CASE --agent ann",
];

#[tokio::test]
async fn an_id_that_nothing_has_is_named_and_is_code_1() {
    let installation = TestInstallation::start().await;
    let session = Session::new(installation.server_url());
    for verb in OF_CASES {
        let line = verb.replace("CASE", "c-none");
        session.refused(&line, "here is no case c-none").await;
    }
    for verb in [
        "impact plan c-none",
        "impact graph c-none",
        "impact run c-none",
        "board watch c-none",
        "board show c-none plan --history",
    ] {
        session.refused(verb, "here is no case c-none").await;
    }
    for (line, part) in [
        ("task cancel t-none --why off", "There is no such task"),
        ("policy show none", "no policy \"none\""),
        ("policy diff none contract-review", "no policy \"none\""),
        ("policy diff contract-review quick@9", "no version 9"),
        ("memory as-of snap_999999 ann", "snap_999999"),
        ("alert rules show --version 9", "9"),
    ] {
        session.refused(line, part).await;
    }
    let request = case("c-1", &["ann"]).to_string();
    session.with_input("case open -", &request).await.good();
    for verb in OF_CASES {
        session.good(&verb.replace("CASE", "c-1")).await;
    }
    session
        .refused("impact graph c-1", "publish_analysis")
        .await;
    let named = "board show c-1 plan";
    for line in [named.to_owned(), format!("{named} --history")] {
        session.refused(&line, "has no entry \"plan\"").await;
    }
}

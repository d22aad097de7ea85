//! What proved right after a debate.

use serde_json::{Value, json};

use super::Stage;

/// What proved right is reported once, by somebody who had no part in it, and enters the records.
pub(super) async fn outcomes(stage: &Stage, debate: &str) {
    let report = |from: &str, more: &str| {
        format!("outcome {debate} --because 'annual report' --from {from} {more}")
    };
    for (from, more, reason) in [
        ("sid", "--held-by fin", "sid was a party"),
        ("nosy", "--held-by fin", "UNAUTHORIZED"),
        // She ruled on it.
        ("fay", "--held-by sid", "fay was the one to decide"),
        ("eva", "--held-by nosy", "held no position"),
        (
            "eva",
            "--held-by fin --at 1970-01-01T00:00:00Z",
            "is before this debate was opened",
        ),
        (
            "eva",
            "--held-by fin --at 2999-01-01T00:00:00Z",
            "in the future",
        ),
    ] {
        stage.refused(&report(from, more), reason).await;
    }
    let position = "--position 'a quarter' --value 25 --regime recession";
    let known = stage.good(&report("eva", position)).await;
    assert!(
        known.contains("fin was right") && known.contains("sid was wrong"),
        "{known}"
    );
    let second = stage.run(&report("eva", "--held-by sid --json")).await;
    let printed: Value = serde_json::from_str(&second.out).unwrap();
    assert_eq!((second.code, &printed["became"]), (1, &json!("refused")));
    // The person ruled for the other side: both are in the records, each from its source.
    let line = "record show fin --domain valuation";
    stage
        .until(line, |record| {
            record["domains"][0]["credibility"]["observations"] == 2
        })
        .await;
    let unknown = "outcome d-none --held-by fin --because x --from eva";
    stage.refused(unknown, "d-none").await;
}

//! `concord eval`: needs no broker.

use std::path::Path;

use crate::command::run;

const DOMAINS: &str = r#"{"bank": ["pin", "bill"], "travel": ["hotel"]}"#;
const TRAIN: &str = "text\tintent\tdomain\n\
    change the pin of my card\tpin\tbank\n\
    pay my electricity bill\tbill\tbank\n\
    book a hotel room in paris\thotel\ttravel\n\
    i have forgotten my pin\tpin\tbank\n\
    find me a hotel with a pool\thotel\ttravel\n\
    why is the sky blue\toos\toos\n";
const TEST: &str = "text\tintent\tdomain\n\
    my card needs a new pin\tpin\tbank\n\
    a hotel room for two\thotel\ttravel\n\
    zzzz\toos\toos\n";

/// Runs `concord eval wake` on files with these contents.
async fn eval(folder: &Path, train: &str, test: &str, more: &[&str]) -> crate::command::Said {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (train, test, domains) = (file("train.tsv", train), file("test.tsv", test), file("domains.json", DOMAINS));
    let mut arguments = vec!["eval", "wake", "--train", &train, "--test", &test, "--domains", &domains];
    arguments.extend(more);
    run(&arguments).await
}

#[tokio::test]
async fn messages_of_a_file_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let report = eval(folder.path(), TRAIN, TEST, &["--no-model", "--phrases", "1", "--json"]).await.json();
    assert_eq!((report["agents"].as_u64(), report["skills"].as_u64()), (Some(2), Some(3)));
    assert_eq!((report["messages"].as_u64(), report["for_nobody"].as_u64()), (Some(3), Some(1)));
    assert_eq!((report["top1"].as_f64(), report["recall"].as_f64()), (Some(1.0), Some(1.0)));
    assert_eq!((report["false_wakes"].as_f64(), report["wakes"].as_u64()), (Some(0.0), Some(2)));
    assert!(report["latency"]["whole"]["p95_ms"].is_number() && report["latency"]["embedding"].is_null());
    let fitted = eval(folder.path(), TRAIN, TEST, &["--no-model", "--phrases", "1", "--fit", "--threshold", "0"]).await;
    assert!(fitted.good().contains("of 6 wakes"));
}

#[tokio::test]
async fn made_up_agents_are_matched_quickly() {
    let report = run(&["eval", "wake", "--agents", "20", "--no-model", "--json"]).await.json();
    assert_eq!((report["agents"].as_u64(), report["skills"].as_u64()), (Some(20), Some(100)));
    assert!(report["latency"]["matching"]["p50_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let bad = format!("{TEST}\tpin\tbank\n");
    let said = eval(folder.path(), TRAIN, &bad, &["--no-model"]).await.refused(65);
    assert!(said.contains("test.tsv, line 5: the text is blank"), "{said}");
    let said = eval(folder.path(), TRAIN, TEST, &["--model-dir", "no-such-folder"]).await.refused(2);
    assert!(said.contains("no-such-folder") && said.contains("scripts/model"), "{said}");
    for arguments in [
        &["eval", "wake"][..],
        &["eval", "wake", "--train", "no-such-file.tsv", "--test", "b", "--domains", "c", "--no-model"],
        &["eval", "wake", "--agents", "0"],
        &["eval", "wake", "--agents", "5", "--train", "a"],
        &["eval", "wake", "--train", "a", "--test", "b", "--domains", "c", "--threshold", "2"],
    ] {
        run(arguments).await.refused(2);
    }
}

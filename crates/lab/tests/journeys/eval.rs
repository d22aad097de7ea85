//! `concord-lab eval`: needs no broker.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use concord_testkit::{CommandOutput, finish};

use crate::{concord_lab, run};

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

/// Runs `concord-lab eval wake` on files with these contents.
async fn eval(folder: &Path, train: &str, test: &str, more: &[&str]) -> CommandOutput {
    eval_with(folder, train, test, more, &[]).await
}

/// The same with these variables in the environment.
async fn eval_with(
    folder: &Path,
    train: &str,
    test: &str,
    more: &[&str],
    variables: &[(&str, &str)],
) -> CommandOutput {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (train, test, domains) = (
        file("train.tsv", train),
        file("test.tsv", test),
        file("domains.json", DOMAINS),
    );
    let mut arguments = vec![
        "eval",
        "wake",
        "--train",
        &train,
        "--test",
        &test,
        "--domains",
        &domains,
    ];
    arguments.extend(more);
    finish(
        concord_lab()
            .args(&arguments)
            .envs(variables.iter().copied()),
    )
    .await
}

#[tokio::test]
async fn messages_of_a_file_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let report = eval(
        folder.path(),
        TRAIN,
        TEST,
        &["--no-model", "--phrases", "1", "--json"],
    )
    .await
    .json();
    assert_eq!(
        (report["agents"].as_u64(), report["skills"].as_u64()),
        (Some(2), Some(3))
    );
    assert_eq!(
        (report["messages"].as_u64(), report["for_nobody"].as_u64()),
        (Some(3), Some(1))
    );
    assert_eq!(
        (report["top1"].as_f64(), report["recall"].as_f64()),
        (Some(1.0), Some(1.0))
    );
    assert_eq!(
        (report["false_wakes"].as_f64(), report["wakes"].as_u64()),
        (Some(0.0), Some(2))
    );
    assert!(
        report["latency"]["whole"]["p95_ms"].is_number()
            && report["latency"]["embedding"].is_null()
    );
    let fitted = eval(
        folder.path(),
        TRAIN,
        TEST,
        &["--no-model", "--phrases", "1", "--fit", "--threshold", "0"],
    )
    .await;
    assert!(fitted.good().contains("of 6 wakes"));
}

#[tokio::test]
async fn made_up_agents_are_matched_quickly() {
    let report = run(&["eval", "wake", "--agents", "20", "--no-model", "--json"])
        .await
        .json();
    assert_eq!(
        (report["agents"].as_u64(), report["skills"].as_u64()),
        (Some(20), Some(100))
    );
    assert!(report["latency"]["matching"]["p50_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let bad = format!("{TEST}\tpin\tbank\n");
    let said = eval(folder.path(), TRAIN, &bad, &["--no-model"])
        .await
        .refused(65);
    assert!(
        said.contains("test.tsv, line 5: the text is blank"),
        "{said}"
    );
    let said = eval(
        folder.path(),
        TRAIN,
        TEST,
        &["--model-dir", "no-such-folder"],
    )
    .await
    .refused(2);
    assert!(
        said.contains("no-such-folder") && said.contains("scripts/model"),
        "{said}"
    );
    for arguments in [
        &["eval", "wake"][..],
        &[
            "eval",
            "wake",
            "--train",
            "no-such-file.tsv",
            "--test",
            "b",
            "--domains",
            "c",
            "--no-model",
        ],
        &["eval", "wake", "--agents", "0"],
        &["eval", "wake", "--agents", "5", "--train", "a"],
        &[
            "eval",
            "wake",
            "--train",
            "a",
            "--test",
            "b",
            "--domains",
            "c",
            "--threshold",
            "2",
        ],
    ] {
        run(arguments).await.refused(2);
    }
}

/// What an embedding server was sent.
type Seen = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

/// A server that knows what is meant by words that have no letters in common: where it is, and what it was sent.
async fn embeddings(status: u16) -> (String, Seen) {
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    let vectors = move |headers: HeaderMap, body: String| {
        let asked: Value = serde_json::from_str(&body).unwrap();
        let means = |text: &str, words: &[&str]| {
            f32::from(u8::from(words.iter().any(|word| text.contains(word))))
        };
        let vector = |text: &Value| {
            let text = text.as_str().unwrap();
            [
                means(text, &["pin", "PIN"]),
                means(text, &["bill", "Rechnung"]),
                means(text, &["hotel", "Zimmer"]),
                0.01,
            ]
        };
        let data = asked["input"].as_array().unwrap().iter().enumerate();
        let data: Vec<Value> = data
            .map(|(index, text)| json!({ "index": index, "embedding": vector(text) }))
            .collect();
        noted.lock().unwrap().push((headers, asked));
        async move {
            (
                StatusCode::from_u16(status).unwrap(),
                json!({ "data": data }).to_string(),
            )
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/embeddings", post(vectors));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, seen)
}

/// Messages that have nothing in common with the examples but what they mean.
const MEANT: &str = "text\tintent\tdomain\n\
    wo ist meine Rechnung\tbill\tbank\n\
    ein Zimmer bitte\thotel\ttravel\n\
    zzzz\toos\toos\n";

#[tokio::test]
async fn the_vectors_of_a_server_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (url, seen) = embeddings(200).await;
    let server = [
        "--phrases",
        "1",
        "--embeddings",
        &url,
        "--model",
        "small",
        "--key-env",
        "EMBEDDING_KEY",
    ];
    let with = async |more: &[&str], key: &str| {
        let arguments: Vec<&str> = server.iter().chain(more).copied().collect();
        eval_with(
            folder.path(),
            TRAIN,
            MEANT,
            &arguments,
            &[("EMBEDDING_KEY", key)],
        )
        .await
    };
    let report = with(&["--json"], "sk-secret").await.json();
    assert_eq!(
        (report["top1"].as_f64(), report["model"].as_bool()),
        (Some(1.0), Some(true)),
        "{report}"
    );
    assert!(
        report["latency"]["embedding"]["p50_ms"].is_number(),
        "{report}"
    );
    for (headers, asked) in seen.lock().unwrap().iter() {
        assert_eq!(
            (&headers["authorization"], &asked["model"]),
            (&"Bearer sk-secret".parse().unwrap(), &json!("small"))
        );
    }
    assert!(
        with(&[], "sk-secret")
            .await
            .good()
            .contains("with the vectors of a server")
    );
    let speed = run(&[
        "eval",
        "wake",
        "--agents",
        "5",
        "--embeddings",
        &url,
        "--model",
        "small",
        "--json",
    ])
    .await
    .json();
    assert_eq!(speed["agents"], 5, "{speed}");
    assert!(with(&[], " ").await.refused(2).contains("EMBEDDING_KEY"));
}

/// A server that fails is named, the key is in no word of that, and wrong arguments are refused.
#[tokio::test]
async fn a_server_that_fails_is_said_to_and_its_key_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, seen) = embeddings(500).await;
    let arguments = [
        "--embeddings",
        &broken,
        "--model",
        "small",
        "--key-env",
        "EMBEDDING_KEY",
    ];
    let said = eval_with(
        folder.path(),
        TRAIN,
        TEST,
        &arguments,
        &[("EMBEDDING_KEY", "sk-secret")],
    )
    .await
    .refused(1);
    assert!(
        said.contains("the embedding server answered 500") && !said.contains("sk-secret"),
        "{said}"
    );
    assert_eq!(seen.lock().unwrap().len(), 1, "it is not asked again");
    for (wrong, part) in [
        (
            &["--embeddings", "ftp://x", "--model", "m"][..],
            "base_url is no address",
        ),
        (&["--embeddings", "http://127.0.0.1:9/v1"], "--model"),
        (&["--model", "m"], "--embeddings"),
        (
            &[
                "--embeddings",
                "http://127.0.0.1:9/v1",
                "--model",
                "m",
                "--no-model",
            ],
            "--no-model",
        ),
    ] {
        let said = eval(folder.path(), TRAIN, TEST, wrong).await.refused(2);
        assert!(said.contains(part), "{said}");
    }
}

#[tokio::test]
async fn pairs_are_made_of_the_clauses_of_contracts_and_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contracts.jsonl");
    let eval = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let arguments = [
            "eval",
            "paraphrase",
            "--contracts",
            file,
            "--no-model",
            "--json",
        ];
        run(&arguments).await
    };
    let contracts = "{\"clauses\": {\"Governing Law\": [], \"Insurance\": []}}\n\n{\"clauses\": {\"Parties\": []}}\n";
    let report = eval(contracts).await.json();
    // Of two clauses and four recommendations that have other words, fifteen pairs each, and as many that differ.
    assert_eq!(
        (&report["clauses"], &report["pairs"]),
        (&json!(3), &json!(180))
    );
    let row = |place: usize| &report["rows"][place];
    assert_eq!(
        (&row(0)["recall"], &row(0)["precision"]),
        (&json!(0.0), &Value::Null)
    );
    assert_eq!(
        (&row(1)["recall"], &row(1)["precision"]),
        (&json!(0.2), &json!(1.0))
    );
    let said = eval("{\"clauses\": {}}\n{\"clauses\": 7}\n")
        .await
        .refused(65);
    assert!(said.contains("contracts.jsonl, line 2"), "{said}");
}

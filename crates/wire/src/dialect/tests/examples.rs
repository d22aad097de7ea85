//! Every example of the specification: read as printed, written again without loss. `CONCORD_BLESS=1` writes what the
//! code makes of them, to be read before it is committed.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::*;
use crate::Timestamp;

/// One file of `dialect/examples`.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Example {
    /// The document and the place in it.
    source: String,
    dialect: Dialect,
    /// The dialect it is taken for when none is declared, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    guessed: Option<Dialect>,
    subject: String,
    printed: Value,
    /// What is read.
    #[serde(default)]
    canonical: Value,
    /// What is written of that.
    #[serde(default)]
    written: Value,
}

fn examples() -> Vec<(PathBuf, Example)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/dialect/examples");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).unwrap());
    paths
        .into_iter()
        .map(|path| {
            (
                path.clone(),
                read(&path).unwrap_or_else(|e| panic!("{path:?}: {e}")),
            )
        })
        .collect()
}

#[test]
fn every_example_is_read_as_printed_and_written_again_without_loss() {
    let bless = std::env::var_os("CONCORD_BLESS").is_some_and(|value| value == "1");
    let examples = examples();
    assert!(examples.len() >= 32, "{}", examples.len());
    for (path, mut example) in examples {
        let subject = subject(&example.subject);
        let bytes = example.printed.to_string().into_bytes();
        let (envelope, dialect) = read(&bytes, Some(example.dialect), &subject)
            .unwrap_or_else(|f| panic!("{path:?} {f}"));
        assert_eq!(dialect, example.dialect);
        let (undeclared, guessed) =
            read(&bytes, None, &subject).unwrap_or_else(|f| panic!("{path:?} {f}"));
        assert_eq!(
            guessed,
            example.guessed.unwrap_or(example.dialect),
            "{path:?}"
        );
        assert_eq!(canonical(&undeclared), canonical(&envelope), "{path:?}");

        let bytes = write(&envelope, dialect).unwrap_or_else(|fault| panic!("{path:?} {fault}"));
        let written: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(
            has_all(&written, &example.printed, example.dialect),
            "{path:?}: {written:#}"
        );
        let (again, _) = read(&bytes, Some(dialect), &subject)
            .unwrap_or_else(|fault| panic!("{path:?} {fault}"));
        assert_eq!(canonical(&again), canonical(&envelope), "{path:?}");
        // It is canonical, too.
        let decoded = Envelope::decode(&serde_json::to_vec(&envelope).unwrap(), &subject).unwrap();
        assert_eq!(canonical(&decoded), canonical(&envelope), "{path:?}");

        if bless {
            example.canonical = canonical(&envelope);
            example.written = written;
            let text = serde_json::to_string_pretty(&example).unwrap();
            fs::write(&path, format!("{text}\n")).unwrap();
        } else {
            assert_eq!(
                (&canonical(&envelope), &written),
                (&example.canonical, &example.written),
                "{path:?}"
            );
        }
    }
}

/// Whether everything printed is in what was written. What the specification prints without a message around it is the
/// content or payload of one.
fn has_all(written: &Value, printed: &Value, dialect: Dialect) -> bool {
    let mut written = written.clone();
    if dialect == Dialect::Panel {
        let content = written["content"]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        written["content"] = content.unwrap();
    }
    let around = ["content", "payload"]
        .into_iter()
        .filter_map(|name| written.get(name));
    std::iter::once(&written)
        .chain(around)
        .any(|written| contains(written, printed))
}

fn contains(written: &Value, printed: &Value) -> bool {
    match (written, printed) {
        (Value::Object(written), Value::Object(printed)) => {
            printed.iter().all(|(name, printed)| {
                let said = written
                    .get(name)
                    .is_some_and(|written| contains(written, printed));
                said || (printed.is_null() && !written.contains_key(name))
            })
        }
        // Serialised JSON is its contents.
        (Value::Object(_), Value::String(text)) => {
            serde_json::from_str::<Value>(text).is_ok_and(|printed| contains(written, &printed))
        }
        (Value::String(written), Value::String(printed)) => {
            written == printed
                || Timestamp::parse(written)
                    .is_ok_and(|at| Timestamp::parse(printed).is_ok_and(|other| at == other))
        }
        (written, printed) => written == printed,
    }
}

#[test]
fn the_same_bytes_have_the_same_id_and_no_other_do() {
    let say = |subject_of: &str, words: &str| {
        let bytes = format!(r#"{{"interaction_type":"GROUP_QUERY","content":"{words}"}}"#);
        read(bytes.as_bytes(), None, &subject(subject_of))
            .unwrap()
            .0
            .message_id
    };
    let [a, b] = [
        "concord.v1.msg.c.ann._all.group_query",
        "concord.v1.msg.c.ben._all.group_query",
    ];
    assert_eq!(say(a, "Who knows?"), say(a, "Who knows?"));
    assert_ne!(say(a, "Who knows?"), say(a, "Who is it?"));
    assert_ne!(say(a, "Who knows?"), say(b, "Who knows?"));
}

#[test]
fn what_is_stored_has_the_id_of_its_place_and_is_known_without_it() {
    let bytes = br#"{"interaction_type":"GROUP_QUERY","content":"Who knows?"}"#;
    let heard = read(
        bytes,
        None,
        &subject("concord.v1.msg.c.ann._all.group_query"),
    )
    .unwrap()
    .0;
    let at = Timestamp::from_unix_millis(5);
    let [once, again] = [7, 8].map(|sequence| heard.clone().completed(sequence, at));
    assert_ne!(once.message_id, again.message_id);
    assert_eq!(
        (once.timestamp, heard.timestamp),
        (at, Timestamp::default())
    );
    for id in [&once.message_id, &again.message_id] {
        assert!(id.is_derived());
        assert_eq!(
            crate::without_sequence(id.as_str()),
            heard.message_id.as_str()
        );
        assert_eq!(&id.clone().at_sequence(9), id, "a place is given once");
    }
    for own in [
        "m-1",
        "said-something",
        "019b0c6e-0000-7000-8000-000000000000-7",
        "said-é",
    ] {
        let Ok(id) = crate::MessageId::new(own) else {
            continue;
        };
        assert!(!id.is_derived(), "{own}");
        assert_eq!(crate::without_sequence(own), own);
        assert_eq!(id.clone().at_sequence(7), id);
    }
}

#[test]
fn a_reply_goes_back_to_the_sender() {
    let subject = subject("concord.v1.msg.c-1.planner.coder.request");
    let bytes = br#"{"id":"r-1","sender_id":"planner","receiver_id":"coder","message_type":"REQUEST","content":{}}"#;
    let (asked, dialect) = read(bytes, None, &subject).unwrap();
    let coder = crate::AgentId::new("coder").unwrap();
    let payload =
        serde_json::value::to_raw_value(&serde_json::json!({ "status": "success" })).unwrap();
    let reply = asked.reply(
        &coder,
        Timestamp::from_unix_millis(1),
        crate::MessageType::Response,
        payload,
    );
    let written: Value = serde_json::from_slice(&write(&reply, dialect).unwrap()).unwrap();
    assert_eq!(
        (
            &written["sender_id"],
            &written["receiver_id"],
            &written["reply_to"],
            &written["message_type"]
        ),
        (
            &"coder".into(),
            &"planner".into(),
            &"r-1".into(),
            &"RESPONSE".into()
        )
    );
}

#[test]
fn a_request_without_an_action_asks_in_the_dialects_that_know_none() {
    let subject = subject("concord.v1.msg._.ann.ben.request");
    let asked = |message: Value| {
        let (envelope, dialect) = read(message.to_string().as_bytes(), None, &subject).unwrap();
        (canonical(&envelope), dialect)
    };
    let content =
        serde_json::json!({ "query": "Why?", "context": ["DCF"], "deadline": "next week" });
    let parameters = content.clone();
    let collaboration = serde_json::json!({ "id": "m-1", "sender_id": "ann", "receiver_id": "ben", "content": content });
    let analyst = serde_json::json!({ "from_agent": "ann", "to_agent": "ben", "content": content });
    for (message, dialect) in [
        (collaboration, Dialect::Collaboration),
        (analyst, Dialect::Analyst),
    ] {
        let (read, spoken) = asked(message.clone());
        assert_eq!(spoken, dialect);
        assert_eq!(
            read["payload"],
            serde_json::json!({ "action": DEFAULT_ACTION, "parameters": parameters })
        );
        assert_eq!(read.get("deadline"), None, "words are no time: {dialect}");
        // With an action nothing is added.
        let mut message = message;
        message["content"] = serde_json::json!({ "action": "say", "context": "DCF" });
        assert_eq!(asked(message.clone()).0["payload"], message["content"]);
    }
}

#[test]
fn whatever_an_analyst_says_has_the_confidence_of_its_content() {
    let read_as = |kind: &str, message: Value| {
        let subject = subject(&format!("concord.v1.msg.c-1.ann.coordinator.{kind}"));
        let bytes = message.to_string();
        let (envelope, _) = read(bytes.as_bytes(), Some(Dialect::Analyst), &subject).unwrap();
        let written = write(&envelope, Dialect::Analyst).unwrap();
        let (again, _) = read(&written, Some(Dialect::Analyst), &subject).unwrap();
        assert_eq!(canonical(&again), canonical(&envelope), "{kind}");
        (envelope.metadata.confidence, canonical(&envelope))
    };
    for kind in ["confirmation", "challenge", "evidence", "finding", "alert"] {
        for (stated, taken) in [
            (serde_json::json!(0.7), Some(0.7)),
            (serde_json::json!(1), Some(1.0)),
        ] {
            let content = serde_json::json!({ "confirms": "m-1", "confidence": stated });
            let said = read_as(kind, serde_json::json!({ "content": content })).0;
            assert_eq!(said, taken, "{kind} {stated}");
        }
    }
    for stated in [
        serde_json::json!("high"),
        serde_json::json!(7),
        serde_json::json!(-0.1),
    ] {
        let content = serde_json::json!({ "confirms": "m-1", "confidence": stated });
        let (said, kept) = read_as("confirmation", serde_json::json!({ "content": content }));
        assert_eq!(said, None, "{stated}");
        assert_eq!(kept["payload"]["confidence"], stated, "for others to read");
    }
    // What the metadata say counts before what the content says.
    let content =
        serde_json::json!({ "confidence": 0.7, "concord": { "metadata": { "confidence": 0.2 } } });
    let said = read_as("confirmation", serde_json::json!({ "content": content }));
    assert_eq!(said.0, Some(0.2));
    let printed =
        serde_json::json!({ "challenger": "ann", "challenged": "ben", "confidence": 0.9 });
    assert_eq!(read_as("challenge", printed).0, Some(0.9));
}

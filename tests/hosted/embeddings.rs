//! Messages are matched by the vectors of a server, by letters while it fails, and by vectors again when it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use concord_events::topology::StreamKind;
use concord_testkit::{Message, stored, unique, until};
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Received, Server, Stage};

/// A direction for each thing that can be meant, in whatever words.
fn vector(text: &str) -> [f32; 4] {
    let text = text.to_lowercase();
    let means = |words: &[&str]| {
        if words.iter().any(|word| text.contains(word)) {
            1.0
        } else {
            0.0
        }
    };
    [
        means(&["tax", "tva"]),
        means(&["database", "tabelle"]),
        means(&["weather"]),
        0.01,
    ]
}

/// What the server says of whatever it is sent with these words in it.
const UNWANTED: &str = "far too long";

fn vectors(received: &Received) -> (u16, String) {
    let texts = received.body["input"].as_array().expect("texts");
    if texts
        .iter()
        .any(|text| text.as_str().is_some_and(|text| text.contains(UNWANTED)))
    {
        return (413, "too many tokens".to_owned());
    }
    let each = texts.iter().enumerate();
    let data: Vec<Value> = each
        .map(|(index, text)| json!({ "index": index, "embedding": vector(text.as_str().expect("a text")) }))
        .collect();
    (200, json!({ "data": data }).to_string())
}

/// Asks the group something that nobody has asked before; what is decided about it.
async fn decision(stage: &Stage, words: &str) -> Result<Value, String> {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let text = format!("{words} ({})", ASKED.fetch_add(1, Ordering::Relaxed));
    let message = Message::new(
        "_",
        &stage.asker,
        "_any",
        "group_query",
        json!({ "content": text }),
    );
    message.publish(stage.installation.client()).await;
    let decided = until(
        format!("a decision about {}", message.id()),
        PATIENCE,
        async || {
            let all = stored(
                stage.installation.client(),
                StreamKind::Events,
                "concord.v1.event.wake.*.decided",
            )
            .await?;
            let mut all = all.iter().map(|one| one.json()["data"].clone());
            all.find(|one| one["said"]["message_id"] == message.id())
                .ok_or_else(|| "there is none".to_owned())
        },
    );
    decided.await.map_err(|error| error.to_string())
}

/// Asks until vectors have a part in what is decided, or have none.
async fn decided(stage: &Stage, words: &str, with_model: bool) -> Value {
    let reached = until(
        format!(
            "matching {}",
            if with_model {
                "by vectors"
            } else {
                "by letters"
            }
        ),
        PATIENCE,
        async || {
            let decided = decision(stage, words).await?;
            if decided["with_model"].as_bool().unwrap_or(false) == with_model {
                Ok(decided)
            } else {
                Err(decided.to_string())
            }
        },
    );
    reached
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", stage.installation.log_tails()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_makes_the_vectors_and_letters_decide_while_it_fails() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let model = Server::start(move |received| {
        let failing = failing.load(Ordering::Relaxed);
        async move {
            if failing {
                (500, "out of memory".to_owned())
            } else {
                vectors(&received)
            }
        }
    })
    .await;
    // Has nothing to say to anything.
    let silent = Server::start(|_| async { (200, "{}".to_owned()) }).await;
    let [tax, base, long] = ["tax", "base", "long"].map(unique);
    let agent = |name: &str, skill: &str, example: &str| {
        format!(
            "[[service.agents]]\nagent_id = \"{name}\"\nhttp = {{ url = \"{}/x\" }}\n\
             skills = [{{ name = \"{skill}\", examples = [\"{example}\"] }}]\n",
            silent.url
        )
    };
    let settings = format!(
        "[service.wake.embeddings]\nbase_url = \"{}/v1\"\nmodel = \"m\"\n{}{}{}",
        model.url,
        agent(&tax, "tax", "Who bears the value added tax?"),
        agent(&base, "database", "Which indexes does this database need?"),
        // What the server does not want of one agent concerns no other.
        agent(&long, "essays", &format!("An essay that is {UNWANTED}.")),
    );
    let stage = Stage::start(2, &settings).await;

    // No letters of a word in common with the skill: only what it means tells.
    let by_vectors = decided(&stage, "Qui paie la TVA", true).await;
    let woken: Vec<&Value> = by_vectors["woken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["agent_id"])
        .collect();
    assert_eq!(woken, [tax.as_str()], "{by_vectors}");
    assert_eq!(by_vectors["woken"][0]["reason"], "semantic:tax");

    fails.store(true, Ordering::Relaxed);
    let by_letters = decided(&stage, "Who bears the value added tax", false).await;
    assert_eq!(
        by_letters["woken"][0]["agent_id"],
        tax.as_str(),
        "{by_letters}"
    );

    fails.store(false, Ordering::Relaxed);
    let again = decided(&stage, "Welche Tabelle fehlt", true).await;
    assert_eq!(again["woken"][0]["agent_id"], base.as_str(), "{again}");
    stage.installation.holds(PATIENCE).await;
}

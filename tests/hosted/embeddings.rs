//! Messages are matched with skills by the vectors of a server, by letters while it fails, and by vectors again after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use concord_testkit::{
    Instance, Message, event_data, http_get, instances, unique, until, wait_for,
};
use concord_wire::subject::Service;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::hosted::stage::{PATIENCE, Received, Server, Stage};

/// The vector of a text: one direction for each topic, whatever the words.
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

/// The server refuses a text with these words.
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

/// Asks the group something that nobody has asked before: the decision about it.
async fn decision(stage: &Stage, words: &str) -> Result<Value, String> {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let text = format!("{words} ({})", ASKED.fetch_add(1, Ordering::Relaxed));
    let payload = json!({ "content": text });
    let message = Message::new("_", &stage.asker, "_any", "group_query", payload);
    message.publish(stage.installation.client()).await;
    let what = format!("a decision about {}", message.id());
    until(what, PATIENCE, async || {
        let all = event_data(stage.installation.client(), "wake.*.decided").await?;
        all.into_iter()
            .find(|one| one["said"]["message_id"] == message.id())
            .ok_or_else(|| "there is none".to_owned())
    })
    .await
    .map_err(|error| error.to_string())
}

/// Asks until a decision is made with vectors, or without them: that decision.
async fn decision_by(stage: &Stage, words: &str, vectors: bool) -> Value {
    let way = if vectors { "vectors" } else { "letters" };
    wait_for(format!("matching by {way}"), PATIENCE, async || {
        let decided = decision(stage, words).await?;
        if decided["with_model"].as_bool().unwrap_or(false) == vectors {
            Ok(decided)
        } else {
            Err(decided.to_string())
        }
    })
    .await
}

/// The adapter's own words on whether it is ready.
async fn readiness(stage: &Stage) -> Result<String, String> {
    let name = "concord-agent-adapter";
    let is_there = |found: &[Instance]| found.iter().any(|one| one.name == name);
    // It asks once, and who is not there yet does not hear it.
    let found = instances(
        stage.installation.client(),
        Duration::from_secs(1),
        is_there,
    )
    .await;
    let found = found.map_err(|error| error.to_string())?;
    let adapter = found.iter().find(|one| one.name == name);
    let address = adapter.and_then(Instance::http).ok_or("no address")?;
    let answer = http_get(address, "/readyz").await;
    answer.map_err(|error| error.to_string())
}

/// A decision whom a message wakes is final, so there is none before every card has its vectors.
#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_whose_cards_have_no_vectors_yet_is_not_ready_and_says_why() {
    let (open, opened) = watch::channel(true);
    let model = Server::start(move |received| {
        let mut opened = opened.clone();
        async move {
            let _ = opened.wait_for(|open| *open).await;
            vectors(&received)
        }
    })
    .await;
    let silent = Server::start(|_| async { (200, "{}".to_owned()) }).await;
    let settings = format!(
        "[service.wake.embeddings]\nbase_url = \"{}/v1\"\nmodel = \"m\"\ntimeout_ms = 20000\n\
         [[service.agents]]\nagent_id = \"{}\"\nhttp = {{ url = \"{}/x\" }}\n\
         skills = [{{ name = \"tax\", examples = [\"Who bears the value added tax?\"] }}]\n",
        model.url,
        unique("tax"),
        silent.url
    );
    let stage = Stage::start(1, &settings).await;
    // The agent is entered in the register.
    decision_by(&stage, "Qui paie la TVA", true).await;

    open.send_replace(false);
    let adapter = Service::AgentAdapter;
    stage.installation.kill(adapter, 0).unwrap();
    stage.installation.launch(adapter, 0).unwrap();
    wait_for("the adapter to say what it lacks", PATIENCE, async || {
        let said = readiness(&stage).await?;
        let is_plain = said.contains("is not bound yet") && !said.contains("does not answer");
        let is_plain = is_plain && said.contains("\"ready\":false");
        is_plain.then_some(()).ok_or(said)
    })
    .await;
    open.send_replace(true);
    wait_for("the adapter to be ready", PATIENCE, async || {
        let said = readiness(&stage).await?;
        said.contains("\"ready\":true").then_some(()).ok_or(said)
    })
    .await;
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
    // The agents answer nothing.
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
        // A text of one agent that the server refuses does not affect the others.
        agent(&long, "essays", &format!("An essay that is {UNWANTED}.")),
    );
    let stage = Stage::start(2, &settings).await;

    // It has no word in common with the skill: only its meaning fits.
    let by_vectors = decision_by(&stage, "Qui paie la TVA", true).await;
    let woken: Vec<&Value> = by_vectors["woken"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["agent_id"])
        .collect();
    assert_eq!(woken, [tax.as_str()], "{by_vectors}");
    assert_eq!(by_vectors["woken"][0]["reason"], "semantic:tax");

    fails.store(true, Ordering::Relaxed);
    let by_letters = decision_by(&stage, "Who bears the value added tax", false).await;
    assert_eq!(
        by_letters["woken"][0]["agent_id"],
        tax.as_str(),
        "{by_letters}"
    );

    fails.store(false, Ordering::Relaxed);
    let again = decision_by(&stage, "Welche Tabelle fehlt", true).await;
    assert_eq!(again["woken"][0]["agent_id"], base.as_str(), "{again}");
    stage.installation.holds(PATIENCE).await;
}

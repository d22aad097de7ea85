use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use concord_wire::{MessageType, Recipient};
use serde_json::{Value, json};

use super::*;
use crate::settings::wake::EmbeddingServer;

fn open(settings: &WakeSettings) -> Arc<Matching> {
    Matching::open(settings, settings.server().unwrap()).unwrap()
}

/// A server whose vectors say how often a text has each of five letters, while it is up.
async fn serve(up: Arc<AtomicBool>) -> String {
    async fn embeddings(State(up): State<Arc<AtomicBool>>, body: String) -> (StatusCode, String) {
        if !up.load(Ordering::Relaxed) {
            return (StatusCode::INTERNAL_SERVER_ERROR, String::new());
        }
        let body: Value = serde_json::from_str(&body).unwrap();
        let vector =
            |text: &str| ["a", "e", "i", "o", "u"].map(|letter| text.matches(letter).count() + 1);
        let texts = body["input"].as_array().unwrap().iter().enumerate();
        let data = texts.map(
            |(place, text)| json!({ "index": place, "embedding": vector(text.as_str().unwrap()) }),
        );
        (
            StatusCode::OK,
            json!({ "data": data.collect::<Vec<_>>() }).to_string(),
        )
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/v1/embeddings", post(embeddings))
        .with_state(up);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1")
}

fn settings(base_url: String) -> WakeSettings {
    let server = EmbeddingServer {
        base_url,
        model: "m".into(),
        key_env: None,
        key_file: None,
        timeout_ms: 30_000,
    };
    WakeSettings {
        embeddings: Some(server),
        ..WakeSettings::default()
    }
}

fn cards(names: &[&str]) -> BTreeMap<AgentId, Card> {
    let card = |name: &&str| {
        let id = AgentId::new(*name).unwrap();
        let skills = vec![Skill {
            name: format!("skill of {name}"),
            ..Skill::default()
        }];
        (
            id.clone(),
            Card {
                skills,
                ..Card::new(id)
            },
        )
    };
    names.iter().map(card).collect()
}

async fn has_vectors(matching: &Matching, text: &str) -> (bool, bool) {
    let from = AgentId::new("ann").unwrap();
    let message = Message {
        message_type: &MessageType::GroupQuery,
        from: &from,
        to: &Recipient::Any,
        content: text,
        assigned: None,
        preferred: &[],
        reply_to_author: None,
        asks_for_objections: false,
    };
    let texts = Texts {
        previous: Some(format!("before {text}")),
        ..Texts::default()
    };
    let vectors = matching.vectors(&message, &texts).await;
    assert!(vectors.message().is_none_or(|vector| vector.len() == 5));
    let previous = vectors.of(&texts).previous.unwrap();
    (vectors.message().is_some(), previous.vector.is_some())
}

#[tokio::test]
async fn while_the_server_fails_everyone_is_matched_by_letters() {
    let up = Arc::new(AtomicBool::new(true));
    let mut matching = open(&settings(serve(Arc::clone(&up)).await));
    let pause = Duration::ZERO..=Duration::ZERO;
    if let VectorSource::Server(served) = &mut Arc::get_mut(&mut matching).unwrap().source {
        served.server.set_pause(pause);
    }
    let mut known = BTreeMap::new();
    assert!(matching.renew(cards(&["ann"]), &mut known).await);
    assert_eq!(has_vectors(&matching, "one").await, (true, true));

    up.store(false, Ordering::Relaxed);
    assert_eq!(has_vectors(&matching, "two").await, (false, false));
    assert_eq!(
        has_vectors(&matching, "one").await,
        (true, true),
        "what is in the cache needs no server"
    );
    // Who registers meanwhile has no vectors, and would lose against all who have.
    assert!(!matching.renew(cards(&["ann", "ben"]), &mut known).await);
    assert_eq!(has_vectors(&matching, "one").await, (false, false));
    assert!(
        matching.read(|matcher| matcher.agent_named("ben").is_some()),
        "it is matched all the same"
    );

    up.store(true, Ordering::Relaxed);
    assert_eq!(
        has_vectors(&matching, "three").await,
        (false, false),
        "until every card has them"
    );
    assert!(matching.renew(cards(&["ann", "ben"]), &mut known).await);
    assert_eq!(has_vectors(&matching, "three").await, (true, true));
    up.store(false, Ordering::Relaxed);
    assert!(
        !matching
            .renew(cards(&["ann", "ben", "cleo"]), &mut known)
            .await
    );
    assert!(
        matching.renew(cards(&["ann", "ben"]), &mut known).await,
        "who lacked them may leave"
    );
    assert!(matching.read(|matcher| matcher.agent_named("cleo").is_none()));
}

#[test]
fn settings_that_could_not_work_are_refused_by_name() {
    let refused = |settings: WakeSettings| settings.server().unwrap_err().to_string();
    let both = WakeSettings {
        model_dir: Some("m".into()),
        ..settings("http://x/v1".into())
    };
    assert!(refused(both).contains("leave out wake.model_dir or wake.embeddings"));
    assert!(refused(settings("nowhere".into())).contains("service.wake.embeddings"));
    let mut keyed = settings("http://x/v1".into());
    keyed.embeddings.as_mut().unwrap().key_env = Some("CONCORD_TEST_NO_SUCH_KEY".into());
    assert!(refused(keyed).contains("wake.embeddings.key_env"));
    assert!(settings("http://x/v1".into()).server().is_ok());
}

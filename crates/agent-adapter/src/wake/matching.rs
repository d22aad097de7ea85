//! The matcher of all registered cards, and the vectors that it compares.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use concord_domain::wake::{Matcher, Message, Parameters, Previous, centroid, texts_of};
use concord_embedding::{Embedder, Settings};
use concord_protocol::AgentId;
use concord_protocol::payload::{Card, Skill};
use concord_runtime::Directory;
use concord_runtime::service::Shell;

use crate::AnyError;

/// The matcher, with a model where there is one.
pub(super) struct Matching {
    matcher: RwLock<Matcher>,
    embedder: Option<Arc<Embedder>>,
}

/// The vectors of a message and of the one before it; none without a model.
#[derive(Default)]
pub(super) struct Vectors {
    message: Option<Arc<[f32]>>,
    previous: Option<Arc<[f32]>>,
}

impl Vectors {
    pub(super) fn message(&self) -> Option<&[f32]> {
        self.message.as_deref()
    }

    pub(super) fn previous<'a>(&'a self, text: &'a str) -> Previous<'a> {
        Previous { text, vector: self.previous.as_deref() }
    }
}

impl Matching {
    /// Knows nobody yet. A model that is named and cannot be read is an error: whoever named it counts on it.
    pub(super) fn open(settings: &Settings) -> Result<Arc<Self>, AnyError> {
        let embedder = Embedder::open(settings)?.map(Arc::new);
        match &settings.model_dir {
            Some(dir) => tracing::info!(model = %dir.display(), "Messages are matched with skills by a model."),
            None => tracing::warn!(
                "There is no model (service.wake.model_dir): messages are matched with skills by letters alone, which wakes \
                 fewer of the right agents."
            ),
        }
        Ok(Arc::new(Self { matcher: RwLock::new(Matcher::new(Parameters::default())), embedder }))
    }

    /// Keeps to what the directory knows until the service stops.
    pub(super) fn follow(matching: &Arc<Self>, shell: &Shell, directory: &Arc<Directory>) {
        let (matching, directory, stop) = (Arc::clone(matching), Arc::clone(directory), shell.stop.clone());
        let mut changes = directory.changes();
        shell.spawn(async move {
            let mut known = BTreeMap::new();
            loop {
                matching.renew(&directory, &mut known).await;
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = stop.cancelled() => return,
                }
            }
        });
    }

    async fn renew(self: &Arc<Self>, directory: &Directory, known: &mut BTreeMap<AgentId, Card>) {
        let mut now = BTreeMap::new();
        directory.each(|agent, state| {
            if let Some(card) = &state.card {
                now.insert(agent.clone(), card.clone());
            }
        });
        for gone in known.keys().filter(|agent| !now.contains_key(*agent)) {
            self.write(|matcher| matcher.remove(gone));
        }
        for (agent, card) in &now {
            if known.get(agent) == Some(card) {
                continue;
            }
            let vectors = self.vectors_of(card).await;
            self.write(|matcher| matcher.insert(card, |skill| vectors.get(&skill.name).cloned()));
        }
        *known = now;
    }

    /// The vectors of a card's skills, by name.
    async fn vectors_of(&self, card: &Card) -> BTreeMap<String, Vec<f32>> {
        let Some(embedder) = self.embedder.clone() else { return BTreeMap::new() };
        let skills = card.skills.clone();
        let computed = tokio::task::spawn_blocking(move || {
            skills.iter().filter_map(|skill| Some((skill.name.clone(), vector_of(&embedder, skill)?))).collect()
        });
        computed.await.unwrap_or_default()
    }

    /// The vectors that a message is to be compared by; of one that is not matched none are made.
    pub(super) async fn vectors(&self, message: &Message<'_>, previous: Option<String>) -> Vectors {
        let Some(embedder) = self.embedder.clone().filter(|_| message.is_group_visible()) else {
            return Vectors::default();
        };
        let text = message.content.to_owned();
        let computed = tokio::task::spawn_blocking(move || {
            let vector = |text: &str| match embedder.embed(text) {
                Ok(vector) => Some(vector),
                Err(error) => {
                    tracing::warn!(%error, "A message has no vector; it is matched by letters.");
                    None
                }
            };
            Vectors { message: vector(&text), previous: previous.as_deref().and_then(vector) }
        });
        computed.await.unwrap_or_default()
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Matcher) -> T) -> T {
        read(&self.matcher.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Matcher) -> T) -> T {
        write(&mut self.matcher.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn vector_of(embedder: &Embedder, skill: &Skill) -> Option<Vec<f32>> {
    let texts = texts_of(skill);
    let vectors = embedder.embed_all(texts.iter().map(String::as_str)).ok()?;
    centroid(vectors.iter().map(|vector| &vector[..]))
}

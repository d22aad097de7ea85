//! The matcher with all registered cards, and the source of the vectors that it compares.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use concord_domain::activation::{Embedded, Matcher, Message, Parameters, centroid, texts_of};
use concord_embedding::{Embedder, Server, ServerError, ServerSettings};
use concord_runtime::Directory;
use concord_runtime::service::ServiceRunner;
use concord_wire::AgentId;
use concord_wire::payload::{Card, Skill};
use tokio::sync::{Notify, oneshot};

use crate::AnyError;
use crate::metrics::{AdapterMetrics, MatchingLabel};
use crate::settings::wake::WakeSettings;

/// The time between two attempts to get the vectors that cards lack from a server that failed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The matcher and its source of vectors.
pub struct Matching {
    matcher: RwLock<Matcher>,
    source: VectorSource,
    /// Notified when the way of matching may have changed.
    changed: Notify,
}

/// The source of vectors.
enum VectorSource {
    /// Nothing: n-grams alone decide.
    Letters,
    /// A model in this process.
    Model(Arc<Embedder>),
    /// A server.
    Server(Box<ServedVectors>),
}

/// A server and its state.
struct ServedVectors {
    server: Server,
    /// Whether every card has its vectors. While one card lacks them, its agent would lose against all others, so all agents are
    /// matched by letters.
    is_whole: AtomicBool,
    is_failing: AtomicBool,
}

impl ServedVectors {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Arc<[f32]>>, ServerError> {
        let made = self.server.embed_all(texts).await;
        match &made {
            Ok(_) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("The embedding server answers again.");
                }
            }
            // Whose texts they are is matched by letters; others are not concerned.
            Err(error) if error.is_about_texts() => {}
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "The embedding server fails: messages are matched by letters until it answers.");
                }
            }
        }
        made
    }
}

/// The texts that a message is compared by.
#[derive(Default)]
pub(super) struct Texts {
    /// The parts of the message, where it has several.
    pub(super) parts: Vec<String>,
    /// The message before it.
    pub(super) previous: Option<String>,
    /// The assignment that its sender works on.
    pub(super) assignment: Option<String>,
}

/// The vectors of a message and of the texts that it is compared by; none without a model.
#[derive(Default)]
pub(super) struct Vectors(Vec<Option<Arc<[f32]>>>);

impl Vectors {
    pub(super) fn message(&self) -> Option<&[f32]> {
        self.at(0)
    }

    /// The parts, the message before, and the assignment, with their vectors.
    pub(super) fn of<'a>(&'a self, texts: &'a Texts) -> Compared<'a> {
        let mut place = 0;
        let mut embedded = |text: &'a String| {
            place += 1;
            Embedded {
                text,
                vector: self.at(place),
            }
        };
        Compared {
            parts: texts.parts.iter().map(&mut embedded).collect(),
            previous: texts.previous.as_ref().map(&mut embedded),
            assignment: texts.assignment.as_ref().map(&mut embedded),
        }
    }

    fn at(&self, place: usize) -> Option<&[f32]> {
        self.0.get(place)?.as_deref()
    }
}

/// What a message is compared by, with vectors where there is a model.
pub(super) struct Compared<'a> {
    pub(super) parts: Vec<Embedded<'a>>,
    pub(super) previous: Option<Embedded<'a>>,
    pub(super) assignment: Option<Embedded<'a>>,
}

impl Matching {
    /// Opens the model or server of the settings; knows no cards yet. A model that cannot be read is an error, because the operator
    /// relies on it. A server that does not answer is none, because it may come back.
    pub(super) fn open(
        settings: &WakeSettings,
        server: Option<ServerSettings>,
    ) -> Result<Arc<Self>, AnyError> {
        let source = match (server, &settings.model_dir) {
            (Some(server), _) => {
                let server = Server::new(&server)?;
                tracing::info!("Messages are matched with skills by the vectors of a server.");
                let (is_whole, is_failing) = (AtomicBool::new(false), AtomicBool::new(false));
                VectorSource::Server(Box::new(ServedVectors {
                    server,
                    is_whole,
                    is_failing,
                }))
            }
            (None, Some(dir)) => {
                let embedder = Embedder::open(&settings.embedding())?;
                tracing::info!(model = %dir.display(), "Messages are matched with skills by a model.");
                embedder.map_or(VectorSource::Letters, |embedder| {
                    VectorSource::Model(Arc::new(embedder))
                })
            }
            (None, None) => {
                tracing::warn!(
                    "There is no model (service.wake.model_dir): messages are matched with skills by letters alone, which \
                     wakes fewer of the right agents."
                );
                VectorSource::Letters
            }
        };
        Ok(Arc::new(Self::new(source)))
    }

    fn new(source: VectorSource) -> Self {
        Self {
            matcher: RwLock::new(Matcher::new(Parameters::default())),
            source,
            changed: Notify::new(),
        }
    }

    /// Matches by letters alone, and knows these cards.
    pub fn of_cards<'a>(cards: impl IntoIterator<Item = &'a Card>) -> Self {
        let matching = Self::new(VectorSource::Letters);
        for card in cards {
            matching.write(|matcher| matcher.insert(card, |_| None));
        }
        matching
    }

    /// Matches by a model, and knows these cards.
    #[cfg(test)]
    pub(super) async fn of_model(model: Arc<Embedder>, cards: &[Card]) -> Self {
        let matching = Self::new(VectorSource::Model(model));
        let cards = cards
            .iter()
            .map(|card| (card.agent_id.clone(), card.clone()));
        matching.renew(cards.collect(), &mut BTreeMap::new()).await;
        matching
    }

    /// Keeps to what the directory knows until the service stops. The answer comes when all that were registered before are
    /// known, with vectors as far as these can be made.
    pub(super) fn follow(
        matching: &Arc<Self>,
        runner: &ServiceRunner,
        directory: &Arc<Directory>,
        metrics: &AdapterMetrics,
    ) -> oneshot::Receiver<()> {
        let (all_known, known_all) = oneshot::channel();
        let mut all_known = Some(all_known);
        let (matching, directory, stop) = (
            Arc::clone(matching),
            Arc::clone(directory),
            runner.stop.clone(),
        );
        let reporter = runner.clone();
        let metrics = metrics.clone();
        let mut changes = directory.changes();
        runner.spawn(async move {
            directory.loaded().await;
            let mut known = BTreeMap::new();
            loop {
                let mut now = BTreeMap::new();
                directory.each(|agent, state| {
                    if let Some(card) = &state.card {
                        now.insert(agent.clone(), card.clone());
                    }
                });
                let is_whole = matching.renew(now, &mut known).await;
                matching.report(&reporter, &metrics);
                if all_known
                    .take()
                    .is_some_and(|all_known| all_known.send(()).is_err())
                {
                    return;
                }
                loop {
                    tokio::select! {
                        changed = changes.changed() => match changed {
                            Ok(()) => break,
                            Err(_) => return,
                        },
                        () = tokio::time::sleep(LOOK_INTERVAL), if !is_whole => break,
                        () = matching.changed.notified() => matching.report(&reporter, &metrics),
                        () = stop.cancelled() => return,
                    }
                }
            }
        });
        known_all
    }

    /// Takes cards over in place of those that are known; whether all of them have the vectors that they should have. Those that
    /// lack them are not taken to be known, so that they are tried again.
    async fn renew(
        &self,
        mut now: BTreeMap<AgentId, Card>,
        known: &mut BTreeMap<AgentId, Card>,
    ) -> bool {
        for gone in known.keys().filter(|agent| !now.contains_key(*agent)) {
            self.write(|matcher| matcher.remove(gone));
        }
        let mut lacking = Vec::new();
        for (agent, card) in &now {
            if known.get(agent) == Some(card) {
                continue;
            }
            let vectors = self.vectors_of(card).await;
            if vectors.is_none() {
                lacking.push(agent.clone());
            }
            let vectors = vectors.unwrap_or_default();
            self.write(|matcher| matcher.insert(card, |skill| vectors.get(&skill.name).cloned()));
        }
        let is_whole = lacking.is_empty();
        if let VectorSource::Server(served) = &self.source {
            served.is_whole.store(is_whole, Ordering::Relaxed);
            // They stay in the matcher, and must be taken out of it when they leave.
            for agent in lacking {
                if let Some(card) = now.get_mut(&agent) {
                    *card = Card::new(agent);
                }
            }
        }
        *known = now;
        is_whole
    }

    /// The vectors of a card's skills, by name; none where a server failed to make them.
    async fn vectors_of(&self, card: &Card) -> Option<BTreeMap<String, Vec<f32>>> {
        match &self.source {
            VectorSource::Letters => Some(BTreeMap::new()),
            VectorSource::Model(embedder) => {
                let (embedder, skills) = (Arc::clone(embedder), card.skills.clone());
                let computed = tokio::task::spawn_blocking(move || {
                    skills
                        .iter()
                        .filter_map(|skill| {
                            Some((skill.name.clone(), vector_of(&embedder, skill)?))
                        })
                        .collect()
                });
                Some(computed.await.unwrap_or_default())
            }
            VectorSource::Server(served) => {
                let mut found = BTreeMap::new();
                for skill in &card.skills {
                    let texts = texts_of(skill);
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let vectors = match served.embed(&texts).await {
                        Err(error) if error.is_about_texts() => {
                            let (agent, skill) = (&card.agent_id, &skill.name);
                            tracing::warn!(%agent, skill, %error, "The embedding server does not want a skill's texts.");
                            continue;
                        }
                        made => made.ok()?,
                    };
                    let centroid = centroid(vectors.iter().map(|vector| &vector[..]));
                    found.extend(centroid.map(|vector| (skill.name.clone(), vector)));
                }
                Some(found)
            }
        }
    }

    /// The vectors that a message is to be compared by; of one that is not matched none are made. A message has a vector, or
    /// neither it nor what it is compared by has one.
    pub(super) async fn vectors(&self, message: &Message<'_>, texts: &Texts) -> Vectors {
        if !message.is_group_visible() {
            return Vectors::default();
        }
        let all = [message.content].into_iter();
        let all = all.chain(texts.parts.iter().map(String::as_str));
        let all = all
            .chain(texts.previous.as_deref())
            .chain(texts.assignment.as_deref());
        match &self.source {
            VectorSource::Letters => Vectors::default(),
            VectorSource::Model(embedder) => {
                of_model(Arc::clone(embedder), all.map(str::to_owned).collect()).await
            }
            VectorSource::Server(served) if served.is_whole.load(Ordering::Relaxed) => {
                // One call for all.
                let texts: Vec<&str> = all.collect();
                let made = served.embed(&texts).await.unwrap_or_default();
                self.changed.notify_one();
                Vectors(made.into_iter().map(Some).collect())
            }
            VectorSource::Server(_) => Vectors::default(),
        }
    }

    /// Says by what messages are matched now, in the metrics and, where that is less than what is set up or could be, in the
    /// readiness.
    pub(super) fn report(&self, runner: &ServiceRunner, metrics: &AdapterMetrics) {
        let (by, restriction) = match &self.source {
            VectorSource::Letters => (
                "letters",
                Some("there is no model: messages are matched with skills by letters alone"),
            ),
            VectorSource::Model(_) => ("model", None),
            VectorSource::Server(served) if served.is_failing.load(Ordering::Relaxed) => (
                "letters",
                Some(
                    "the embedding server fails: messages are matched with skills by letters alone",
                ),
            ),
            VectorSource::Server(served) if !served.is_whole.load(Ordering::Relaxed) => (
                "letters",
                Some(
                    "cards wait for their vectors: messages are matched with skills by letters alone",
                ),
            ),
            VectorSource::Server(_) => ("server", None),
        };
        for way in ["letters", "model", "server"] {
            metrics
                .wake_matching
                .get_or_create(&MatchingLabel { by: way })
                .set(i64::from(way == by));
        }
        runner.note("wake", restriction.map(str::to_owned));
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Matcher) -> T) -> T {
        read(&self.matcher.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Matcher) -> T) -> T {
        write(&mut self.matcher.write().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn of_model(embedder: Arc<Embedder>, texts: Vec<String>) -> Vectors {
    let computed = tokio::task::spawn_blocking(move || {
        let vector = |text: &String| match embedder.embed(text) {
            Ok(vector) => Some(vector),
            Err(error) => {
                tracing::warn!(%error, "A message has no vector; it is matched by letters.");
                None
            }
        };
        Vectors(texts.iter().map(vector).collect())
    });
    computed.await.unwrap_or_default()
}

fn vector_of(embedder: &Embedder, skill: &Skill) -> Option<Vec<f32>> {
    let texts = texts_of(skill);
    let vectors = embedder.embed_all(texts.iter().map(String::as_str)).ok()?;
    centroid(vectors.iter().map(|vector| &vector[..]))
}

#[cfg(test)]
mod tests;

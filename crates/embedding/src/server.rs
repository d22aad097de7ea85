//! Vectors of a server with the API of OpenAI: `/v1/embeddings`, as Ollama, TEI and others have it.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use concord_outbound::{
    Allowed, Caller, HeaderMap, HeaderValue, Limits, Method, Origin, Request, header,
};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::cache::Cache;
use crate::model::beginning;

/// Texts in one call.
const BATCH_MAX: usize = 64;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 * 1_048_576;
/// How long a server that failed is not asked, at first and at most; doubled each time that it fails again.
const PAUSE: std::ops::RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_secs(60);

/// Why there is no vector. Texts name neither the address nor the key, and repeat nothing that the server says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// What it is told cannot be used.
    #[error("{0}")]
    Settings(String),
    /// It failed a moment ago and is left alone.
    #[error("the embedding server failed a moment ago and is not asked yet")]
    Paused,
    /// The call failed.
    #[error("the embedding server cannot be asked: {0}")]
    Call(#[from] concord_outbound::Error),
    /// It answered with an error.
    #[error("the embedding server answered {0}")]
    Status(u16),
    /// Its answer is not what was asked for.
    #[error("the embedding server's answer cannot be used: {0}")]
    Answer(&'static str),
}

impl ServerError {
    /// Whether the server does not want what it was sent, be it too many texts or one that is too long, and others may do.
    pub fn is_about_texts(&self) -> bool {
        matches!(self, Self::Status(400 | 413 | 422))
    }
}

/// Where the server is.
#[derive(Clone)]
pub struct ServerSettings {
    /// Where the API begins, for example `http://127.0.0.1:11434/v1`; `/embeddings` is added.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many vectors are kept.
    pub cache: NonZeroUsize,
}

/// A server, with a cache. What it fails to do is not tried again for a while, so that nobody waits for it again and again.
pub struct Server {
    caller: Caller,
    url: String,
    headers: HeaderMap,
    model: String,
    timeout: Duration,
    cache: Cache,
    standing: Mutex<Standing>,
    pause: std::ops::RangeInclusive<Duration>,
}

#[derive(Default)]
struct Standing {
    dimensions: Option<usize>,
    failed: Option<(Instant, Duration)>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl std::fmt::Debug for ServerSettings {
    /// Leaves out the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSettings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl ServerSettings {
    /// Refuses settings with which no server could be called. Calls nobody.
    pub fn check(&self) -> Result<(), ServerError> {
        Server::new(self).map(|_| ())
    }
}

impl Server {
    /// Calls nobody yet.
    pub fn new(settings: &ServerSettings) -> Result<Self, ServerError> {
        let wrong = |what: &str| ServerError::Settings(what.to_owned());
        let form = "base_url is no address such as http://127.0.0.1:11434/v1, without a user name";
        let mut url = Url::parse(&settings.base_url).map_err(|_| wrong(form))?;
        let origin =
            Origin::of(&url).filter(|_| url.username().is_empty() && url.password().is_none());
        let origin = origin.ok_or_else(|| wrong(form))?;
        if settings.model.trim().is_empty() {
            return Err(wrong("model is blank"));
        }
        if settings.timeout.is_zero() {
            return Err(wrong("timeout_ms must be at least 1"));
        }
        let path = format!("{}/embeddings", url.path().trim_end_matches('/'));
        url.set_path(&path);
        // The operator wrote the address, and such a server often runs on the next machine.
        let allowed = Allowed::new(vec![origin], true, ("its own address", "nothing"));
        let caller =
            Caller::new(allowed, None).map_err(|error| ServerError::Settings(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if let Some(key) = &settings.key {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            let mut value = value.map_err(|_| wrong("the key cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Self {
            caller,
            url: url.into(),
            headers,
            model: settings.model.clone(),
            timeout: settings.timeout,
            cache: Cache::new(settings.cache),
            standing: Mutex::default(),
            pause: PAUSE,
        })
    }

    /// When it fails, it is left alone for so long at first and at most; 5 and 60 seconds when nothing is said.
    pub fn set_pause(&mut self, pause: std::ops::RangeInclusive<Duration>) {
        self.pause = pause;
    }

    /// The vectors of texts, of length 1, in their order. Takes no longer than the timeout for each batch of 64 texts that are
    /// not in the cache; a batch that the server does not want is halved until it does, or one text is left.
    pub async fn embed_all(&self, texts: &[&str]) -> Result<Vec<Arc<[f32]>>, ServerError> {
        let texts: Vec<&str> = texts.iter().map(|text| beginning(text)).collect();
        let mut found: Vec<Option<Arc<[f32]>>> = texts
            .iter()
            .map(|text| self.cache.get(&Cache::key(text)))
            .collect();
        let missing: Vec<usize> = (0..found.len())
            .filter(|place| matches!(found.get(*place), Some(None)))
            .collect();
        let mut batches: Vec<&[usize]> = missing.chunks(BATCH_MAX).rev().collect();
        while let Some(batch) = batches.pop() {
            let asked: Vec<&str> = batch
                .iter()
                .filter_map(|place| texts.get(*place).copied())
                .collect();
            let vectors = match self.ask(&asked).await {
                Err(error) if error.is_about_texts() && batch.len() > 1 => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                    continue;
                }
                asked => asked?,
            };
            for ((place, text), vector) in batch.iter().zip(asked).zip(vectors) {
                self.cache.put(Cache::key(text), Arc::clone(&vector));
                if let Some(empty) = found.get_mut(*place) {
                    *empty = Some(vector);
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// One call, unless it failed a moment ago.
    async fn ask(&self, texts: &[&str]) -> Result<Vec<Arc<[f32]>>, ServerError> {
        if self
            .standing()
            .failed
            .is_some_and(|(until, _)| Instant::now() < until)
        {
            return Err(ServerError::Paused);
        }
        let asked = self
            .call(texts)
            .await
            .and_then(|body| self.read(&body, texts.len()));
        let (mut standing, now) = (self.standing(), Instant::now());
        match (&asked, standing.failed) {
            (Ok(_), _) => standing.failed = None,
            // It does not want these texts, which says nothing of others.
            (Err(error), _) if error.is_about_texts() => {}
            // Another call that failed at the same time has said so already.
            (Err(_), Some((until, _))) if now < until => {}
            (Err(_), before) => {
                let pause = before
                    .map_or(*self.pause.start(), |(_, last)| last * 2)
                    .min(*self.pause.end());
                standing.failed = Some((now + pause, pause));
            }
        }
        drop(standing);
        asked
    }

    async fn call(&self, texts: &[&str]) -> Result<Vec<u8>, ServerError> {
        let body =
            json!({ "model": self.model, "input": texts, "encoding_format": "float" }).to_string();
        let limits = Limits {
            timeout: self.timeout,
            body_bytes_max: Some(ANSWER_BYTES_MAX),
        };
        let (url, headers) = (self.url.clone(), self.headers.clone());
        let request = Request {
            method: Method::POST,
            url,
            headers,
            body: body.into(),
            limits,
        };
        let response = self.caller.call(request).await?;
        if !response.status.is_success() {
            return Err(ServerError::Status(response.status.as_u16()));
        }
        Ok(response.body.to_vec())
    }

    fn read(&self, body: &[u8], count: usize) -> Result<Vec<Arc<[f32]>>, ServerError> {
        let wrong = ServerError::Answer;
        let Answer { mut data } =
            serde_json::from_slice(body).map_err(|_| wrong("it is no list of embeddings"))?;
        data.sort_by_key(|item| item.index);
        if data.len() != count
            || data
                .iter()
                .enumerate()
                .any(|(place, item)| item.index != place)
        {
            return Err(wrong("it has not one vector for each text"));
        }
        let vectors: Option<Vec<Arc<[f32]>>> =
            data.iter().map(|item| direction(&item.embedding)).collect();
        let vectors = vectors
            .ok_or_else(|| wrong("a vector has no direction, or a number that is not finite"))?;
        let mut standing = self.standing();
        let dimensions = standing
            .dimensions
            .or(vectors.first().map(|vector| vector.len()));
        if vectors
            .iter()
            .any(|vector| Some(vector.len()) != dimensions)
        {
            return Err(wrong("a vector has another length than those before"));
        }
        standing.dimensions = dimensions;
        Ok(vectors)
    }

    fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same direction with length 1; none where there is none.
fn direction(vector: &[f32]) -> Option<Arc<[f32]>> {
    let length = vector
        .iter()
        .map(|x| f64::from(*x) * f64::from(*x))
        .sum::<f64>()
        .sqrt();
    #[allow(clippy::cast_possible_truncation)] // Between -1 and 1.
    let unit = |x: &f32| (f64::from(*x) / length) as f32;
    (length.is_finite() && length > 0.0).then(|| vector.iter().map(unit).collect())
}

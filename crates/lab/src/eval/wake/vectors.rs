//! Where an evaluation's vectors come from: a model in this process, or a server.

use std::sync::Arc;
use std::time::Duration;

use concord_embedding::{Embedder, Server, ServerError, ServerSettings, Settings};

use super::WakeArgs;
use super::measure::embedding_failed;
use concord_cli::shared::failure::Failure;

/// How long a call of a server may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What makes vectors.
pub(super) enum Vectors {
    Model(Box<Embedder>),
    Server(Box<Server>),
}

impl Vectors {
    /// The server that the arguments name; none where they name none. It alone is called, and no redirect is followed.
    pub(super) fn of_server(args: &WakeArgs) -> Result<Option<Self>, Failure> {
        let (Some(base_url), Some(model)) = (&args.embeddings, &args.model) else {
            return Ok(None);
        };
        let missing = |name: &str| {
            Failure::usage(format!(
                "--key-env: there is no variable {name}, or it is empty"
            ))
        };
        let key = args.key_env.as_deref().map(|name| {
            let key = std::env::var(name).map_err(|_| missing(name))?;
            if key.trim().is_empty() {
                Err(missing(name))
            } else {
                Ok(key.trim().to_owned())
            }
        });
        let server = Server::new(&ServerSettings {
            base_url: base_url.clone(),
            model: model.clone(),
            key: key.transpose()?,
            timeout: TIMEOUT,
            cache: Settings::default().cache,
        });
        server
            .map(|server| Some(Self::Server(Box::new(server))))
            .map_err(server_failed)
    }

    /// The vector of a text.
    pub(super) fn embed(&self, text: &str) -> Result<Arc<[f32]>, Failure> {
        let vectors = self.embed_all(&[text])?;
        vectors
            .into_iter()
            .next()
            .ok_or_else(|| Failure::failed("there is no vector of a text"))
    }

    /// The vectors of texts, in their order.
    pub(super) fn embed_all(&self, texts: &[&str]) -> Result<Vec<Arc<[f32]>>, Failure> {
        match self {
            Self::Model(embedder) => embedder
                .embed_all(texts.iter().copied())
                .map_err(embedding_failed),
            // An evaluation looks at one message after another: it has nothing else to do meanwhile.
            Self::Server(server) => {
                let ask = || tokio::runtime::Handle::current().block_on(server.embed_all(texts));
                tokio::task::block_in_place(ask).map_err(server_failed)
            }
        }
    }

    /// How many numbers a vector has.
    pub(super) fn dimensions(&self) -> Result<usize, Failure> {
        match self {
            Self::Model(embedder) => Ok(embedder.dimensions()),
            Self::Server(_) => Ok(self.embed("dimensions")?.len()),
        }
    }

    /// What a report calls it.
    pub(super) fn name(vectors: Option<&Self>) -> &'static str {
        match vectors {
            None => "without a model",
            Some(Self::Model(_)) => "with the model",
            Some(Self::Server(_)) => "with the vectors of a server",
        }
    }
}

fn server_failed(error: ServerError) -> Failure {
    match error {
        ServerError::Settings(wrong) => Failure::usage(format!("--embeddings: {wrong}")),
        error => Failure::failed(error.to_string()),
    }
}

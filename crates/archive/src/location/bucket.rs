//! Objects in an object store of the broker.

use std::fmt;

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::object_store::{
    Config, DeleteErrorKind, GetErrorKind, ObjectMetadata, ObjectStore,
};
use async_nats::jetstream::{Context, ErrorCode};
use bytes::Bytes;
use futures::TryStreamExt as _;
use tokio::io::AsyncReadExt as _;

use super::LocationError;

/// An object store of the broker, which is created when something is written.
#[derive(Debug, Clone)]
pub struct Bucket {
    jetstream: Context,
    name: String,
    replicas: usize,
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object-store ({})", self.name)
    }
}

fn failed(error: impl Into<async_nats::Error>) -> LocationError {
    LocationError::Bucket(error.into())
}

impl Bucket {
    /// The object store with this name, with so many copies where it has to be created.
    pub fn new(jetstream: Context, name: String, replicas: usize) -> Self {
        Self {
            jetstream,
            name,
            replicas,
        }
    }

    /// The store; none where nothing was ever written.
    async fn store(&self) -> Result<Option<ObjectStore>, LocationError> {
        match self
            .jetstream
            .get_stream(format!("OBJ_{}", self.name))
            .await
        {
            Ok(_) => {}
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let store = self.jetstream.get_object_store(&self.name).await;
        store.map(Some).map_err(failed)
    }

    pub(super) async fn write(&self, name: &str, bytes: &[u8]) -> Result<(), LocationError> {
        let store = match self.store().await? {
            Some(store) => store,
            None => {
                let config = Config {
                    bucket: self.name.clone(),
                    description: Some("Cases that are over".to_owned()),
                    num_replicas: self.replicas,
                    ..Config::default()
                };
                let created = self.jetstream.create_object_store(config).await;
                created.map_err(failed)?
            }
        };
        let metadata = ObjectMetadata {
            name: name.to_owned(),
            ..ObjectMetadata::default()
        };
        let mut bytes = bytes;
        store.put(metadata, &mut bytes).await.map_err(failed)?;
        Ok(())
    }

    pub(super) async fn read(&self, name: &str) -> Result<Option<Bytes>, LocationError> {
        let Some(store) = self.store().await? else {
            return Ok(None);
        };
        let mut object = match store.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::with_capacity(object.info.size);
        object.read_to_end(&mut bytes).await?;
        Ok(Some(bytes.into()))
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), LocationError> {
        let Some(store) = self.store().await? else {
            return Ok(());
        };
        match store.delete(name).await {
            Err(error) if error.kind() != DeleteErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    pub(super) async fn list(&self, part: &str) -> Result<Vec<String>, LocationError> {
        let Some(store) = self.store().await? else {
            return Ok(Vec::new());
        };
        let objects = store.list().await.map_err(failed)?;
        let objects: Vec<_> = objects.try_collect().await.map_err(failed)?;
        let begin = format!("{part}/");
        let names = objects.iter().filter(|object| !object.deleted);
        let names = names.filter_map(|object| object.name.strip_prefix(&begin));
        Ok(names.map(str::to_owned).collect())
    }
}

fn is_missing(error: &async_nats::jetstream::context::GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

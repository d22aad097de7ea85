//! Objects in an object store of the broker.

use std::fmt;
use std::time::Duration;

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::object_store::{
    Config, DeleteErrorKind, GetErrorKind, ObjectMetadata, ObjectStore,
};
use async_nats::jetstream::{Context, ErrorCode};
use bytes::Bytes;
use futures::TryStreamExt as _;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use super::LocationError;

/// How long the broker may send nothing of what it has to send. The client would wait for ever.
pub(super) const SILENT_MAX: Duration = Duration::from_secs(10);

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
        match self.jetstream.get_stream(stream_name(&self.name)).await {
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
        loop {
            match timeout(SILENT_MAX, object.read_buf(&mut bytes)).await {
                Ok(Ok(0)) => return Ok(Some(bytes.into())),
                Ok(Err(error)) => return Err(error.into()),
                Ok(Ok(_)) => {}
                Err(_) => {
                    let (nuid, parts) = (object.info.nuid.clone(), object.info.chunks);
                    return Err(self.why_silent(&nuid, parts).await);
                }
            }
        }
    }

    /// Why nothing comes of an object whose parts, so many, stand under this id.
    async fn why_silent(&self, nuid: &str, parts: usize) -> LocationError {
        let subject = format!("$O.{}.C.{nuid}", self.name);
        let counted = async {
            let stream = self.jetstream.get_stream_no_info(stream_name(&self.name));
            let stream = stream.await.ok()?;
            let counted = stream.info_with_subjects(subject).await.ok()?;
            let counted: Vec<(String, usize)> = counted.try_collect().await.ok()?;
            Some(counted.iter().map(|(_, parts)| parts).sum())
        };
        match timeout(SILENT_MAX, counted).await.ok().flatten() {
            Some(stored) if stored < parts => LocationError::Incomplete { stored, parts },
            _ => LocationError::Silent,
        }
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
        let mut listed = store.list().await.map_err(failed)?;
        let mut objects = Vec::new();
        loop {
            let next = timeout(SILENT_MAX, listed.try_next()).await;
            match next.map_err(|_| LocationError::Silent)?.map_err(failed)? {
                Some(object) => objects.push(object),
                None => break,
            }
        }
        let begin = format!("{part}/");
        let names = objects.iter().filter(|object| !object.deleted);
        let names = names.filter_map(|object| object.name.strip_prefix(&begin));
        Ok(names.map(str::to_owned).collect())
    }
}

/// The stream that holds an object store.
fn stream_name(bucket: &str) -> String {
    format!("OBJ_{bucket}")
}

fn is_missing(error: &async_nats::jetstream::context::GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

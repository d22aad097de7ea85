//! The directory of a backup: a manifest, the head of that time, and a folder for each stream.
//!
//! A stream's folder holds what the broker made of it: `backup.json`, its configuration and state, and `stream.tar.s2`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use concord_runtime::Broker;
use concord_runtime::clock;
use concord_wire::Timestamp;
use concord_wire::hex::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::shared::failure::Failure;
use crate::shared::own_folder::{OwnFolder, cannot, new_file, sync_folder};

/// The version of the form of the directory.
const FORM: u32 = 1;
const MANIFEST: &str = "manifest.json";
const HEAD: &str = "head.json";
/// Locked by the command that writes the directory; not there when it is complete.
const LOCK: &str = ".lock";

/// What a backup holds. Written last: a directory without it is not complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The version of the form of the directory.
    pub(super) form: u32,
    /// The version of the program that made it.
    pub(super) concord: String,
    /// When it was complete.
    pub(super) at: Timestamp,
    /// The first token of the installation's subjects.
    pub(super) installation: String,
    /// Whether the head of that time is beside it, for `concord check --against`.
    pub(super) has_head: bool,
    /// The streams, in the order in which they were copied.
    pub(super) streams: Vec<StreamCopy>,
}

/// The copy of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamCopy {
    /// The stream's name.
    pub(super) stream: String,
    /// How many messages it holds.
    pub(super) messages: u64,
    /// The sequence of the first message.
    pub(super) first_sequence: u64,
    /// The sequence of the last message that it has ever held.
    pub(super) last_sequence: u64,
    /// How many consumers it has.
    pub(super) consumers: u64,
    /// The length of `stream.tar.s2`, in bytes.
    pub(super) bytes: u64,
    /// The SHA-256 of `stream.tar.s2`, in hexadecimal digits.
    pub(super) sha256: String,
    /// That of `backup.json`.
    pub(super) described_sha256: String,
}

impl Manifest {
    pub(super) fn new(broker: &Broker, streams: Vec<StreamCopy>, has_head: bool) -> Self {
        Self {
            form: FORM,
            concord: env!("CARGO_PKG_VERSION").to_owned(),
            at: clock::now(),
            installation: broker.subjects().prefix().to_string(),
            has_head,
            streams,
        }
    }
}

/// A directory into which this process copies, and nobody else.
pub(super) struct Begun {
    folder: OwnFolder,
    /// Held until the process ends, however it does.
    _lock: File,
}

/// Makes the directory. Nothing is written over.
pub(super) fn prepare(directory: &Path) -> Result<Begun, Failure> {
    let folder = OwnFolder::begin(
        directory,
        "name a directory that does not exist yet, or say --dated to have one made in it",
    )?;
    let lock = new_file(&directory.join(LOCK))?;
    // Where the file system knows no locks nobody gets it, and what is left of a backup stays.
    let _ = lock.try_lock();
    Ok(Begun {
        folder,
        _lock: lock,
    })
}

impl Begun {
    /// The backup is complete.
    pub(super) fn complete(self) {
        // Of what is complete nobody asks whether it is being written.
        let _ = std::fs::remove_file(self.folder.path().join(LOCK));
    }

    /// Removes what was copied before it failed: the failure, with what is left.
    pub(super) fn discard(self, failure: Failure) -> Failure {
        self.folder.discard(failure)
    }
}

/// Whether a directory is what is left of a backup that was ended before it was complete, and that nobody writes any more. One without
/// a lock has begun in this moment.
pub(super) fn is_left(directory: &Path) -> bool {
    let lock = File::options().write(true).open(directory.join(LOCK));
    let is_given_up = lock.is_ok_and(|lock| lock.try_lock().is_ok());
    // Asked last: nobody completes it any more.
    is_given_up && !is_complete(directory)
}

/// Whether there is a backup that was made to its end.
pub(super) fn is_complete(directory: &Path) -> bool {
    directory.join(MANIFEST).is_file()
}

/// Where the copy of a stream is.
pub(super) fn folder(directory: &Path, stream: &str) -> PathBuf {
    directory.join(stream)
}

/// The broker's own form of a stream: its configuration and state.
pub(super) fn description(directory: &Path, stream: &str) -> PathBuf {
    folder(directory, stream).join("backup.json")
}

/// The contents of a stream.
pub(super) fn contents(directory: &Path, stream: &str) -> PathBuf {
    folder(directory, stream).join("stream.tar.s2")
}

/// Writes the manifest; done when the disk has everything, so that older backups may go.
pub(super) fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(), Failure> {
    write(&directory.join(MANIFEST), manifest)?;
    sync_folder(directory)
}

pub(super) fn write_head(directory: &Path, head: &impl Serialize) -> Result<(), Failure> {
    write(&directory.join(HEAD), head).map(drop)
}

/// Where the head is.
pub(super) fn head_path(directory: &Path) -> PathBuf {
    directory.join(HEAD)
}

/// Writes a file, until the disk has it: its SHA-256, in hexadecimal digits.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_vec_pretty(value)
        .map_err(|error| Failure::failed(format!("{} has no JSON: {error}", path.display())))?;
    let mut file = new_file(path)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    written.map_err(|error| cannot("written", path, &error))?;
    Ok(hex(&Sha256::digest(&text)))
}

pub(super) fn read_manifest(directory: &Path) -> Result<Manifest, Failure> {
    let path = directory.join(MANIFEST);
    let manifest: Manifest = parse(&path)?;
    match manifest.form {
        FORM => Ok(manifest),
        form => Err(Failure::data(format!(
            "{} has the form {form}, and this program knows {FORM}; use concord {} or newer",
            path.display(),
            manifest.concord
        ))),
    }
}

pub(super) fn read_description(directory: &Path, stream: &str) -> Result<Value, Failure> {
    parse(&description(directory, stream))
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| {
        Failure::usage(format!(
            "{shown} cannot be read ({error}); a backup that was interrupted has no manifest"
        ))
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::data(format!("{shown} is not what a backup writes: {error}")))
}

//! A bundle: a folder with a manifest, the last head, and a file of JSON Lines for each stream.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use async_nats::HeaderMap;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use concord_events::topology::{Layout, StorageChoices, StreamKind};
use concord_wire::{Timestamp, Token};
use serde::{Deserialize, Serialize};

use super::head::HeadFile;
use crate::shared::failure::Failure;
use crate::shared::own_folder::{self, cannot};
use crate::shared::stillness::{Judged, UnderWay};
use crate::shared::stream_reader::StreamMessage;

/// The form of a bundle.
const FORMAT: &str = "concord audit 1";
/// The file that says what is in the bundle.
const MANIFEST: &str = "manifest.json";
/// The file of the last head, for `concord check --against`.
const HEAD: &str = "head.json";

/// What is in a bundle.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Always [`FORMAT`].
    format: String,
    /// The prefix of the installation.
    pub(super) installation: String,
    /// When it was written.
    pub(super) exported_at: Timestamp,
    /// The number of messages that were under way meanwhile; 0 when nothing is missing in it.
    pub(super) under_way: u64,
    /// Where some were: what can be judged all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judged: Option<Judged>,
    /// The time from which on messages are kept, where older ones are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) messages_since: Option<Timestamp>,
    /// The last head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<HeadFile>,
    /// The public keys that have signed heads.
    pub(super) keys: Vec<String>,
    /// The streams, each in the file that has its name.
    pub(super) streams: Vec<StreamFile>,
}

/// The file of a stream.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StreamFile {
    /// The stream.
    pub(super) stream: StreamKind,
    /// The number of messages in it.
    pub(super) count: u64,
}

impl Manifest {
    /// Of a bundle in which nothing is yet.
    pub(super) fn new(installation: String, exported_at: Timestamp) -> Self {
        Self {
            format: FORMAT.to_owned(),
            installation,
            exported_at,
            under_way: 0,
            judged: None,
            messages_since: None,
            head: None,
            keys: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// What was under way while it was written.
    pub(super) fn while_read(&self) -> UnderWay {
        UnderWay {
            number: self.under_way,
            judged: self.judged,
        }
    }
}

/// A message as a line of a bundle.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    sequence: u64,
    at: Timestamp,
    subject: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, Vec<String>>,
    /// The body as it is stored, where it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// The body as it is stored, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// Whether it was read from the archive: what has expired before it in the stream has nothing to do with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
}

impl Line {
    fn of(stored: &StreamMessage) -> Self {
        let headers = stored.headers.iter().map(|(name, values)| {
            let values = values.iter().map(|value| value.as_str().to_owned());
            (name.to_string(), values.collect())
        });
        let text = std::str::from_utf8(&stored.raw).ok();
        Self {
            sequence: stored.sequence,
            at: stored.at,
            subject: stored.subject.clone(),
            headers: headers.collect(),
            payload: text.map(str::to_owned),
            payload_base64: text.is_none().then(|| BASE64_STANDARD.encode(&stored.raw)),
            archived: stored.is_archived,
        }
    }

    fn stored(self, kind: StreamKind) -> Result<StreamMessage, String> {
        let mut headers = HeaderMap::new();
        for (name, values) in self.headers {
            for value in values {
                let name: async_nats::HeaderName = name
                    .parse()
                    .map_err(|_| format!("{name:?} is no name of a header"))?;
                headers.append(name, value.as_str());
            }
        }
        let raw = match (self.payload, self.payload_base64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(text)) => BASE64_STANDARD
                .decode(text)
                .map_err(|error| error.to_string())?,
            (None, None) => Vec::new(),
        };
        let place = (self.sequence, self.at);
        let raw = Bytes::from(raw);
        Ok(StreamMessage {
            is_archived: self.archived,
            ..StreamMessage::stored(kind, place, self.subject, headers, raw)
        })
    }
}

/// The file of a stream while it is written.
pub(crate) struct StreamWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl StreamWriter {
    /// Begins the file of a stream.
    pub(crate) fn new(folder: &Path, kind: StreamKind) -> Result<Self, Failure> {
        let path = file_of(folder, kind);
        let file = own_folder::new_file(&path)?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
        })
    }

    /// Writes a message.
    pub(crate) fn write(&mut self, stored: &StreamMessage) -> Result<(), Failure> {
        let line = serde_json::to_string(&Line::of(stored))
            .map_err(|error| Failure::failed(error.to_string()))?;
        writeln!(self.file, "{line}").map_err(|error| cannot("written", &self.path, &error))
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.file
            .flush()
            .map_err(|error| cannot("written", &self.path, &error))
    }
}

/// Writes manifest and head, last of all: a folder without a manifest is no bundle.
pub(super) fn finish(folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    if let Some(head) = &manifest.head {
        write_json(&folder.join(HEAD), head)?;
    }
    write_json(&folder.join(MANIFEST), manifest)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    let written = own_folder::new_file(path)?.write_all((text + "\n").as_bytes());
    written.map_err(|error| cannot("written", path, &error))
}

fn file_of(folder: &Path, kind: StreamKind) -> PathBuf {
    folder.join(format!("{}.jsonl", kind.as_str()))
}

/// A bundle that was written.
pub(super) struct Bundle {
    folder: PathBuf,
    /// What is in it.
    pub(super) manifest: Manifest,
    /// The names of the installation.
    pub(super) layout: Layout,
}

impl Bundle {
    /// Whether there is a bundle in a folder.
    pub(super) fn is_at(path: &Path) -> bool {
        path.is_dir()
    }

    /// Opens the bundle in a folder.
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let no_bundle = |why: String| {
            Failure::data(format!(
                "{} is no bundle ({why}); `concord audit export` writes one",
                folder.display()
            ))
        };
        if !folder.exists() {
            return Err(Failure::usage(format!(
                "there is no folder {}",
                folder.display()
            )));
        }
        let path = folder.join(MANIFEST);
        let text = std::fs::read(&path)
            .map_err(|error| no_bundle(format!("{}: {error}", path.display())))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| no_bundle(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(no_bundle(format!(
                "its form is {:?}, not {FORMAT:?}",
                manifest.format
            )));
        }
        let prefix = Token::new(manifest.installation.as_str())
            .map_err(|error| no_bundle(error.to_string()))?;
        Ok(Self {
            folder: folder.to_owned(),
            manifest,
            layout: Layout::new(&prefix, StorageChoices::default()),
        })
    }

    /// The messages of a stream, in order.
    pub(super) fn messages(
        &self,
        kind: StreamKind,
    ) -> Result<impl Iterator<Item = Result<StreamMessage, Failure>> + use<>, Failure> {
        let path = file_of(&self.folder, kind);
        let shown = path.display().to_string();
        let file = File::open(&path)
            .map_err(|error| Failure::data(format!("{shown} cannot be read: {error}")))?;
        let lines = BufReader::new(file).lines().enumerate();
        let mut last = 0;
        Ok(lines.map(move |(number, line)| {
            let wrong = |why: String| Failure::data(format!("{shown}, line {}: {why}", number + 1));
            let line = line.map_err(|error| wrong(error.to_string()))?;
            let line: Line =
                serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
            if line.sequence <= last {
                return Err(wrong(format!(
                    "the sequence {} is out of order",
                    line.sequence
                )));
            }
            last = line.sequence;
            line.stored(kind).map_err(wrong)
        }))
    }
}

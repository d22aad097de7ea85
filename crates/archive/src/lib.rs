//! The archive: what was stored of cases that are over, outside the broker's streams.
//!
//! A *segment* is a file with the messages of some cases, exactly as the streams held them, compressed with zstd. Its *manifest*
//! is a JSON file that says which cases are in it, at which sequences, and what the digests of the file and of each case are;
//! it names its predecessor by digest, so that the last manifest proves all. The event `sealed` of the aggregate `archive`
//! names a manifest by its digest: what no such event names does not count. `docs/archive.md` shows the layout.
//!
//! [`pack`] and [`Manifest::unpack`] are the format and do no IO; [`Archive`] keeps the files in a [`Location`].

mod location;
mod manifest;
mod message;
mod segment;

pub use location::{
    AddressError, Bucket, Location, LocationError, Refusal, S3, S3Error, S3Settings,
};
pub use manifest::{ArchivedCase, Manifest, Sequences, Unpacked};
pub use message::ArchivedMessage;
pub use segment::{CaseContents, Packed, SegmentPlace, pack};

use bytes::Bytes;
use concord_events::SegmentSealed;
use concord_wire::CaseId;
use concord_wire::hex::hex;
use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Why something cannot be read from the archive, or written to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The place cannot be read or written.
    #[error("the archive {location} cannot be used ({name})")]
    Location {
        /// The place.
        location: String,
        /// The file.
        name: String,
        /// Why.
        source: LocationError,
    },
    /// A file is not there.
    #[error("the archive {location} has no {name}; is it the archive of this installation?")]
    Missing {
        /// The place.
        location: String,
        /// The file.
        name: String,
    },
    /// A file is not what was written.
    #[error("{name} in the archive {location} is not what was sealed: {why}")]
    Tampered {
        /// The place.
        location: String,
        /// The file.
        name: String,
        /// The case whose contents differ, where that can be told.
        case: Option<CaseId>,
        /// What differs.
        why: String,
    },
}

/// What differs in a segment or manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Difference {
    /// The case whose contents differ, where that can be told.
    pub case: Option<CaseId>,
    /// What differs.
    pub why: String,
}

impl Difference {
    fn of_file(why: impl Into<String>) -> Self {
        Self {
            case: None,
            why: why.into(),
        }
    }
}

/// The files of an archive. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Archive {
    location: Location,
}

/// The name of a segment's file.
fn segment_file(name: &str) -> String {
    format!("segments/{name}.zst")
}

/// The name of a manifest's file.
fn manifest_file(name: &str) -> String {
    format!("manifests/{name}.json")
}

impl Archive {
    /// The archive at a place.
    pub fn new(location: Location) -> Self {
        Self { location }
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Keeps a segment, and then its manifest; done when both would survive a loss of power. The first segment makes the place; a later
    /// one fails where the place is gone.
    pub async fn keep(&self, packed: &Packed) -> Result<(), Error> {
        let is_first = packed.manifest.previous.is_none();
        let segment = segment_file(&packed.manifest.name);
        self.write(&segment, &packed.segment, is_first).await?;
        let manifest = manifest_file(&packed.manifest.name);
        self.write(&manifest, &packed.manifest_bytes, is_first)
            .await
    }

    /// Removes a segment and its manifest which no event names; nothing where there are none.
    pub async fn discard(&self, packed: &Packed) -> Result<(), Error> {
        let name = &packed.manifest.name;
        for file in [manifest_file(name), segment_file(name)] {
            let removed = self.location.remove(&file).await;
            removed.map_err(|source| self.failed(&file, source))?;
        }
        Ok(())
    }

    /// The manifest that an event names.
    pub async fn manifest(&self, sealed: &SegmentSealed) -> Result<Manifest, Error> {
        let file = manifest_file(&sealed.name);
        let bytes = self.read(&file).await?;
        Manifest::read(&bytes, sealed).map_err(|difference| self.tampered(&file, difference))
    }

    /// The cases of a segment that an event names, each with its messages.
    pub async fn segment(&self, sealed: &SegmentSealed) -> Result<Vec<CaseContents>, Error> {
        let (manifest, bytes) = self.both(sealed).await?;
        manifest
            .unpack(&bytes)
            .map_err(|difference| self.tampered(&segment_file(&sealed.name), difference))
    }

    /// One case of a segment that an event names; none where the segment has no such case. Others may be damaged.
    pub async fn case(
        &self,
        sealed: &SegmentSealed,
        case: &CaseId,
    ) -> Result<Option<CaseContents>, Error> {
        let (manifest, bytes) = self.both(sealed).await?;
        let mut cases = manifest.examine(&bytes).cases.into_iter();
        let found = cases.find_map(|(id, contents)| (id == *case).then_some(contents));
        let found = found
            .transpose()
            .map(|found| found.map(CaseContents::alone));
        found.map_err(|difference| self.tampered(&segment_file(&sealed.name), difference))
    }

    /// What is in a segment that an event names, and all that differs in it; fails where no case of it can be read.
    pub async fn examine(
        &self,
        sealed: &SegmentSealed,
    ) -> Result<(Vec<CaseContents>, Vec<Error>), Error> {
        let (manifest, bytes) = self.both(sealed).await?;
        let unpacked = manifest.examine(&bytes);
        let (mut whole, mut differences) = (Vec::new(), Vec::new());
        for (_, case) in unpacked.cases {
            match case {
                Ok(case) => whole.push(case),
                Err(difference) => differences.push(difference),
            }
        }
        // What differs in a case differs in the file.
        if differences.is_empty() {
            differences.extend(unpacked.file);
        }
        let file = segment_file(&sealed.name);
        let differences = differences.into_iter();
        let differences = differences.map(|difference| self.tampered(&file, difference));
        Ok((whole, differences.collect()))
    }

    /// The manifest that an event names, and the file of its segment.
    async fn both(&self, sealed: &SegmentSealed) -> Result<(Manifest, Bytes), Error> {
        let manifest = self.manifest(sealed).await?;
        let bytes = self.read(&segment_file(&sealed.name)).await?;
        Ok((manifest, bytes))
    }

    /// The names of all segments that are kept, whether or not an event names them, in order.
    pub async fn names(&self) -> Result<Vec<String>, Error> {
        let listed = self.location.list("segments").await;
        let listed = listed.map_err(|source| self.failed("segments", source))?;
        let ends = |name: &String| name.strip_suffix(".zst").map(str::to_owned);
        Ok(listed.iter().filter_map(ends).collect())
    }

    async fn write(&self, name: &str, bytes: &Bytes, is_first: bool) -> Result<(), Error> {
        let written = self.location.write(name, bytes.clone(), is_first).await;
        written.map_err(|source| self.failed(name, source))
    }

    async fn read(&self, name: &str) -> Result<Bytes, Error> {
        let found = self.location.read(name).await;
        let found = found.map_err(|source| self.failed(name, source))?;
        found.ok_or_else(|| Error::Missing {
            location: self.location.to_string(),
            name: name.to_owned(),
        })
    }

    fn failed(&self, name: &str, source: LocationError) -> Error {
        Error::Location {
            location: self.location.to_string(),
            name: name.to_owned(),
            source,
        }
    }

    fn tampered(&self, name: &str, Difference { case, why }: Difference) -> Error {
        Error::Tampered {
            location: self.location.to_string(),
            name: name.to_owned(),
            case,
            why,
        }
    }
}

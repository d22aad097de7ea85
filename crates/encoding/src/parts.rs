//! Payloads in parts, as agents without any right on the object store give them to a service and get them from it.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
use concord_wire::{AgentId, ErrorCode, Fault};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::PayloadReference;
use crate::reference::is_digest;

/// Bytes of each part but the last. As base64 in JSON it fits into a message of the broker.
pub const PART_BYTES: u64 = 512 << 10;
/// The verb of the coordinator by which a payload is stored.
pub const PUT_PAYLOAD: &str = "put_payload";
/// The verb of the coordinator by which a payload is fetched.
pub const PAYLOAD: &str = "payload";
/// Most bytes of the name that an agent gives an upload.
const UPLOAD_BYTES_MAX: usize = 512;

/// A request to store one part of a payload. Parts are stored one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutPart {
    /// A name that the agent has given no other upload.
    pub upload: String,
    /// Bytes of the whole payload.
    pub size: u64,
    /// The digest of the whole payload, as in a [`PayloadReference`].
    pub digest: String,
    /// The number of the part, from 0.
    pub part: u64,
    /// What the answer to the part before said of `after`; 0 for the first.
    pub after: u64,
    /// The part, as base64.
    pub data: String,
}

/// The answer to a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStored {
    /// Where it stands, for the next part.
    pub after: u64,
    /// With the last part: where the payload is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<PayloadReference>,
}

/// A request for the next part of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedPart {
    /// The payload. Who knows size and digest was sent the message, or has the payload.
    pub reference: PayloadReference,
    /// What the answer before said of `after`; 0 at first.
    pub after: u64,
}

/// The next part of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Where it stands, for the request for the next.
    pub after: u64,
    /// The part, as base64.
    pub data: String,
}

impl PutPart {
    /// The part of a payload that is so far in it; none behind its end.
    pub fn of(
        upload: &str,
        reference: &PayloadReference,
        payload: &[u8],
        part: u64,
        after: u64,
    ) -> Option<Self> {
        let from = usize::try_from(part * PART_BYTES).ok()?;
        let rest = payload.get(from..).filter(|rest| !rest.is_empty())?;
        let length = rest.len().min(usize::try_from(PART_BYTES).ok()?);
        Some(Self {
            upload: upload.to_owned(),
            size: reference.size,
            digest: reference.digest.clone(),
            part,
            after,
            data: BASE64_STANDARD.encode(rest.get(..length)?),
        })
    }

    /// The name of the object that the payload of `owner` becomes: nobody else's can have it.
    pub fn object(&self, owner: &AgentId) -> String {
        format!("{owner}/{}", self.upload)
    }

    /// The subject of the object's parts in `bucket`. It follows from whose it is, and from what it is to be.
    pub fn subject(&self, bucket: &str, owner: &AgentId) -> String {
        format!("$O.{bucket}.C.{}", self.nuid(owner))
    }

    /// Under what the object's parts stand, as the object store calls it: the `nuid` of the object. It has two tokens, and the first is
    /// the owner, so that the broker can say how much each owner has.
    pub fn nuid(&self, owner: &AgentId) -> String {
        let mut digest = Sha256::new();
        for text in [&self.digest, &self.upload] {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        }
        format!(
            "{owner}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(digest.finalize())
        )
    }

    /// Whether it is the last one.
    pub fn is_last(&self) -> bool {
        self.end() >= self.size
    }

    /// How many parts the payload has.
    pub fn parts(&self) -> u64 {
        self.size.div_ceil(PART_BYTES)
    }

    fn end(&self) -> u64 {
        self.part.saturating_add(1).saturating_mul(PART_BYTES)
    }

    /// The bytes of the part, where it is one of a payload of at most `size_max` bytes.
    pub fn bytes(&self, size_max: u64) -> Result<Vec<u8>, Fault> {
        if self.size > size_max {
            return Err(Fault::new(
                ErrorCode::CapacityExceeded,
                "/size",
                format!(
                    "The payload has {} bytes; at most {size_max} are accepted.",
                    self.size
                ),
                "Send less, or say where else it can be had.",
            ));
        }
        if !(1..=UPLOAD_BYTES_MAX).contains(&self.upload.len()) {
            return Err(Fault::invalid(
                "/upload",
                format!("The name of the upload has {} bytes.", self.upload.len()),
                format!("Give it one of 1 to {UPLOAD_BYTES_MAX} bytes."),
            ));
        }
        // It is stored with what the object is, which counts towards nobody's share.
        if !is_digest(&self.digest) {
            return Err(Fault::invalid(
                "/digest",
                "It is no digest of a payload.",
                "Write SHA-256= and the SHA-256 digest of the whole payload as URL-safe base64, with padding: 44 characters.",
            ));
        }
        let bytes = decoded(&self.data)?;
        let from = self.part.saturating_mul(PART_BYTES);
        let expected = self.size.saturating_sub(from).min(PART_BYTES);
        if expected == 0 || bytes.len() as u64 != expected {
            return Err(Fault::invalid(
                "/data",
                format!(
                    "Part {} of {} bytes has {} bytes.",
                    self.part,
                    self.size,
                    bytes.len()
                ),
                format!("Each part has {PART_BYTES} bytes, and the last one what is left."),
            ));
        }
        Ok(bytes)
    }
}

impl Part {
    /// A part that stands there.
    pub fn new(after: u64, bytes: &[u8]) -> Self {
        Self {
            after,
            data: BASE64_STANDARD.encode(bytes),
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Result<Vec<u8>, Fault> {
        decoded(&self.data)
    }
}

/// The subject on which the object store says what an object is.
pub fn object_subject(bucket: &str, object: &str) -> String {
    format!("$O.{bucket}.M.{}", BASE64_URL_SAFE.encode(object))
}

/// The subjects of all parts of `owner` in a bucket; those of everybody when there is none.
pub fn parts_of(bucket: &str, owner: Option<&AgentId>) -> String {
    format!("$O.{bucket}.C.{}.*", owner.map_or("*", AgentId::as_str))
}

/// Whose part stands on a subject; none where another client of the object store has put it.
pub fn owner_of_part<'a>(bucket: &str, subject: &'a str) -> Option<&'a str> {
    let part = subject.strip_prefix("$O.")?.strip_prefix(bucket)?;
    Some(part.strip_prefix(".C.")?.split_once('.')?.0)
}

fn decoded(data: &str) -> Result<Vec<u8>, Fault> {
    BASE64_STANDARD.decode(data).map_err(|error| {
        Fault::invalid(
            "/data",
            format!("It is no base64: {error}."),
            "Encode it as base64, with padding.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_payload_are_the_payload() {
        let payload: Vec<u8> = (0..PART_BYTES * 2 + 7).map(|n| (n % 251) as u8).collect();
        let reference = PayloadReference::new("B", "m-1", &payload);
        let (mut whole, mut part) = (Vec::new(), 0);
        while let Some(put) = PutPart::of("u", &reference, &payload, part, part * 10) {
            whole.extend(put.bytes(reference.size).unwrap());
            part += 1;
            assert_eq!((put.is_last(), put.parts()), (part == 3, 3));
        }
        assert_eq!((whole == payload, part), (true, 3));
        let got = Part::new(7, &payload[..9]);
        assert_eq!(got.bytes().unwrap(), payload[..9]);
    }

    #[test]
    fn an_upload_is_its_owners_alone() {
        let reference = PayloadReference::new("B", "m-1", b"x");
        let put = PutPart::of("u", &reference, b"x", 0, 0).unwrap();
        let [ann, ben] = ["ann", "ben"].map(|name| AgentId::new(name).unwrap());
        assert_ne!(put.subject("B", &ann), put.subject("B", &ben));
        assert_eq!(put.object(&ann), "ann/u");
        assert_eq!(object_subject("B", "ann/u"), "$O.B.M.YW5uL3U=");
        let subject = put.subject("B", &ann);
        assert_eq!(subject.split('.').count(), 5);
        assert!(!subject.contains(['*', '>', '=']));
        assert_eq!(owner_of_part("B", &subject), Some("ann"));
        assert_eq!(owner_of_part("B", "$O.B.C.of-another-client"), None);
        assert_eq!(parts_of("B", Some(&ann)), "$O.B.C.ann.*");
        assert_eq!(parts_of("B", None), "$O.B.C.*.*");
    }

    #[test]
    fn a_part_that_is_none_is_refused_at_its_place() {
        let payload = vec![b'x'; 9];
        let reference = PayloadReference::new("B", "m-1", &payload);
        let good = PutPart::of("u", &reference, &payload, 0, 0).unwrap();
        type Change = fn(&mut PutPart);
        let changes: [(Change, &str); 10] = [
            (|put| put.size = 10, "/size"),
            (|put| put.upload.clear(), "/upload"),
            (|put| put.upload = "u".repeat(513), "/upload"),
            (|put| put.digest = "x".repeat(7 << 20), "/digest"),
            (|put| put.digest.push('='), "/digest"),
            (
                |put| put.digest = put.digest.replace("256", "512"),
                "/digest",
            ),
            (|put| put.digest.truncate("SHA-256=".len()), "/digest"),
            (|put| put.data = "?".into(), "/data"),
            (|put| put.data = "eHg=".into(), "/data"),
            (|put| put.part = 1, "/data"),
        ];
        assert_eq!(good.bytes(9).unwrap(), payload);
        for (change, pointer) in changes {
            let mut bad = good.clone();
            change(&mut bad);
            assert_eq!(bad.bytes(9).unwrap_err().pointer, pointer);
        }
        let behind_all = PutPart {
            part: u64::MAX,
            data: String::new(),
            ..good
        };
        assert_eq!(behind_all.bytes(9).unwrap_err().pointer, "/data");
    }
}

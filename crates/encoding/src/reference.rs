//! References to payloads that are too large for a message. The payload is in an object store, and the message refers to it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE;
use concord_wire::envelope::from_json;
use concord_wire::{ErrorCode, Fault};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The one field of a payload that is a reference.
pub const REFERENCE: &str = "payload_reference";
/// Largest payload that travels by reference, in bytes, where no setting says otherwise.
pub const PAYLOAD_BYTES_MAX: u64 = 8 << 20;
/// Most values and names in a payload that travels by reference: as many as a message without reference has room for. In memory each takes
/// many times its bytes, so that bytes alone are no bound: a list of digits takes sixteen times as much.
const PAYLOAD_VALUES_MAX: usize = 1 << 19;
/// What a digest begins with.
const DIGEST_KIND: &str = "SHA-256=";
/// How many characters follow: 32 bytes as base64, with padding.
const DIGEST_CHARS: usize = 44;
/// Most bytes of a reference. A longer payload is no reference.
const REFERENCE_BYTES_MAX: usize = 2_048;

/// A reference to a payload in the object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadReference {
    /// The bucket of the installation.
    pub bucket: String,
    /// The name of the object in the bucket.
    pub object: String,
    /// The size of the payload in bytes.
    pub size: u64,
    /// `SHA-256=` and the digest as URL-safe base64, as the object store itself writes it.
    pub digest: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Referring {
    payload_reference: PayloadReference,
}

impl PayloadReference {
    /// The reference to a payload of the message with this id. The same payload of the same message is the same object.
    pub fn new(bucket: &str, message_id: &str, payload: &[u8]) -> Self {
        let digest = digest(payload);
        let short: String = digest.chars().skip(DIGEST_KIND.len()).take(16).collect();
        let (bucket, object) = (bucket.to_owned(), format!("{message_id}-{short}"));
        Self {
            bucket,
            object,
            size: payload.len() as u64,
            digest,
        }
    }

    /// Reads a payload as a reference. None where it is none.
    pub fn of(payload: &RawValue) -> Result<Option<Self>, Fault> {
        let text = payload.get();
        if text.len() > REFERENCE_BYTES_MAX || !text.contains(REFERENCE) {
            return Ok(None);
        }
        let fields: serde_json::Map<String, serde_json::Value> =
            from_json(text.as_bytes(), "/payload")?;
        if !fields.contains_key(REFERENCE) {
            return Ok(None);
        }
        from_json::<Referring>(text.as_bytes(), "/payload")
            .map(|referring| Some(referring.payload_reference))
    }

    /// The payload that stands for this reference in a message.
    pub fn payload(&self) -> Result<Box<RawValue>, serde_json::Error> {
        serde_json::value::to_raw_value(&Referring {
            payload_reference: self.clone(),
        })
    }

    /// Checks what can be checked before the object is fetched: that it is in `bucket`, and not too large.
    pub fn check(&self, bucket: &str, size_max: u64) -> Result<(), Fault> {
        if self.bucket != bucket {
            let what = "Payloads of this installation are in another bucket.".to_owned();
            return Err(fault(
                "bucket",
                what,
                &format!("Put the payload into {bucket}."),
            ));
        }
        if self.size > size_max {
            let what = format!(
                "The payload has {} bytes; at most {size_max} are accepted.",
                self.size
            );
            let advice = "Send less, or say where else it can be had.";
            return Err(Fault {
                code: ErrorCode::CapacityExceeded,
                ..fault("size", what, advice)
            });
        }
        Ok(())
    }

    /// The payload, when the bytes of the object are what the reference says.
    pub fn verified(&self, bytes: Vec<u8>) -> Result<Box<RawValue>, Fault> {
        let advice = "Put the payload again, and state its size and digest as they are.";
        if bytes.len() as u64 != self.size {
            let what = format!("The object has {} bytes, not {}.", bytes.len(), self.size);
            return Err(fault("size", what, advice));
        }
        let found = digest(&bytes);
        if found != self.digest {
            return Err(fault(
                "digest",
                format!("The digest of the object is {found}."),
                advice,
            ));
        }
        let payload: Box<RawValue> = from_json(&bytes, "/payload")?;
        if !payload.get().starts_with('{') {
            return Err(Fault::invalid(
                "/payload",
                "The object is not a JSON object.",
                "Put one there.",
            ));
        }
        check_values(&payload)?;
        Ok(payload)
    }

    /// The fault of an object that is not there, or not whole.
    pub fn missing(&self) -> Fault {
        fault(
            "object",
            "There is no such object, or not all of it.".to_owned(),
            "Put the payload before the message is sent.",
        )
    }

    /// The fault of an object that has more bytes than the reference says.
    pub fn larger(&self) -> Fault {
        let what = format!("The object has more than {} bytes.", self.size);
        fault("size", what, "State the size as it is.")
    }
}

/// Checks that a payload has no more values and names than may travel by reference.
pub fn check_values(payload: &RawValue) -> Result<(), Fault> {
    if values_in(payload.get()) <= PAYLOAD_VALUES_MAX {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::CapacityExceeded,
        "/payload",
        format!("It has more than {PAYLOAD_VALUES_MAX} values and names."),
        "Write long lists of numbers as one text, for example as base64, or split them over several messages.",
    ))
}

/// How many values and names a JSON text has at most, without reading them: before each there is a comma, a colon or a bracket.
fn values_in(json: &str) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b':' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

fn digest(bytes: &[u8]) -> String {
    format!(
        "{DIGEST_KIND}{}",
        BASE64_URL_SAFE.encode(Sha256::digest(bytes))
    )
}

/// Whether a text is the digest of some payload, in the one form in which it is written.
pub(crate) fn is_digest(text: &str) -> bool {
    let written = text.strip_prefix(DIGEST_KIND);
    // The length first: the text may be as long as a message.
    let written = written.filter(|written| written.len() == DIGEST_CHARS);
    let decoded = written.and_then(|written| BASE64_URL_SAFE.decode(written).ok());
    decoded.is_some_and(|bytes| bytes.len() == <Sha256 as Digest>::output_size())
}

fn fault(field: &str, what: String, advice: &str) -> Fault {
    Fault::invalid(format!("/payload/{REFERENCE}/{field}"), what, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_reference_is_read_as_it_is_written_and_nothing_else_is_one() {
        let reference = PayloadReference::new("CONCORD_PAYLOADS", "m-1", b"{}");
        assert_eq!(
            reference.digest,
            "SHA-256=RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o="
        );
        assert_eq!(
            PayloadReference::of(&reference.payload().unwrap()),
            Ok(Some(reference))
        );
        for none in ["{}", r#"{"text":"payload_reference"}"#] {
            assert_eq!(PayloadReference::of(&raw(none)), Ok(None));
        }
        for (bad, pointer) in [
            (r#"{"payload_reference":1}"#, "/payload/payload_reference"),
            (
                r#"{"payload_reference":{"bucket":"B","object":"o","size":-1,"digest":""}}"#,
                "/payload/payload_reference/size",
            ),
            (
                r#"{"payload_reference":{"bucket":"B","object":"o","size":1,"digest":""},"more":1}"#,
                "/payload/more",
            ),
        ] {
            assert_eq!(
                PayloadReference::of(&raw(bad)).unwrap_err().pointer,
                pointer,
                "{bad}"
            );
        }
    }

    #[test]
    fn a_payload_has_a_bounded_number_of_values_and_text_is_one() {
        for (json, count) in [
            ("{}", 2),
            (r#"{"a":[1,2,{"b":null}]}"#, 8),
            (r#"{"a":"1,2,[3]:{4}"}"#, 3),
            (r#"{"a":"quoted \", \\","b":0}"#, 5),
        ] {
            assert_eq!(values_in(json), count, "{json}");
        }
        let with = |inner: String| {
            let json = format!(r#"{{"list":{inner}}}"#);
            let reference = PayloadReference::new("B", "m-1", json.as_bytes());
            reference.verified(json.into_bytes())
        };
        let zeros = |count: usize| "0,".repeat(count - 1) + "0";
        assert!(with(format!("[{}]", zeros(PAYLOAD_VALUES_MAX - 10))).is_ok());
        assert!(with(format!("\"{}\"", zeros(PAYLOAD_VALUES_MAX + 10))).is_ok());
        let fault = with(format!("[{}]", zeros(PAYLOAD_VALUES_MAX))).unwrap_err();
        assert_eq!(
            (fault.code, &*fault.pointer),
            (ErrorCode::CapacityExceeded, "/payload")
        );
    }

    #[test]
    fn what_is_not_as_the_reference_says_is_refused_at_its_place() {
        let reference = PayloadReference::new("B", "m-1", b"{\"a\":1}");
        assert_eq!(reference.check("B", 7), Ok(()));
        assert_eq!(
            reference.verified(b"{\"a\":1}".to_vec()).unwrap().get(),
            "{\"a\":1}"
        );
        let place = |field: &str| format!("/payload/payload_reference/{field}");
        assert_eq!(
            reference.check("C", 7).unwrap_err().pointer,
            place("bucket")
        );
        let large = reference.check("B", 6).unwrap_err();
        assert_eq!(
            (large.code, large.pointer),
            (ErrorCode::CapacityExceeded, place("size"))
        );
        assert_eq!(
            reference.verified(b"{}".to_vec()).unwrap_err().pointer,
            place("size")
        );
        assert_eq!(
            reference
                .verified(b"{\"a\":2}".to_vec())
                .unwrap_err()
                .pointer,
            place("digest")
        );
        let list = PayloadReference::new("B", "m-1", b"[]");
        assert_eq!(
            list.verified(b"[]".to_vec()).unwrap_err().pointer,
            "/payload"
        );
    }
}

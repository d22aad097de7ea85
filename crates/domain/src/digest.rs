use concord_wire::hex::hex;
use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal. It tells a repeated message from another one under the same id.
pub fn digest(bytes: &[u8]) -> String {
    digest_of_all([bytes])
}

/// SHA-256 in hexadecimal of several parts, one after the other.
pub fn digest_of_all<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hex(&hash.finalize())
}

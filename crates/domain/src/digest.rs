use concord_protocol::hex::hex;
use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal: tells a repeated message from another one under the same id.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

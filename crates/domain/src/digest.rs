use sha2::{Digest, Sha256};

/// SHA-256 in hexadecimal: tells a repeated message from another one under the same id.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

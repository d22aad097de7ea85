//! Signatures of webhooks by the Standard Webhooks scheme (<https://www.standardwebhooks.com>).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How a key is written: this, and its bytes in base64.
const PREFIX: &str = "whsec_";
/// Bytes of a key: the specification's 24 to 64.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A key.
pub struct Key(Hmac<Sha256>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Reads a key; the error does not repeat it.
    pub fn read(secret: &str) -> Result<Self, &'static str> {
        const FORM: &str = "it is whsec_ and 24 to 64 bytes in base64, for example: \
                            echo whsec_$(head -c 32 /dev/urandom | base64)";
        let text = secret.trim().strip_prefix(PREFIX).ok_or(FORM)?;
        let bytes = STANDARD
            .decode(text)
            .ok()
            .filter(|bytes| KEY_BYTES.contains(&bytes.len()))
            .ok_or(FORM)?;
        Hmac::new_from_slice(&bytes).map(Self).map_err(|_| FORM)
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_is_signed_as_published() {
        let key = Key::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_key_is_refused_without_repeating_it() {
        for text in [
            "",
            "whsec_",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ",
            "whsec_*fKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            let Err(error) = Key::read(text) else {
                panic!("{text:?} is taken for a key")
            };
            assert!(
                error.starts_with("it is whsec_") && !error.contains("fKQ9"),
                "{error}"
            );
        }
    }
}

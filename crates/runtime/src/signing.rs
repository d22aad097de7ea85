//! Keys and signatures: ed25519, in files of one line.
//!
//! A file with a secret key begins with `ed25519-secret:`, one with a public key with `ed25519:`; 64 hexadecimal digits
//! follow.

use std::path::Path;

use concord_domain::assurance::evidence::{digest_of, head_text};
use concord_events::{Head, HeadSignature};
use concord_wire::hex::hex;
use concord_wire::payload::Signature;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// How the line of a secret key begins.
const SECRET: &str = "ed25519-secret:";
/// How the line of a public key begins.
const PUBLIC: &str = "ed25519:";
/// Bytes of a key of either kind.
const KEY_BYTES: usize = 32;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("the key file {path} cannot be read")]
    Read {
        /// The path of the file.
        path: String,
        /// Why it cannot be read.
        source: std::io::Error,
    },
    /// Everybody may read a secret key, or others than its owner may write it.
    #[error(
        "the key file {path} can be read by everybody or written by others than its owner; say `chmod 600 {path}`"
    )]
    Open {
        /// The path of the file.
        path: String,
    },
    /// The text is no key of the kind that is needed.
    #[error("{what} is no {kind} key; `concord keys generate` makes a pair")]
    Form {
        /// The text's place.
        what: String,
        /// `secret` or `public`.
        kind: &'static str,
    },
    /// The machine gives no random numbers.
    #[error("the machine gives no random numbers to make a key of")]
    Random,
}

/// A secret key that signs.
#[derive(Debug)]
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key, and the line of its file.
    pub fn generate() -> Result<(Self, String), Error> {
        let mut seed = [0; KEY_BYTES];
        SystemRandom::new()
            .fill(&mut seed)
            .map_err(|_| Error::Random)?;
        let text = format!("{SECRET}{}", hex(&seed));
        Ok((Self::parse(&text, "the new key")?, text))
    }

    /// Reads a key from its file, which only its owner and its group may read. A group may: a Secret of Kubernetes is mounted as root's, so
    /// that a service under another user reads it by its group only, and nobody can change its mode there.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let read = |source| Error::Read {
            path: shown.clone(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(read)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path).map_err(read)?.permissions().mode();
            if mode & 0o027 != 0 {
                return Err(Error::Open { path: shown });
            }
        }
        Self::parse(&text, &shown)
    }

    /// A key from the line of its file; `what` says where that stands.
    pub fn parse(text: &str, what: &str) -> Result<Self, Error> {
        let seed = text.trim().strip_prefix(SECRET).and_then(bytes);
        let key = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        key.map(Self).ok_or_else(|| Error::Form {
            what: what.to_owned(),
            kind: "secret",
        })
    }

    /// The public key, as it stands in its file.
    pub fn public(&self) -> String {
        format!("{PUBLIC}{}", hex(self.0.public_key().as_ref()))
    }

    /// Signs what a person rules or reviews.
    pub fn sign_text(&self, text: &str) -> Signature {
        Signature {
            key: hex(self.0.public_key().as_ref()),
            value: hex(self.0.sign(text.as_bytes()).as_ref()),
        }
    }

    /// Signs a head.
    pub fn sign(&self, head: &Head) -> HeadSignature {
        HeadSignature {
            key: self.public(),
            value: hex(self.0.sign(head_text(head).as_bytes()).as_ref()),
        }
    }
}

/// A public key in its written form, checked; `what` says where it stands.
pub fn public_key(text: &str, what: &str) -> Result<String, Error> {
    let text = text.trim();
    let key = text
        .strip_prefix(PUBLIC)
        .and_then(bytes)
        .filter(|key| key.len() == KEY_BYTES);
    key.map(|_| text.to_owned()).ok_or_else(|| Error::Form {
        what: what.to_owned(),
        kind: "public",
    })
}

/// Whether a head is as it was signed with the key that its signature names; true when nobody has signed it.
pub fn is_as_signed(head: &Head) -> bool {
    let Some(HeadSignature { key, value }) = &head.signature else {
        return true;
    };
    let key = key.strip_prefix(PUBLIC).and_then(bytes);
    let verified = key.zip(bytes(value)).is_some_and(|(key, signature)| {
        UnparsedPublicKey::new(&ED25519, key)
            .verify(head_text(head).as_bytes(), &signature)
            .is_ok()
    });
    verified && digest_of(head) == head.digest
}

/// Whether a signature of a person fits a text and the key that it names.
pub fn fits(signature: &Signature, text: &str) -> bool {
    let parts = bytes(&signature.key).zip(bytes(&signature.value));
    parts.is_some_and(|(key, value)| {
        UnparsedPublicKey::new(&ED25519, key)
            .verify(text.as_bytes(), &value)
            .is_ok()
    })
}

/// The digits of a public key, as they are registered with a person: from the text of its file, or the digits themselves.
pub fn key_digits(text: &str, what: &str) -> Result<String, Error> {
    let text = text.trim();
    let whole = if text.starts_with(PUBLIC) {
        text.to_owned()
    } else {
        format!("{PUBLIC}{text}")
    };
    let whole = public_key(&whole, what)?;
    Ok(whole.trim_start_matches(PUBLIC).to_owned())
}

/// Bytes from hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| {
            digit
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect();
    let digits = digits?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| {
        digits
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let mut head = Head {
            number: 1,
            previous: None,
            at: concord_wire::Timestamp::from_unix_millis(0),
            streams: Vec::new(),
            digest: String::new(),
            signature: None,
        };
        head.digest = digest_of(&head);
        head
    }

    #[test]
    fn a_head_is_as_signed_until_it_or_its_signature_is_changed() {
        let (key, text) = SigningKey::generate().unwrap();
        let mut signed = head();
        assert!(is_as_signed(&signed), "nobody has signed it");
        signed.signature = Some(key.sign(&signed));
        assert!(is_as_signed(&signed));
        let again = SigningKey::parse(&text, "it").unwrap();
        assert_eq!(again.public(), key.public());

        let mut other = signed.clone();
        other.number = 2;
        other.digest = digest_of(&other);
        assert!(!is_as_signed(&other));
        let (stranger, _) = SigningKey::generate().unwrap();
        let mut other = signed;
        if let Some(signature) = &mut other.signature {
            signature.key = stranger.public();
        }
        assert!(!is_as_signed(&other));
    }

    #[test]
    fn what_a_person_signs_fits_this_text_and_this_key_only() {
        let (key, _) = SigningKey::generate().unwrap();
        let (stranger, _) = SigningKey::generate().unwrap();
        let signature = key.sign_text("p1");
        assert!(fits(&signature, "p1") && !fits(&signature, "p2"));
        let others = Signature {
            key: stranger.sign_text("p1").key,
            ..signature.clone()
        };
        assert!(!fits(&others, "p1"));
        let cut = Signature {
            value: signature.value[2..].to_owned(),
            ..signature
        };
        assert!(!fits(&cut, "p1"));
    }

    #[cfg(unix)]
    #[test]
    fn a_group_may_read_a_secret_key_and_others_may_not() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("head.key");
        std::fs::write(&path, SigningKey::generate().unwrap().1).unwrap();
        for (mode, good) in [
            (0o600, true),
            (0o440, true), // as Kubernetes mounts a Secret
            (0o444, false),
            (0o460, false),
            (0o602, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = SigningKey::read(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}: {read:?}");
        }
    }

    #[test]
    fn a_key_is_registered_by_its_file_or_its_digits() {
        let (key, secret) = SigningKey::generate().unwrap();
        let digits = key.sign_text("").key;
        for text in [key.public(), format!("{}\n", key.public()), digits.clone()] {
            assert_eq!(key_digits(&text, "it").unwrap(), digits);
        }
        assert!(key_digits(&secret, "it").is_err());
        assert!(key_digits("eva.key.pub", "it").is_err());
    }

    #[test]
    fn what_is_no_key_is_refused_with_advice() {
        let (key, secret) = SigningKey::generate().unwrap();
        for text in [
            "",
            "ed25519-secret:",
            "ed25519-secret:00",
            "ed25519:zz",
            &key.public(),
        ] {
            let refused = SigningKey::parse(text, "key.txt").unwrap_err().to_string();
            assert!(refused.contains("concord keys generate"), "{refused}");
        }
        assert!(public_key(&secret, "it").is_err());
        assert_eq!(
            public_key(&format!("{}\n", key.public()), "it").unwrap(),
            key.public()
        );
    }
}

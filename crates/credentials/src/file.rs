//! The file of credentials: a user's token and the seed of its key.

use nkeys::KeyPair;

/// A user's token and the seed of its key, as they stand in a file.
#[derive(Clone)]
pub struct CredentialsFile {
    token: String,
    seed: String,
}

/// How the lines begin and end between which token and seed stand.
const TOKEN: &str = "NATS USER JWT";
const SEED: &str = "USER NKEY SEED";

/// Why a text has no credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Form {
    /// A part is not there.
    #[error("it has no line between BEGIN and END {0}")]
    Missing(&'static str),
    /// The seed is none.
    #[error("its seed is not that of a key")]
    Seed,
}

impl CredentialsFile {
    pub(crate) fn new(token: String, key: &KeyPair) -> Result<Self, crate::Error> {
        Ok(Self {
            token,
            seed: key.seed()?,
        })
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, Form> {
        let found = Self {
            token: between(text, TOKEN)?,
            seed: between(text, SEED)?,
        };
        found.key()?;
        Ok(found)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let Self { token, seed } = self;
        format!(
            "-----BEGIN {TOKEN}-----\n{token}\n------END {TOKEN}------\n\n\
             # Whoever has what follows is this user.\n\
             -----BEGIN {SEED}-----\n{seed}\n------END {SEED}------\n"
        )
    }

    /// The user's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Signs what a server asks to be signed.
    pub fn sign(&self, nonce: &[u8]) -> Result<Vec<u8>, Form> {
        self.key()?.sign(nonce).map_err(|_| Form::Seed)
    }

    fn key(&self) -> Result<KeyPair, Form> {
        KeyPair::from_seed(&self.seed).map_err(|_| Form::Seed)
    }
}

/// The line after one that says BEGIN `what`.
fn between(text: &str, what: &'static str) -> Result<String, Form> {
    let mut lines = text.lines().map(str::trim);
    let begin = format!("BEGIN {what}");
    lines.find(|line| line.starts_with("---") && line.contains(&begin));
    let found = lines
        .next()
        .filter(|line| !line.is_empty() && !line.starts_with('-'));
    found.map(str::to_owned).ok_or(Form::Missing(what))
}

#[cfg(test)]
mod tests {
    use nkeys::KeyPairType;

    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_signs() {
        let key = KeyPair::new(KeyPairType::User);
        let file = CredentialsFile::new("a.b.c".to_owned(), &key).unwrap();
        let read = CredentialsFile::parse(&file.text().replace('\n', "\r\n")).unwrap();
        assert_eq!(read.token(), "a.b.c");
        let signature = read.sign(b"nonce").unwrap();
        key.verify(b"nonce", &signature).unwrap();
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let key = KeyPair::new(KeyPairType::User);
        let text = CredentialsFile::new("a.b.c".to_owned(), &key)
            .unwrap()
            .text();
        let refused = |text: &str| CredentialsFile::parse(text).err();
        assert_eq!(refused(""), Some(Form::Missing(TOKEN)));
        assert_eq!(refused(&text[..60]), Some(Form::Missing(SEED)));
        let seed = key.seed().unwrap();
        assert_eq!(refused(&text.replace(&seed, "SUAB")), Some(Form::Seed));
        assert_eq!(
            refused(&text.replace("a.b.c\n", "")),
            Some(Form::Missing(TOKEN))
        );
    }
}

//! The credentials with which requests are signed.

use std::path::{Path, PathBuf};

use rusty_s3::Credentials;

use super::S3Error;

/// The profile that is read.
const PROFILE: &str = "default";

/// Where credentials are read for each request: a file, or the environment.
#[derive(Debug)]
pub(super) struct Source {
    file: Option<PathBuf>,
}

impl Source {
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file }
    }

    pub(super) async fn read(&self) -> Result<Credentials, S3Error> {
        let Some(file) = &self.file else {
            return Credentials::from_env().ok_or(S3Error::NoCredentials);
        };
        credentials(file, tokio::fs::read_to_string(file).await)
    }

    /// Reads the file, where there is one.
    pub(super) fn check(&self) -> Result<(), S3Error> {
        match &self.file {
            Some(file) => credentials(file, std::fs::read_to_string(file)).map(drop),
            None => Ok(()),
        }
    }
}

/// The credentials in a file that was read, or was not.
fn credentials(file: &Path, read: std::io::Result<String>) -> Result<Credentials, S3Error> {
    let text = read.map_err(|error| unusable(file, &error))?;
    parse(&text).ok_or_else(|| {
        let why = "it has no aws_access_key_id and aws_secret_access_key under [default]";
        unusable(file, &why)
    })
}

fn unusable(file: &Path, why: &dyn std::fmt::Display) -> S3Error {
    S3Error::CredentialsFile {
        path: file.to_owned(),
        why: why.to_string(),
    }
}

/// Reads the profile `default` of a file with credentials; lines before any profile count as its own.
fn parse(text: &str) -> Option<Credentials> {
    let mut profile = PROFILE;
    let (mut key, mut secret, mut token) = (None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            profile = name.trim_end_matches(']').trim();
        } else if profile == PROFILE
            && let Some((name, value)) = line.split_once('=')
        {
            let value = Some(value.trim()).filter(|value| !value.is_empty());
            match name.trim() {
                "aws_access_key_id" => key = value,
                "aws_secret_access_key" => secret = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    let (key, secret) = (key?, secret?);
    Some(match token {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_profile_is_read() {
        let text = "# ours\n[other]\naws_access_key_id = no\n[ default ]\naws_access_key_id=AKIA\n\
                    aws_secret_access_key = a/b=c==\nregion = x\n[more]\naws_session_token = no\n";
        let read = parse(text).unwrap();
        assert_eq!(
            (read.key(), read.secret(), read.token()),
            ("AKIA", "a/b=c==", None)
        );
        let read =
            parse("aws_access_key_id=A\r\naws_secret_access_key=B\r\naws_session_token=C\r\n");
        assert_eq!(read.unwrap().token(), Some("C"));
        for text in [
            "",
            "[default]\naws_access_key_id=A\naws_secret_access_key=\n",
            "A:B",
        ] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_named_and_not_repeated() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hush").unwrap();
        let source = Source::new(Some(file.path().to_owned()));
        let error = source.read().await.unwrap_err().to_string();
        assert!(
            error.contains("[default]") && !error.contains("hush"),
            "{error}"
        );
        let gone = Source::new(Some("/nowhere/credentials".into()));
        for error in [gone.read().await.map(drop), gone.check()] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains("/nowhere/credentials"), "{error}");
        }
    }
}

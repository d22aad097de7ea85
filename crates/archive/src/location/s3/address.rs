//! Which bucket, where.

use std::fmt;
use std::path::PathBuf;

use concord_outbound::{Origin, TlsError};
use rusty_s3::{Bucket, UrlStyle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// What an address begins with.
const SCHEME: &str = "s3://";

/// How an S3-compatible store is reached, where the archive is in one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct S3Settings {
    /// Address of the store, for example `https://minio.example.org:9000`; the bucket becomes a part of its path. Empty for
    /// Amazon S3 in `region`.
    pub endpoint: String,
    /// Region of the bucket. Most other stores take any.
    pub region: String,
    /// File with the credentials, in the form of `~/.aws/credentials` (its profile `default`). It is read for each request. Without
    /// it they are `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, for temporary ones, `AWS_SESSION_TOKEN` of the environment.
    pub credentials_file: Option<PathBuf>,
    /// Believe these authorities, too, when the store is spoken to under TLS (a PEM file).
    pub ca: Option<PathBuf>,
    /// How long one request may take, in milliseconds. It is tried five times.
    pub timeout_ms: u64,
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            region: "us-east-1".to_owned(),
            credentials_file: None,
            ca: None,
            timeout_ms: 30_000,
        }
    }
}

/// Why an address leads to no store.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is not of the right form.
    #[error(
        "{0:?} is no s3://BUCKET/PREFIX: a bucket has 3 to 63 of a-z, 0-9, dots and hyphens, and the parts of a prefix have letters, \
         digits and any of -_.="
    )]
    Form(String),
    /// The endpoint is none.
    #[error(
        "storage.s3.endpoint: write an address such as https://minio.example.org:9000, without a user name"
    )]
    Endpoint,
    /// The region is none.
    #[error("storage.s3.region: write the region of the bucket, such as eu-central-1")]
    Region,
    /// Its certificate could not be checked.
    #[error("storage.s3.ca")]
    Tls(#[from] TlsError),
}

/// A bucket, and the beginning of the names in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    bucket: String,
    /// Empty, or with a slash at its end.
    prefix: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = format!("{}/{}", self.bucket, self.prefix);
        write!(f, "{SCHEME}{}", path.trim_end_matches('/'))
    }
}

impl Address {
    pub(super) fn read(address: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError::Form(address.to_owned());
        let path = address.strip_prefix(SCHEME).ok_or_else(wrong)?;
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        let prefix = prefix.trim_end_matches('/');
        let parts_are_good = prefix.is_empty() || prefix.split('/').all(is_part);
        if !is_bucket(bucket) || !parts_are_good {
            return Err(wrong());
        }
        let end = if prefix.is_empty() { "" } else { "/" };
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: format!("{prefix}{end}"),
        })
    }

    /// The name in the bucket of what has this name in the archive.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The bucket at its store, and whom calls go to.
    pub(super) fn bucket(&self, settings: &S3Settings) -> Result<(Bucket, Origin), AddressError> {
        let region = &settings.region;
        let is_region = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if region.is_empty() || !region.chars().all(is_region) {
            return Err(AddressError::Region);
        }
        let (endpoint, style) = match settings.endpoint.as_str() {
            // Certificates of Amazon are for one label before the region.
            "" if self.bucket.contains('.') => (amazon(region), UrlStyle::Path),
            "" => (amazon(region), UrlStyle::VirtualHost),
            own => (own.to_owned(), UrlStyle::Path),
        };
        let endpoint = Url::parse(&endpoint).map_err(|_| AddressError::Endpoint)?;
        let is_bare = endpoint.username().is_empty()
            && endpoint.password().is_none()
            && endpoint.query().is_none()
            && endpoint.fragment().is_none();
        if !is_bare {
            return Err(AddressError::Endpoint);
        }
        let bucket = Bucket::new(endpoint, style, self.bucket.clone(), region.clone());
        let bucket = bucket.map_err(|_| AddressError::Endpoint)?;
        let origin = Origin::of(bucket.base_url()).ok_or(AddressError::Endpoint)?;
        Ok((bucket, origin))
    }
}

fn amazon(region: &str) -> String {
    format!("https://s3.{region}.amazonaws.com")
}

fn is_bucket(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && !name.contains("..")
        && name.chars().all(|c| is_end(c) || c == '.' || c == '-')
}

fn is_part(part: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    !matches!(part, "" | "." | "..") && part.chars().all(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_bucket_and_a_prefix() {
        for (address, key, shown) in [
            ("s3://cases", "segments/1.zst", "s3://cases"),
            ("s3://cases/", "segments/1.zst", "s3://cases"),
            (
                "s3://a.b-c/x/y=1/",
                "x/y=1/segments/1.zst",
                "s3://a.b-c/x/y=1",
            ),
        ] {
            let read = Address::read(address).unwrap();
            assert_eq!(read.key("segments/1.zst"), key);
            assert_eq!(read.to_string(), shown);
        }
        for address in [
            "s3://",
            "s3:/cases",
            "s3://ab",
            "s3://Cases",
            "s3://cases-/x",
            "s3://key:secret@cases/x",
            "s3://cases//x",
            "s3://cases/../x",
            "s3://cases/x?y",
            "https://cases",
        ] {
            assert!(Address::read(address).is_err(), "{address}");
        }
    }

    #[test]
    fn amazon_has_the_bucket_in_the_host_and_others_in_the_path() {
        let base = |bucket: &str, endpoint: &str| {
            let settings = S3Settings {
                endpoint: endpoint.to_owned(),
                region: "eu-central-1".to_owned(),
                ..S3Settings::default()
            };
            let bucket = Address::read(bucket).unwrap().bucket(&settings);
            bucket.map(|(bucket, _)| bucket.base_url().to_string())
        };
        for (bucket, endpoint, url) in [
            (
                "s3://cases",
                "",
                "https://cases.s3.eu-central-1.amazonaws.com/",
            ),
            (
                "s3://my.cases",
                "",
                "https://s3.eu-central-1.amazonaws.com/my.cases/",
            ),
            (
                "s3://cases/x",
                "http://[::1]:9000",
                "http://[::1]:9000/cases/",
            ),
            (
                "s3://cases",
                "https://ceph.example.org/s3",
                "https://ceph.example.org/s3/cases/",
            ),
        ] {
            assert_eq!(base(bucket, endpoint).unwrap(), url);
        }
        for endpoint in [
            "minio:9000",
            "ftp://minio",
            "https://a:b@minio",
            "https://minio/?x=y",
            "minio",
        ] {
            assert!(base("s3://cases", endpoint).is_err(), "{endpoint}");
        }
    }
}

//! What a store says when it does not do what it is asked, and what is to be done then.

use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use concord_outbound::{Response, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Most characters of a store's own words that are repeated.
const WORDS_MAX: usize = 300;
/// How far clocks may differ before that is said to be the cause, in seconds.
const CLOCKS_MAX_S: i64 = 300;

/// Why an S3-compatible store was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum S3Error {
    /// It did not answer.
    #[error(
        "the store does not answer; is storage.s3.endpoint right, and its authority known (storage.s3.ca)?"
    )]
    Call(#[from] concord_outbound::Error),
    /// It answered that it does not do it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// What it answered is no list of objects.
    #[error(
        "the store gives no list of objects; is storage.s3.endpoint that of an S3-compatible store?"
    )]
    NoList,
    /// An object with this name and other contents is there.
    #[error(
        "an object with this name is there already, with other contents; nothing is overwritten"
    )]
    Taken,
    /// Nobody has said with which credentials.
    #[error(
        "there are no credentials for it: name a file in storage.s3.credentials_file, or set AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY"
    )]
    NoCredentials,
    /// The file with the credentials cannot be used.
    #[error("storage.s3.credentials_file {}: {why}", path.display())]
    CredentialsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl S3Error {
    /// Whether the same request may succeed at another time.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Call(error) => !error.is_lasting(),
            Self::Refused(refusal) => refusal.is_passing(),
            _ => false,
        }
    }
}

/// An answer of a store that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What it is called in the protocol; empty where the store does not say it.
    code: String,
    /// The store's own words.
    words: String,
    bucket: String,
    /// The region in which the bucket is, where the store says it.
    region: Option<String>,
    /// How many seconds the store's clock is ahead of the own.
    ahead_s: Option<i64>,
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            code,
            words,
            ..
        } = self;
        match code.as_str() {
            "" => write!(f, "the store answers {status} and does not say why")?,
            code => write!(f, "the store answers {status} {code} ({words})")?,
        }
        write!(f, ": {}", self.advice())
    }
}

impl Refusal {
    pub(super) fn of(response: &Response, bucket: &str) -> Box<Self> {
        let text = String::from_utf8_lossy(&response.body);
        let said = |name: &str| element(&text, name);
        let header = |name: &str| response.headers.get(name)?.to_str().ok();
        let region = header("x-amz-bucket-region").map(str::to_owned);
        let date = header(header::DATE.as_str());
        Box::new(Self {
            status: response.status.as_u16(),
            code: said("Code").unwrap_or_default(),
            words: said("Message").unwrap_or_default(),
            bucket: bucket.to_owned(),
            region: region.or_else(|| said("Region")),
            ahead_s: date.and_then(ahead_of_us),
        })
    }

    fn is_passing(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(
                self.code.as_str(),
                "RequestTimeout" | "SlowDown" | "OperationAborted" | "ConditionalRequestConflict"
            )
    }

    /// Whether it says that there is no such object, in a bucket that is there.
    pub(super) fn is_missing_object(&self) -> bool {
        self.status == 404 && self.code == "NoSuchKey"
    }

    fn advice(&self) -> String {
        let clocks = self.ahead_s.filter(|ahead| ahead.abs() > CLOCKS_MAX_S);
        if let (400 | 403, Some(ahead)) = (self.status, clocks) {
            let way = if ahead > 0 { "behind" } else { "ahead of" };
            let minutes = ahead.abs() / 60;
            return format!(
                "the clock of this machine is {minutes} minutes {way} the store's; set it right"
            );
        }
        let bucket = &self.bucket;
        match (self.code.as_str(), &self.region) {
            ("NoSuchBucket", _) => {
                format!("create the bucket {bucket}, or correct the address of the archive")
            }
            (
                "PermanentRedirect"
                | "TemporaryRedirect"
                | "AuthorizationHeaderMalformed"
                | "AuthorizationQueryParametersError"
                | "IllegalLocationConstraintException",
                Some(region),
            ) => format!("the bucket is in {region}; set storage.s3.region to that"),
            ("InvalidAccessKeyId", _) => "the key id is not known there; correct the credentials".to_owned(),
            ("SignatureDoesNotMatch", _) => {
                "the secret is not that of the key id, or a proxy changes the header Host; correct the credentials".to_owned()
            }
            ("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired", _) => {
                "the session token counts no more; put new credentials in place".to_owned()
            }
            ("RequestTimeTooSkewed" | "RequestExpired", _) => {
                "the clock of this machine is not the store's; set it right".to_owned()
            }
            _ => self.advice_by_status(),
        }
    }

    fn advice_by_status(&self) -> String {
        let bucket = &self.bucket;
        match self.status {
            401 | 403 => format!(
                "the credentials may not do that in the bucket {bucket}; docs/archive.md has the rights that are needed"
            ),
            _ if self.is_passing() => "it was tried five times, and may work later".to_owned(),
            _ => "is storage.s3.endpoint that of an S3-compatible store, and storage.s3.region the bucket's?".to_owned(),
        }
    }
}

/// The text of the first element of this name in an error, so that it can be shown.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (found, _) = rest.split_once(&format!("</{name}>"))?;
    let shown = found.chars().filter(|c| !c.is_control());
    Some(shown.take(WORDS_MAX).collect())
}

/// How many seconds a date of an answer is ahead of the own clock.
fn ahead_of_us(date: &str) -> Option<i64> {
    let there = DateTimeParser::new().parse_timestamp(date).ok()?;
    let here = Timestamp::try_from(SystemTime::now()).ok()?;
    Some(there.as_second() - here.as_second())
}

#[cfg(test)]
mod tests {
    use concord_outbound::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn refusal(status: u16, headers: &[(&'static str, &str)], body: &str) -> Refusal {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let response = Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: map,
            body: body.to_owned().into(),
        };
        *Refusal::of(&response, "cases")
    }

    fn xml(code: &str) -> String {
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>No.</Message></Error>")
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        for (status, code, advice) in [
            (404, "NoSuchBucket", "create the bucket cases"),
            (403, "AccessDenied", "may not do that in the bucket cases"),
            (403, "InvalidAccessKeyId", "key id is not known"),
            (
                403,
                "SignatureDoesNotMatch",
                "secret is not that of the key id",
            ),
            (400, "ExpiredToken", "put new credentials in place"),
            (403, "RequestTimeTooSkewed", "clock of this machine"),
            (503, "SlowDown", "may work later"),
            (405, "MethodNotAllowed", "storage.s3.endpoint"),
        ] {
            let text = refusal(status, &[], &xml(code)).to_string();
            assert!(text.contains(code) && text.contains(advice), "{text}");
        }
        let text = refusal(502, &[], "<html>\u{1b}[2J").to_string();
        assert!(text.contains("502 and does not say why"), "{text}");
    }

    #[test]
    fn the_region_is_the_one_that_the_store_names() {
        let body = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>No.</Message><Region>eu-west-1</Region></Error>";
        let named = refusal(400, &[], body).to_string();
        assert!(
            named.contains("storage.s3.region") && named.contains("eu-west-1"),
            "{named}"
        );
        let headers = [("x-amz-bucket-region", "eu-north-1")];
        let moved = refusal(301, &headers, &xml("PermanentRedirect")).to_string();
        assert!(moved.contains("eu-north-1"), "{moved}");
    }

    #[test]
    fn clocks_that_differ_are_said() {
        for (date, said) in [
            ("Mon, 01 Jan 2001 00:00:00 GMT", "ahead of the store's"),
            ("Sat, 01 Jan 2101 00:00:00 GMT", "behind the store's"),
        ] {
            let text = refusal(403, &[("date", date)], &xml("AccessDenied")).to_string();
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for (status, code, passes) in [
            (503, "SlowDown", true),
            (429, "", true),
            (409, "OperationAborted", true),
            (400, "RequestTimeout", true),
            (403, "AccessDenied", false),
            (404, "NoSuchKey", false),
            (412, "PreconditionFailed", false),
        ] {
            let error = S3Error::Refused(Box::new(refusal(status, &[], &xml(code))));
            assert_eq!(error.is_passing(), passes, "{status} {code}");
        }
    }
}

//! Objects in a store that speaks the protocol of Amazon S3.
//!
//! The crate `rusty-s3` makes and signs addresses and reads lists; the calls are made by the one guarded HTTP client.

mod address;
mod credentials;
mod refusal;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use concord_outbound::{Allowed, Caller, HeaderMap, HeaderValue, Limits, Method, Request};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action};
use sha2::{Digest as _, Sha256};

use address::Address;
pub use address::{AddressError, S3Settings};
use credentials::Source;
pub use refusal::{Refusal, S3Error};

/// How long a signed address counts: what Amazon allows clocks to differ by.
const SIGNED_FOR: Duration = Duration::from_secs(900);
/// The pauses between the tries of one request, in milliseconds.
const PAUSES_MS: [u64; 4] = [200, 400, 800, 1_600];
/// Most bytes of an answer. A segment has some MB, and more where a single case has.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// The part of a bucket that an address `s3://BUCKET/PREFIX` names. Cheap to clone.
#[derive(Clone)]
pub struct S3(Arc<Store>);

struct Store {
    address: Address,
    bucket: Bucket,
    caller: Caller,
    credentials: Source,
    timeout: Duration,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3({self})")
    }
}

impl fmt::Display for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.address)
    }
}

/// A request that is signed and not sent yet.
struct Signed {
    method: Method,
    url: url::Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Signed {
    /// Without headers and body.
    fn bare<'a, A: S3Action<'a>>(method: Method, action: &A) -> Self {
        Self {
            method,
            url: action.sign(SIGNED_FOR),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

impl S3 {
    /// The place at an address `s3://BUCKET/PREFIX`. It is not called yet, and nobody's credentials are read.
    pub fn new(address: &str, settings: &S3Settings) -> Result<Self, AddressError> {
        let address = Address::read(address)?;
        let (bucket, origin) = address.bucket(settings)?;
        // The operator wrote it, and a store is often in the same network.
        let allowed = Allowed::new(vec![origin], true, ("storage.s3.endpoint", "nothing"));
        Ok(Self(Arc::new(Store {
            address,
            bucket,
            caller: Caller::new(allowed, settings.ca.as_deref())?,
            credentials: Source::new(settings.credentials_file.clone()),
            timeout: Duration::from_millis(settings.timeout_ms.max(1)),
        })))
    }

    /// Says what is wrong with the file that the credentials are read from, where there is one. The store is not called.
    pub fn check_credentials(&self) -> Result<(), S3Error> {
        self.0.credentials.check()
    }

    /// Writes an object that nobody has written before. One that is there already must be the same: it is what an earlier try
    /// whose answer was lost has written.
    pub(super) async fn write(&self, name: &str, bytes: Bytes) -> Result<(), S3Error> {
        let refusal = match self.put(name, &bytes, true).await {
            Err(S3Error::Refused(refusal)) => refusal,
            done => return done,
        };
        match refusal.status {
            412 if self.read(name).await?.as_ref() == Some(&bytes) => Ok(()),
            412 => Err(S3Error::Taken),
            // A store that knows neither the condition nor the checksum. Names are nobody else's, and what is written is read back
            // before anything is removed.
            501 => self.put(name, &bytes, false).await,
            _ => Err(S3Error::Refused(refusal)),
        }
    }

    async fn put(&self, name: &str, bytes: &Bytes, guarded: bool) -> Result<(), S3Error> {
        let key = self.key(name);
        let checksum = STANDARD.encode(Sha256::digest(bytes));
        let guards = [("if-none-match", "*"), ("x-amz-checksum-sha256", &checksum)];
        let put = |credentials: &Credentials| {
            let mut action = self.0.bucket.put_object(Some(credentials), &key);
            let mut headers = HeaderMap::new();
            for (name, value) in guards.into_iter().filter(|_| guarded) {
                action.headers_mut().insert(name, value);
                if let Ok(value) = HeaderValue::from_str(value) {
                    headers.insert(name, value);
                }
            }
            Signed {
                headers,
                body: bytes.clone(),
                ..Signed::bare(Method::PUT, &action)
            }
        };
        self.send(put).await.map(drop)
    }

    pub(super) async fn read(&self, name: &str) -> Result<Option<Bytes>, S3Error> {
        let key = self.key(name);
        let get = |credentials: &Credentials| {
            let action = self.0.bucket.get_object(Some(credentials), &key);
            Signed::bare(Method::GET, &action)
        };
        match self.send(get).await {
            Ok(body) => Ok(Some(body)),
            Err(S3Error::Refused(refusal)) if refusal.is_missing_object() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), S3Error> {
        let key = self.key(name);
        let delete = |credentials: &Credentials| {
            let action = self.0.bucket.delete_object(Some(credentials), &key);
            Signed::bare(Method::DELETE, &action)
        };
        match self.send(delete).await {
            Err(S3Error::Refused(refusal)) if refusal.is_missing_object() => Ok(()),
            done => done.map(drop),
        }
    }

    pub(super) async fn list(&self, part: &str) -> Result<Vec<String>, S3Error> {
        let begin = self.key(&format!("{part}/"));
        let mut names = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let list = |credentials: &Credentials| {
                let mut action = self.0.bucket.list_objects_v2(Some(credentials));
                action.with_prefix(&begin);
                if let Some(token) = &next {
                    action.with_continuation_token(token);
                }
                Signed::bare(Method::GET, &action)
            };
            let body = self.send(list).await?;
            let page = std::str::from_utf8(&body).ok();
            let page = page.and_then(|text| ListObjectsV2::parse_response(text).ok());
            let page = page.ok_or(S3Error::NoList)?;
            let keys = page.contents.iter();
            let found = keys.filter_map(|object| object.key.strip_prefix(&begin));
            names.extend(found.map(str::to_owned));
            match page.next_continuation_token {
                None => return Ok(names),
                token if token == next => return Err(S3Error::NoList),
                token => next = token,
            }
        }
    }

    fn key(&self, name: &str) -> String {
        self.0.address.key(name)
    }

    /// Sends a request until it is answered by more than "not now", five times at most. Credentials are read for each try, so
    /// whoever has put new ones in place of old ones needs to tell nobody.
    async fn send(&self, sign: impl Fn(&Credentials) -> Signed) -> Result<Bytes, S3Error> {
        let mut pauses = PAUSES_MS.into_iter().map(Duration::from_millis);
        loop {
            let credentials = self.0.credentials.read().await?;
            let error = match self.once(sign(&credentials)).await {
                Err(error) if error.is_passing() => error,
                done => return done,
            };
            match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    async fn once(&self, signed: Signed) -> Result<Bytes, S3Error> {
        let request = Request {
            method: signed.method,
            url: signed.url.into(),
            headers: signed.headers,
            body: signed.body,
            limits: Limits {
                timeout: self.0.timeout,
                body_bytes_max: Some(ANSWER_BYTES_MAX),
            },
        };
        let response = self.0.caller.call(request).await?;
        match response.status.is_success() {
            true => Ok(response.body),
            false => Err(S3Error::Refused(Refusal::of(
                &response,
                self.0.bucket.name(),
            ))),
        }
    }
}

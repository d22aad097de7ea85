//! One request, one answer, everything bounded.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::address::{Allowed, Target};
use crate::{Authorities, Error, TlsError, tls};

const USER_AGENT: &str = concat!("concord/", env!("CARGO_PKG_VERSION"));
/// Bytes of an answer's head; a server that sends more is not understood.
const HEAD_BYTES_MAX: usize = 65_536;

/// Calls addresses.
pub struct Caller {
    allowed: Allowed,
    tls: TlsConnector,
}

/// What is sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The whole address, `https://host/path?query`.
    pub url: String,
    /// Headers besides `Host`, `User-Agent`, `Connection` and `Content-Length`, which are added.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Its bounds.
    pub limits: Limits,
}

/// The bounds of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take, from looking up the name to the answer's last byte.
    pub timeout: Duration,
    /// Most bytes of the answer's body; none when the body does not matter and is not read.
    pub body_bytes_max: Option<usize>,
}

/// What was answered, whatever its status: redirects among them, which are not followed because they could lead to who may
/// not be called.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; empty when it was not read.
    pub body: Bytes,
}

impl Caller {
    /// Calls the hosts that `allowed` lists. Trusts the authorities of the system and those in a PEM file.
    pub fn new(allowed: Allowed, authorities: Option<&Path>) -> Result<Self, TlsError> {
        Ok(Self::trusting(allowed, Authorities::read(authorities)?))
    }

    /// Calls the hosts that `allowed` lists, and trusts authorities that were read before.
    pub fn trusting(allowed: Allowed, authorities: Authorities) -> Self {
        Self {
            allowed,
            tls: authorities.0,
        }
    }

    /// Who may be called.
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Makes one call.
    pub async fn call(&self, request: Request) -> Result<Response, Error> {
        let limit = request.limits.timeout;
        let begun = AtomicBool::new(false);
        let answered = tokio::time::timeout(limit, self.unbounded(request, &begun)).await;
        answered.unwrap_or_else(|_| {
            let after_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            Err(Error::Timeout {
                after_ms,
                may_have_arrived: begun.load(Ordering::Relaxed),
            })
        })
    }

    async fn unbounded(&self, request: Request, begun: &AtomicBool) -> Result<Response, Error> {
        let target = self.allowed.target(&request.url)?;
        let body_bytes_max = request.limits.body_bytes_max;
        let request = head(request, &target)?;
        let addresses = self.allowed.addresses(&target).await?;
        let unreachable =
            |what: &str, error: &dyn std::error::Error| Error::Unreachable(could_not(what, error));
        // The first of them that answers.
        let stream = TcpStream::connect(&*addresses)
            .await
            .map_err(|error| unreachable("connect", &error))?;
        if target.is_tls() {
            let name = tls::server_name(&target)?;
            let stream = self
                .tls
                .connect(name, stream)
                .await
                .map_err(|error| unreachable("speak TLS", &error))?;
            exchange(stream, request, body_bytes_max, begun).await
        } else {
            exchange(stream, request, body_bytes_max, begun).await
        }
    }
}

fn head(request: Request, target: &Target) -> Result<hyper::Request<Full<Bytes>>, Error> {
    let unusable =
        |error: &dyn std::fmt::Display| Error::Refused(format!("no call can be made: {error}"));
    let authority = HeaderValue::from_str(target.authority()).map_err(|error| unusable(&error))?;
    let mut built = hyper::Request::new(Full::from(request.body));
    *built.method_mut() = request.method;
    *built.uri_mut() = target
        .path()
        .parse()
        .map_err(|error: hyper::http::uri::InvalidUri| unusable(&error))?;
    let headers = built.headers_mut();
    *headers = request.headers;
    headers.insert(header::HOST, authority);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(built)
}

/// One request on a connection of its own.
async fn exchange<S>(
    stream: S,
    request: hyper::Request<Full<Bytes>>,
    body_bytes_max: Option<usize>,
    begun: &AtomicBool,
) -> Result<Response, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| Error::Broken(could_not("exchange", &error));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX);
    let (mut sender, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    // Ended with this function, whatever comes.
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    begun.store(true, Ordering::Relaxed);
    let (head, body) = sender
        .send_request(request)
        .await
        .map_err(broken)?
        .into_parts();
    let body = match body_bytes_max {
        Some(max) => read(body, max).await?,
        None => Bytes::new(),
    };
    Ok(Response {
        status: head.status,
        headers: head.headers,
        body,
    })
}

async fn read(body: Incoming, max: usize) -> Result<Bytes, Error> {
    let read = Limited::new(body, max).collect().await;
    read.map(http_body_util::Collected::to_bytes)
        .map_err(|error| {
            if error.is::<LengthLimitError>() {
                Error::TooLong(max)
            } else {
                Error::Broken(could_not("read the answer", &*error))
            }
        })
}

/// An error with its causes, on one line.
fn could_not(what: &str, error: &dyn std::error::Error) -> String {
    let mut text = format!("could not {what}: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

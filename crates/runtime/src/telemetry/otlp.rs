//! The collector that spans, log lines and metrics are sent to: over HTTP, or HTTPS as hosted agents are called.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use concord_outbound::{Allowed, Caller, Limits, Origin, TlsError};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use url::Url;

use crate::error_chain::ErrorChain;

/// How long one attempt to send something may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
/// Most bytes of what a collector answers, which says how much it did not take, and why.
const ANSWER_BYTES_MAX: usize = 65_536;

/// Why a collector cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is none of the addresses that are.
    #[error("write an address such as https://collector.example.org:4318, without a user name")]
    Address,
    /// Its certificate could not be checked.
    #[error("telemetry.otlp_ca")]
    Tls(#[from] TlsError),
}

/// Sends on the service's runtime: the exporter works on a thread of its own, where there is none.
pub(crate) struct Collector {
    /// What is sent, as the beginning of a sentence.
    what: &'static str,
    caller: Arc<Caller>,
    runtime: tokio::runtime::Handle,
    /// Whether the last attempt failed.
    fails: AtomicBool,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Collector")
    }
}

impl Collector {
    /// The one at an address, whose certificate the system's authorities have signed, or one in a file (PEM).
    pub(crate) fn new(
        what: &'static str,
        address: &str,
        authorities: Option<&Path>,
    ) -> Result<Self, Error> {
        let origin = origin_of(address)?;
        // The operator wrote it, and a collector is often on the same machine.
        let allowed = Allowed::new(vec![origin], true, ("telemetry.otlp_endpoint", "nothing"));
        let caller = Arc::new(Caller::new(allowed, authorities)?);
        Ok(Self {
            what,
            caller,
            runtime: tokio::runtime::Handle::current(),
            fails: AtomicBool::new(false),
        })
    }

    /// Says when the collector begins to fail and when it is back, and not for every attempt between.
    fn note(&self, collector: &str, sent: &Result<Response<Bytes>, HttpError>) {
        let why = match sent {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("it answers {}", response.status())),
            Err(error) => Some(ErrorChain(&**error).to_string()),
        };
        let what = self.what;
        let failed_before = self.fails.swap(why.is_some(), Ordering::Relaxed);
        match why {
            Some(why) if !failed_before => tracing::warn!(
                %collector, %why,
                "{what} cannot be sent to the collector; those that it does not take are lost. Nothing else is affected."
            ),
            None if failed_before => tracing::info!(%collector, "{what} are being sent again."),
            _ => {}
        }
    }
}

/// Where a collector is, by its address.
pub(super) fn origin_of(address: &str) -> Result<Origin, Error> {
    let url = Url::parse(address).map_err(|_| Error::Address)?;
    let plain = url.username().is_empty() && url.password().is_none();
    Origin::of(&url).filter(|_| plain).ok_or(Error::Address)
}

async fn send(caller: Arc<Caller>, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = request.into_parts();
    let limits = Limits {
        timeout: ATTEMPT_MAX,
        body_bytes_max: Some(ANSWER_BYTES_MAX),
    };
    let (method, url, headers) = (head.method, head.uri.to_string(), head.headers);
    let answered = caller
        .call(concord_outbound::Request {
            method,
            url,
            headers,
            body,
            limits,
        })
        .await?;
    let mut response = Response::new(answered.body);
    *response.status_mut() = answered.status;
    *response.headers_mut() = answered.headers;
    Ok(response)
}

type Sent<'a> =
    std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    // The trait is written with `async_trait`; this is what that stands for.
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Sent<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        let collector = request.uri().to_string();
        let sent = self.runtime.spawn(send(Arc::clone(&self.caller), request));
        Box::pin(async move {
            let sent = sent.await.map_err(HttpError::from).flatten();
            self.note(&collector, &sent);
            sent
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_collector_is_an_address_that_can_be_called() {
        for good in [
            "http://127.0.0.1:4318",
            "https://collector.example.org",
            "https://[::1]:4318/otlp",
        ] {
            assert!(Collector::new("Spans", good, None).is_ok(), "{good}");
        }
        for bad in [
            "",
            "collector:4318",
            "ftp://collector",
            "https://me:secret@collector",
        ] {
            let error = Collector::new("Spans", bad, None).unwrap_err();
            assert!(matches!(error, Error::Address), "{bad}: {error}");
            assert!(!error.to_string().contains("secret"));
        }
        let error = Collector::new(
            "Spans",
            "https://collector",
            Some(Path::new("/nowhere.pem")),
        )
        .unwrap_err();
        assert!(matches!(error, Error::Tls(_)), "{error}");
    }
}

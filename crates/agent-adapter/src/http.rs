//! An agent that is a server: it is sent the message, and answers with what it says, at once or later.

use std::time::Duration;

use bytes::Bytes;
use concord_outbound::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use concord_protocol::MessageId;
use concord_runtime::Trace;

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::guard::Call;

/// Where an answer that comes later is to be posted.
const CALLBACK_URL: HeaderName = HeaderName::from_static("concord-callback-url");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What a server answered.
#[derive(Debug)]
pub(crate) enum Answered {
    /// What it says.
    Now(Bytes),
    /// That it will say it later.
    Later,
}

/// A message on its way to a server.
pub(crate) struct Post<'a> {
    endpoint: &'a Endpoint,
    body: Bytes,
    id: MessageId,
    headers: HeaderMap,
}

impl<'a> Post<'a> {
    /// `id` is that of the answer, which is the same whenever the message is sent.
    pub(crate) fn new(
        endpoint: &'a Endpoint,
        message: Vec<u8>,
        id: MessageId,
        callback: Option<&str>,
        trace: Option<&Trace>,
    ) -> Self {
        let mut headers = HeaderMap::new();
        let further = [(CALLBACK_URL, callback), (TRACEPARENT, trace.map(|trace| trace.parent.as_str()))];
        for (name, value) in further {
            // What cannot stand in a header is left out: a context that somebody else wrote, never our own address.
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        Self { endpoint, body: Bytes::from(message), id, headers }
    }
}

impl Call for Post<'_> {
    type Value = Answered;

    async fn make(&self, within: Duration) -> Result<(Answered, Option<u64>), Failure> {
        let response = self.endpoint.post(self.body.clone(), self.id.as_str(), &self.headers, within).await?;
        let answered = match response.status {
            StatusCode::ACCEPTED => Answered::Later,
            // As `{}`: it has nothing to say.
            StatusCode::NO_CONTENT => Answered::Now(Bytes::from_static(b"{}")),
            _ => Answered::Now(response.body),
        };
        Ok((answered, None))
    }
}

//! An agent that is a server: it is sent the message, and answers with what it says, at once or later.

use std::time::Duration;

use bytes::Bytes;
use concord_outbound::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use concord_runtime::Trace;
use concord_wire::{Dialect, MessageId};

use crate::hosted_agent::call_policy::Call;
use crate::hosted_agent::endpoint::Endpoint;
use crate::hosted_agent::failure::Failure;

/// Where an answer that comes later is to be posted.
const CALLBACK_URL: HeaderName = HeaderName::from_static("concord-callback-url");
/// The dialect of a message or an answer, as on NATS.
const DIALECT: HeaderName = HeaderName::from_static("concord-dialect");

/// What a server answered.
#[derive(Debug)]
pub(crate) enum Answered {
    /// What it says, and the dialect that the header of the answer names.
    Now(Bytes, Option<String>),
    /// That it will say it later.
    Later,
}

/// What is said of a message beside it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    /// In which dialect it is.
    pub(crate) dialect: Dialect,
    /// Where an answer that comes later is to be posted.
    pub(crate) callback: Option<&'a str>,
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
        beside: Beside<'_>,
    ) -> Self {
        let Beside { dialect, callback } = beside;
        let mut headers = HeaderMap::new();
        let further = [
            (
                DIALECT,
                (dialect != Dialect::Concord).then_some(dialect.as_str()),
            ),
            (CALLBACK_URL, callback),
        ];
        for (name, value) in further {
            // What cannot stand in a header is left out; our own address never is.
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        Self {
            endpoint,
            body: Bytes::from(message),
            id,
            headers,
        }
    }
}

impl Call for Post<'_> {
    type Value = Answered;

    async fn make(
        &self,
        within: Duration,
        trace: Option<&Trace>,
    ) -> Result<(Answered, Option<u64>), Failure> {
        let further = (self.headers.clone(), trace);
        let response = self
            .endpoint
            .post(self.body.clone(), self.id.as_str(), further, within)
            .await?;
        let answered = match response.status {
            StatusCode::ACCEPTED => Answered::Later,
            // As `{}`: it has nothing to say.
            StatusCode::NO_CONTENT => Answered::Now(Bytes::from_static(b"{}"), None),
            _ => {
                let named = response
                    .headers
                    .get(&DIALECT)
                    .map(|name| name.to_str().unwrap_or("?").to_owned());
                Answered::Now(response.body, named)
            }
        };
        Ok((answered, None))
    }
}

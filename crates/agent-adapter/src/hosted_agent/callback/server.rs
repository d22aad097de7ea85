//! The HTTP endpoint to which agents post their answers later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use concord_runtime::delivery::ErrorChain;
use concord_runtime::service::ServiceRunner;
use concord_runtime::{Trace, service::clock};
use concord_wire::{AgentId, Dialect, Envelope, MessageType, header};
use serde_json::json;
use tokio::net::TcpListener;

use super::listener::Bounded;
use super::token::{AnswerTarget, TokenError};
use super::{CallbackAddress, PendingAnswers, Posted};
use crate::hosted_agent::decode;
use crate::hosted_agent::spans::{AnswerSpan, SpanSubject};

/// The path before the token.
pub(super) const PATH: &str = "/v1/answers/";
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1_048_576;
/// How long an answer may take to arrive.
const ARRIVES_MAX: Duration = Duration::from_secs(10);

/// The agents that may answer here, with the dialects of their cards.
pub(crate) type Hosted = BTreeMap<AgentId, Dialect>;

struct Callbacks {
    runner: ServiceRunner,
    address: Arc<CallbackAddress>,
    pending: PendingAnswers,
    hosted: Hosted,
}

/// Takes answers until the service stops.
pub(crate) async fn serve(
    runner: ServiceRunner,
    listener: TcpListener,
    address: Arc<CallbackAddress>,
    pending: PendingAnswers,
    hosted: Hosted,
) {
    let stop = runner.stop.clone();
    let paths = address.paths();
    let state = Arc::new(Callbacks {
        runner,
        address,
        pending,
        hosted,
    });
    let router = paths
        .iter()
        .fold(Router::new(), |router, path| router.route(path, post(take)));
    let router = router.with_state(state);
    let serving =
        axum::serve(Bounded::new(listener), router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = serving.await {
        tracing::error!(%error, "The endpoint for answers that come later has ended.");
    }
}

fn respond(status: StatusCode, message: &str) -> Response {
    (
        status,
        [("content-type", "application/json")],
        json!({ "message": message }).to_string(),
    )
        .into_response()
}

async fn take(
    State(callbacks): State<Arc<Callbacks>>,
    Path(token): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let now = clock::now();
    let target = match callbacks.address.key.open(&token, now) {
        Ok(target) => target,
        Err(TokenError::Unknown) => {
            return respond(StatusCode::NOT_FOUND, "Nothing was asked here.");
        }
        Err(TokenError::Expired) => {
            return respond(StatusCode::GONE, "The time for this answer is over.");
        }
    };
    let Some(card_dialect) = callbacks.hosted.get(&target.agent).copied() else {
        return respond(StatusCode::NOT_FOUND, "Nothing was asked here.");
    };
    let body = match tokio::time::timeout(ARRIVES_MAX, to_bytes(body, ANSWER_BYTES_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            return respond(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The answer was cut off, or is larger than 1 MiB.",
            );
        }
        Err(_) => {
            return respond(
                StatusCode::REQUEST_TIMEOUT,
                "The answer did not arrive in time.",
            );
        }
    };
    let dialect = headers
        .get(header::DIALECT)
        .map(|name| name.to_str().unwrap_or("?"));
    let answer = match decode::parse_answer(
        &decode::RawAnswer {
            body: &body,
            dialect,
            card_dialect,
        },
        &target,
        now,
        None,
    ) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            let asked = target.message_id.to_string();
            callbacks.pending.end(&target.agent, asked, Posted::Nothing);
            return respond(StatusCode::OK, "Nothing is published.");
        }
        Err(fault) => return respond(StatusCode::BAD_REQUEST, &fault.to_string()),
    };
    if target.is_news && answer.message_type != MessageType::Confirmation {
        return respond(
            StatusCode::OK,
            "Not published: of what is said to news only a confirmation of a finding is.",
        );
    }
    let brought = headers
        .get(header::TRACEPARENT)
        .and_then(|trace| trace.to_str().ok());
    callbacks.publish(&target, &answer, brought).await
}

impl Callbacks {
    /// An agent that records spans goes on with what it was sent in the header; for the others the address knows.
    async fn publish(
        &self,
        target: &AnswerTarget,
        answer: &Envelope,
        brought: Option<&str>,
    ) -> Response {
        let parent = brought.map(str::to_owned).or_else(|| target.trace.clone());
        let brought = parent.map(|parent| Trace {
            parent,
            state: None,
        });
        let case = target.case_id.as_ref();
        let subject = SpanSubject {
            brought: brought.as_ref(),
            case,
            message_type: &answer.message_type,
        };
        let span = AnswerSpan::begin_later_answer(self.runner.context(), &target.agent, subject);
        match self
            .runner
            .broker
            .publish_first(answer, span.context())
            .await
        {
            Ok(true) => {
                span.set_outcome("answered");
                respond(StatusCode::OK, "Published.")
            }
            // Somebody has answered before: this agent a second time, or the adapter that the time was over.
            Ok(false) => {
                span.set_outcome("answered_before");
                respond(
                    StatusCode::OK,
                    "It was answered before; this changes nothing.",
                )
            }
            Err(error) => {
                span.set_failure("not_published");
                tracing::warn!(agent = %target.agent, error = %ErrorChain(&error), "A later answer could not be published.");
                respond(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "It could not be published; post it again.",
                )
            }
        }
    }
}

//! Where agents post the answers that come later.

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
use concord_wire::{AgentId, Dialect, Envelope, header};
use serde_json::json;
use tokio::net::TcpListener;

use super::Address;
use super::listener::Bounded;
use super::token::{Asked, Refusal};
use crate::decode;
use crate::spans::{About, Turn};

/// What stands before an address' token.
pub(super) const PATH: &str = "/v1/answers/";
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1_048_576;
/// How long an answer may take to arrive.
const ARRIVES_MAX: Duration = Duration::from_secs(10);

/// Who may answer here, and in which dialect unless the answer says another.
pub(crate) type Hosted = BTreeMap<AgentId, Dialect>;

struct Callbacks {
    shell: ServiceRunner,
    address: Arc<Address>,
    hosted: Hosted,
}

/// Takes answers until the service stops.
pub(crate) async fn serve(
    shell: ServiceRunner,
    listener: TcpListener,
    address: Arc<Address>,
    hosted: Hosted,
) {
    let stop = shell.stop.clone();
    let state = Arc::new(Callbacks {
        shell,
        address,
        hosted,
    });
    let router = Router::new()
        .route(&format!("{PATH}{{token}}"), post(take))
        .with_state(state);
    let serving =
        axum::serve(Bounded::new(listener), router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = serving.await {
        tracing::error!(%error, "The endpoint for answers that come later has ended.");
    }
}

fn said(status: StatusCode, message: &str) -> Response {
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
    let asked = match callbacks.address.key.open(&token, now) {
        Ok(asked) => asked,
        Err(Refusal::Unknown) => return said(StatusCode::NOT_FOUND, "Nothing was asked here."),
        Err(Refusal::Over) => return said(StatusCode::GONE, "The time for this answer is over."),
    };
    let Some(speaks) = callbacks.hosted.get(&asked.agent).copied() else {
        return said(StatusCode::NOT_FOUND, "Nothing was asked here.");
    };
    let body = match tokio::time::timeout(ARRIVES_MAX, to_bytes(body, ANSWER_BYTES_MAX)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            return said(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The answer was cut off, or is larger than 1 MiB.",
            );
        }
        Err(_) => {
            return said(
                StatusCode::REQUEST_TIMEOUT,
                "The answer did not arrive in time.",
            );
        }
    };
    let dialect = headers
        .get(header::DIALECT)
        .map(|name| name.to_str().unwrap_or("?"));
    let answer = match decode::message(
        &decode::Said {
            body: &body,
            dialect,
            speaks,
        },
        &asked,
        now,
        None,
    ) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            return said(
                StatusCode::BAD_REQUEST,
                "Answer in your dialect, or with message_type and payload.",
            );
        }
        Err(fault) => return said(StatusCode::BAD_REQUEST, &fault.to_string()),
    };
    let brought = headers
        .get(header::TRACEPARENT)
        .and_then(|trace| trace.to_str().ok());
    callbacks.publish(&asked, &answer, brought).await
}

impl Callbacks {
    /// An agent that records spans goes on with what it was sent in the header; for the others the address knows.
    async fn publish(&self, asked: &Asked, answer: &Envelope, brought: Option<&str>) -> Response {
        let parent = brought.map(str::to_owned).or_else(|| asked.trace.clone());
        let brought = parent.map(|parent| Trace {
            parent,
            state: None,
        });
        let case = asked.case_id.as_ref();
        let about = About {
            brought: brought.as_ref(),
            case,
            message_type: &answer.message_type,
        };
        let part = Turn::later(&self.shell, &asked.agent, about);
        match self
            .shell
            .broker
            .publish_first(answer, part.context())
            .await
        {
            Ok(true) => {
                part.came_to("answered");
                said(StatusCode::OK, "Published.")
            }
            // Somebody has answered before: this agent a second time, or the adapter that the time was over.
            Ok(false) => {
                part.came_to("answered_before");
                said(
                    StatusCode::OK,
                    "It was answered before; this changes nothing.",
                )
            }
            Err(error) => {
                part.failed("not_published");
                tracing::warn!(agent = %asked.agent, error = %ErrorChain(&error), "A later answer could not be published.");
                said(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "It could not be published; post it again.",
                )
            }
        }
    }
}

//! Routes of the admin endpoint: the requests and their answers.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::access::Access;
use super::metrics::{self, Format};
use super::server::Busy;
use super::{CheckQuery, Verdicts, View, page};
use crate::admin::printable::{json_text, printable};
use crate::report::Phase;

/// State that the answers to all requests share.
struct RouteState {
    view: Arc<dyn View>,
    limits: Limits,
    /// Permit that a check holds while it runs.
    check: Arc<Semaphore>,
}

/// Builds the router of all requests, which change nothing. `access` applies to those that show the
/// crawl. Probes and Prometheus need no token.
pub(super) fn router(view: Arc<dyn View>, limits: Limits, access: Access) -> Router {
    let desk = Arc::new(RouteState { view, limits, check: Arc::new(Semaphore::new(1)) });
    let page = middleware::from_fn_with_state(access.to_page(), Access::guard);
    let guard = middleware::from_fn_with_state(access, Access::guard);
    let crawl = Router::new()
        .route("/status", get(status))
        .route("/samples", get(samples))
        .route("/check", post(check))
        .route_layer(guard)
        .with_state(Arc::clone(&desk));
    Router::new()
        .route("/healthz", get(async |desk| ok_or_phase(desk, Phase::is_alive)))
        .route("/readyz", get(async |desk| ok_or_phase(desk, Phase::is_ready)))
        .route("/metrics", get(metrics))
        .with_state(desk)
        .merge(crawl)
        .merge(page::router().route_layer(page))
        .layer(middleware::from_fn(page::restrict))
}

/// Answers with "ok" if all phases are good, else with the first one that is not.
fn ok_or_phase(
    State(desk): State<Arc<RouteState>>,
    is_good: impl Fn(&Phase) -> bool,
) -> Result<&'static str, Refusal> {
    let bad = desk.view.status().first_bad(is_good);
    bad.map_or(Ok("ok\n"), |reason| Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, reason)))
}

async fn status(State(desk): State<Arc<RouteState>>) -> Result<Response, Refusal> {
    json(&desk.view.status())
}

async fn metrics(
    State(desk): State<Arc<RouteState>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let format = Format::accepted(&headers);
    let text = metrics::text(&desk.view.status(), format).map_err(Refusal::internal)?;
    let kind = [(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept")];
    Ok((kind, text).into_response())
}

async fn check(
    State(desk): State<Arc<RouteState>>,
    Extension(busy): Extension<Busy>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    check_json(&headers)?;
    json(&desk.check(body, &busy).await?)
}

/// Answers with the sampled items. The query may have the number of the last item that the client
/// knows, as in `after=5`.
async fn samples(
    State(desk): State<Arc<RouteState>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    let after = query.map_or(Some(0), |query| query.strip_prefix("after=")?.parse().ok());
    let refused = || Refusal(StatusCode::BAD_REQUEST, "the query is not after=NUMBER".to_owned());
    let samples = desk.view.samples(after.ok_or_else(refused)?);
    json(&samples)
}

/// Checks that the request declares its body as JSON. A browser lets a page of another site declare
/// this only after a preflight request, and the endpoint allows no preflight request.
fn check_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = said.and_then(|said| said.split(';').next()).unwrap_or_default();
    if media.trim().eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let reason = "the body must be JSON: send the header Content-Type: application/json";
    Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason.to_owned()))
}

/// Answer with a status other than 200, and the reason for the status.
struct Refusal(StatusCode, String);

impl Refusal {
    fn internal(error: impl Display) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", printable(self.1.as_bytes(), None))).into_response()
    }
}

impl RouteState {
    async fn check(&self, body: Body, busy: &Busy) -> Result<Verdicts, Refusal> {
        let items = self.items(body).await?;
        let late = || {
            let reason = format!("the filter did not answer within {:?}", self.limits.check);
            Refusal(StatusCode::SERVICE_UNAVAILABLE, reason)
        };
        let checked = async {
            let turn = Arc::clone(&self.check).acquire_owned().await.map_err(|_| late())?;
            let _working = busy.lock().await;
            let view = Arc::clone(&self.view);
            let count = items.len();
            let check = tokio::task::spawn_blocking(move || {
                let checked = view.check(&items);
                // The permit is released after the check, even if the client no longer waits. So
                // two checks never run at the same time.
                drop(turn);
                checked
            });
            match check.await {
                Ok(Ok(items)) if items.len() == count => Ok(Verdicts { items }),
                Ok(Err(reason)) => Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, reason)),
                Ok(Ok(_)) | Err(_) => {
                    let reason = "the check failed; standard error of the daemon says why";
                    Err(Refusal::internal(reason))
                }
            }
        };
        tokio::time::timeout(self.limits.check, checked).await.unwrap_or_else(|_| Err(late()))
    }

    /// Reads the items in the body of a request.
    async fn items(&self, body: Body) -> Result<Vec<Vec<u8>>, Refusal> {
        let limits = &self.limits;
        let bytes = axum::body::to_bytes(body, limits.body_bytes);
        let bytes = tokio::time::timeout(limits.body, bytes).await.map_err(|_| {
            let reason = format!("the body did not arrive within {:?}", limits.body);
            Refusal(StatusCode::REQUEST_TIMEOUT, reason)
        })?;
        // The body is too large, or the connection is lost. A lost client reads no answer.
        let bytes = bytes.map_err(|_| {
            let reason = format!("a body has at most {} bytes", limits.body_bytes);
            Refusal(StatusCode::PAYLOAD_TOO_LARGE, reason)
        })?;
        let bad = |reason: String| {
            let like = r#"it must look like {"items": ["https://example.com/"]}"#;
            Refusal(StatusCode::BAD_REQUEST, format!("{reason}; {like}"))
        };
        let question: CheckQuery = serde_json::from_slice(&bytes)
            .map_err(|error| bad(format!("the body is not valid: {error}")))?;
        if question.items.len() > limits.items {
            let reason =
                format!("{} items; a request has at most {}", question.items.len(), limits.items);
            return Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
        let items = question.items.into_iter().map(super::ItemText::into_bytes);
        items.collect::<Option<_>>().ok_or_else(|| bad("an item is not base64".to_owned()))
    }
}

fn json(value: &impl Serialize) -> Result<Response, Refusal> {
    let json = serde_json::to_string(value).map_err(Refusal::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json_text(&json)).into_response())
}

/// Bounds on connections, requests and time. Each connection serves one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of connections at each address at the same time. If one more client connects,
    /// the endpoint closes the oldest idle connection.
    pub connections: usize,
    /// Maximum size of a request's head in bytes. Values under 8 KiB count as 8 KiB.
    pub head_bytes: usize,
    /// Time limit for the arrival of the head.
    pub head: Duration,
    /// Maximum size of a request's body in bytes.
    pub body_bytes: usize,
    /// Time limit for the arrival of the body.
    pub body: Duration,
    /// Maximum number of items in one request.
    pub items: usize,
    /// Time limit for a check. This includes the wait until an earlier check has ended.
    pub check: Duration,
    /// Time limit for a whole connection, from its start to its end.
    pub connection: Duration,
}

impl Limits {
    /// Maximum number of items in one request under [`Limits::default`].
    pub(crate) const ITEMS: usize = 1000;
    /// Maximum size of a request's body in bytes under [`Limits::default`].
    pub const BODY_BYTES: usize = 1 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 32,
            head_bytes: 16 << 10,
            head: Duration::from_secs(5),
            body_bytes: Self::BODY_BYTES,
            body: Duration::from_secs(5),
            items: Self::ITEMS,
            check: Duration::from_secs(5),
            connection: Duration::from_secs(20),
        }
    }
}

//! Routes of the endpoint: the requests and their answers.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::places::Busy;
use super::{CheckQuery, Limits, Phase, Verdicts, View, metrics};
use crate::admin::printable::{json_text, printable};

/// Text that answers `GET /`.
const INDEX: &str = "\
GET  /healthz   whether the process works
GET  /readyz    whether it is recovered, connected and holds the lease
GET  /status    what it is doing, as JSON
GET  /metrics   the same for Prometheus
POST /check     {\"items\": [\"https://example.com/\"]}: seen or unseen, without setting
";

/// State from which the answers are made.
struct RouteState {
    view: Arc<dyn View>,
    limits: Limits,
    /// Permit that a check holds while it runs.
    check: Arc<Semaphore>,
}

/// Builds the router of all requests.
pub(super) fn router(view: Arc<dyn View>, limits: Limits) -> Router {
    let desk = RouteState { view, limits, check: Arc::new(Semaphore::new(1)) };
    Router::new()
        .route("/", get(async || INDEX))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .route("/check", post(check))
        .with_state(Arc::new(desk))
}

async fn healthz(State(desk): State<Arc<RouteState>>) -> Response {
    let phase = desk.view.status().phase;
    ok_or_phase(!phase.has_failed(), &phase)
}

async fn readyz(State(desk): State<Arc<RouteState>>) -> Response {
    let phase = desk.view.status().phase;
    ok_or_phase(phase.is_ready(), &phase)
}

fn ok_or_phase(is_ok: bool, phase: &Phase) -> Response {
    if is_ok {
        "ok\n".into_response()
    } else {
        refusal(StatusCode::SERVICE_UNAVAILABLE, &phase.to_string())
    }
}

async fn status(State(desk): State<Arc<RouteState>>) -> Response {
    json(&desk.view.status())
}

async fn metrics(State(desk): State<Arc<RouteState>>) -> Response {
    match metrics::text(desk.view.status(), SystemTime::now()) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn check(
    State(desk): State<Arc<RouteState>>,
    Extension(busy): Extension<Busy>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_json(&headers) {
        let reason = "a check is asked in JSON: send the header Content-Type: application/json";
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
    }
    match desk.check(body, &busy).await {
        Ok(verdicts) => json(&verdicts),
        Err((status, reason)) => refusal(status, &reason),
    }
}

/// Returns true if the request declares its body as JSON. A page of another site cannot declare
/// that unless a preflight request allows it, and no preflight request is answered.
fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = said.and_then(|said| said.split(';').next()).unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

/// Answer with another status than 200.
type Refusal = (StatusCode, String);

impl RouteState {
    async fn check(&self, body: Body, busy: &Busy) -> Result<Verdicts, Refusal> {
        let items = self.items(body).await?;
        let late = || {
            let reason = format!("the filter did not answer within {:?}", self.limits.check);
            (StatusCode::SERVICE_UNAVAILABLE, reason)
        };
        let checked = async {
            let turn = Arc::clone(&self.check).acquire_owned().await.map_err(|_| late())?;
            let _working = busy.begin();
            let view = Arc::clone(&self.view);
            let count = items.len();
            let check = tokio::task::spawn_blocking(move || {
                let checked = view.check(&items);
                // The permit is released only now: if a client gives up waiting, the next check
                // must not start early.
                drop(turn);
                checked
            });
            match check.await {
                Ok(Ok(items)) if items.len() == count => Ok(Verdicts { items }),
                Ok(Err(error)) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
                Ok(Ok(_)) | Err(_) => Err((
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the check failed; standard error of the daemon says why".to_owned(),
                )),
            }
        };
        tokio::time::timeout(self.limits.check, checked).await.unwrap_or_else(|_| Err(late()))
    }

    /// Reads the items in the body of a request.
    async fn items(&self, body: Body) -> Result<Vec<Vec<u8>>, Refusal> {
        let limits = &self.limits;
        let bytes = axum::body::to_bytes(body, limits.body_bytes);
        let Ok(bytes) = tokio::time::timeout(limits.body, bytes).await else {
            let reason = format!("the body did not arrive within {:?}", limits.body);
            return Err((StatusCode::REQUEST_TIMEOUT, reason));
        };
        // The only other reason is a lost connection, and then no client reads this answer.
        let bytes = bytes.map_err(|_| {
            let reason = format!("a body has at most {} bytes", limits.body_bytes);
            (StatusCode::PAYLOAD_TOO_LARGE, reason)
        })?;
        let bad = |reason: String| {
            let like = r#"it must look like {"items": ["https://example.com/"]}"#;
            (StatusCode::BAD_REQUEST, format!("{reason}; {like}"))
        };
        let question: CheckQuery = serde_json::from_slice(&bytes)
            .map_err(|error| bad(format!("the body is not valid: {error}")))?;
        if question.items.len() > limits.items {
            let reason =
                format!("{} items; a request has at most {}", question.items.len(), limits.items);
            return Err((StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
        let items = question.items.into_iter().map(super::ItemText::into_bytes);
        items.collect::<Option<_>>().ok_or_else(|| bad("an item is not base64".to_owned()))
    }
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value).map(|json| json_text(&json)) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn refusal(status: StatusCode, reason: &str) -> Response {
    (status, format!("{}\n", printable(reason.as_bytes(), None))).into_response()
}

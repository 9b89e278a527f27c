//! Page of a running daemon, for browsers.
//!
//! The page is static, and asks for `/status` and `/samples`. A browser loads it only from the
//! daemon itself, and executes no other script: see [`POLICY`].

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// Content security policy. The browser loads scripts, styles, images and data only from the
/// address of the page. It shows the page in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Declares the files of the page, each with its path and its type.
macro_rules! files {
    ($( $path:literal, $name:literal, $media:expr; )+) => {
        /// Builds the router of the page and of its files.
        pub(super) fn router() -> Router {
            Router::new()$( .route($path, get(async || file(include_str!($name), $media))) )+
        }
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

files! {
    "/", "index.html", HTML;
    "/page/icon.svg", "icon.svg", SVG;
    "/page/style.css", "style.css", CSS;
    "/page/main.js", "main.js", SCRIPT;
    "/page/dom.js", "dom.js", SCRIPT;
    "/page/format.js", "format.js", SCRIPT;
    "/page/history.js", "history.js", SCRIPT;
    "/page/crawls.js", "crawls.js", SCRIPT;
    "/page/phase.js", "phase.js", SCRIPT;
    "/page/samples.js", "samples.js", SCRIPT;
    "/page/sections.js", "sections.js", SCRIPT;
}

fn file(text: &'static str, media: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, media)], text)
}

/// Adds the headers that restrict browsers to an answer. No browser keeps the answer.
pub(super) async fn restrict(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

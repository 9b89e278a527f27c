//! Listener that accepts connections and serves one request on each, within the limits.

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::net::Listener;
use tracing::debug;

use super::Limits;
use super::server::{Busy, Places};
use crate::serve::accept;

/// Maximum number of headers in a request.
const HEADERS: usize = 64;

/// Smallest buffer that hyper accepts. The head of a request has to fit into the buffer.
const BUFFER_MIN: usize = 8 << 10;

/// Serves all clients that connect, and never returns.
pub(super) async fn serve<L>(mut listener: L, router: Router, limits: Limits)
where
    L: Listener<Io: Send + Unpin + 'static>,
{
    let mut places = Places::new(limits.connections);
    loop {
        let tried = "the admin endpoint cannot accept a connection";
        let (stream, _) = accept(&mut listener, tried).await;
        let busy = Busy::default();
        let connection = connection(stream, router.clone().layer(Extension(busy.clone())), limits);
        let task = tokio::spawn(async move {
            if tokio::time::timeout(limits.connection, connection).await.is_err() {
                debug!("an admin connection was cut off after {:?}", limits.connection);
            }
        });
        places.take(task.abort_handle(), busy);
        // Lets the new task run first. If the request has already arrived, the task answers it
        // before a newer connection can end the task.
        tokio::task::yield_now().await;
    }
}

/// Reads one request of a connection and sends the answer.
async fn connection<S>(stream: S, router: Router, limits: Limits)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(HEADERS)
        .max_buf_size(limits.head_bytes.max(BUFFER_MIN))
        // Each connection serves one request, so a connection that is not busy is idle.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        debug!("an admin connection ended early: {error}");
    }
}

//! Listener that accepts connections and serves one request on each, within the limits.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tracing::{debug, warn};

use super::Limits;
use super::places::{Busy, Places};
use urlseen_core::storage::descriptors;

/// Wait after a connection could not be accepted, usually for want of descriptors.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum number of headers in a request.
const HEADERS: usize = 64;

/// Smallest buffer that hyper accepts. The head of a request has to fit into the buffer.
const BUFFER_MIN: usize = 8 << 10;

/// Socket that accepts connections.
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// Connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
        })
    }

    /// Serves all clients that connect, and never returns.
    pub(super) async fn serve(self, router: Router, limits: Limits) {
        let mut places = Places::new(limits.connections);
        loop {
            let stream = match self.accept().await {
                Ok(stream) => stream,
                Err(error) => {
                    let tried = "the admin endpoint cannot accept a connection";
                    warn!("{}", descriptors::explained(tried, &error));
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            let busy = Busy::default();
            let router = router.clone().layer(Extension(busy.clone()));
            let connection = connection(stream, router, &limits);
            let task = tokio::spawn(async move {
                if tokio::time::timeout(limits.connection, connection).await.is_err() {
                    debug!("an admin connection was cut off after {:?}", limits.connection);
                }
            });
            places.take(task.abort_handle(), busy);
            // A request that came with its connection is answered before a newer connection can
            // take its place.
            tokio::task::yield_now().await;
        }
    }
}

/// Serves one request and its answer.
fn connection(
    stream: Box<dyn Stream>,
    router: Router,
    limits: &Limits,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(HEADERS)
        .max_buf_size(limits.head_bytes.max(BUFFER_MIN))
        // Each request needs a new connection, so an idle connection can be recognised.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    Box::pin(async move {
        if let Err(error) = connection.await {
            debug!("an admin connection ended early: {error}");
        }
    })
}

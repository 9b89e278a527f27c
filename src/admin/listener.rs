//! Accepting connections and serving one request on each, within the limits.

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

/// How long to wait where a connection cannot be accepted, for want of descriptors as a rule.
const RETRY: Duration = Duration::from_secs(1);

/// Headers in a request at most.
const HEADERS: usize = 64;

/// The smallest buffer that hyper takes; the head of a request has to fit into the buffer.
const BUFFER_MIN: usize = 8 << 10;

/// What connections come in by.
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
        })
    }

    /// Serves everybody who connects, for ever.
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

/// One request and its answer.
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
        // Whoever asks again connects again: so a connection that does nothing can be told.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    Box::pin(async move {
        if let Err(error) = connection.await {
            debug!("an admin connection ended early: {error}");
        }
    })
}

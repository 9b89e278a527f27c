//! Server that accepts the connections of clients.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;
use tokio_util::net::Listener;
use tracing::{debug, warn};

use super::ServerState;
use super::client::Client;
use super::connection::Connection;
use crate::config::Config;
use crate::report::ClientsStatus;
use urlseen_engine::engine::Threads;
use urlseen_engine::engine::query::Asker;
use urlseen_engine::item::Options;
use urlseen_filter::descriptors;

/// Pause after a failed attempt to accept a connection. The usual reason is that the process has no
/// file descriptor left.
const RETRY: Duration = Duration::from_secs(1);

/// Time without bytes from a client after which the system tests the connection.
const KEEPALIVE: Duration = Duration::from_mins(5);

/// Reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at serve.listen = \"{address}\": {error}; choose another port or host")]
pub(crate) struct ServeStartError {
    address: String,
    error: io::Error,
}

/// Server that listens for clients.
#[derive(Debug)]
pub(crate) struct QueryServer {
    pub(crate) listener: TcpListener,
    pub(crate) state: Arc<ServerState>,
    asker: Asker,
}

impl ServerState {
    /// Returns the present counts of the clients.
    pub(crate) fn clients(&self) -> ClientsStatus {
        let Self { settings, places, accepted, refused, .. } = self;
        ClientsStatus {
            open: (settings.max_clients - places.available_permits()) as u64,
            accepted: accepted.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
        }
    }
}

impl QueryServer {
    /// Listens at `address`. Clients that connect wait until [`Self::run`] serves them. `asker`
    /// sends their questions to the dispatcher. `threads` read long commands.
    pub(crate) async fn bind(
        address: &str,
        config: &Config,
        items: Options,
        asker: Asker,
        threads: Threads,
    ) -> Result<Self, ServeStartError> {
        let failed = |error| ServeStartError { address: address.to_owned(), error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let state = Arc::new(ServerState::new(config, items, threads));
        Ok(Self { listener, state, asker })
    }

    /// Serves all clients that connect, and never returns.
    pub(crate) async fn run(mut self) {
        for id in 1.. {
            let tried = "a client cannot connect to serve.listen";
            let (stream, peer) = accept(&mut self.listener, tried).await;
            let Ok(place) = Arc::clone(&self.state.places).try_acquire_owned() else {
                self.state.refused.fetch_add(1, Ordering::Relaxed);
                // The connection is closed before another one is accepted, so clients never use
                // more file descriptors than planned. If the message cannot be sent, the client
                // only sees that the connection ends.
                let message = b"-ERR max number of clients reached\r\n";
                let _ = SockRef::from(&stream).send(message);
                continue;
            };
            self.state.accepted.fetch_add(1, Ordering::Relaxed);
            let (state, asker) = (Arc::clone(&self.state), self.asker.clone());
            tokio::spawn(async move {
                let _place = place;
                let served = async {
                    stream.set_nodelay(true)?;
                    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
                    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                    let connection = Connection::new(stream, peer, state.settings.greeting_timeout);
                    Client::new(state, asker, id, connection).run().await
                };
                if let Err(error) = served.await {
                    debug!("client {id} is gone: {error}");
                }
            });
        }
    }
}

/// Accepts a connection. `tried` begins the warning after a failed attempt.
pub(crate) async fn accept<L: Listener>(listener: &mut L, tried: &str) -> (L::Io, L::Addr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => warn!("{}", descriptors::explained(tried, &error)),
        }
        tokio::time::sleep(RETRY).await;
    }
}

impl ServerState {
    /// Logs a warning about a client that speaks HTTP, unless the last such warning is recent.
    pub(super) fn warn_of_http(&self, peer: SocketAddr) {
        let mut count = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(silent) = count.turn(Instant::now()) {
            warn!(
                "possible attack: {peer} sent HTTP to serve.listen, as a web page can make a \
                 browser do; the connection is closed, and no part of the request was carried \
                 out. Look for the program at that address, and set URLSEEN_SERVE_PASSWORD. \
                 Other such connections since the last warning: {silent}"
            );
        }
    }
}

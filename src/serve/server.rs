//! Server that accepts the connections of clients.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::net::Listener;
use tracing::{debug, warn};

use super::ServerState;
use super::client::Client;
use super::connection::Connection;
use crate::config::Config;
use crate::report::{ClientsStatus, Repeats};
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
pub struct QueryServer {
    listener: TcpListener,
    state: Arc<ServerState>,
    asker: Asker,
}

/// Counts of the clients of a server, for other threads.
#[derive(Debug, Clone)]
pub(crate) struct ClientCount(Arc<ServerState>);

impl ClientCount {
    /// Returns the present counts.
    pub(crate) fn status(&self) -> ClientsStatus {
        let ServerState { settings, places, accepted, refused, .. } = &*self.0;
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

    /// Returns the address of the listener. If the configured port is 0, the system has chosen the
    /// port.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the counts of the server's clients.
    pub(crate) fn client_count(&self) -> ClientCount {
        ClientCount(Arc::clone(&self.state))
    }

    /// Serves all clients that connect, and never returns.
    pub(crate) async fn run(mut self) {
        for id in 1.. {
            let tried = "a client cannot connect to serve.listen";
            let (stream, peer) = accept(&mut self.listener, tried).await;
            let Ok(place) = Arc::clone(&self.state.places).try_acquire_owned() else {
                self.state.refused.fetch_add(1, Ordering::Relaxed);
                refuse(&stream);
                continue;
            };
            self.state.accepted.fetch_add(1, Ordering::Relaxed);
            let (state, asker) = (Arc::clone(&self.state), self.asker.clone());
            tokio::spawn(async move {
                let _place = place;
                if let Err(error) = serve(state, asker, id, stream, peer).await {
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

/// Tells a client that there are too many clients. The caller closes this connection before it
/// accepts another one, so clients never use more file descriptors than planned.
fn refuse(stream: &TcpStream) {
    // If the message cannot be sent, the client only sees that the connection ends.
    let _ = SockRef::from(stream).send(b"-ERR max number of clients reached\r\n");
}

async fn serve(
    state: Arc<ServerState>,
    asker: Asker,
    id: u64,
    stream: TcpStream,
    peer: SocketAddr,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    let connection = Connection::new(stream, peer, state.settings.greeting_timeout);
    Client::new(Arc::clone(&state), asker, id, connection).run().await
}

/// State of the warning about clients that speak HTTP. It is one warning for all clients.
#[derive(Debug, Default)]
pub(super) struct Alarm(Mutex<Repeats>);

impl Alarm {
    /// Logs a warning about a client, unless the last warning is recent.
    pub(super) fn raise(&self, peer: SocketAddr) {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

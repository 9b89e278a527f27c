//! Warning about clients that speak HTTP. It is one warning for all clients.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::warn;

use crate::report::Repeats;

/// State of the warning, shared by all clients.
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

//! Rests of a consumer's connections to the nodes of a cluster.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use redis::{ErrorKind as Kind, RedisError};

use crate::ErrorKind;
use crate::redis::RedisOptions;
use crate::redis::address::Address;
use crate::redis::patience;

/// Pause between two questions for a node.
const PAUSE: Duration = Duration::from_millis(250);

/// Rests of all connections. While a connection rests after a failed call, its calls fail at once,
/// and a thread asks the cluster for the node. So a caller waits for an absent node only once.
#[derive(Debug)]
pub(in crate::redis) struct Rests(Vec<Mutex<Rest>>);

#[derive(Debug, Default)]
struct Rest {
    /// Server of the last connection.
    node: String,
    /// Error that began the rest.
    reason: Option<RedisError>,
}

impl Rests {
    /// Makes the rests of this number of connections.
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Mutex::default()).collect())
    }

    /// Returns the error that began the rest of a connection, while the connection rests.
    pub(in crate::redis) fn reason(&self, place: usize) -> Option<RedisError> {
        self.at(place).reason.clone()
    }

    /// Returns true if no connection can be used now.
    pub(super) fn are_all(&self) -> bool {
        (0..self.0.len()).all(|place| self.at(place).reason.is_some())
    }

    /// Records the server of a new connection.
    pub(in crate::redis) fn connected(&self, place: usize, node: String) {
        self.at(place).node = node;
    }

    /// Begins the rest of a connection after a failed call, unless Redis refused the call. If the
    /// node gave no answer in time, its other connections rest, too: otherwise the caller would
    /// wait for each of them.
    pub(in crate::redis) fn begin(
        self: &Arc<Self>,
        place: usize,
        error: &RedisError,
        address: &Address,
        options: RedisOptions,
    ) {
        if patience::last(error, true).kind() == ErrorKind::Refused || self.reason(place).is_some()
        {
            return;
        }
        let node = self.at(place).node.clone();
        let is_same = |other: &usize| {
            *other == place
                || error.is_timeout() && !node.is_empty() && self.at(*other).node == node
        };
        for other in (0..self.0.len()).filter(is_same) {
            let mut rest = self.at(other);
            if rest.reason.is_none() && self.start(other, address.clone(), options) {
                rest.reason = Some(error.clone());
            }
        }
    }

    /// Starts the thread that ends a rest. Returns false if the system cannot start one: then the
    /// next call tries to connect.
    fn start(self: &Arc<Self>, place: usize, address: Address, options: RedisOptions) -> bool {
        let all = Arc::downgrade(self);
        let thread = thread::Builder::new().name("urlseen-rest".to_owned());
        thread.spawn(move || wait(&all, place, &address, &options)).is_ok()
    }

    fn at(&self, place: usize) -> MutexGuard<'_, Rest> {
        self.0[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a rest once the node can be found, or once the cluster refuses the question. The next call
/// gets the refusal.
fn wait(all: &Weak<Rests>, place: usize, address: &Address, options: &RedisOptions) {
    loop {
        thread::sleep(PAUSE);
        let found = address.find(options).map_err(|error| patience::last(&error, true));
        let Some(rests) = all.upgrade() else { return };
        if found.map_or_else(|error| error.kind() == ErrorKind::Refused, |_| true) {
            rests.at(place).reason = None;
            return;
        }
    }
}

/// Makes the error of a call over a connection that rests.
pub(in crate::redis) fn resting(reason: &RedisError) -> RedisError {
    (Kind::Io, "the connection rests", patience::last(reason, true).to_string()).into()
}

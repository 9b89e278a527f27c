//! Circuit breakers for absent nodes of a cluster.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use redis::{ErrorKind as Kind, RedisError};

use super::RedisOptions;
use super::address::Address;
use super::patience::last;
use crate::ErrorKind;

/// Pause between two questions for a node.
const PAUSE: Duration = Duration::from_millis(250);

/// Circuit breakers of all connections. A failed call opens the circuit breaker of its connection.
/// While it is open, calls fail at once, and a thread asks the cluster for the node. So a caller
/// waits for an absent node only once.
#[derive(Debug)]
pub(super) struct CircuitBreakers(Vec<Mutex<CircuitBreaker>>);

#[derive(Debug, Default)]
struct CircuitBreaker {
    /// Server of the last connection.
    node: String,
    /// Error that opened the circuit breaker; `None` while it is closed.
    reason: Option<RedisError>,
}

impl CircuitBreakers {
    /// Makes the circuit breakers of this number of connections.
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Mutex::default()).collect())
    }

    /// Returns the error that opened a circuit breaker, while it is open.
    pub(super) fn reason(&self, place: usize) -> Option<RedisError> {
        self.at(place).reason.clone()
    }

    /// Records the server of a new connection.
    pub(super) fn connected(&self, place: usize, node: String) {
        self.at(place).node = node;
    }

    /// Opens the circuit breaker of a connection after a failed call, unless Redis refused the
    /// call. If the node gave no answer in time, opens those of its other connections, too:
    /// otherwise the caller would wait for each of them.
    pub(super) fn begin(
        self: &Arc<Self>,
        place: usize,
        error: &RedisError,
        address: &Address,
        options: RedisOptions,
    ) {
        if last(error, true).kind() == ErrorKind::Refused || self.reason(place).is_some() {
            return;
        }
        let node = self.at(place).node.clone();
        let is_same = |other: &usize| {
            *other == place
                || error.is_timeout() && !node.is_empty() && self.at(*other).node == node
        };
        for other in (0..self.0.len()).filter(is_same) {
            let mut breaker = self.at(other);
            if breaker.reason.is_none() && self.start(other, address.clone(), options) {
                breaker.reason = Some(error.clone());
            }
        }
    }

    /// Starts the thread that closes a circuit breaker again. Returns false if the system cannot
    /// start one: then the next call tries to connect.
    fn start(self: &Arc<Self>, place: usize, address: Address, options: RedisOptions) -> bool {
        let all = Arc::downgrade(self);
        let thread = thread::Builder::new().name("circuit-breaker".to_owned());
        thread.spawn(move || wait(&all, place, &address, &options)).is_ok()
    }

    fn at(&self, place: usize) -> MutexGuard<'_, CircuitBreaker> {
        self.0[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a circuit breaker once the node can be found, or once the cluster refuses the question.
/// The next call gets the refusal.
fn wait(all: &Weak<CircuitBreakers>, place: usize, address: &Address, options: &RedisOptions) {
    loop {
        thread::sleep(PAUSE);
        let found = address.find(options).map_err(|error| last(&error, true));
        let Some(breakers) = all.upgrade() else { return };
        if found.map_or_else(|error| error.kind() == ErrorKind::Refused, |_| true) {
            breakers.at(place).reason = None;
            return;
        }
    }
}

/// Makes the error of a call over a connection whose circuit breaker is open.
pub(super) fn circuit_open(reason: &RedisError) -> RedisError {
    (Kind::Io, "the connection rests", last(reason, true).to_string()).into()
}

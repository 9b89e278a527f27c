//! Connection to Redis, for threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, mem};

use redis::{Cmd, Connection, ConnectionLike as _, ErrorKind as Kind};
use redis::{RedisError, RedisResult, Value};

use super::RedisOptions;
use super::address::Address;
use super::blocking_search::PrimaryWatch;
use super::circuit_breakers::{CircuitBreakers, circuit_open};
use super::patience::last;
use crate::Error;
use urlseen_redis::error::LinkError;

/// Address of Redis, and the open connection, if one is open.
pub(super) struct Link {
    pub(super) address: Address,
    options: RedisOptions,
    pub(super) connection: Option<Connection>,
    /// Watch over the connection, if it is to a primary that Sentinels have named.
    watch: Option<PrimaryWatch>,
    /// Number of answers that were not received yet.
    waiting: usize,
    /// Number of connections that were opened so far.
    pub(super) connects: u64,
    /// Server of the last connection.
    node: String,
    /// Circuit breakers of all connections of a consumer, and the place of this one among them.
    breakers: Option<(Arc<CircuitBreakers>, usize)>,
}

impl Link {
    /// Stores the address. Opens no connection yet.
    pub(super) fn new(address: Address, options: RedisOptions) -> Self {
        let (connection, watch, breakers) = (None, None, None);
        let node = String::new();
        Self { address, options, connection, watch, waiting: 0, connects: 0, node, breakers }
    }

    /// Makes the connection rest after failed calls.
    pub(super) fn break_with(&mut self, breakers: &Arc<CircuitBreakers>, place: usize) {
        breakers.connected(place, self.node.clone());
        self.breakers = Some((Arc::clone(breakers), place));
    }

    /// Begins the rest of the connection after a failed call, if it can rest.
    pub(super) fn went_away(&self, error: &RedisError) {
        if let Some((breakers, place)) = &self.breakers {
            breakers.begin(*place, error, &self.address, self.options);
        }
    }

    /// Returns an error if the circuit breaker is open. Closes the connection then.
    fn check_circuit(&mut self) -> RedisResult<()> {
        let Some((breakers, place)) = &self.breakers else { return Ok(()) };
        let Some(reason) = breakers.reason(*place) else { return Ok(()) };
        self.connection = None;
        Err(circuit_open(&reason))
    }

    /// Opens a connection if none is open, if answers are missing after a panic, or if the primary
    /// is another server now.
    pub(super) fn connect(&mut self) -> RedisResult<()> {
        self.check_circuit()?;
        let is_complete = mem::take(&mut self.waiting) == 0;
        if is_complete
            && self.connection.is_some()
            && !self.watch.as_mut().is_some_and(|watch| watch.is_over(&self.options))
        {
            return Ok(());
        }
        self.connection = None;
        let (client, watch) = self.address.find(&self.options)?;
        let mut connection = client.get_connection_with_timeout(self.options.connect_timeout)?;
        connection.set_read_timeout(Some(self.options.response_timeout))?;
        connection.set_write_timeout(Some(self.options.response_timeout))?;
        if let Some(name) = &self.address.client_name {
            redis::cmd("CLIENT").arg("SETNAME").arg(name).exec(&mut connection)?;
        }
        self.connects += 1;
        self.watch = watch;
        self.node = client.get_connection_info().addr().to_string();
        if let Some((breakers, place)) = &self.breakers {
            breakers.connected(*place, self.node.clone());
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Sends `count` packed commands over the open connection, and receives none of the answers.
    pub(super) fn send(&mut self, packed: &[u8], count: usize) -> RedisResult<()> {
        let connection = self.connection.as_mut().ok_or_else(lost)?;
        self.waiting = count;
        connection.send_packed_command(packed).inspect_err(|_| self.connection = None)
    }

    /// Receives the next answer. The connection is not used again after a lost answer.
    pub(super) fn receive(&mut self) -> RedisResult<Value> {
        self.check_circuit()?;
        let mut connection = self.connection.take().ok_or_else(lost)?;
        let answer = connection.recv_response();
        self.connection = Some(connection).filter(Connection::is_open);
        self.waiting -= 1;
        answer.and_then(Value::extract_error)
    }

    /// Closes the connection, so that the next call opens another one.
    pub(super) fn close(&mut self) {
        self.connection = None;
    }
}

/// Connection that asks a served urlseen, for the Scrapy package, and repeats no call. After a
/// failed call, the next one opens a new connection.
#[doc(hidden)]
pub struct Asker(Mutex<Link>);

impl Asker {
    /// Stores the address. Opens no connection yet.
    pub fn new(address: Address, options: RedisOptions) -> Self {
        Self(Mutex::new(Link::new(address, options)))
    }

    /// Sends a command and waits for its answer. If that fails, also returns true if the server may
    /// have executed the command.
    ///
    /// # Errors
    /// The server does not answer or refuses the command.
    pub fn ask(&self, words: &[Vec<u8>]) -> Result<Value, (Error, bool)> {
        let mut link = self.link();
        let is_cluster = link.address.is_cluster();
        let last = |error: &RedisError| last(error, is_cluster);
        link.connect().map_err(|error| (last(&error), false))?;
        let sent = link.send(&Cmd::new().arg(words).get_packed_command(), 1);
        sent.and_then(|()| link.receive()).map_err(|error| {
            link.close();
            // A server that is stopping answers LOADING, and may have executed the call.
            let is_loading = LinkError::from(error.clone()) == LinkError::Loading;
            let is_reply = matches!(error.kind(), Kind::Server(_) | Kind::Extension);
            (last(&error), is_loading || !is_reply)
        })
    }

    /// Closes the connection. The next call opens a new one.
    pub fn close(&self) {
        self.link().close();
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        // A connection that was interrupted during a call is never used again.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Error for an answer that cannot come any more.
fn lost() -> RedisError {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the connection was lost before").into()
}

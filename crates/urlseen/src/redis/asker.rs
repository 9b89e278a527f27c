//! Connection that asks a served urlseen, for the Scrapy package.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value};

use super::RedisOptions;
use super::address::Address;
use super::link::Link;
use crate::Error;

/// Connection that repeats no call. After a failed call, the next one opens a new connection.
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
        let mut command = Cmd::new();
        command.arg(words);
        self.link().ask_once(&command)
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

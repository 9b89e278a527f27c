//! Server that answers clients, such as spiders, in the Redis protocol.
//!
//! Clients use commands of Redis sets and of RedisBloom with the keys in `serve.keys`. All these
//! keys stand for the filter of the crawl. A client gets its reply after the log has the
//! fingerprints that the client added. The [dispatcher](urlseen_engine::engine::query) is the only
//! access to the filter.

mod about;
mod bloom;
mod client;
mod command;
mod connection;
mod framing;
mod inline;
mod reply;
mod server;
mod session;
mod table;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use framing::FramingLimits;
pub(crate) use server::{QueryServer, accept};
use tokio::sync::Semaphore;

use crate::config::{Config, Emit, Secret, Serve};
use crate::report::Repeats;
use urlseen_engine::engine::Threads;
use urlseen_engine::item::{Options, Reader};

/// Maximum number of words in a command, as in Redis.
const WORDS: usize = 1 << 20;

/// State that all clients share.
#[derive(Debug)]
pub(crate) struct ServerState {
    settings: Serve,
    items: Options,
    /// Reader of which each client gets a clone.
    reader: Reader,
    password: Option<Secret>,
    /// Threads of the filter, which read long commands.
    threads: Threads,
    limits: FramingLimits,
    /// Places for clients. Each connected client has one place.
    places: Arc<Semaphore>,
    /// Clients that have got a place, and clients that have not.
    accepted: AtomicU64,
    refused: AtomicU64,
    /// Warnings about clients that speak HTTP.
    http: Mutex<Repeats>,
}

impl ServerState {
    fn new(config: &Config, items: Options, threads: Threads) -> Self {
        let settings = config.serve.clone();
        let items =
            Options { form: settings.item.into(), emit: Emit::Item, scored: false, ..items };
        Self {
            reader: Reader::new(items.clone()),
            items,
            password: config.serve_password.clone(),
            threads,
            limits: FramingLimits { bytes: settings.request_bytes, words: WORDS },
            places: Arc::new(Semaphore::new(settings.max_clients)),
            settings,
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            http: Mutex::default(),
        }
    }

    /// Returns true if `serve.keys` has this key.
    fn serves(&self, key: &[u8]) -> bool {
        self.settings.keys.iter().any(|own| own.as_bytes() == key)
    }
}

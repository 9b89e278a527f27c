//! The Redis protocol: an answer for those who ask inside the spider.
//!
//! Clients of Redis sets and of RedisBloom ask for members of the keys that are served, all of
//! which are the one filter of the crawl. What they add is in the log before they are answered.
//! Knows the filter by the [dispatcher](urlseen_engine::engine::query) alone.

mod about;
mod alarm;
mod answer;
mod bloom;
mod client;
mod command;
mod connection;
mod filter;
mod framing;
mod http;
mod inline;
mod member;
mod reply;
mod server;
mod session;
mod transaction;

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use alarm::Alarm;
pub use filter::FilterInfo;
use framing::FramingLimits;
pub use server::Server;

use urlseen_engine::config::{Config, Emit, Secret};
use urlseen_engine::item::Options;

/// The most words that a command may have, as Redis has it.
const WORDS: usize = 1 << 20;

/// What all clients have in common.
#[derive(Debug)]
struct House {
    keys: Vec<String>,
    items: Options,
    filter: FilterInfo,
    password: Option<Secret>,
    allow_delete: bool,
    limits: FramingLimits,
    greeting_timeout: Duration,
    max_clients: usize,
    /// How many are connected.
    clients: AtomicUsize,
    alarm: Alarm,
}

impl House {
    fn new(config: &Config, items: Options, filter: FilterInfo) -> Self {
        let serve = &config.serve;
        Self {
            keys: serve.keys.clone(),
            items: Options { form: serve.item.into(), emit: Emit::Item, scored: false, ..items },
            filter,
            password: config.serve_password.clone(),
            allow_delete: serve.allow_delete,
            limits: FramingLimits { bytes: serve.request_bytes, words: WORDS },
            greeting_timeout: serve.greeting_timeout,
            max_clients: serve.max_clients,
            clients: AtomicUsize::new(0),
            alarm: Alarm::default(),
        }
    }

    /// Whether the key is the filter's.
    fn serves(&self, key: &[u8]) -> bool {
        self.keys.iter().any(|own| own.as_bytes() == key)
    }
}

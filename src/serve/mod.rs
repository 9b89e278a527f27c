//! Server for the Redis protocol, which answers clients such as spiders.
//!
//! Clients of Redis sets and of RedisBloom ask for members of the served keys. All keys are the one
//! filter of the crawl. Added fingerprints are in the log before the client gets a reply. The
//! [dispatcher](urlseen_engine::engine::query) is the only access to the filter.

mod about;
mod alarm;
mod answer;
mod bloom;
mod client;
mod command;
mod connection;
mod framing;
mod http;
mod inline;
mod reply;
mod server;
mod session;
mod transaction;

use std::sync::atomic::AtomicUsize;

use alarm::Alarm;
use framing::FramingLimits;
pub use server::Server;

use urlseen_engine::config::{Config, Emit, Secret, Serve};
use urlseen_engine::item::Options;

/// Maximum number of words in a command, as in Redis.
const WORDS: usize = 1 << 20;

/// State that all clients share.
#[derive(Debug)]
struct House {
    settings: Serve,
    items: Options,
    /// Growth factor of the filter's next layer; `None` if it does not grow.
    expansion: Option<u32>,
    password: Option<Secret>,
    limits: FramingLimits,
    /// Number of connected clients.
    clients: AtomicUsize,
    alarm: Alarm,
}

impl House {
    fn new(config: &Config, items: Options, expansion: Option<u32>) -> Self {
        let settings = config.serve.clone();
        Self {
            items: Options { form: settings.item.into(), emit: Emit::Item, scored: false, ..items },
            expansion,
            password: config.serve_password.clone(),
            limits: FramingLimits { bytes: settings.request_bytes, words: WORDS },
            settings,
            clients: AtomicUsize::new(0),
            alarm: Alarm::default(),
        }
    }

    /// Returns true if the key is one of the filter's.
    fn serves(&self, key: &[u8]) -> bool {
        self.settings.keys.iter().any(|own| own.as_bytes() == key)
    }
}

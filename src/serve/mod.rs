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

use alarm::Alarm;
pub use filter::FilterInfo;
use framing::FramingLimits;
pub use server::Server;

use urlseen_engine::config::{Config, Emit, Secret, Serve};
use urlseen_engine::item::Options;

/// The most words that a command may have, as Redis has it.
const WORDS: usize = 1 << 20;

/// What all clients have in common.
#[derive(Debug)]
struct House {
    settings: Serve,
    items: Options,
    filter: FilterInfo,
    password: Option<Secret>,
    limits: FramingLimits,
    /// How many are connected.
    clients: AtomicUsize,
    alarm: Alarm,
}

impl House {
    fn new(config: &Config, items: Options, filter: FilterInfo) -> Self {
        let settings = config.serve.clone();
        Self {
            items: Options { form: settings.item.into(), emit: Emit::Item, scored: false, ..items },
            filter,
            password: config.serve_password.clone(),
            limits: FramingLimits { bytes: settings.request_bytes, words: WORDS },
            settings,
            clients: AtomicUsize::new(0),
            alarm: Alarm::default(),
        }
    }

    /// Whether the key is the filter's.
    fn serves(&self, key: &[u8]) -> bool {
        self.settings.keys.iter().any(|own| own.as_bytes() == key)
    }
}

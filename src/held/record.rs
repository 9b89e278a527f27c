//! The crawl record: facts about a crawl that its producers and consumers check at their start.

use crate::config::{Config, End, Store};
use crate::fingerprint::Fingerprinter;
use crate::redis::keys::Keys;
use crate::request::Request;

/// Version of the protocol between the daemon and its producers and consumers.
const PROTOCOL: &str = "1";

/// The request whose fingerprint shows which algorithm a program uses: its URL is not canonical.
const PROBE: &str = "https://example.com/?b=2&a=1";

/// The fields of the crawl record, as docs/reference/held.md describes them.
pub fn record(config: &Config, keys: &Keys) -> Vec<(&'static str, String)> {
    let Config { source, sink, fingerprint, held, filter, .. } = config;
    let (algorithm, fragments) = (fingerprint.algorithm, fingerprint.keep_fragments);
    let probe = Fingerprinter::new(algorithm, fragments).fingerprint(&Request::get(PROBE));
    let push = match source.take_from {
        End::Left => "RPUSH",
        End::Right => "LPUSH",
    };
    let forget = match filter.store {
        Store::Local => keys.forget.clone(),
        Store::Redis => String::new(),
    };
    vec![
        ("protocol", PROTOCOL.to_owned()),
        ("urlseen", env!("CARGO_PKG_VERSION").to_owned()),
        ("source", keys.source.clone()),
        ("push", push.to_owned()),
        ("processing", keys.taken.clone()),
        ("sink", keys.sink.clone()),
        ("sink_kind", sink.kind.name().to_owned()),
        ("pop", super::calls::pop_from(sink.push_to).to_owned()),
        ("emit", sink.emit.name().to_owned()),
        ("algorithm", algorithm.to_string()),
        ("probe", probe.expect("the URL is absolute").to_string()),
        ("rejects", keys.rejected.clone()),
        ("forget", forget),
        ("deliveries", held.deliveries.to_string()),
        ("held_timeout_ms", held.timeout.as_millis().to_string()),
    ]
}

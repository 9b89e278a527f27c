//! Replies about the server itself.

use super::ServerState;
use super::reply::{Reply, Version, unknown_subcommand};
use super::table::{SPECS, Spec, find};
use urlseen_fingerprint::FingerprintSpec;

/// Version of Redis that the replies imitate.
const REDIS: &str = "7.0.15";

/// Builds the reply to `HELLO`.
pub(super) fn hello(version: Version, id: u64) -> Reply {
    let bulk = |text: &str| Reply::bulk(text);
    let proto = if version == Version::Resp3 { 3 } else { 2 };
    Reply::Map(vec![
        (bulk("server"), bulk("redis")),
        (bulk("version"), bulk(REDIS)),
        (bulk("proto"), Reply::Number(proto)),
        (bulk("id"), Reply::count(id)),
        (bulk("mode"), bulk("standalone")),
        (bulk("role"), bulk("master")),
        (bulk("modules"), Reply::Array(Vec::new())),
    ])
}

/// Builds the reply to `INFO`.
pub(super) fn info(state: &ServerState) -> String {
    let settings = &state.settings;
    let FingerprintSpec { algorithm, canonical, keep_fragments, drop_tracking, same } =
        &state.items.fingerprint;
    format!(
        "# Server\r\nredis_version:{REDIS}\r\nredis_mode:standalone\r\narch_bits:{}\r\n\
         urlseen_version:{}\r\nprocess_id:{}\r\n\r\n\
         # Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\n\r\n\
         # Replication\r\nrole:master\r\n\r\n\
         # Cluster\r\ncluster_enabled:0\r\n\r\n\
         # Keyspace\r\ndb0:keys={},expires=0,avg_ttl=0\r\n\r\n\
         # Fingerprints\r\nalgorithm:{algorithm}\r\ncanonical:{canonical}\r\n\
         keep_fragments:{keep_fragments}\r\n\
         drop_tracking:{drop_tracking}\r\nsame:{same}\r\n",
        usize::BITS,
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        settings.max_clients - state.places.available_permits(),
        settings.max_clients,
        settings.keys.len(),
    )
}

/// Builds the reply to `COMMAND` with these words after it.
pub(super) fn commands(words: &[&[u8]]) -> Reply {
    let Some((subcommand, rest)) = words.split_first() else {
        return Reply::Array(SPECS.iter().map(described).collect());
    };
    let is = |name: &str| subcommand.eq_ignore_ascii_case(name.as_bytes());
    if is("count") {
        Reply::count(SPECS.len() as u64)
    } else if is("list") {
        Reply::Array(SPECS.iter().map(|spec| Reply::bulk(spec.name)).collect())
    } else if is("docs") {
        Reply::Map(Vec::new())
    } else if is("info") {
        let all = rest.iter().map(|name| find(name).map_or(Reply::Null, described));
        Reply::Array(all.collect())
    } else {
        unknown_subcommand("COMMAND", subcommand)
    }
}

/// Builds the description of one command for the reply to `COMMAND`.
fn described(spec: &Spec) -> Reply {
    let (first, last) = spec.keys;
    let flags = spec.flags.iter().map(|&flag| Reply::Simple(flag)).collect();
    let none = || Reply::Array(Vec::new());
    Reply::Array(vec![
        Reply::bulk(spec.name),
        Reply::Number(spec.arity),
        Reply::Array(flags),
        Reply::Number(first),
        Reply::Number(last),
        Reply::Number(i64::from(first > 0)),
        none(),
        none(),
        none(),
        none(),
    ])
}

//! Replies about the server itself.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::House;
use super::command::{SPECS, Spec, find, shown};
use super::reply::{Reply, Version};

/// Version of Redis whose replies these are.
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
pub(super) fn info(house: &House) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        write!(text, "{key}:{value}\r\n").expect("a string takes all");
    };
    line("# Server\r\nredis_version", &REDIS);
    line("redis_mode", &"standalone");
    line("urlseen_version", &env!("CARGO_PKG_VERSION"));
    line("process_id", &std::process::id());
    line("\r\n# Clients\r\nconnected_clients", &house.clients.load(Ordering::Relaxed));
    line("maxclients", &house.settings.max_clients);
    line("\r\n# Replication\r\nrole", &"master");
    line(
        "\r\n# Keyspace\r\ndb0",
        &format_args!("keys={},expires=0,avg_ttl=0", house.settings.keys.len()),
    );
    text
}

/// Builds the reply to `COMMAND` and its subcommands.
pub(super) fn commands(subcommand: Option<&[u8]>, rest: &[&[u8]]) -> Reply {
    let Some(subcommand) = subcommand else {
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

/// Describes one command for `COMMAND`.
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

/// Error of Redis for an unknown subcommand.
pub(super) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Reply {
    let found = shown(subcommand);
    Reply::error(format!("ERR unknown subcommand '{found}'. Try {command} HELP."))
}

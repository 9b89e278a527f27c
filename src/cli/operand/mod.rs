//! Filters that commands compare or unite: in a storage folder, a snapshot or Redis.
//! Commands only read them, part by part.

mod local;
mod redis;
mod shards;

use std::path::Path;

use urlseen_core::filter::{FilterSpec, Kind, SpecDifference};
use urlseen_engine::config::Config;

use super::settings::Settings;
use super::start::usage;
pub(super) use local::{memory_limit, redisbloom};
pub(super) use redis::{Address, RedisOperand};
pub(super) use shards::{Pair, Shards};

/// Number of bytes of a filter that a command reads or writes at once.
pub(super) const PAGE: usize = 4 << 20;

/// Names of the rules that decide a filter's bits, but are not keys of the configuration.
const RULES: [&str; 3] =
    ["the rule of positions", "the rule of shards", "the version of fingerprint.algorithm"];

/// Help text of the commands that take filters.
const NOTATION: &str = "\
A filter is a storage folder, a file `snapshot-…` in a storage folder, or a key in Redis. Write a \
key as the URL of Redis, `#` and the key, as in redis://127.0.0.1:6379/0#demo:filter or \
unix:///run/redis.sock#demo:filter. If urlseen made the filter in Redis, Redis also holds the \
parameters of the filter. If another project made the filter, set its parameters in the \
configuration. Set the password of Redis in URLSEEN_REDIS_PASSWORD.";

/// Adds [`NOTATION`], the text on naming a filter, to the long help of a command. The text comes
/// before the exit statuses.
pub(super) fn grammar(command: clap::Command) -> clap::Command {
    let foot = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_long_help(format!("{NOTATION}\n\n{foot}"))
}

/// Filter that a command reads.
pub(super) struct Operand {
    /// Description for people: the place of the filter, and the part that the command reads.
    pub(super) what: String,
    pub(super) spec: FilterSpec,
    pub(super) rules: [String; 3],
    /// Configuration with the settings of the filter.
    pub(super) config: Config,
    pub(super) source: Source,
}

/// Source of a filter's content.
pub(super) enum Source {
    /// Shards of a filter whose kind can be in memory.
    Shards(Shards),
    /// Strings or a set in Redis.
    Redis(Box<RedisOperand>),
}

impl Operand {
    /// Opens the filter that `text` names.
    pub(super) fn open(text: &str, settings: &Settings) -> anyhow::Result<Self> {
        if text.contains("://") {
            return redis::open(text, settings);
        }
        local::open(Path::new(text))
    }

    /// Returns the number of forgotten fingerprints that have not passed again.
    pub(super) fn tombstones(&self) -> usize {
        match &self.source {
            Source::Shards(shards) => shards.tombstones(),
            Source::Redis(_) => 0,
        }
    }

    /// Returns the differences from `other` that affect the bits, one in each line.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut compare = |what: &str, a: &str, b: &str| {
            if a != b {
                lines.push(format!("* {what}: {a} in A, {b} in B"));
            }
        };
        for (what, (a, b)) in RULES.iter().zip(self.rules.iter().zip(&other.rules)) {
            compare(what, a, b);
        }
        for SpecDifference { what, found, wanted } in self.spec.differences(&other.spec) {
            compare(what, &found, &wanted);
        }
        lines
    }
}

/// Refuses two filters if their bits have different meanings.
pub(super) fn check(a: &Operand, b: &Operand) -> anyhow::Result<()> {
    if a.differences(b).is_empty() { Ok(()) } else { Err(unlike(a, b)) }
}

/// Returns the error for two filters whose bits have different meanings.
pub(super) fn unlike(a: &Operand, b: &Operand) -> anyhow::Error {
    usage(format!(
        "the filters have different settings, so their bits have different meanings. A is {}, B is \
         {}:\n{}\nBy default, each filter has its own random seed. To compare filters, make them \
         with the same filter.seed or --seed",
        a.what,
        b.what,
        a.differences(b).join("\n")
    ))
}

/// Returns the error for a filter whose layers have keys of their own.
fn layered(what: &str, kind: Kind) -> anyhow::Error {
    usage(format!(
        "{what} has the kind {kind}, which grows by layers: a fingerprint can be in different \
         layers of two filters, so they can be neither compared nor united"
    ))
}

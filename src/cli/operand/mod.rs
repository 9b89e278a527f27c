//! Filters that commands compare or unite: in a storage folder, a snapshot, a dump or Redis. They
//! are only read, part by part.

mod local;
mod redis;
mod shards;

use std::path::Path;

use urlseen_core::filter::{FilterSpec, SpecDifference};
use urlseen_engine::config::Config;

use super::settings::Settings;
use super::start::UsageError;
pub(super) use local::redisbloom;
pub(super) use redis::{Address, RedisOperand};
pub(super) use shards::{Counted, Pair, Shards};

/// Bytes of a filter that are read or written at once.
pub(super) const PAGE: usize = 4 << 20;

/// Names of the rules of a filter, which no key of the configuration says.
const RULES: [&str; 3] =
    ["the rule of positions", "the rule of shards", "the version of fingerprint.algorithm"];

/// Help text of the commands that take filters.
const NOTATION: &str = "\
A filter is a storage folder, a file `snapshot-…` in one, a dump of RedisBloom (urlseen export \
--redisbloom-file), or a key in Redis: its URL, `#`, and the key, as in \
redis://127.0.0.1:6379/0#demo:filter or unix:///run/redis.sock#demo:filter. What a filter in Redis \
was made for is recorded there; for one of another project it is taken from the configuration. \
A password comes from URLSEEN_REDIS_PASSWORD.";

/// Adds the notation of filters to the long help of a command, before its exit statuses.
pub(super) fn grammar(command: clap::Command) -> clap::Command {
    let foot = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_long_help(format!("{NOTATION}\n\n{foot}"))
}

/// Filter that a command reads.
pub(super) struct Operand {
    /// Place of the filter and the part of it that is read, for people.
    pub(super) what: String,
    pub(super) spec: FilterSpec,
    /// The rules that it was made by; `None` for a dump, which records no algorithm either.
    pub(super) rules: Option<[String; 3]>,
    /// A configuration that the filter fits.
    pub(super) config: Config,
    pub(super) source: Source,
}

/// Source of a filter's content.
pub(super) enum Source {
    /// Shards of a filter that can be in memory.
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
        local::open(Path::new(text), settings)
    }

    /// Number of fingerprints that were forgotten in the filter and have not passed again.
    pub(super) fn tombstones(&self) -> usize {
        match &self.source {
            Source::Shards(shards) => shards.tombstones(),
            Source::Redis(_) => 0,
        }
    }

    /// Layers of the filter, described.
    pub(super) fn layers(&self) -> &[String] {
        match &self.source {
            Source::Shards(shards) => &shards.layers,
            Source::Redis(_) => &[],
        }
    }

    /// Differences from `other` in what the bits depend on, a line each.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut compare = |what: &str, a: &str, b: &str| {
            if a != b {
                lines.push(format!("* {what}: {a} in A, {b} in B"));
            }
        };
        let mut wanted = other.spec.clone();
        if let (Some(a), Some(b)) = (&self.rules, &other.rules) {
            RULES.iter().zip(a.iter().zip(b)).for_each(|(what, (a, b))| compare(what, a, b));
        } else {
            wanted.algorithm = self.spec.algorithm;
            wanted.keep_fragments = self.spec.keep_fragments;
        }
        for SpecDifference { what, found, wanted } in self.spec.differences(&wanted) {
            compare(what, &found, &wanted);
        }
        let (a, b) = (self.layers(), other.layers());
        for number in 0..a.len().max(b.len()) {
            let [a, b] = [a, b].map(|layers| layers.get(number).map_or("-", String::as_str));
            compare(&format!("layer {number}"), a, b);
        }
        lines
    }
}

/// Refuses two filters whose bits mean different things.
pub(super) fn check(a: &Operand, b: &Operand) -> anyhow::Result<()> {
    let differences = a.differences(b);
    if differences.is_empty() { Ok(()) } else { Err(unlike(a, b)) }
}

/// Error text of two filters whose bits mean different things.
pub(super) fn unlike(a: &Operand, b: &Operand) -> anyhow::Error {
    UsageError(format!(
        "the filters were made for something else each, and their bits mean different things. A is \
         {}, B is {}:\n{}\nThe seed is drawn for each filter: those that are to be compared are \
         made with the same, filter.seed or --seed",
        a.what,
        b.what,
        a.differences(b).join("\n")
    ))
    .into()
}

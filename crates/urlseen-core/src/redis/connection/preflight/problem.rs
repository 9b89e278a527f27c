//! Reasons against the start of a crawl, each with its message.

use std::fmt;

use super::facts::ServerVersion;
use super::needs::KeyOwner;
use crate::redis::error::{LinkError, Retry};

/// One reason against the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum PreflightError {
    /// Server older than [`ServerVersion::NEEDED`].
    #[error(
        "this server is {name} {found} and urlseen needs {} or newer (for BLMOVE); upgrade it",
        ServerVersion::NEEDED
    )]
    TooOld { name: String, found: ServerVersion },
    /// Server that copies another one.
    #[error("{}", replica(primary.as_deref()))]
    Replica { primary: Option<String> },
    /// Sentinel instead of a server.
    #[error("{}", sentinel(primaries))]
    Sentinel { primaries: Vec<String> },
    /// Server that deletes keys when its memory is full.
    #[error(
        "this Redis may evict any key when its memory is full (maxmemory-policy is {policy}), and \
         so lose a list of the crawl or its state; set maxmemory-policy to noeviction, or to a \
         volatile- one, with CONFIG SET and in redis.conf"
    )]
    Eviction { policy: String },
    /// Node of a Redis Cluster.
    #[error(
        "this Redis runs in cluster mode, which this version of urlseen does not work with yet (a \
         commit touches several keys at once, and they must lie on one server); point redis.url at \
         a server with cluster-enabled no"
    )]
    Cluster,
    /// Key with a value of another type.
    #[error("{}", wrong_type(*owner, key, needed, found))]
    KeyType { owner: KeyOwner, key: String, needed: &'static str, found: String },
    /// User without all needed permissions.
    #[error("{0}")]
    Permissions(MissingPermissions),
    /// Server without all needed commands.
    #[error(
        "this Redis does not know {}; its configuration (rename-command) or its provider took that \
         away: get it back, or use another server",
        listed(commands)
    )]
    UnknownCommands { commands: Vec<String> },
    /// Redis that cannot be asked, or not at the moment.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl PreflightError {
    /// Returns `Later` if waiting can end this problem.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Link(trouble) => trouble.retry(),
            _ => Retry::Never,
        }
    }
}

/// Permissions that an ACL user lacks, and the one command that grants them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPermissions {
    pub(crate) user: String,
    /// Commands that the user may not run, in capitals: `SCRIPT LOAD`.
    pub(crate) commands: Vec<String>,
    /// Keys that the user may not touch, each with the commands that were denied on it.
    pub(crate) keys: Vec<(String, Vec<String>)>,
    /// Keys that cannot be checked before the commands are granted.
    pub(crate) unproven: Vec<String>,
    /// True if the rest could not be checked because `MULTI` is missing.
    pub(crate) blind: bool,
    /// ACL rules that grant `commands` and `keys`, such as `+rpush ~demo:unseen`.
    pub(crate) rules: Vec<String>,
    /// ACL rules that grant `unproven`.
    pub(crate) unproven_rules: Vec<String>,
}

impl fmt::Display for MissingPermissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, commands, keys, unproven, blind, rules, unproven_rules } = self;
        write!(f, "the Redis user {user} may not ")?;
        if !commands.is_empty() {
            write!(f, "run {}", listed(commands))?;
        }
        if !keys.is_empty() {
            f.write_str(if commands.is_empty() { "touch " } else { ", nor touch " })?;
            let keys: Vec<String> = keys
                .iter()
                .map(|(key, denied)| format!("the key {key} (denied: {})", denied.join(", ")))
                .collect();
            f.write_str(&listed(&keys))?;
        }
        write!(f, "; an administrator grants that with: ACL SETUSER {user} {}", rules.join(" "))?;
        if !unproven.is_empty() {
            write!(
                f,
                " (whether the user may touch {} shows only then; if not, {} is needed, too)",
                listed(unproven),
                unproven_rules.join(" "),
            )?;
        }
        if *blind {
            f.write_str("; without MULTI the other commands could not be checked")?;
        }
        Ok(())
    }
}

fn replica(primary: Option<&str>) -> String {
    let (of, to) = match primary {
        Some(primary) => (format!(" of {primary}"), format!(", {primary}")),
        None => (String::new(), String::new()),
    };
    format!(
        "this Redis is a replica{of}, where writes are refused or lost; point redis.url at the \
         primary{to}"
    )
}

fn sentinel(primaries: &[String]) -> String {
    let to = match primaries {
        [] => "the primary that it watches, which SENTINEL MASTERS names".to_owned(),
        [primary] => format!("the primary that it watches: {primary}"),
        primaries => format!("a primary that it watches: {}", listed(primaries)),
    };
    format!(
        "this is a Redis Sentinel, not a Redis server, and keeps no data; point redis.url at {to}"
    )
}

fn wrong_type(owner: KeyOwner, key: &str, needed: &str, found: &str) -> String {
    match owner {
        KeyOwner::Setting(setting) => format!(
            "{setting} is {key}, and Redis holds a {found} there where a {needed} is needed; \
             choose another {setting}, or move the {found} away with RENAME"
        ),
        KeyOwner::Own(purpose) => format!(
            "{key} is urlseen's own key (its {purpose}), and Redis holds a {found} there where a \
             {needed} is needed; find out who wrote it, and move it away with RENAME"
        ),
    }
}

/// Joins words as `a`, `a and b`, or `a, b and c`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

//! What speaks against starting, each with its sentence.

use std::fmt;

use super::facts::ServerVersion;
use super::needs::KeyOwner;
use crate::redis::error::{LinkError, Retry};

/// One reason not to start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreflightError {
    /// The server is older than [`ServerVersion::NEEDED`].
    #[error(
        "this server is {name} {found} and urlseen needs {} or newer (for BLMOVE); upgrade it",
        ServerVersion::NEEDED
    )]
    TooOld {
        /// What the server calls itself.
        name: String,
        /// Its version.
        found: ServerVersion,
    },
    /// The server copies another one.
    #[error("{}", replica(primary.as_deref()))]
    Replica {
        /// `host:port` of the server that it copies.
        primary: Option<String>,
    },
    /// The server is a Sentinel.
    #[error("{}", sentinel(primaries))]
    Sentinel {
        /// The primaries that it watches, as a message can show them.
        primaries: Vec<String>,
    },
    /// The server throws keys away when its memory is full.
    #[error(
        "this Redis may evict any key when its memory is full (maxmemory-policy is {policy}), and \
         so lose a list of the crawl or its state; set maxmemory-policy to noeviction, or to a \
         volatile- one, with CONFIG SET and in redis.conf"
    )]
    Eviction {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// The server is a node of a cluster.
    #[error(
        "this Redis runs in cluster mode, which this version of urlseen does not work with yet (a \
         commit touches several keys at once, and they must lie on one server); point redis.url at \
         a server with cluster-enabled no"
    )]
    Cluster,
    /// A key holds something else.
    #[error("{}", wrong_type(*owner, key, needed, found))]
    KeyType {
        /// Who chose the key.
        owner: KeyOwner,
        /// The key, as a message can show it.
        key: String,
        /// The type that it must have, as `TYPE` names it.
        needed: &'static str,
        /// The type that it has.
        found: String,
    },
    /// The user lacks permissions.
    #[error("{0}")]
    Permissions(MissingPermissions),
    /// The server lacks commands.
    #[error(
        "this Redis does not know {}; its configuration (rename-command) or its provider took that \
         away: get it back, or use another server",
        listed(commands)
    )]
    UnknownCommands {
        /// Their names.
        commands: Vec<String>,
    },
    /// Redis cannot be asked, or not at the moment.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl PreflightError {
    /// Whether waiting can end this problem.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Link(trouble) => trouble.retry(),
            _ => Retry::Never,
        }
    }
}

/// What an ACL user lacks, and the one command that grants all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPermissions {
    /// The user.
    pub(crate) user: String,
    /// Commands that the user may not run, in capitals: `SCRIPT LOAD`.
    pub(crate) commands: Vec<String>,
    /// Keys that the user may not touch, each with the commands that were denied on it.
    pub(crate) keys: Vec<(String, Vec<String>)>,
    /// Keys of which that cannot be told before the commands are granted.
    pub(crate) unproven: Vec<String>,
    /// Whether the rest could not be checked, because `MULTI` is missing.
    pub(crate) blind: bool,
    /// The ACL rules that grant `commands` and `keys`, such as `+rpush ~demo:unseen`.
    pub(crate) rules: Vec<String>,
    /// The ACL rules that grant `unproven`.
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

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

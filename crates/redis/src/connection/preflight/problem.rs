//! Problems that prevent the start of a crawl, each with its message.

use super::facts::ServerVersion;
use super::needs::KeyOwner;
use super::permissions::{command_rule, key_rule};
use crate::error::LinkError;

/// Problem that prevents the start of a crawl.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum PreflightError {
    /// Server older than [`ServerVersion::NEEDED`].
    #[error(
        "this server is {name} {found} and urlseen needs {} or newer (for BLMOVE); upgrade it",
        ServerVersion::NEEDED
    )]
    TooOld { name: String, found: ServerVersion },
    /// Replica, which copies the data of its primary.
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
    /// Node of a Redis Cluster, although the address is that of a single server.
    #[error(
        "this Redis is a node of a Redis Cluster, where other nodes may serve the keys of the \
         crawl; write redis+cluster:// (with TLS: rediss+cluster://) in redis.url"
    )]
    Cluster,
    /// Single server, although the address is that of a cluster.
    #[error(
        "this Redis is a single server (cluster-enabled no), and not a node of a Redis Cluster; \
         write redis:// (with TLS: rediss://) in redis.url"
    )]
    NoCluster,
    /// Key with a value of another type.
    #[error("{}", wrong_type(*owner, key, needed, found))]
    KeyType { owner: KeyOwner, key: String, needed: &'static str, found: String },
    /// User without all needed permissions.
    #[error("{0}")]
    Permissions(String),
    /// Server without all needed commands.
    #[error(
        "this Redis does not know {}; its configuration (rename-command) or its provider removed \
         that: restore it, or use another server",
        listed(commands)
    )]
    UnknownCommands { commands: Vec<String> },
    /// Error of the connection: Redis does not answer, or not at the moment.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl PreflightError {
    /// Returns true if waiting can end this problem.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Link(trouble) if trouble.is_passing())
    }
}

/// Writes the message about permissions that a user lacks, with the command that grants all of them.
/// `commands` are those that the user may not run, and `keys` those that the user may not touch,
/// each with the commands that were denied on it. `unproven` are keys that cannot be checked before
/// the commands are granted. `is_blind` is true if the user may not run `MULTI`.
pub(super) fn missing_permissions(
    user: &str,
    commands: &[String],
    keys: &[(&str, Vec<String>)],
    unproven: &[&str],
    is_blind: bool,
) -> String {
    let mut text = format!("the Redis user {user} may not ");
    if !commands.is_empty() {
        text += &format!("run {}", listed(commands));
    }
    if !keys.is_empty() {
        text += if commands.is_empty() { "touch " } else { ", nor touch " };
        let denied = |(key, denied): &(&str, Vec<String>)| {
            format!("the key {} (denied: {})", key.escape_debug(), denied.join(", "))
        };
        text += &listed(&keys.iter().map(denied).collect::<Vec<_>>());
    }
    let key_rules = keys.iter().map(|(key, _)| key_rule(key));
    let rules: Vec<_> = commands.iter().map(|name| command_rule(name)).chain(key_rules).collect();
    text += &format!("; an administrator grants that with: ACL SETUSER {user} {}", rules.join(" "));
    if !unproven.is_empty() {
        let names: Vec<_> = unproven.iter().map(|key| key.escape_debug().to_string()).collect();
        text += &format!(
            " (whether the user may touch {} cannot be checked before that; if not, {} is needed, \
             too)",
            listed(&names),
            unproven.iter().map(|key| key_rule(key)).collect::<Vec<_>>().join(" "),
        );
    }
    if is_blind {
        text += "; without MULTI the other commands could not be checked";
    }
    text
}

fn replica(primary: Option<&str>) -> String {
    let (of, to) = match primary {
        Some(primary) => (format!(" of {primary}"), format!(", {primary}")),
        None => (String::new(), String::new()),
    };
    format!(
        "this Redis is a replica{of}, where writes are refused or lost; set redis.url to the \
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
        "this is a Redis Sentinel, not a Redis server, and has no data; write \
         redis+sentinel:// and the name of a primary in redis.url, or set it to {to}"
    )
}

fn wrong_type(owner: KeyOwner, key: &str, needed: &str, found: &str) -> String {
    match owner {
        KeyOwner::Setting(setting) => format!(
            "{setting} is {key}, and Redis holds a {found} there where a {needed} is needed; \
             choose another {setting}, or rename the {found} with RENAME"
        ),
        KeyOwner::Own(purpose) => format!(
            "{key} is urlseen's own key (its {purpose}), and Redis holds a {found} there where a \
             {needed} is needed; find the program that wrote it, and rename the {found} with RENAME"
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

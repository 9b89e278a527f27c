//! Problems that prevent the start of a crawl, each with its message.

use super::needs::KeyOwner;
use super::permissions::{command_rule, key_rule};
use crate::error::LinkError;

/// Problem that prevents the start of a crawl.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreflightError {
    /// Server, key or user that an operator must change, as the message says.
    #[error("{0}")]
    Unfit(String),
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

/// Writes the message about permissions that a user lacks, with the command that grants all of
/// them. `commands` are those that the user may not run, and `keys` those that the user may not
/// touch, each with the commands that were denied on it. `unproven` are keys that cannot be checked
/// before the commands are granted. `is_blind` is true if the user may not run `MULTI`.
pub(super) fn missing_permissions(
    user: &str,
    commands: &[String],
    keys: &[(&str, Vec<String>)],
    unproven: &[&str],
    is_blind: bool,
) -> String {
    let denied = |(key, denied): &(&str, Vec<String>)| {
        format!("the key {} (denied: {})", key.escape_debug(), denied.join(", "))
    };
    let touched = listed(&keys.iter().map(denied).collect::<Vec<_>>());
    let denied = match (commands, keys) {
        (commands, []) => format!("run {}", listed(commands)),
        ([], _) => format!("touch {touched}"),
        _ => format!("run {}, nor touch {touched}", listed(commands)),
    };
    let key_rules = keys.iter().map(|(key, _)| key_rule(key));
    let rules: Vec<_> = commands.iter().map(|name| command_rule(name)).chain(key_rules).collect();
    let names: Vec<_> = unproven.iter().map(|key| key.escape_debug().to_string()).collect();
    let unchecked = if unproven.is_empty() {
        String::new()
    } else {
        format!(
            " (whether the user may touch {} cannot be checked before that; if not, {} is needed, \
             too)",
            listed(&names),
            unproven.iter().map(|key| key_rule(key)).collect::<Vec<_>>().join(" "),
        )
    };
    let blind = "; without MULTI the other commands could not be checked";
    format!(
        "the Redis user {user} may not {denied}; an administrator grants that with: ACL SETUSER \
         {user} {}{unchecked}{}",
        rules.join(" "),
        if is_blind { blind } else { "" }
    )
}

/// Writes the message about a Sentinel that watches these primaries.
pub(super) fn sentinel(primaries: &[String]) -> String {
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

/// Writes the message about a key with a value of another type.
pub(super) fn wrong_type(owner: KeyOwner, key: &str, needed: &str, found: &str) -> String {
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
pub(super) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

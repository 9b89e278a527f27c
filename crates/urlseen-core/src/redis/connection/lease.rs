//! Lease: the right to run a crawl, held by one process at a time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::filter::id::RandomId;

/// Lifetime of a lease that is not renewed.
pub const LEASE: Duration = Duration::from_secs(15);

/// Time between renewals. Two renewals may be lost before the lease ends.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// Safety margin: without a successful renewal, a lease counts as lost this long before its end.
/// Commands that were sent earlier arrive in time, or Redis refuses them.
pub const MARGIN: Duration = Duration::from_secs(2);

/// First part of the value of a lease: a random number of the run, and a random number of the
/// connection. On a new connection, a run takes the lease over from its own earlier connection.
/// Redis can then refuse late commands of the earlier connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Makes a token for a new connection of a run.
    pub fn new(run: RandomId) -> Self {
        Self(format!("{run}{}", RandomId::random()))
    }

    /// Returns the text of the token in Redis: 32 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Holder of a lease, for messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHolder {
    pub(crate) crawl: String,
    /// Host name of the holder's machine.
    pub(crate) host: String,
    /// Process number of the holder.
    pub(crate) pid: u32,
    /// Start of the process in RFC 3339.
    pub(crate) since: String,
}

impl LeaseHolder {
    /// Describes this process.
    pub fn this(crawl: &str) -> Self {
        Self {
            crawl: crawl.to_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            since: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        }
    }

    /// Returns the JSON text that follows the token in Redis.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and a number are JSON")
    }

    /// Reads the value of a lease. Returns `None` if urlseen did not write it.
    pub fn of_lease(lease: &str) -> Option<Self> {
        serde_json::from_str(lease.split_once(' ')?.1).ok()
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crawl, host, pid, since } = self;
        write!(f, "crawl {crawl:?} (process {pid} on {host}, since {since})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_tells_its_holder_and_no_two_tokens_are_the_same() {
        let holder = LeaseHolder::this("a crawl");
        let run = RandomId::random();
        let token = Token::new(run);
        let lease = format!("{} {}", token.as_str(), holder.to_json());
        assert_eq!(LeaseHolder::of_lease(&lease), Some(holder));
        assert_eq!(LeaseHolder::of_lease("something else"), None);
        assert_eq!(token.as_str().len(), 32);
        assert_ne!(token, Token::new(run));
        assert_eq!(token.as_str()[..16], run.to_string());
    }
}

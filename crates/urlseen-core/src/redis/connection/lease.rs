//! The lease: the right to run a crawl, held by one process at a time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a lease lasts that is not renewed.
pub const LEASE: Duration = Duration::from_secs(15);

/// How often it is renewed: two renewals may be lost before it ends.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// How long before its end a lease counts as lost by whoever could not renew it: what is sent by
/// then arrives in time, or is refused.
pub const MARGIN: Duration = Duration::from_secs(2);

/// What a lease is held under: a random number for the run, and another for each of its
/// connections. A run takes its lease over from its own earlier connections; what such a
/// connection still sends after that is told apart and refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(String);

/// The random number that all tokens of a run begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunId(u64);

impl RunId {
    /// A fresh one.
    pub fn random() -> Self {
        Self(crate::filter::id::random())
    }

    /// The one that [`RunId::get`] gave.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, to be kept.
    pub fn get(self) -> u64 {
        self.0
    }

    /// A token for a new connection.
    pub fn token(self) -> Token {
        Token(format!("{self}{:016x}", crate::filter::id::random()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Token {
    /// As Redis keeps it: 32 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who holds a lease, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHolder {
    /// The crawl's name.
    pub(crate) crawl: String,
    /// The machine's host name.
    pub(crate) host: String,
    /// The process on it.
    pub(crate) pid: u32,
    /// Since when it has been running, RFC 3339.
    pub(crate) since: String,
}

impl LeaseHolder {
    /// This process.
    pub fn this(crawl: &str) -> Self {
        Self {
            crawl: crawl.to_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            since: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        }
    }

    /// As it stands in Redis behind the token.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and a number are JSON")
    }

    /// Reads the value of a lease; `None` if it was not written by urlseen.
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
        let run = RunId::random();
        let token = run.token();
        let lease = format!("{} {}", token.as_str(), holder.to_json());
        assert_eq!(LeaseHolder::of_lease(&lease), Some(holder));
        assert_eq!(LeaseHolder::of_lease("something else"), None);
        assert_eq!(token.as_str().len(), 32);
        assert_ne!(token, run.token());
        assert_eq!(token.as_str()[..16], run.token().as_str()[..16]);
        assert_eq!(token.as_str()[..16], run.to_string());
        assert_eq!(RunId::new(run.get()), run);
    }
}

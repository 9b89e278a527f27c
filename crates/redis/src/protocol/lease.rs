//! Lease: the right to run a crawl, held by one process at a time.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Value, cmd};
use serde::{Deserialize, Serialize};
use urlseen_filter::id::RandomId;
use urlseen_storage::Head;

use super::reply::{FORMAT, nonsense, value, values};
use super::{CrawlState, Cursor, GivenBack, Keys, Places, Protocol, ProtocolError};
use crate::link::Link;

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
    pub(crate) fn as_str(&self) -> &str {
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
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and a number are JSON")
    }

    /// Reads the value of a lease. Returns `None` if urlseen did not write it.
    pub(crate) fn of_lease(lease: &str) -> Option<Self> {
        serde_json::from_str(lease.split_once(' ')?.1).ok()
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crawl, host, pid, since } = self;
        write!(f, "crawl {crawl:?} (process {pid} on {host}, since {since})")
    }
}

impl Protocol {
    /// Loads the scripts, and takes the lease. Succeeds also if the holder is an earlier connection
    /// of the same run, or a run in `dead`.
    pub async fn take_lease(
        &self,
        link: &mut Link,
        token: &Token,
        holder: &LeaseHolder,
        dead: &[RandomId],
    ) -> Result<CrawlState, ProtocolError> {
        for command in self.load() {
            link.call(&command).await?;
        }
        let mut own = self.call("own", &self.own_keys(), token);
        own.arg(holder.to_json()).arg(milliseconds());
        for run in dead {
            own.arg(run.to_string());
        }
        self.owned(link.call(&own).await?)
    }

    /// Reads the crawl's state without the lease, and changes nothing. Makes all checks of
    /// [`Protocol::take_lease`], except for the holder of the lease.
    pub async fn peek(&self, link: &mut Link) -> Result<CrawlState, ProtocolError> {
        let mut command = self.eval("own", &self.own_keys());
        command.arg("").arg("").arg(0);
        self.owned(link.call(&command).await?)
    }

    fn own_keys(&self) -> [&str; 3] {
        let Keys { lease, state, processing, .. } = &self.keys;
        [lease, state, processing]
    }

    fn owned(&self, reply: Value) -> Result<CrawlState, ProtocolError> {
        type Owned = (String, String, String, String, Cursor, String);
        let (seq, commit_id, format, filter, cursor, unseen): Owned = values("own", reply)?;
        if !format.is_empty() && format != FORMAT {
            return Err(ProtocolError::Format { found: format });
        }
        let head = match (seq.as_str(), commit_id.as_str()) {
            ("", "") => None,
            found => Some(Head::parse(&seq, &commit_id).ok_or_else(|| nonsense("own", &found))?),
        };
        let filter = RandomId::parse(&filter);
        Ok(CrawlState { head, filter, cursor, unseen: unseen.parse().unwrap_or(0) })
    }

    /// Ties the crawl's state to a filter. If Redis has no state of the crawl, the crawl begins at
    /// `head`.
    pub fn begin(&self, token: &Token, filter: RandomId, head: Head) -> Cmd {
        let Head { seq, commit_id } = head;
        let Keys { lease, state, record, .. } = &self.keys;
        let mut command = self.call("begin", &[lease, state, record], token);
        command.arg(filter.to_string()).arg(FORMAT);
        command.arg(seq).arg(commit_id.to_string()).arg(self.held.record.fields());
        command
    }

    /// Reads the crawl's head and the holder of its lease.
    pub async fn look(
        &self,
        link: &mut Link,
    ) -> Result<(Option<Head>, Option<LeaseHolder>), ProtocolError> {
        let Keys { lease, state, .. } = &self.keys;
        let head = link.call(cmd("HMGET").arg(state).arg("seq").arg("commit_id")).await?;
        let (seq, commit_id): (Option<String>, Option<String>) = value("HMGET", head)?;
        let lease: Option<String> = value("GET", link.call(&Cmd::get(lease)).await?)?;
        let head = seq.zip(commit_id).and_then(|(seq, id)| Head::parse(&seq, &id));
        Ok((head, lease.and_then(|lease| LeaseHolder::of_lease(&lease))))
    }

    /// Renews the lease for its full time.
    pub fn renew(&self, token: &Token) -> Cmd {
        let mut command = self.call("renew", &[&self.keys.lease], token);
        command.arg(milliseconds());
        command
    }

    /// Releases the lease if a connection of the token's run holds it. The lease of another run
    /// stays.
    pub async fn release(&self, link: &mut Link, token: &Token) -> Result<(), ProtocolError> {
        let mut command = self.eval("renew", &[&self.keys.lease]);
        command.arg(token.as_str()).arg(0);
        self.done(link.call(&command).await?)
    }

    /// Reads the reply of a script that answers nothing else than its success.
    pub fn done(&self, reply: Value) -> Result<(), ProtocolError> {
        values("a script", reply)
    }
}

fn milliseconds() -> u64 {
    u64::try_from(LEASE.as_millis()).expect("a lease is short")
}

/// Connection that has the lease of a crawl, and makes one call after the other.
#[derive(Debug)]
pub struct Leased {
    /// Connection that holds the lease.
    pub link: Link,
    token: Token,
    protocol: Arc<Protocol>,
    /// State of the crawl at the moment at which the lease was taken.
    pub crawl_state: CrawlState,
    /// Time of the last request for the lease.
    asked: Instant,
}

impl Leased {
    /// Takes the lease for the run with the id `run`. The lease may still belong to one of the runs
    /// in `dead`, which have ended.
    pub async fn take(
        mut link: Link,
        protocol: Arc<Protocol>,
        holder: &LeaseHolder,
        run: RandomId,
        dead: &[RandomId],
    ) -> Result<Self, ProtocolError> {
        let (token, asked) = (Token::new(run), Instant::now());
        let crawl_state = protocol.take_lease(&mut link, &token, holder, dead).await?;
        Ok(Self { link, token, protocol, crawl_state, asked })
    }

    /// Ties the crawl to a filter, and releases the lease. If Redis had no state of the crawl, the
    /// crawl begins at `head`.
    pub async fn tie(mut self, filter: RandomId, head: Head) -> Result<(), ProtocolError> {
        let begin = self.protocol.begin(&self.token, filter, head);
        self.call(&begin).await?;
        self.release().await
    }

    /// Deletes the crawl's state and its record.
    pub async fn drop_crawl(&mut self) -> Result<(), ProtocolError> {
        let Keys { lease, state, record, .. } = &self.protocol.keys;
        let mut command = self.protocol.call("renew", &[lease, state, record], &self.token);
        command.arg(milliseconds());
        self.call(&command).await
    }

    /// Returns the time since the last request for the lease.
    pub fn age(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Renews the lease for its full time.
    pub async fn renew(&mut self) -> Result<(), ProtocolError> {
        let asked = Instant::now();
        let renew = self.protocol.renew(&self.token);
        self.call(&renew).await?;
        self.asked = asked;
        Ok(())
    }

    /// Claims the items of the source, or at most `more` items behind those that are claimed.
    /// Returns the number of claimed items.
    pub async fn claim(&mut self, more: u64) -> Result<Cursor, ProtocolError> {
        let claim = self.protocol.claim(&self.token, more);
        self.protocol.claimed(self.link.call(&claim).await?)
    }

    /// Reads `count` claimed items after a cursor.
    pub async fn read(&mut self, after: Cursor, count: u64) -> Result<Places, ProtocolError> {
        self.link.send(&self.protocol.read(after, count));
        self.protocol.items(self.link.receive().await?, after, count)
    }

    /// Removes a batch of `count` items that a router has pushed. It was read after the cursor
    /// `before`.
    pub async fn remove(&mut self, before: Cursor, count: u64) -> Result<(), ProtocolError> {
        let routed = self.protocol.routed(&self.token, before, count);
        self.call(&routed).await
    }

    /// Releases the lease. The claimed items stay claimed.
    pub async fn release(mut self) -> Result<(), ProtocolError> {
        self.protocol.release(&mut self.link, &self.token).await
    }

    /// Puts unread items back into the source, if at most `most` items must be moved for this, and
    /// releases the lease.
    pub async fn give_back(mut self, most: usize) -> Result<GivenBack, ProtocolError> {
        let give_back = self.protocol.give_back(&self.token, most);
        self.protocol.given_back(self.link.call(&give_back).await?)
    }

    async fn call(&mut self, command: &Cmd) -> Result<(), ProtocolError> {
        self.protocol.done(self.link.call(command).await?)
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

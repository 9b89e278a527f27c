//! Replies of Redis: results of scripts, and errors.

use redis::Value;

use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::lease::LeaseHolder;
use urlseen_core::storage::Head;
use urlseen_engine::flow::source::Cursor;

/// Version of the state's fields. The daemon refuses another one.
pub(super) const FORMAT: &str = "2";

/// State of a crawl in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The last committed batch; `None` if no batch was ever committed.
    pub(crate) head: Option<Head>,
    /// The filter that the crawl is tied to.
    pub(crate) filter: Option<RandomId>,
    /// Committed place in the source, and the items claimed after it.
    pub(crate) cursor: Cursor,
    /// Items that commits to a filter in Redis have found unseen.
    pub(crate) unseen: u64,
}

/// Counts after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Items that wait in the sink.
    pub(crate) sink: u64,
    /// Items on the rejects list.
    pub(crate) rejected: u64,
    /// Rejects that were dropped because the list was full.
    pub(crate) dropped: u64,
    /// Items that the script found unseen; `None` if the daemon has the filter.
    pub(crate) unseen: Option<u64>,
}

/// Unread items after a clean exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenBack {
    /// Items that the script gave back to the source.
    pub(crate) back: u64,
    /// Items that are still claimed: the next run begins with them.
    pub(crate) left: u64,
    /// Items that wait in the source now.
    pub(crate) source: u64,
}

/// Reason for which a script did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum ScriptError {
    /// The lease is no longer held under this token: it ran out, or another holder took it.
    #[error("the lease is not ours any more: {}", holder.as_ref().map_or_else(
        || "it ran out".to_owned(), |holder| format!("it is held by {holder}")))]
    Lease { holder: Option<LeaseHolder> },
    /// Another batch is the last one committed.
    #[error("the last committed batch in Redis is number {seq:?} ({commit_id:?})")]
    Head { seq: String, commit_id: String },
    /// Another program changed the source after the batch was read.
    #[error("another program changed {what}")]
    Source { what: String },
}

/// Reason for which a call has no usable reply.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum ProtocolError {
    /// Redis failed, or the connection to it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A script did nothing, and named the reason.
    #[error(transparent)]
    Refused(#[from] ScriptError),
    /// Another process runs the crawl.
    #[error("{}", held(holder.as_deref(), *milliseconds))]
    Held {
        holder: Option<Box<LeaseHolder>>,
        milliseconds: i64,
        head: Option<Head>,
        filter: Option<RandomId>,
    },
    /// An earlier version left keys that this one does not read.
    #[error(
        "an earlier version of urlseen left {key} in Redis, and this one would begin a new crawl \
         beside it. End that crawl with the earlier version's \"urlseen state drop\", which gives \
         claimed items back to the source; or delete the key, if they may be lost"
    )]
    Earlier { key: String },
    /// A script found that a commit would lose or repeat items, and did nothing.
    #[error("{what}")]
    Never { what: String },
    /// The crawl's state was written by another version.
    #[error(
        "the crawl's state in Redis has format {found}, this urlseen knows format {FORMAT}: use \
         the urlseen that wrote it"
    )]
    Format { found: String },
    /// A later version has published the crawl record.
    #[error(
        "the crawl record in Redis has protocol {protocol:?}, written by urlseen {urlseen:?}, and \
         this urlseen knows an earlier one: its consumers would not understand each other. Run \
         the urlseen that wrote it; to begin anew with this one, give the crawl up with that \
         one's urlseen storage drop"
    )]
    Record { protocol: String, urlseen: String },
    /// Redis gave an unexpected answer.
    #[error("Redis answered {what} with something unexpected: {reply}")]
    Nonsense { what: &'static str, reply: String },
}

fn held(holder: Option<&LeaseHolder>, milliseconds: i64) -> String {
    let seconds = milliseconds.max(0).cast_unsigned().div_ceil(1000);
    let holder =
        holder.map_or_else(|| "a program other than urlseen".to_owned(), LeaseHolder::to_string);
    format!(
        "this source is already run by {holder}. Stop that one first; if it is dead, its lease \
         ends in {seconds} s"
    )
}

/// Answer of a script: its status, then its values.
pub(super) struct ScriptReply {
    what: &'static str,
    pub(super) status: String,
    values: std::vec::IntoIter<Value>,
}

impl ScriptReply {
    pub(super) fn new(what: &'static str, reply: Value) -> Result<Self, ProtocolError> {
        let mut answer = match reply {
            Value::Array(values) => {
                Self { what, status: String::new(), values: values.into_iter() }
            }
            other => return Err(nonsense(what, &other)),
        };
        answer.status = answer.text()?;
        Ok(answer)
    }

    pub(super) fn ok(&mut self) -> Result<(), ProtocolError> {
        Err(match self.status.as_str() {
            "ok" => return Ok(()),
            "lease" => ScriptError::Lease { holder: LeaseHolder::of_lease(&self.text()?) }.into(),
            "head" => ScriptError::Head { seq: self.text()?, commit_id: self.text()? }.into(),
            "record" => {
                let (protocol, urlseen) = (self.text()?, self.text()?);
                return Err(ProtocolError::Record { protocol, urlseen });
            }
            "earlier" => return Err(ProtocolError::Earlier { key: self.text()? }),
            "source" => ScriptError::Source { what: self.text()? }.into(),
            "refused" => return Err(ProtocolError::Never { what: self.text()? }),
            other => nonsense(self.what, &other),
        })
    }

    pub(super) fn text(&mut self) -> Result<String, ProtocolError> {
        self.next()
    }

    pub(super) fn number(&mut self) -> Result<i64, ProtocolError> {
        self.next()
    }

    pub(super) fn count(&mut self) -> Result<u64, ProtocolError> {
        self.next()
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<Vec<u8>>, ProtocolError> {
        self.next()
    }

    fn next<T: redis::FromRedisValue>(&mut self) -> Result<T, ProtocolError> {
        let value =
            self.values.next().ok_or_else(|| nonsense(self.what, &"too short an answer"))?;
        redis::from_redis_value(value).map_err(|error| nonsense(self.what, &error))
    }
}

pub(super) fn nonsense(what: &'static str, reply: &dyn std::fmt::Debug) -> ProtocolError {
    ProtocolError::Nonsense { what, reply: format!("{reply:?}").chars().take(200).collect() }
}

//! How Redis answers: what went well, and why something did not.

use redis::Value;

use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::lease::LeaseHolder;
use urlseen_core::storage::Head;
use urlseen_engine::flow::source::Cursor;

/// The version of the state's fields. Another one is refused.
pub(super) const FORMAT: &str = "2";

/// Where a crawl stands in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The last committed batch; `None` where nothing was ever committed.
    pub(crate) head: Option<Head>,
    /// The filter that the crawl is tied to.
    pub(crate) filter: Option<RandomId>,
    /// Where the source is committed, and what is claimed after that.
    pub(crate) cursor: Cursor,
    /// How many items were found unseen by commits to a filter that is in Redis.
    pub(crate) unseen: u64,
}

/// What a commit left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Items that wait in the sink.
    pub(crate) sink: u64,
    /// Items on the rejects list.
    pub(crate) rejected: u64,
    /// Rejects that were dropped because the list was full.
    pub(crate) dropped: u64,
    /// Items that were found unseen, where Redis has the filter.
    pub(crate) unseen: Option<u64>,
}

/// Where unread items are after a clean exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenBack {
    /// At the source again.
    pub(crate) back: u64,
    /// Still claimed: the next start begins with them.
    pub(crate) left: u64,
    /// How long the source is now.
    pub(crate) source: u64,
}

/// Why a script did nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The lease is not held under this token any more: it ran out, or another one took it.
    #[error("the lease is not ours any more: {}", holder.as_ref().map_or_else(
        || "it ran out".to_owned(), |holder| format!("it is held by {holder}")))]
    Lease {
        /// Who holds it now, if anybody.
        holder: Option<LeaseHolder>,
    },
    /// Another batch is the last one committed.
    #[error("the last committed batch in Redis is number {seq:?} ({commit_id:?})")]
    Head {
        /// As found; empty where nothing was found.
        seq: String,
        /// As found.
        commit_id: String,
    },
    /// Another program changed the source after the batch was read.
    #[error("another program changed {what}")]
    Source {
        /// Of the source, and how.
        what: String,
    },
}

/// Why a reply is not what was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// Redis or the way to it has a problem.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A script did nothing.
    #[error(transparent)]
    Refused(#[from] ScriptError),
    /// Another process runs the crawl.
    #[error("{}", held(holder.as_deref(), *milliseconds))]
    Held {
        /// Who.
        holder: Option<Box<LeaseHolder>>,
        /// How long its lease lasts unless it is renewed.
        milliseconds: i64,
        /// The last committed batch, if there is one.
        head: Option<Head>,
        /// The filter that the crawl is tied to.
        filter: Option<RandomId>,
    },
    /// An earlier version left keys that this one does not read.
    #[error(
        "an earlier version of urlseen left {key} in Redis, and this one would begin a new crawl \
         beside it. End that crawl with the earlier version's \"urlseen state drop\", which gives \
         claimed items back to the source; or delete the key, if they may be lost"
    )]
    Earlier {
        /// One of the keys.
        key: String,
    },
    /// A script found that going on would lose or repeat items, and did nothing.
    #[error("{what}")]
    Never {
        /// What it found, and what to do.
        what: String,
    },
    /// The crawl's state was written by another version.
    #[error(
        "the crawl's state in Redis has format {found}, this urlseen knows format {FORMAT}: use \
         the urlseen that wrote it"
    )]
    Format {
        /// As found.
        found: String,
    },
    /// A later version has published the crawl record.
    #[error(
        "the crawl record in Redis has protocol {protocol:?}, written by urlseen {urlseen:?}, and \
         this urlseen knows an earlier one: its consumers would not understand each other. Run \
         the urlseen that wrote it; to begin anew with this one, give the crawl up with that \
         one's urlseen storage drop"
    )]
    Record {
        /// As found.
        protocol: String,
        /// The version of the urlseen that wrote it.
        urlseen: String,
    },
    /// Redis answered something that makes no sense here.
    #[error("Redis answered {what} with something unexpected: {reply}")]
    Nonsense {
        /// What was asked.
        what: &'static str,
        /// The reply, cut short.
        reply: String,
    },
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

/// A script's answer: how it went, and what it says.
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

fn nonsense(what: &'static str, reply: &dyn std::fmt::Debug) -> ProtocolError {
    ProtocolError::Nonsense { what, reply: format!("{reply:?}").chars().take(200).collect() }
}

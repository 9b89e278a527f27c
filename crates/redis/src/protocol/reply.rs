//! Replies of the crawl's scripts, and their errors.

use redis::{FromRedisValue, Value};
use urlseen_filter::id::RandomId;
use urlseen_storage::Head;

use super::{Cursor, LeaseHolder};
use crate::error::LinkError;

/// Version of the fields of a crawl's state. The daemon refuses a state with another version.
pub(super) const FORMAT: &str = "3";

/// State of a crawl in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlState {
    /// Head after the last commit; `None` if Redis has no state of the crawl.
    pub head: Option<Head>,
    /// Id of the filter that the crawl is tied to.
    pub filter: Option<RandomId>,
    /// Place in the source after the last commit, with the number of claimed items after the place.
    pub cursor: Cursor,
    /// Number of unseen items in all commits to a filter in Redis.
    pub unseen: u64,
}

/// Counts that Redis reports after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Number of items that wait in the sink.
    pub sink: u64,
    /// Number of rejects in Redis.
    pub rejected: u64,
    /// Number of rejects that the commit dropped because the list was full.
    pub dropped: u64,
    /// Number of items that the script found unseen; `None` if the daemon has the filter.
    pub unseen: Option<u64>,
}

/// Counts of unread items after a clean exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenBack {
    /// Number of items that the script gave back to the source.
    pub back: u64,
    /// Number of items that are still claimed. The next run begins with these items.
    pub left: u64,
    /// Number of items that wait in the source now.
    pub source: u64,
}

/// Reason why a script changed nothing. In each of these cases, a new session can continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum ScriptError {
    /// The lease no longer has this token: it ended, or another holder took it.
    #[error("the lease is lost: {}", holder.as_ref().map_or_else(
        || "it ran out".to_owned(), |holder| format!("it is held by {holder}")))]
    Lease { holder: Option<LeaseHolder> },
    /// The head in Redis is not the head that the batch follows.
    #[error(
        "the last committed batch in Redis is number {seq:?} ({commit_id:?}), and not the last \
         batch that this daemon committed"
    )]
    Head { seq: String, commit_id: String },
    /// Another program changed the source after the batch was read.
    #[error("another program changed {what}")]
    Source { what: String },
}

/// Reason why a call has no usable reply.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum ProtocolError {
    /// Redis or the connection to Redis failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A script changed nothing, and a new session can continue.
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
    /// A script found that a commit would lose or repeat items, and changed nothing.
    #[error("{what}")]
    Never { what: String },
    /// The crawl's state was written by another version.
    #[error(
        "the crawl's state in Redis has format {found}, and this version of urlseen reads only \
         format {FORMAT}: continue with the version that wrote the state, or end the crawl with \
         its command urlseen storage drop and begin a new one"
    )]
    Format { found: String },
    /// A later version has published the crawl record.
    #[error(
        "the crawl record in Redis has protocol {protocol:?}, written by urlseen {urlseen:?}, and \
         this version of urlseen supports only an earlier protocol. Run version {urlseen:?}. To \
         begin a new crawl with this version, first end the old crawl with \"urlseen storage \
         drop\" of version {urlseen:?}"
    )]
    Record { protocol: String, urlseen: String },
    /// The crawl in Redis has other partitions, or another filter.
    #[error(
        "the crawl in Redis has {field} {found}, and this configuration has {wanted}: the filters \
         would not fit, and all URLs would be emitted again. Set the configuration back (for \
         partitions: partitions.count). To change it, end the crawl with \"urlseen storage drop\" \
         and the earlier configuration"
    )]
    OtherTable { field: String, found: String, wanted: String },
    /// Redis gave an unexpected reply.
    #[error("the reply of Redis to {what} is invalid: {reply}; is this server really Redis?")]
    Nonsense { what: &'static str, reply: String },
}

fn held(holder: Option<&LeaseHolder>, milliseconds: i64) -> String {
    let seconds = milliseconds.max(0).cast_unsigned().div_ceil(1000);
    let holder =
        holder.map_or_else(|| "a program other than urlseen".to_owned(), LeaseHolder::to_string);
    format!(
        "this source is already run by {holder}. Stop that program first; if it is dead, its \
         lease ends in {seconds} s"
    )
}

/// Reads the reply of a script: the values after the status `ok`. Another status is an error.
pub(super) fn values<T: FromRedisValue>(
    what: &'static str,
    reply: Value,
) -> Result<T, ProtocolError> {
    let Value::Array(mut reply) = reply else { return Err(nonsense(what, &reply)) };
    let values = Value::Array(reply.split_off(reply.len().min(1)));
    let status: String = value(what, reply.pop().unwrap_or(Value::Nil))?;
    if status == "ok" {
        return value(what, values);
    }
    let details: Vec<String> = value(what, values)?;
    let details: Vec<&str> = details.iter().map(String::as_str).collect();
    Err(match (status.as_str(), &details[..]) {
        ("lease", [lease]) => ScriptError::Lease { holder: LeaseHolder::of_lease(lease) }.into(),
        ("head", &[seq, commit_id]) => {
            ScriptError::Head { seq: seq.to_owned(), commit_id: commit_id.to_owned() }.into()
        }
        ("source", &[what]) => ScriptError::Source { what: what.to_owned() }.into(),
        ("held", [lease, milliseconds, seq, commit_id, filter]) => ProtocolError::Held {
            holder: LeaseHolder::of_lease(lease).map(Box::new),
            milliseconds: milliseconds.parse().unwrap_or(0),
            head: Head::parse(seq, commit_id),
            filter: RandomId::parse(filter),
        },
        ("record", &[protocol, urlseen]) => {
            ProtocolError::Record { protocol: protocol.to_owned(), urlseen: urlseen.to_owned() }
        }
        ("partitions", &[found]) => ProtocolError::OtherTable {
            field: "partitions".to_owned(),
            found: found.to_owned(),
            wanted: "1".to_owned(),
        },
        ("table", &[field, found]) => ProtocolError::OtherTable {
            field: field.to_owned(),
            found: found.to_owned(),
            wanted: String::new(),
        },
        ("refused", &[what]) => ProtocolError::Never { what: what.to_owned() },
        _ => nonsense(what, &(status, details)),
    })
}

/// Converts a value of Redis to a `T`. `what` names the call in the error.
pub fn value<T: FromRedisValue>(what: &'static str, value: Value) -> Result<T, ProtocolError> {
    redis::from_redis_value(value).map_err(|error| nonsense(what, &error))
}

pub(super) fn nonsense(what: &'static str, reply: &dyn std::fmt::Debug) -> ProtocolError {
    ProtocolError::Nonsense { what, reply: format!("{reply:?}").chars().take(200).collect() }
}

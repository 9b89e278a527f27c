//! A set in Redis whose members are fingerprints as hex digits, as in scrapy-redis.

use redis::cmd;

use super::cut::Cut;
use crate::flow::feed::{Feed, FeedError, Page};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::RedisAddress;
use urlseen_redis::connect::connect;
use urlseen_redis::error::LinkError;
use urlseen_redis::link::{self, Link};
use urlseen_redis::preflight::Info;
use urlseen_storage::Checkpoint;

/// Approximate number of members in a page. Redis needs some milliseconds for a page, and serves no
/// other client during that time.
const COUNT: u64 = 10_000;

/// Connects to Redis and returns a feed of the members of the set. Continues where an earlier
/// import of the set ended. Members that stay in the set during the import are in the feed at least
/// once, and perhaps twice.
pub(super) fn feed(
    address: &RedisAddress,
    key: String,
    checkpoints: &[Checkpoint],
) -> Result<Feed, FeedError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(FeedError::Thread)?;
    // A cursor of `SSCAN` is valid only in the Redis process that returned it.
    let (mut link, expected, process) = runtime.block_on(async {
        let mut link = connect(&address.for_key(&key)).await?;
        let size = size(&mut link, address, &key).await?;
        let process = run_id(&mut link).await?;
        Ok::<_, FeedError>((link, size, process))
    })?;
    let source = format!("redis {address} {key}");
    let is_this = |checkpoint: &&Checkpoint| {
        checkpoint.source == source && Some(&checkpoint.version) == process.as_ref()
    };
    // scrapy-redis only adds members to its set. So a set with fewer members than were read is
    // another set.
    let resumed = checkpoints
        .iter()
        .find(is_this)
        .filter(|checkpoint| checkpoint.at > 0 && checkpoint.count <= expected);
    let (at, mut count) = resumed.map_or((0, 0), |checkpoint| (checkpoint.at, checkpoint.count));
    let mut resumed =
        resumed.map(|checkpoint| format!("{} members of the set {key}", checkpoint.count));
    let mut next = Some(at);
    let pages = std::iter::from_fn(move || {
        let scanned = match runtime.block_on(link.scan(&key, next?, COUNT)) {
            Ok(scanned) => scanned,
            Err(error) => return Some(Err(error.into())),
        };
        // After the last page the cursor is 0, so a later import starts at the beginning.
        next = Some(scanned.cursor).filter(|&cursor| cursor > 0);
        count += scanned.members.len() as u64;
        let cursor = process.as_ref().map(|process| Checkpoint {
            source: source.clone(),
            version: process.clone(),
            at: scanned.cursor,
            count,
        });
        Some(Ok(Page { read: count, cursor, resumed: resumed.take(), ..cut(&key, &scanned) }))
    });
    Ok(Feed { expected, pages: Box::new(pages) })
}

/// Makes a page of the members in one reply to `SSCAN` on the set `key`.
fn cut(key: &str, scanned: &link::Page) -> Page {
    let source = format!("a member of the set {key}");
    let mut cut = Cut::new(&source, None);
    for member in &scanned.members {
        let member = &scanned.bytes[member.clone()];
        // A member in plain text is no raw digest, however long it is.
        let is_text = member.iter().all(|byte| matches!(byte, b' '..=b'~'));
        match Fingerprint::from_raw(member).filter(|_| !is_text) {
            Some(digest) => cut.push(digest.as_bytes()),
            None => cut.push_hex(member, 0, None),
        }
    }
    cut.into_page()
}

/// Returns the number of members of the set. Fails if the key does not exist or is not a set.
async fn size(link: &mut Link, address: &RedisAddress, key: &str) -> Result<u64, FeedError> {
    let found: String = cmd("TYPE").arg(key).query_async(link).await.map_err(LinkError::from)?;
    match found.as_str() {
        "set" => Ok(cmd("SCARD").arg(key).query_async(link).await.map_err(LinkError::from)?),
        "none" => Err(FeedError::Input(format!(
            "there is no key {key} at {address}; scrapy-redis names its set SPIDER:dupefilter \
             unless SCHEDULER_DUPEFILTER_KEY says otherwise, and deletes it at the end of a crawl \
             unless SCHEDULER_PERSIST is set"
        ))),
        _ => Err(FeedError::Input(format!(
            "the key {key} holds a {found}, and a set was expected; scrapy-redis names its set \
             SPIDER:dupefilter unless SCHEDULER_DUPEFILTER_KEY says otherwise"
        ))),
    }
}

/// Returns the random id that the Redis process chose at its start. Returns `None` if the Redis
/// user has no permission to ask for the id, or if the server has no such id.
async fn run_id(link: &mut Link) -> Result<Option<String>, FeedError> {
    let info: Result<String, _> = cmd("INFO").arg("server").query_async(link).await;
    match info.map_err(LinkError::from) {
        Ok(info) => Ok(Info(&info).text("run_id").map(|id| id.trim().to_owned())),
        Err(LinkError::NoPermission { .. } | LinkError::UnknownCommand { .. }) => Ok(None),
        Err(trouble) => Err(trouble.into()),
    }
}

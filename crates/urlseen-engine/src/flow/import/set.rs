//! A set in Redis whose members are fingerprints in hex, as scrapy-redis keeps it.

use redis::cmd;

use super::cut::{Cut, CutError, shown};
use super::{Bad, ImportError, Meter, Page, Sender};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{self, Link};
use urlseen_core::storage::Checkpoint;

/// About how many members a page has: Redis serves nobody else meanwhile, for some milliseconds.
const COUNT: u64 = 10_000;

/// Reads all members of the set, from where an earlier import of it ended, and hands them over
/// page by page, until nobody takes them any more. What was in the set all the time comes at least
/// once, and may come twice.
pub(super) async fn read(
    address: &RedisAddress,
    key: &str,
    checkpoints: &[Checkpoint],
    meter: &Meter,
    sender: &Sender,
) -> Result<(), ImportError> {
    let mut link = connect(address, Timeouts::default()).await?;
    let size = size(&mut link, address, key).await?;
    meter.expect(size);
    let source = format!("redis {address} {key}");
    // A cursor means something to the process alone that gave it.
    let process = run_id(&mut link).await?;
    let is_this = |checkpoint: &&Checkpoint| {
        checkpoint.source == source && Some(&checkpoint.version) == process.as_ref()
    };
    // A set that became smaller is another one: those of scrapy-redis only grow.
    let resumed = checkpoints
        .iter()
        .find(is_this)
        .filter(|checkpoint| checkpoint.at > 0 && checkpoint.count <= size);
    let (mut cursor, mut count) =
        resumed.map_or((0, 0), |checkpoint| (checkpoint.at, checkpoint.count));
    let mut resumed =
        resumed.map(|checkpoint| format!("the set {key} ({} members read)", checkpoint.count));
    meter.advance_to(count);
    loop {
        let link::Page { cursor: next, bytes, members } = scan(&mut link, key, cursor).await?;
        let mut cut = Cut::new(0);
        let read = members.len() as u64;
        for member in members {
            let member = &bytes[member];
            match Fingerprint::from_hex(member) {
                Some(fingerprint) => cut.push(fingerprint.as_bytes()),
                None => cut.bad(0, None, || CutError::NoHex { shown: shown(member) }),
            }
        }
        (cursor, count) = (next, count + read);
        meter.advance_to(count);
        let bad_count = cut.bad_count();
        let (digests, bad) = cut.into_parts();
        let bad = bad.into_iter().map(|(_, _, reason)| Bad {
            source: format!("a member of the set {key}"),
            offset: None,
            line: None,
            reason,
        });
        // Behind the last page the cursor is 0: a later import begins anew.
        let checkpoint = process.as_ref().map(|process| Checkpoint {
            source: source.clone(),
            version: process.clone(),
            at: cursor,
            count,
        });
        let resumed = resumed.take();
        let page = Page { digests, bad: bad.collect(), bad_count, checkpoint, resumed };
        if sender.send(Ok(page)).await.is_err() || cursor == 0 {
            return Ok(());
        }
    }
}

/// How many members the set has, which there must be.
async fn size(link: &mut Link, address: &RedisAddress, key: &str) -> Result<u64, ImportError> {
    let found: String = cmd("TYPE").arg(key).query_async(link).await.map_err(LinkError::from)?;
    let key_of = || key.to_owned();
    match found.as_str() {
        "set" => Ok(cmd("SCARD").arg(key).query_async(link).await.map_err(LinkError::from)?),
        "none" => Err(ImportError::NoSet { key: key_of(), address: address.to_string() }),
        _ => Err(ImportError::OtherType { key: key_of(), found }),
    }
}

/// The random id that the server drew when it started; `None` where it does not say.
async fn run_id(link: &mut Link) -> Result<Option<String>, ImportError> {
    let info: Result<String, _> = cmd("INFO").arg("server").query_async(link).await;
    match info.map_err(LinkError::from) {
        Ok(info) => {
            let id = info.lines().find_map(|line| line.strip_prefix("run_id:"));
            Ok(id.map(|id| id.trim().to_owned()))
        }
        Err(LinkError::NoPermission { .. } | LinkError::UnknownCommand { .. }) => Ok(None),
        Err(trouble) => Err(trouble.into()),
    }
}

async fn scan(link: &mut Link, key: &str, cursor: u64) -> Result<link::Page, ImportError> {
    link.send(cmd("SSCAN").arg(key).arg(cursor).arg("COUNT").arg(COUNT));
    let reply = link.receive().await?;
    let strange = || LinkError::Garbled { cause: "the answer to SSCAN is no page".to_owned() };
    Ok(reply.into_page().ok_or_else(strange)?)
}

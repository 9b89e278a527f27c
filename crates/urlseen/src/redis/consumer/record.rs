//! Reading of crawl records, and the errors of records that cannot be used.

use std::collections::BTreeMap;

use redis::{Cmd, cmd};

use crate::redis::link::Link;
use crate::{Error, ErrorKind};
use urlseen_core::fingerprint::PartitionCount;
use urlseen_core::redis::held::{HeldKeys, RecordError};

/// Fields of a crawl record or of a partition table, with their values.
pub(super) type RecordFields = BTreeMap<String, String>;

/// Returns the command that reads the record for the source with the key `source`.
pub(super) fn reading(source: &str) -> Cmd {
    let mut command = cmd("HGETALL");
    command.arg(HeldKeys::of_source(source).record);
    command
}

/// Reads the record, if a daemon has written one.
pub(super) fn read(link: &mut Link, source: &str) -> Result<Option<RecordFields>, Error> {
    let command = reading(source);
    let fields: RecordFields = link.ask(|connection| command.query(connection))?;
    Ok(Some(fields).filter(|fields| !fields.is_empty()))
}

/// Error for a source without a record.
pub(super) fn no_record(source: &str) -> Error {
    let text = format!(
        "no daemon has run for the source {source} yet: Redis has no crawl record {}. Start \
         urlseen run with source.key = {source:?}, or open the consumer with the daemon's \
         source.key and database",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

/// Error for a partition without a record, in a crawl with this number of partitions.
pub(super) fn no_partition(number: usize, source: &str, count: usize) -> Error {
    let text = format!(
        "no daemon has run for partition {number} of {count} yet: Redis has no crawl record {}. \
         Start a process that runs this partition (partitions.run)",
        HeldKeys::of_source(source).record
    );
    Error::new(ErrorKind::NoCrawl, text)
}

/// Error for a record that cannot be used.
pub(super) fn refused(source: &str, error: &RecordError) -> Error {
    let key = HeldKeys::of_source(source).record;
    Error::new(ErrorKind::Mismatch, format!("the crawl record {key} cannot be used: {error}"))
}

/// Error for a record of a crawl with `found` partitions, if the crawl has `count`.
pub(super) fn other_count(source: &str, found: PartitionCount, count: PartitionCount) -> Error {
    let key = HeldKeys::of_source(source).record;
    let remedy = match count {
        PartitionCount::ONE => "open the consumer with source.key, without the tag of a partition",
        _ => "restart the daemon, which writes the record again",
    };
    let text = format!(
        "the crawl record {key} belongs to a crawl with {found} partitions, and the crawl at hand \
         has {count}; {remedy}"
    );
    Error::new(ErrorKind::Mismatch, text)
}

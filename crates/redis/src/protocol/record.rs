//! Crawl record: a hash in Redis with facts about a crawl. Producers and consumers check the record
//! when they start.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use urlseen_fingerprint::PartitionCount;

/// Version of the protocol between the daemon and its producers and consumers.
pub(super) const PROTOCOL: &str = "2";

/// URL of a test request, deliberately not canonical. The fingerprint that a program computes for
/// this URL shows the program's algorithm.
pub const PROBE: &str = "https://example.com/?b=2&a=1";

/// Crawl record. docs/reference/held.md describes its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRecord {
    /// Version of the daemon.
    pub urlseen: String,
    /// Key of the source of items.
    pub source: String,
    /// Command that pushes to the source: `RPUSH` or `LPUSH`.
    pub push: String,
    /// Key of the processing list.
    pub processing: String,
    /// Key of the sink for unseen items.
    pub sink: String,
    /// Kind of the sink: `list` or `zset`.
    pub sink_kind: String,
    /// End of a list to pop from: `LEFT` or `RIGHT`.
    pub pop: String,
    /// Form of the items that the daemon pushes to the sink.
    pub emit: String,
    /// Algorithm of the fingerprints.
    pub algorithm: String,
    /// True if the fragment of a URL affects its fingerprint.
    pub keep_fragments: bool,
    /// Version of w3lib that makes URLs canonical.
    pub canonical: String,
    /// Name of the list of tracking parameters that do not affect the fingerprints.
    pub drop_tracking: String,
    /// Rules by which different URLs are the same, as JSON.
    pub same: String,
    /// Fingerprint of [`PROBE`].
    pub probe: String,
    /// Key of the list of rejects.
    pub rejects: String,
    /// Key of the list of fingerprints to forget; empty if the daemon cannot forget.
    pub forget: String,
    /// Maximum number of deliveries of a request that no consumer finishes.
    pub deliveries: u64,
    /// Time without a heartbeat after which a consumer counts as stopped.
    pub timeout: Duration,
    /// Number of partitions of the crawl.
    pub partitions: PartitionCount,
}

/// Crawl record that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum RecordError {
    /// Record of another version of the protocol.
    #[error(
        "it has protocol {found:?}, written by urlseen {urlseen}, and this program uses protocol \
         {PROTOCOL}; build the program with the crate of that version"
    )]
    Protocol { found: String, urlseen: String },
    /// Partition table, in place of the record of a crawl with one partition.
    #[error(
        "it is the table of a crawl with {partitions} partitions now, and the crawl had one \
         partition before; open the consumer again"
    )]
    Partitions { partitions: String },
    /// Other partition table than before, or the record of a crawl with one partition.
    #[error(
        "the crawl had {partitions} partitions before, and now it is divided in another way; open \
         the consumer again"
    )]
    OtherTable { partitions: PartitionCount },
    /// Partition table of a crawl whose fingerprints this program computes in another way.
    #[error(
        "its probe is {theirs}, and this program computes {ours} by the same algorithm; build the \
         program with the crate of the daemon's version"
    )]
    Probe { ours: String, theirs: String },
    /// Record without one of the fields.
    #[error(
        "it lacks the field {field}: it was damaged, or another program writes it; restart the \
         daemon, which writes the record again"
    )]
    Missing { field: &'static str },
    /// Field with a value that has no meaning.
    #[error(
        "its field {field} is {value:?}, which is no valid value: it was damaged, or another \
         program writes it; restart the daemon, which writes the record again"
    )]
    Odd { field: &'static str, value: String },
}

impl HeldRecord {
    /// Returns true if a request with this number of earlier deliveries is a suspect: it goes to
    /// the rejects if its consumer stops once more. Until then, its consumer must hold no other
    /// request, so that no other page can be the cause.
    pub fn is_suspect(&self, count: u64) -> bool {
        count >= self.suspect()
    }

    /// Returns the lowest number of earlier deliveries of a suspect.
    pub(super) fn suspect(&self) -> u64 {
        self.deliveries.saturating_sub(1).max(1)
    }

    /// Returns the names and values of all fields.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("protocol", PROTOCOL.to_owned()),
            ("urlseen", self.urlseen.clone()),
            ("source", self.source.clone()),
            ("push", self.push.clone()),
            ("processing", self.processing.clone()),
            ("sink", self.sink.clone()),
            ("sink_kind", self.sink_kind.clone()),
            ("pop", self.pop.clone()),
            ("emit", self.emit.clone()),
            ("algorithm", self.algorithm.clone()),
            ("keep_fragments", self.keep_fragments.to_string()),
            ("canonical", self.canonical.clone()),
            ("drop_tracking", self.drop_tracking.clone()),
            ("same", self.same.clone()),
            ("probe", self.probe.clone()),
            ("rejects", self.rejects.clone()),
            ("forget", self.forget.clone()),
            ("deliveries", self.deliveries.to_string()),
            ("held_timeout_ms", self.timeout.as_millis().to_string()),
            ("partitions", self.partitions.to_string()),
        ]
    }

    /// Reads a record from its fields.
    pub fn parse(fields: &BTreeMap<String, String>) -> Result<Self, RecordError> {
        check_protocol(fields)?;
        let text = |name| read::<String>(fields, name);
        if fields.contains_key("tags") {
            return Err(RecordError::Partitions { partitions: text("partitions")? });
        }
        let one_of = |name, words: [&str; 2]| {
            let value = text(name)?;
            if words.contains(&&*value) { Ok(value) } else { Err(odd(name, &value)) }
        };
        let number = |name| read(fields, name).map(NonZeroU64::get);
        Ok(Self {
            urlseen: text("urlseen")?,
            source: text("source")?,
            push: one_of("push", ["RPUSH", "LPUSH"])?,
            processing: text("processing")?,
            sink: text("sink")?,
            sink_kind: one_of("sink_kind", ["list", "zset"])?,
            pop: one_of("pop", ["LEFT", "RIGHT"])?,
            emit: text("emit")?,
            algorithm: text("algorithm")?,
            keep_fragments: read(fields, "keep_fragments")?,
            canonical: text("canonical")?,
            drop_tracking: text("drop_tracking")?,
            same: text("same")?,
            probe: text("probe")?,
            rejects: text("rejects")?,
            forget: text("forget")?,
            deliveries: number("deliveries")?,
            timeout: Duration::from_millis(number("held_timeout_ms")?),
            partitions: read(fields, "partitions")?,
        })
    }
}

/// Parses the value of a field, which the record must have.
pub(super) fn read<T: FromStr>(
    fields: &BTreeMap<String, String>,
    field: &'static str,
) -> Result<T, RecordError> {
    let value = fields.get(field).ok_or(RecordError::Missing { field })?;
    value.parse().map_err(|_| odd(field, value))
}

/// Refuses the record of another protocol.
pub(super) fn check_protocol(fields: &BTreeMap<String, String>) -> Result<(), RecordError> {
    let found = fields.get("protocol").map_or("", String::as_str);
    if found == PROTOCOL {
        return Ok(());
    }
    let urlseen = fields.get("urlseen").cloned().unwrap_or_default();
    Err(RecordError::Protocol { found: found.to_owned(), urlseen })
}

pub(super) fn odd(field: &'static str, value: &str) -> RecordError {
    RecordError::Odd { field, value: value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> HeldRecord {
        HeldRecord {
            urlseen: "0.1.0".to_owned(),
            source: "demo:discovered".to_owned(),
            push: "RPUSH".to_owned(),
            processing: "p".to_owned(),
            sink: "s".to_owned(),
            sink_kind: "zset".to_owned(),
            pop: "LEFT".to_owned(),
            emit: "item".to_owned(),
            algorithm: "scrapy".to_owned(),
            keep_fragments: false,
            canonical: "w3lib-2.5".to_owned(),
            drop_tracking: "none".to_owned(),
            same: "[]".to_owned(),
            probe: "00".to_owned(),
            rejects: "r".to_owned(),
            forget: String::new(),
            deliveries: 3,
            timeout: Duration::from_mins(1),
            partitions: PartitionCount::ONE,
        }
    }

    fn fields() -> BTreeMap<String, String> {
        record().fields().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn a_written_record_is_read_unchanged() {
        assert_eq!(HeldRecord::parse(&fields()), Ok(record()));
    }

    #[test]
    fn a_record_without_a_field_is_refused_by_name() {
        for (name, _) in record().fields().into_iter().skip(1) {
            let mut fields = fields();
            fields.remove(name);
            assert_eq!(HeldRecord::parse(&fields), Err(RecordError::Missing { field: name }));
        }
    }

    #[test]
    fn a_partition_table_is_refused_by_the_number_of_partitions() {
        let table = [("protocol", PROTOCOL), ("partitions", "16"), ("tags", "0.13,1.10")];
        let table = table.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let refused = HeldRecord::parse(&table.into()).unwrap_err();
        assert_eq!(refused, RecordError::Partitions { partitions: "16".to_owned() });
    }

    #[test]
    fn a_value_without_meaning_is_refused_by_name() {
        for (name, value) in [
            ("push", "SADD"),
            ("sink_kind", "stream"),
            ("pop", ""),
            ("deliveries", "0"),
            ("held_timeout_ms", "-1"),
        ] {
            let mut fields = fields();
            fields.insert(name.to_owned(), value.to_owned());
            assert_eq!(HeldRecord::parse(&fields), Err(odd(name, value)));
        }
    }

    #[test]
    fn another_protocol_is_refused_before_its_fields_are_read() {
        for found in ["", "3", "10"] {
            let fields = BTreeMap::from([("protocol".to_owned(), found.to_owned())]);
            let error = HeldRecord::parse(&fields).unwrap_err();
            assert!(matches!(error, RecordError::Protocol { .. }), "{error}");
        }
    }
}

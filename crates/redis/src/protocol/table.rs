//! Partition table: the record of a crawl with several partitions.

use std::collections::BTreeMap;

use urlseen_filter::choice::ItemForm;
use urlseen_fingerprint::{FingerprintSpec, Fingerprinter, PartitionCount, Request};

use crate::hash_tag::partition_tag;

#[cfg(feature = "link")]
use super::reply::values;
#[cfg(feature = "link")]
use super::{Keys, ProtocolError, Script};
#[cfg(feature = "link")]
use crate::link::Link;

use super::record::{PROBE, PROTOCOL, RecordError, check_protocol, odd, read};

/// Partition table. It is at the key of the crawl record of a crawl with one partition, and leads
/// producers and consumers to the partitions. docs/reference/held.md describes its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionTable {
    /// Version of the daemon.
    pub urlseen: String,
    /// Number of partitions of the crawl.
    pub partitions: PartitionCount,
    /// Kind of the partitions' filters.
    pub kind: String,
    /// Form of the items in the sources.
    pub item: ItemForm,
    /// Spec of the fingerprints.
    pub fingerprint: FingerprintSpec,
    /// Fingerprint of [`PROBE`].
    pub probe: String,
}

impl PartitionTable {
    /// Names of the fields on which all processes of a crawl must agree.
    #[cfg(feature = "link")]
    const SHARED: [&'static str; 8] = [
        "partitions",
        "tags",
        "kind",
        "algorithm",
        "canonical",
        "keep_fragments",
        "drop_tracking",
        "same",
    ];

    /// Returns the names and values of all fields.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("protocol", PROTOCOL.to_owned()),
            ("urlseen", self.urlseen.clone()),
            ("partitions", self.partitions.to_string()),
            ("tags", self.tags()),
            ("kind", self.kind.clone()),
            ("item", self.item.to_string()),
            ("algorithm", self.fingerprint.algorithm.to_string()),
            ("canonical", self.fingerprint.canonical.to_string()),
            ("keep_fragments", self.fingerprint.keep_fragments.to_string()),
            ("drop_tracking", self.fingerprint.drop_tracking.to_string()),
            ("same", self.fingerprint.same.to_string()),
            ("probe", self.probe.clone()),
        ]
    }

    /// Reads the table from the fields at the key of the crawl record. Returns `None` if they are
    /// the record of a crawl with one partition.
    pub fn parse(fields: &BTreeMap<String, String>) -> Result<Option<Self>, RecordError> {
        check_protocol(fields)?;
        if !fields.contains_key("tags") {
            return Ok(None);
        }
        let table = Self {
            urlseen: read(fields, "urlseen")?,
            partitions: read(fields, "partitions")?,
            kind: read(fields, "kind")?,
            item: read(fields, "item")?,
            fingerprint: FingerprintSpec {
                algorithm: read(fields, "algorithm")?,
                canonical: read(fields, "canonical")?,
                keep_fragments: read(fields, "keep_fragments")?,
                drop_tracking: read(fields, "drop_tracking")?,
                same: read(fields, "same")?,
            },
            probe: read(fields, "probe")?,
        };
        // The program must find the same keys and fingerprints as the daemon.
        let tags: String = read(fields, "tags")?;
        if tags != table.tags() {
            return Err(odd("tags", &tags));
        }
        let probe = table.fingerprinter().fingerprint(&Request::get(PROBE));
        let ours = probe.map(|probe| probe.to_string()).unwrap_or_default();
        if ours != table.probe {
            return Err(RecordError::Probe { ours, theirs: table.probe });
        }
        Ok(Some(table))
    }

    /// Publishes the table of a crawl with these keys, unless `is_check` is true.
    ///
    /// # Errors
    /// Redis fails, or has a table or a crawl that does not fit.
    #[cfg(feature = "link")]
    pub async fn publish(
        &self,
        link: &mut Link,
        keys: &Keys,
        is_check: bool,
    ) -> Result<(), ProtocolError> {
        let fields = self.fields();
        let mut command = redis::cmd("EVAL");
        command.arg(&*Script::new(include_str!("table.lua")).text);
        command.arg(2).arg(&keys.record).arg(&keys.state);
        command.arg(if is_check { "check" } else { "publish" });
        command.arg(Self::SHARED.len()).arg(&Self::SHARED).arg(&fields);
        match values("the partition table", link.call(&command).await?) {
            Err(ProtocolError::OtherTable { field, found, .. }) => {
                let wanted = fields.into_iter().find(|(name, _)| *name == field);
                let wanted = wanted.map(|(_, value)| value).unwrap_or_default();
                Err(ProtocolError::OtherTable { field, found, wanted })
            }
            other => other,
        }
    }

    /// Returns true if items belong to the same partitions by both tables.
    pub fn divides_like(&self, other: &Self) -> bool {
        (self.partitions, self.item, &self.fingerprint)
            == (other.partitions, other.item, &other.fingerprint)
    }

    /// Creates a fingerprinter for the requests of the crawl.
    pub fn fingerprinter(&self) -> Fingerprinter {
        Fingerprinter::new(self.fingerprint.clone())
    }

    fn tags(&self) -> String {
        let tags: Vec<_> = self.partitions.partitions().map(partition_tag).collect();
        tags.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_fingerprint::Algorithm;

    fn table() -> PartitionTable {
        PartitionTable {
            urlseen: "0.1.0".to_owned(),
            partitions: PartitionCount::new(4).unwrap(),
            kind: "native".to_owned(),
            item: ItemForm::Auto,
            fingerprint: FingerprintSpec {
                keep_fragments: true,
                same: r#"[{"fold":["www"]}]"#.parse().unwrap(),
                ..Algorithm::Scrapy26.into()
            },
            probe: "3e6b3c8d1b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b".to_owned(),
        }
    }

    fn fields() -> BTreeMap<String, String> {
        let table = table();
        let probe = table.fingerprinter().fingerprint(&Request::get(PROBE)).unwrap().to_string();
        let fields = PartitionTable { probe, ..table }.fields();
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let read = PartitionTable::parse(&fields()).unwrap().unwrap();
        assert!(read.divides_like(&table()));
        assert_eq!((read.urlseen, read.kind), (table().urlseen, table().kind));
        let other = PartitionTable { partitions: PartitionCount::new(8).unwrap(), ..table() };
        assert!(!other.divides_like(&table()));
    }

    #[test]
    fn a_table_that_leads_to_other_keys_or_fingerprints_is_refused() {
        for (name, value) in [
            ("partitions", "3"),
            ("partitions", "8"),
            ("tags", "0.1,1.3,2.1,3.4"),
            ("item", "jsonl"),
            ("algorithm", "md5"),
            ("canonical", "w3lib-2.6"),
            ("keep_fragments", "yes"),
            ("drop_tracking", "2020-01"),
            ("same", "www"),
        ] {
            let mut fields = fields();
            fields.insert(name.to_owned(), value.to_owned());
            let refused = PartitionTable::parse(&fields).unwrap_err();
            assert!(matches!(refused, RecordError::Odd { .. }), "{name} = {value}: {refused}");
        }
        for (name, value) in [("algorithm", "scrapy"), ("probe", "00")] {
            let mut fields = fields();
            fields.insert(name.to_owned(), value.to_owned());
            let refused = PartitionTable::parse(&fields).unwrap_err();
            assert!(matches!(refused, RecordError::Probe { .. }), "{name} = {value}: {refused}");
        }
        let mut fields = fields();
        fields.remove("item");
        assert_eq!(PartitionTable::parse(&fields), Err(RecordError::Missing { field: "item" }));
    }
}

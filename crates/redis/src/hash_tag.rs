//! Hash tags, which put keys into one slot of a Redis Cluster.

use crc::{CRC_16_XMODEM, Crc};
use urlseen_fingerprint::Partition;

/// Number of slots of a Redis Cluster.
pub(crate) const SLOTS: u32 = 16_384;

/// Returns the part of a key that determines its slot (Redis Cluster specification, "Hash tags").
/// This part is the text between the first `{` and the next `}`. If there is no such text, the part
/// is the whole key.
pub fn hashed(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Puts `key` in braces if it has no hash tag yet. A key that begins with the result is then in the
/// same slot as `key`.
pub(crate) fn tagged(key: &str) -> String {
    if hashed(key).len() < key.len() { key.to_owned() } else { format!("{{{key}}}") }
}

/// Returns the slot of a key (Redis Cluster specification, "Key distribution model").
fn slot(key: &str) -> u32 {
    const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);
    u32::from(CRC.checksum(hashed(key).as_bytes())) % SLOTS
}

/// Returns the hash tag of a partition, without braces. The slots of a cluster are divided into as
/// many equal ranges as there are partitions, and the slot of the tag is in the range of the
/// partition. So the partitions are spread evenly over nodes that have equal shares of the slots.
pub fn partition_tag(partition: Partition) -> String {
    let width = SLOTS / u32::from(partition.count().get());
    let wanted = u32::from(partition.number());
    let mut tags = (0..).map(|n: u32| format!("{}.{n}", partition.number()));
    tags.find(|tag| slot(tag) / width == wanted).expect("the hashes of all texts cover all slots")
}

/// Returns the name of a partition's key: the configured key with the hash tag of the partition.
pub fn partition_key(key: &str, tag: &str) -> String {
    format!("{key}:{{{tag}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_fingerprint::PartitionCount;

    /// Compares with `CLUSTER KEYSLOT` of a server.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, expected) in
            [("123456789", 12_739), ("{user1000}.following", 3443), ("foo{}{bar}", 8363)]
        {
            assert_eq!(slot(key), expected, "{key}");
        }
    }

    #[test]
    fn the_tags_of_all_partitions_are_spread_evenly_over_the_slots() {
        for count in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
            let count = PartitionCount::new(count).unwrap();
            for partition in count.partitions() {
                let key = partition_key("demo:discovered", &partition_tag(partition));
                let range = slot(&key) * u32::from(count.get()) / SLOTS;
                assert_eq!(range, u32::from(partition.number()), "{partition}: {key}");
            }
        }
        let tag = |number: usize| {
            partition_tag(PartitionCount::new(16).unwrap().partitions().nth(number).unwrap())
        };
        assert_eq!([tag(0), tag(3), tag(15)], ["0.13", "3.0", "15.20"].map(str::to_owned));
    }
}

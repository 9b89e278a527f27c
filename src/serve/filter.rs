//! Facts about the filter, for clients.

use super::bloom::Field;
use super::reply::Reply;
use urlseen_engine::engine::query::Counts;

/// Parameters of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterInfo {
    /// Number of fingerprints that the filter is made for.
    pub capacity: u64,
    /// Memory of the filter in bytes.
    pub bytes: u64,
    /// Growth factor of its next layer; `None` if it does not grow.
    pub(crate) expansion: Option<u32>,
}

impl FilterInfo {
    /// Bytes that RedisBloom adds to the bits when it reports a filter's size: for the filter, and
    /// for each layer.
    const OVERHEAD: [u64; 2] = [32, 64];

    /// Builds the reply to `BF.INFO` for one field or all.
    pub(super) fn info(&self, field: Option<Field>, counts: Counts) -> Vec<(Reply, Reply)> {
        let fields = Field::ALL.into_iter().filter(|each| field.is_none_or(|only| only == *each));
        fields.map(|each| (Reply::Simple(each.title()), self.value(each, counts))).collect()
    }

    fn value(&self, field: Field, counts: Counts) -> Reply {
        let Counts { keys, whole } = counts;
        number(match (field, whole) {
            (Field::Capacity, None) => self.capacity,
            (Field::Capacity, Some(whole)) => whole.capacity,
            (Field::Size, None) => self.bytes,
            (Field::Size, Some(whole)) => {
                let [filter, layer] = Self::OVERHEAD;
                filter + layer * whole.layers as u64 + whole.bytes
            }
            (Field::Filters, whole) => whole.map_or(1, |whole| whole.layers as u64),
            (Field::Items, _) => keys,
            (Field::Expansion, _) => match self.expansion {
                Some(expansion) => u64::from(expansion),
                None => return Reply::Null,
            },
        })
    }
}

/// Encodes a count as Redis does.
pub(super) fn number(count: u64) -> Reply {
    Reply::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

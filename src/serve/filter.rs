//! What is said of the filter to those who ask.

use super::bloom::Field;
use super::reply::Reply;
use urlseen_engine::engine::query::Counts;

/// What a filter was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterInfo {
    /// Fingerprints that it is made for.
    pub capacity: u64,
    /// The memory that it takes.
    pub bytes: u64,
    /// How many times larger than the last its next layer is; `None` if it does not grow.
    pub(crate) expansion: Option<u32>,
}

impl FilterInfo {
    /// What RedisBloom adds to the bits when it says how large a filter is: for the filter, and for
    /// each layer.
    const OVERHEAD: [u64; 2] = [32, 64];

    /// The reply to `BF.INFO`, of one field or all.
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

/// A count as Redis says it.
pub(super) fn number(count: u64) -> Reply {
    Reply::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

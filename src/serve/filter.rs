//! Facts about the filter, for clients.

use super::bloom::Field;
use super::reply::Reply;
use urlseen_core::filter::Fill;

/// Parameters of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterInfo {
    /// Growth factor of its next layer; `None` if it does not grow.
    pub(crate) expansion: Option<u32>,
}

impl FilterInfo {
    /// Bytes that RedisBloom adds to the bits when it reports a filter's size: for the filter, and
    /// for each layer.
    const OVERHEAD: [u64; 2] = [32, 64];

    /// Builds the reply to `BF.INFO` for one field or all.
    pub(super) fn info(&self, field: Option<Field>, fill: Fill) -> Vec<(Reply, Reply)> {
        let fields = Field::ALL.into_iter().filter(|each| field.is_none_or(|only| only == *each));
        fields.map(|each| (Reply::Simple(each.title()), self.value(each, fill))).collect()
    }

    fn value(&self, field: Field, fill: Fill) -> Reply {
        let Fill { keys, capacity, bytes, .. } = fill;
        let layers = fill.layers as u64;
        number(match field {
            Field::Capacity => capacity,
            Field::Size if layers == 0 => bytes,
            Field::Size => {
                let [filter, layer] = Self::OVERHEAD;
                filter + layer * layers + bytes
            }
            Field::Filters => layers.max(1),
            Field::Items => keys,
            Field::Expansion => match self.expansion {
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

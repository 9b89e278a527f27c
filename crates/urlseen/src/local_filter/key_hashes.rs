//! Iterator over the stored keys of a filter.

use std::iter::FusedIterator;
use std::vec;

use super::shared::SharedFilter;
use urlseen_core::filter::ShardId;
use urlseen_core::filter::native::KeyHash;

/// Iterator over the key hashes of a filter, from
/// [`LocalFilter::key_hashes`](crate::LocalFilter::key_hashes).
#[derive(Debug)]
pub struct KeyHashes<'a> {
    filter: &'a SharedFilter,
    /// Remaining key hashes of the current shard.
    current: vec::IntoIter<KeyHash>,
    /// Shards after the current one.
    later: vec::IntoIter<ShardId>,
}

impl<'a> KeyHashes<'a> {
    /// Returns `None` if the kind of the filter does not store keys.
    pub(super) fn new(filter: &'a SharedFilter) -> Option<Self> {
        let mut later = ShardId::all().collect::<Vec<_>>().into_iter();
        let current = filter.shard_key_hashes(later.next()?)?.into_iter();
        Some(Self { filter, current, later })
    }
}

impl Iterator for KeyHashes<'_> {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        loop {
            if let Some(key_hash) = self.current.next() {
                return Some(key_hash.id());
            }
            self.current = self.filter.shard_key_hashes(self.later.next()?)?.into_iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.current.len(), None)
    }
}

impl FusedIterator for KeyHashes<'_> {}

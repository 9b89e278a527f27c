//! Items of other partitions, which a reader refuses.

use super::{Identity, Item, Reader, Unreadable};

impl Reader {
    /// Refuses an item whose fingerprint belongs to another partition.
    pub(super) fn of_partition<'a>(&self, item: Item<'a>) -> Result<Item<'a>, Unreadable> {
        let here = self.options.partition;
        match &item.identity {
            Identity::Fingerprint(fingerprint) if !here.has(fingerprint) => {
                let owner = here.count().of(fingerprint);
                Err(Unreadable::OtherPartition { owner, here })
            }
            _ => Ok(item),
        }
    }
}

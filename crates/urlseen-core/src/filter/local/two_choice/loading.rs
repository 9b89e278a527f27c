//! Loads a shard that was saved by a filter of the kind `two-choice`.

use std::io::{self, Read};

use super::TwoChoiceFilter;
use crate::filter::ShardId;
use crate::filter::local::{FilterKind as _, insert_dated, out_of_memory};
use crate::filter::saved_keys::SavedKeys;

impl TwoChoiceFilter {
    /// Reads the keys of a shard, which it replaces.
    pub(super) fn read(
        &mut self,
        shard: ShardId,
        keys: u64,
        from: &mut dyn Read,
    ) -> io::Result<()> {
        let place = self.place(shard);
        self.renew(place, self.size.slots(shard, keys)).map_err(out_of_memory)?;
        let mut saved = SavedKeys::begin(self.size.saved_form(), keys, from)?;
        self.begin_generation(saved.saved_in);
        let mut expired = 0;
        while let Some(page) = saved.next_page()? {
            let bits = self.size.bits;
            let key_hash = |bytes| bits.read(bytes).map(|key| bits.key_hash(shard, key));
            let keys =
                page.into_iter().map(|(bytes, generation)| Some((key_hash(bytes)?, generation)));
            let keys = keys.collect::<Option<Vec<_>>>().ok_or(io::ErrorKind::InvalidData)?;
            expired += keys.iter().filter(|(_, it)| it.age_in(self.now).is_none()).count() as u64;
            insert_dated(self, keys).map_err(out_of_memory)?;
        }
        if self.shards[place].live_keys() + expired == keys {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

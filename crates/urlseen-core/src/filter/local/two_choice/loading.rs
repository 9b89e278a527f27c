//! Loads a shard that was saved by a filter of the kind `two-choice`.

use std::io::{self, Read};

use super::TwoChoiceFilter;
use crate::filter::ShardId;
use crate::filter::generation::Generation;
use crate::filter::local::{FilterKind as _, Full};
use crate::filter::two_choice::Key;

/// Number of saved keys that are read together.
const PAGE: usize = 8192;

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
        let form = self.size.saved_form();
        let mut head = vec![0; if keys == 0 { 0 } else { form.head() }];
        from.read_exact(&mut head)?;
        let saved_in = head.first_chunk().map_or(0, |number| u32::from_le_bytes(*number));
        let saved_in = Generation::new(saved_in);
        self.begin_generation(saved_in);
        let (mut left, mut expired) = (keys, 0);
        let mut page = vec![0; PAGE * form.key()];
        while left > 0 {
            let count = left.min(PAGE as u64);
            // At most a page.
            #[allow(clippy::cast_possible_truncation)]
            let page = &mut page[..count as usize * form.key()];
            from.read_exact(page)?;
            let keys = page.chunks_exact(form.key()).map(|bytes| form.read(bytes, saved_in));
            let keys = keys.collect::<Option<Vec<_>>>();
            let mut keys = keys.ok_or(io::ErrorKind::InvalidData)?;
            keys.sort_by_key(|&(_, generation)| generation);
            for run in keys.chunk_by(|(_, one), (_, next)| one == next) {
                let generation = run[0].1;
                let key_hash = |&(key, _): &(Key, _)| self.size.bits.key_hash(shard, key);
                let key_hashes: Vec<_> = run.iter().map(key_hash).collect();
                self.insert_in(generation, &key_hashes).map_err(out_of_memory)?;
                if generation.age_in(self.now).is_none() {
                    expired += key_hashes.len() as u64;
                }
            }
            left -= count;
        }
        if self.shards[place].live_keys() + expired == keys {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

pub(super) fn out_of_memory(full: Full) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, full)
}

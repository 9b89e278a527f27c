//! Keys with their generations.

use std::io;

use super::{FilterKind, Full, UniteError};
use crate::filter::generation::Generation;
use crate::filter::layout::native::KeyHash;

/// Inserts keys that were let through in these generations.
pub(super) fn insert_dated(
    filter: &mut impl FilterKind,
    mut keys: Vec<(KeyHash, Generation)>,
) -> Result<(), Full> {
    keys.sort_by_key(|&(_, generation)| generation);
    for run in keys.chunk_by(|(_, one), (_, next)| one == next) {
        let key_hashes: Vec<_> = run.iter().map(|&(key_hash, _)| key_hash).collect();
        filter.insert_in(run[0].1, &key_hashes)?;
    }
    Ok(())
}

/// Adds keys of another filter. If both filters have a key, its later generation counts.
pub(super) fn unite_dated(
    filter: &mut impl FilterKind,
    mut keys: Vec<(KeyHash, Generation)>,
) -> Result<(), UniteError> {
    keys.retain(|&(key_hash, generation)| filter.generation(key_hash) < Some(generation));
    let key_hashes: Vec<_> = keys.iter().map(|&(key_hash, _)| key_hash).collect();
    filter.make_room_for(&key_hashes)?;
    Ok(insert_dated(filter, keys)?)
}

/// Returns the error of a saved shard that does not fit into memory.
pub(super) fn out_of_memory(full: Full) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, full)
}

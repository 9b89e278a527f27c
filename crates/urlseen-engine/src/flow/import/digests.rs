//! What an import reads, for who wants it elsewhere than in a store.

use std::sync::Arc;

use super::{Bad, ImportError, Origin, Page};
use crate::item::Items;

/// Digests that were read at once.
#[derive(Debug)]
pub struct Digests {
    /// Their raw bytes, as [`Form::Digest`](crate::item::Form::Digest) reads them.
    pub items: Items,
    /// The first of what is bad.
    pub bad: Vec<Bad>,
    /// How much is bad.
    pub bad_count: u64,
}

/// Reads all digests that come from `origin`, page by page, on a thread of its own.
///
/// # Errors
/// No thread could be started.
pub fn digests(
    origin: Origin,
) -> Result<impl Iterator<Item = Result<Digests, ImportError>>, ImportError> {
    let mut pages = origin.read(Vec::new(), Arc::default())?;
    let digests = |Page { digests: items, bad, bad_count, .. }| Digests { items, bad, bad_count };
    Ok(std::iter::from_fn(move || pages.blocking_recv().map(|page| page.map(digests))))
}

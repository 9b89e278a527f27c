//! Item form of raw digests, which an import reads.

use super::{Item, Unreadable};
use urlseen_core::fingerprint::Fingerprint;

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let digest = Fingerprint::from_raw(bytes);
    let digest = digest.ok_or(Unreadable::NoDigest { length: bytes.len() })?;
    Ok(digest.into())
}

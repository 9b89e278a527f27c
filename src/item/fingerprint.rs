//! A ready fingerprint and nothing else.

use super::{Identity, Item, Unreadable};
use crate::fingerprint::Fingerprint;

pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    if memchr::memchr(b'\t', bytes).is_some() {
        return Err(Unreadable::TabInFingerprint);
    }
    Ok(Item { identity: Identity::Fingerprint(Fingerprint::from_text(bytes)), url: None })
}

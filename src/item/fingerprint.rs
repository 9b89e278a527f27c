//! A ready fingerprint and nothing else.

use super::{Identity, Item, Unreadable};
use crate::fingerprint::Fingerprint;
use crate::lanes;

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    if lanes::any(bytes, |lanes| lanes::equal(lanes, b'\t')) {
        return Err(Unreadable::TabInFingerprint);
    }
    Ok(Item { identity: Identity::Fingerprint(Fingerprint::from_text(bytes)), url: None })
}

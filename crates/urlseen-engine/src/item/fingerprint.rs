//! Item form of a bare fingerprint.

use super::{Item, Unreadable};
use urlseen_core::fingerprint::{Fingerprint, lanes};

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    if lanes::any(bytes, |lanes| lanes::equal(lanes, b'\t')) {
        return Err(Unreadable::TabInFingerprint);
    }
    Ok(Fingerprint::from_text(bytes).into())
}

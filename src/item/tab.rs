//! `FINGERPRINT<TAB>PAYLOAD`: a ready fingerprint, and a payload that is none of our business.

use super::{Identity, Item, Unreadable};
use crate::fingerprint::Fingerprint;
use crate::lanes;

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let tab =
        lanes::position(bytes, |lanes| lanes::equal(lanes, b'\t')).ok_or(Unreadable::NoTab)?;
    Ok(Item { identity: Identity::Fingerprint(Fingerprint::from_text(&bytes[..tab])), url: None })
}

//! `FINGERPRINT<TAB>PAYLOAD`: a ready fingerprint, and a payload that is none of our business.

use super::{Item, Unreadable};
use urlseen_core::fingerprint::{Fingerprint, lanes};

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let tab =
        lanes::position(bytes, |lanes| lanes::equal(lanes, b'\t')).ok_or(Unreadable::NoTab)?;
    Ok(Fingerprint::from_text(&bytes[..tab]).into())
}

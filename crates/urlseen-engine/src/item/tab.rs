//! Item form `FINGERPRINT<TAB>PAYLOAD`: a given fingerprint, and a payload that urlseen does not
//! read.

use super::{Item, Unreadable};
use urlseen_core::fingerprint::{Fingerprint, lanes};

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let tab =
        lanes::position(bytes, |lanes| lanes::equal(lanes, b'\t')).ok_or(Unreadable::NoTab)?;
    Ok(Fingerprint::from_text(&bytes[..tab]).into())
}

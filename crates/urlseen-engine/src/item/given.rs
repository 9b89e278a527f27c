//! Item forms with a given fingerprint.

use super::{Item, Unreadable};
use urlseen_core::fingerprint::{Fingerprint, lanes};

/// Reads a bare fingerprint.
#[inline]
pub(super) fn fingerprint(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    if lanes::any(bytes, |lanes| lanes::equal(lanes, b'\t')) {
        return Err(Unreadable::TabInFingerprint);
    }
    Ok(Fingerprint::from_text(bytes).into())
}

/// Reads `FINGERPRINT<TAB>PAYLOAD`. urlseen does not read the payload.
#[inline]
pub(super) fn tab(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let tab =
        lanes::position(bytes, |lanes| lanes::equal(lanes, b'\t')).ok_or(Unreadable::NoTab)?;
    Ok(Fingerprint::from_text(&bytes[..tab]).into())
}

/// Reads a raw digest, which an import has checked.
#[inline]
pub(super) fn digest(bytes: &[u8]) -> Result<Item<'_>, Unreadable> {
    let digest = Fingerprint::from_raw(bytes);
    let digest = digest.ok_or(Unreadable::NoDigest { length: bytes.len() })?;
    Ok(digest.into())
}

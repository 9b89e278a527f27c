//! Items with a fingerprint and a payload, with or without flags between them. With flags, the
//! filter needs nothing of the payload, and the sink gets the payload alone.
//!
//! ```text
//! FINGERPRINT<TAB>PAYLOAD
//! FINGERPRINT<TAB>&dont_filter&priority=10&ttl=12h<TAB>PAYLOAD
//! FINGERPRINT<TAB>&<TAB>PAYLOAD
//! ```

use memchr::memchr;
use urlseen_fingerprint::{Fingerprint, lanes};

use super::Unreadable;
use super::request::{Priority, Ttl};

/// Mark before each flag. A payload that begins with the mark and has a tab is taken for flags.
const MARK: u8 = b'&';

/// Bytes before the first tab of an item, its flags and its payload.
pub(super) struct TabParts<'a> {
    pub(super) fingerprint: &'a [u8],
    /// Flags, each with its mark; `None` if the item has none.
    pub(super) flags: Option<&'a [u8]>,
    pub(super) payload: &'a [u8],
}

/// Flags of an item, which count in place of those of its payload.
#[derive(Default)]
pub(super) struct Flags<'a> {
    pub(super) dont_filter: bool,
    pub(super) priority: Priority,
    pub(super) ttl: Ttl<'a>,
}

impl<'a> TabParts<'a> {
    /// Cuts an item at its first tab, and at the tab after its flags.
    pub(super) fn of(item: &'a [u8]) -> Result<Self, Unreadable> {
        let (fingerprint, payload) = item.split_at(first_tab(item)?);
        let payload = &payload[1..];
        let flags = memchr(b'\t', payload).filter(|_| payload[0] == MARK);
        let Some(tab) = flags else { return Ok(Self { fingerprint, flags: None, payload }) };
        let (flags, payload) = payload.split_at(tab);
        Ok(Self { fingerprint, flags: Some(flags), payload: &payload[1..] })
    }

    /// Reads the flags. An item with flags must have a payload.
    pub(super) fn read_flags(&self) -> Result<Flags<'a>, Unreadable> {
        if self.payload.is_empty() {
            return Err(Unreadable::Empty);
        }
        let mut read = Flags::default();
        // The first part is empty, because each flag has its mark before it.
        for flag in self
            .flags
            .unwrap_or_default()
            .split(|&byte| byte == MARK)
            .filter(|flag| !flag.is_empty())
        {
            let flag = std::str::from_utf8(flag).map_err(|_| Unreadable::Flags)?;
            if flag == "dont_filter" {
                read.dont_filter = true;
            } else if let Some(number) = flag.strip_prefix("priority=") {
                read.priority = number.parse().map_or(Priority::Wrong("text"), Priority::Number);
            } else if let Some(time) = flag.strip_prefix("ttl=") {
                read.ttl = Ttl::of(time);
            } else {
                return Err(Unreadable::Flags);
            }
        }
        Ok(read)
    }
}

#[inline]
fn first_tab(item: &[u8]) -> Result<usize, Unreadable> {
    lanes::position(item, |lanes| lanes::equal(lanes, b'\t')).ok_or(Unreadable::NoTab)
}

/// Returns the bytes before the first tab; `None` if flags may follow it.
#[inline]
pub(super) fn without_flags(item: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
    let tab = first_tab(item)?;
    Ok((item.get(tab + 1) != Some(&MARK)).then(|| &item[..tab]))
}

/// Reads an item that is only a fingerprint.
#[inline]
pub(super) fn bare(item: &[u8]) -> Result<Fingerprint, Unreadable> {
    if lanes::any(item, |lanes| lanes::equal(lanes, b'\t')) {
        return Err(Unreadable::TabInFingerprint);
    }
    Ok(Fingerprint::from_text(item))
}

//! A bare URL: a GET of it, without a body.

use std::borrow::Cow;

use super::said::{Priority, Said};
use super::{Unreadable, utf8};

#[inline]
pub(super) fn read(bytes: &[u8]) -> Result<Said<'_>, Unreadable> {
    Ok(Said {
        url: Some(Cow::Borrowed(utf8(bytes)?)),
        method: Cow::Borrowed("GET"),
        body: Cow::Borrowed(&[]),
        verbatim_url: false,
        fingerprint: None,
        dont_filter: false,
        priority: Priority::default(),
    })
}

//! Fast path for the scheme, host and port of nearly all links.

use super::bytes::plain_in_host;
use crate::fingerprint::lanes;

/// Splits a cleaned URL after its origin, if the origin is plain. A plain origin has the scheme
/// `http` or `https`, and a host of ASCII letters, digits and `-._`. Its port has no leading zeros,
/// or is missing. Returns `None` for any other URL.
///
/// Both functions of w3lib, `safe_url_string` and `canonicalize_url`, only convert a plain origin
/// to lower case. So one pass can do the work of both.
pub(super) fn split_plain(url: &str) -> Option<(&str, &str)> {
    let bytes = url.as_bytes();
    let host = ["https://", "http://"].iter().find_map(|scheme| {
        let start = bytes.get(..scheme.len())?;
        // Nearly all schemes are in lower case, so the first comparison is usually enough.
        let is_it = start == scheme.as_bytes() || start.eq_ignore_ascii_case(scheme.as_bytes());
        is_it.then_some(scheme.len())
    })?;
    let mut end = lanes::position(&bytes[host..], |lanes| !plain_in_host(lanes))
        .map_or(bytes.len(), |length| host + length);
    if end == host {
        return None;
    }
    if bytes.get(end) == Some(&b':') {
        end += 1 + plain_port(&url[end + 1..])?;
    }
    matches!(bytes.get(end), None | Some(b'/' | b'?' | b'#')).then(|| url.split_at(end))
}

/// Returns the number of digits of the port at the start of `text`. Returns `None` unless the port
/// is already canonical.
fn plain_port(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let port = &text[..digits];
    (!port.starts_with('0') && port.parse::<u16>().is_ok()).then_some(digits)
}

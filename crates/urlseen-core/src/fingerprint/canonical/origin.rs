//! Fast path for the scheme, host and port of nearly every link.

use super::bytes::plain_in_host;
use crate::fingerprint::lanes;

/// Cuts a plain origin off a cleaned URL: `http` or `https`, a host of ASCII letters, digits and
/// `-._`, and perhaps a port without leading zeros. Returns `None` for any other URL.
///
/// The safe form of such an origin differs only by its lower case, and so does the canonical form.
/// Both can therefore be made in one pass.
pub(super) fn split_plain(url: &str) -> Option<(&str, &str)> {
    let bytes = url.as_bytes();
    let host = ["https://", "http://"].iter().find_map(|scheme| {
        let start = bytes.get(..scheme.len())?;
        // Nearly all schemes are in lower case, which one comparison can tell.
        let is_it = start == scheme.as_bytes() || start.eq_ignore_ascii_case(scheme.as_bytes());
        is_it.then_some(scheme.len())
    })?;
    let mut end = lanes::position(&bytes[host..], |lanes| !plain_in_host(lanes))
        .map_or(bytes.len(), |length| host + length);
    if end == host {
        return None;
    }
    if bytes.get(end) == Some(&b':') {
        end += 1 + plain_port(&bytes[end + 1..])?;
    }
    matches!(bytes.get(end), None | Some(b'/' | b'?' | b'#')).then(|| url.split_at(end))
}

/// Number of digits of the port at the start of `bytes`, if the port is already canonical.
fn plain_port(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let canonical = (1..=5).contains(&digits) && bytes[0] != b'0';
    let number =
        bytes.iter().take(digits.min(5)).fold(0, |port, digit| port * 10 + u32::from(digit - b'0'));
    (canonical && u16::try_from(number).is_ok()).then_some(digits)
}

//! User info, host and port.

use unicode_normalization::UnicodeNormalization;

use super::bytes::{SAFE_USERINFO, push_requoted};
use super::error::CanonicalizeError;
use super::{idna, ipv6};

/// Refuses an authority whose brackets do not hold an IPv6 address, or in which a character
/// normalises to a delimiter.
pub(super) fn check(authority: &str) -> Result<(), CanonicalizeError> {
    if authority.contains('[') != authority.contains(']') {
        return Err(CanonicalizeError::UnpairedBracket);
    }
    if authority.contains('[') {
        check_brackets(authority)?;
    }
    if !authority.is_ascii() && hides_delimiter(authority) {
        return Err(CanonicalizeError::HiddenDelimiter);
    }
    Ok(())
}

/// Brackets anywhere in the authority, be it in the user info, ask for an address as the host.
fn check_brackets(authority: &str) -> Result<(), CanonicalizeError> {
    let (_, host_and_port) = split_user_info(authority);
    let host = match host_and_port.split_once('[') {
        Some((before, bracketed)) => {
            if !before.is_empty() {
                return Err(CanonicalizeError::TextBeforeBracket);
            }
            let (host, port) = partition(bracketed, ']');
            if !port.is_empty() && !port.starts_with(':') {
                return Err(CanonicalizeError::TextAfterBracket);
            }
            host
        }
        None => partition(host_and_port, ':').0,
    };
    if host.starts_with(['v', 'V']) {
        return if is_ipv_future(host) { Ok(()) } else { Err(CanonicalizeError::IpvFuture) };
    }
    if ipv6::parse_ipv4(host).is_some() {
        return Err(CanonicalizeError::BracketedIpv4);
    }
    ipv6::Address::parse(host).map(drop).ok_or(CanonicalizeError::NotIpv6)
}

/// RFC 3986's `IPvFuture`, as loosely as Python reads it: anything may follow the dot.
fn is_ipv_future(host: &str) -> bool {
    host.strip_prefix('v').and_then(|rest| rest.split_once('.')).is_some_and(
        |(version, address)| {
            !version.is_empty()
                && version.bytes().all(|digit| digit.is_ascii_hexdigit())
                && !address.is_empty()
        },
    )
}

/// Whether NFKC brings forth a delimiter. Where it changes anything at all, a `\` that was there
/// before counts too, as it does in w3lib.
fn hides_delimiter(authority: &str) -> bool {
    let visible = || authority.chars().filter(|letter| !matches!(letter, '@' | ':' | '#' | '?'));
    !visible().eq(visible().nfkc())
        && visible().nfkc().any(|letter| matches!(letter, '/' | '?' | '#' | '@' | ':' | '\\'))
}

/// Appends a checked authority made safe; returns where in `out` its host begins.
pub(super) fn push_safe(authority: &str, out: &mut String) -> Result<usize, CanonicalizeError> {
    if let (Some(user_info), _) = split_user_info(authority) {
        push_user_info(user_info, out);
        out.push('@');
    }
    let start = out.len();
    let (host, port) = host_and_port(authority);
    push_host(host, out)?;
    if !port.is_empty() {
        out.push(':');
        push_port(port, out)?;
    }
    Ok(start)
}

/// Appends the user info without its `@`.
pub(super) fn push_user_info(user_info: &str, out: &mut String) {
    let (name, password) = match user_info.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user_info, None),
    };
    push_requoted(name, &SAFE_USERINFO, out);
    if let Some(password) = password {
        out.push(':');
        push_requoted(password, &SAFE_USERINFO, out);
    }
}

/// The host, without brackets, and the port of a checked authority.
pub(super) fn host_and_port(authority: &str) -> (&str, &str) {
    let (_, host_and_port) = split_user_info(authority);
    if authority.contains('[') {
        let (host, rest) = partition(partition(host_and_port, '[').1, ']');
        (host, partition(rest, ':').1)
    } else {
        partition(host_and_port, ':')
    }
}

/// Appends a checked authority in canonical form: its host in lower case to the last letter, an
/// IPv6 address at its shortest.
pub(super) fn push_canonical(authority: &str, out: &mut String) -> Result<(), CanonicalizeError> {
    let start = push_safe(authority, out)?;
    if out[start..].is_ascii() {
        out[start..].make_ascii_lowercase();
    } else {
        let lower = out[start..].to_lowercase();
        out.truncate(start);
        out.push_str(&lower);
    }
    if let Some(short) = shortened(&out[start..]) {
        out.truncate(start);
        out.push_str(&short);
    }
    Ok(())
}

/// A host and what follows it with its IPv6 address at its shortest, if it is one.
pub(super) fn shortened(host: &str) -> Option<String> {
    let (host, rest) = host.strip_prefix('[')?.split_once(']')?;
    Some(format!("[{}]{rest}", ipv6::Address::parse(host)?))
}

/// Appends a host: lower-cased up to a `%`, which in an IPv6 address begins the zone; in ASCII by
/// way of IDNA, or as it is where IDNA does not take it. Only an address with a colon gets its
/// brackets back.
pub(super) fn push_host(host: &str, out: &mut String) -> Result<(), CanonicalizeError> {
    let (name, zone) = host.split_at(host.find('%').unwrap_or(host.len()));
    let has_brackets = host.contains(':');
    if has_brackets {
        out.push('[');
    }
    if host.is_ascii() {
        let start = out.len();
        out.push_str(name);
        out[start..].make_ascii_lowercase();
        out.push_str(zone);
    } else {
        // That alone can make it ASCII: the Kelvin sign becomes a `k`.
        let host = name.to_lowercase() + zone;
        if has_brackets && !host.is_ascii() {
            return Err(CanonicalizeError::NonAsciiInBrackets);
        }
        let ascii = if has_brackets { None } else { idna::encode(&host) };
        out.push_str(ascii.as_deref().unwrap_or(&host));
    }
    if has_brackets {
        out.push(']');
    }
    Ok(())
}

/// Appends a port as a plain decimal number.
pub(super) fn push_port(port: &str, out: &mut String) -> Result<(), CanonicalizeError> {
    /// Python's limit for reading a decimal number, leading zeros included.
    const MAX_DIGITS: usize = 4300;
    if !port.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(CanonicalizeError::PortNotNumber);
    }
    let significant = port.trim_start_matches('0');
    if port.len() > MAX_DIGITS {
        return Err(CanonicalizeError::PortOutOfRange);
    }
    let number = match significant {
        "" => 0,
        digits => digits.parse::<u16>().map_err(|_| CanonicalizeError::PortOutOfRange)?,
    };
    out.push_str(&number.to_string());
    Ok(())
}

/// The user info, if there is any, and the rest: cut at the last `@`.
pub(super) fn split_user_info(authority: &str) -> (Option<&str>, &str) {
    match authority.rsplit_once('@') {
        Some((user_info, rest)) => (Some(user_info), rest),
        None => (None, authority),
    }
}

/// What is before and behind the first `delimiter`; all and nothing without one.
fn partition(text: &str, delimiter: char) -> (&str, &str) {
    text.split_once(delimiter).unwrap_or((text, ""))
}

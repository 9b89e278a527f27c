//! User info, host and port of a URL, and the reasons why a URL has no fingerprint.

use std::net::{Ipv4Addr, Ipv6Addr};

use unicode_normalization::UnicodeNormalization;

use super::escapes::{SAFE_USERINFO, decoded, push_byte, push_quoted};
use super::steps::{Observer, Rule};
use super::{CanonicalForm, idna};

/// Refuses an authority whose brackets do not hold an IPv6 address. Also refuses an authority with
/// a character whose normal form contains a delimiter, such as `℀` with the normal form `a/c`.
pub(super) fn check(authority: &str, form: CanonicalForm) -> Result<(), CanonicalizeError> {
    if authority.contains('[') != authority.contains(']') {
        return Err(CanonicalizeError::UnpairedBracket);
    }
    if authority.contains('[') {
        check_brackets(authority, form)?;
    }
    if !authority.is_ascii() && hides_delimiter(authority, form) {
        return Err(CanonicalizeError::HiddenDelimiter);
    }
    Ok(())
}

/// Checks an authority with brackets. Even if the brackets are in the user info, the host must be
/// an address. w3lib 2.4 checks only the text in the first brackets.
fn check_brackets(authority: &str, form: CanonicalForm) -> Result<(), CanonicalizeError> {
    let (_, host_and_port) = split_user_info(authority);
    let host = match host_and_port.split_once('[') {
        _ if form.is_old() => cut_at(cut_at(authority, '[').1, ']').0,
        Some((before, bracketed)) => {
            if !before.is_empty() {
                return Err(CanonicalizeError::TextBeforeBracket);
            }
            let (host, port) = cut_at(bracketed, ']');
            if !port.is_empty() && !port.starts_with(':') {
                return Err(CanonicalizeError::TextAfterBracket);
            }
            host
        }
        None => cut_at(host_and_port, ':').0,
    };
    if host.starts_with(['v', 'V']) {
        return if is_ipv_future(host) { Ok(()) } else { Err(CanonicalizeError::IpvFuture) };
    }
    if host.parse::<Ipv4Addr>().is_ok() {
        return Err(CanonicalizeError::BracketedIpv4);
    }
    shortest(host).map(drop).ok_or(CanonicalizeError::NotIpv6)
}

/// Returns true for an `IPvFuture` address of RFC 3986. As in Python, any text may follow the dot.
fn is_ipv_future(host: &str) -> bool {
    host.strip_prefix('v').and_then(|rest| rest.split_once('.')).is_some_and(
        |(version, address)| {
            !version.is_empty()
                && version.bytes().all(|digit| digit.is_ascii_hexdigit())
                && !address.is_empty()
        },
    )
}

/// Returns true if the NFKC form of an authority contains a new delimiter. If NFKC changes the
/// authority, a `\` of the original text also counts, as in w3lib 2.5.
fn hides_delimiter(authority: &str, form: CanonicalForm) -> bool {
    let is_delimiter = |letter| match letter {
        '/' | '?' | '#' | '@' | ':' => true,
        letter => letter == '\\' && !form.is_old(),
    };
    let visible = || authority.chars().filter(|letter| !matches!(letter, '@' | ':' | '#' | '?'));
    !visible().eq(visible().nfkc()) && visible().nfkc().any(is_delimiter)
}

/// Appends to `out` the form that w3lib's `safe_url_string` gives to a checked authority. Returns
/// the position of the host in `out`. `tail` is the text after the authority.
pub(super) fn push_safe(
    authority: &str,
    tail: &str,
    form: CanonicalForm,
    out: &mut String,
    observer: &mut impl Observer,
) -> Result<usize, CanonicalizeError> {
    if let (Some(user_info), rest) = split_user_info(authority) {
        push_user_info(user_info, form, out);
        out.push('@');
        observer.step(Rule::UserInfo, || [out, rest, tail].concat());
    }
    let start = out.len();
    let (host, port) = host_and_port(authority, form);
    push_host(host, form, out, observer, || [port, tail])?;
    match cut_at(port, ':').1 {
        "" => observer.step(Rule::EmptyPort, || [out, tail].concat()),
        port => {
            out.push(':');
            push_port(port, out)?;
            observer.step(Rule::Port, || [out, tail].concat());
        }
    }
    Ok(start)
}

/// Appends the form that w3lib's `safe_url_string` gives to the user info, without its `@`. w3lib
/// 2.4 decodes it to a text, in which U+FFFD stands for bytes that are not UTF-8.
fn push_user_info(user_info: &str, form: CanonicalForm, out: &mut String) {
    let mut before = "";
    for part in user_info.splitn(2, ':') {
        out.push_str(before);
        if form.is_old() {
            let bytes: Vec<u8> = decoded(part).collect();
            push_quoted(&String::from_utf8_lossy(&bytes), &SAFE_USERINFO, out);
        } else {
            decoded(part).for_each(|byte| push_byte(byte, &SAFE_USERINFO, out));
        }
        before = ":";
    }
}

/// Splits a checked authority into the host, without brackets, and the port with its colon.
fn host_and_port(authority: &str, form: CanonicalForm) -> (&str, &str) {
    let (_, host_and_port) = split_user_info(authority);
    if (if form.is_old() { host_and_port } else { authority }).contains('[') {
        cut_at(cut_at(host_and_port, '[').1, ']')
    } else {
        host_and_port.split_at(host_and_port.find(':').unwrap_or(host_and_port.len()))
    }
}

/// Appends the canonical form of a checked authority: the host is in lower case, and an IPv6
/// address in its shortest form. `tail` is the text after the authority.
pub(super) fn push_canonical(
    authority: &str,
    tail: &str,
    out: &mut String,
    observer: &mut impl Observer,
) -> Result<(), CanonicalizeError> {
    let start = push_safe(authority, tail, CanonicalForm::W3lib25, out, observer)?;
    if out[start..].is_ascii() {
        out[start..].make_ascii_lowercase();
    } else {
        let lower = out[start..].to_lowercase();
        out.truncate(start);
        out.push_str(&lower);
    }
    observer.step(Rule::HostCase, || [out, tail].concat());
    if let Some(short) = shortened(&out[start..]) {
        out.truncate(start);
        out.push_str(&short);
        observer.step(Rule::Ipv6, || [out, tail].concat());
    }
    Ok(())
}

/// Appends the form that w3lib 2.4's `canonicalize_url` gives to an authority. A host that is not
/// ASCII is only left if IDNA refused it in [`push_safe`]. Here it is encoded with its user info
/// and its port, so its labels are others.
pub(super) fn push_canonical_2_4(
    authority: &str,
    tail: &str,
    out: &mut String,
    observer: &mut impl Observer,
) {
    let ascii = if authority.is_ascii() { None } else { idna::encode(authority, true) };
    let authority = ascii.as_deref().unwrap_or(authority);
    observer.step(Rule::Idna, || [out, authority, tail].concat());
    let (user_info, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    out.push_str(user_info);
    let host = host.to_lowercase();
    observer.step(Rule::HostCase, || [out, &*host, tail].concat());
    out.push_str(host.trim_end_matches(':'));
    observer.step(Rule::EmptyPort, || [out, tail].concat());
}

/// Returns the host with its IPv6 address in the shortest form. Returns `None` if the host does not
/// begin with an IPv6 address in brackets.
fn shortened(host: &str) -> Option<String> {
    let (host, rest) = host.strip_prefix('[')?.split_once(']')?;
    Some(format!("[{}]{rest}", shortest(host)?))
}

/// Appends the form that w3lib's `safe_url_string` gives to a host. The part before a `%` becomes
/// lower case. In an IPv6 address, the part after the `%` is the zone. A host that is not ASCII is
/// encoded with IDNA, or stays unchanged if IDNA refuses it. Only an address with a colon gets
/// brackets. `rest` returns the port and the text after it.
fn push_host<'a>(
    host: &str,
    form: CanonicalForm,
    out: &mut String,
    observer: &mut impl Observer,
    rest: impl Fn() -> [&'a str; 2],
) -> Result<(), CanonicalizeError> {
    let (name, zone) = host.split_at(host.find('%').unwrap_or(host.len()));
    let has_brackets = host.contains(':');
    let closing = if has_brackets { "]" } else { "" };
    if has_brackets {
        out.push('[');
    }
    observer.step(Rule::Brackets, || [out, host, closing, &rest().concat()].concat());
    if host.is_ascii() {
        let start = out.len();
        out.push_str(name);
        out[start..].make_ascii_lowercase();
        out.push_str(zone);
    } else {
        // Lower case alone can make a host ASCII: the Kelvin sign becomes a `k`.
        let host = name.to_lowercase() + zone;
        observer.step(Rule::HostCase, || [out, &host, closing, &rest().concat()].concat());
        if has_brackets && !host.is_ascii() {
            return Err(CanonicalizeError::NonAsciiInBrackets);
        }
        let ascii = if has_brackets { None } else { idna::encode(&host, form.is_old()) };
        out.push_str(ascii.as_deref().unwrap_or(&host));
    }
    out.push_str(closing);
    let rule = if host.is_ascii() { Rule::HostCase } else { Rule::Idna };
    observer.step(rule, || [out, &*rest().concat()].concat());
    Ok(())
}

/// Appends a port as a plain decimal number.
fn push_port(port: &str, out: &mut String) -> Result<(), CanonicalizeError> {
    /// Python's limit for the length of a decimal number, leading zeros included.
    const MAX_DIGITS: usize = 4300;
    if !port.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(CanonicalizeError::PortNotNumber);
    }
    if port.len() > MAX_DIGITS {
        return Err(CanonicalizeError::PortOutOfRange);
    }
    let number: u16 = port.parse().map_err(|_| CanonicalizeError::PortOutOfRange)?;
    out.push_str(&number.to_string());
    Ok(())
}

/// Splits an authority at the last `@` into the user info and the rest. Without an `@`, the user
/// info is `None`.
pub(super) fn split_user_info(authority: &str) -> (Option<&str>, &str) {
    match authority.rsplit_once('@') {
        Some((user_info, rest)) => (Some(user_info), rest),
        None => (None, authority),
    }
}

/// Splits a text at the first `delimiter`. Without a delimiter, the second part is empty.
fn cut_at(text: &str, delimiter: char) -> (&str, &str) {
    text.split_once(delimiter).unwrap_or((text, ""))
}

/// Returns the shortest form of an IPv6 address without its brackets, and the zone after its `%` as
/// written. As in Python 3.13, an IPv4-mapped address has dots. Returns `None` if `text` is not an
/// address.
fn shortest(text: &str) -> Option<String> {
    let (address, zone) = text.split_at(text.find('%').unwrap_or(text.len()));
    if zone == "%" || zone.matches('%').count() > 1 {
        return None;
    }
    Some(format!("{}{zone}", address.parse::<Ipv6Addr>().ok()?))
}

/// Reason why Scrapy or w3lib refuses a URL.
///
/// Each variant stands for one place in the Python code that raises a `ValueError`. So Python
/// computes no fingerprint for such a URL, either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalizeError {
    /// URL without `://` that begins with neither `about:` nor `data:`. Scrapy checks this after
    /// `safe_url_string` has converted the URL.
    #[error(
        "the URL is not absolute: it has no `://` and begins with neither `about:` nor `data:`; \
         give it its scheme, as in https://example.com/"
    )]
    NotAbsolute,
    /// Authority with only one kind of bracket, as in `http://[::1/` or `http://::1]/`.
    #[error("the host has one of `[` and `]` without the other")]
    UnpairedBracket,
    /// Text before the opening bracket, as in `http://a[::1]/`.
    #[error("there is text before the `[` of the host; brackets hold a whole IPv6 address")]
    TextBeforeBracket,
    /// Text after the closing bracket, as in `http://[::1]a/`.
    #[error("only `:` and a port may follow the `]` of the host")]
    TextAfterBracket,
    /// Host that is not an IPv6 address, in an authority with brackets, as in `http://[::g]/`. The
    /// brackets may also be in the user info.
    #[error("the authority has brackets, but its host is not an IPv6 address")]
    NotIpv6,
    /// IPv4 address in brackets, as in `http://[1.2.3.4]/`.
    #[error("an IPv4 address cannot stand in brackets")]
    BracketedIpv4,
    /// Incomplete `IPvFuture` address, as in `http://[v1]/` or `http://[V1.a]/`.
    #[error(
        "a host in brackets that begins with `v` must continue with hex digits, a dot and an \
         address, and its `v` must be lower case"
    )]
    IpvFuture,
    /// Host in brackets that is not ASCII, as in `http://[fe80::1%é]/`.
    #[error("the host in brackets is not all ASCII")]
    NonAsciiInBrackets,
    /// Port that is not a number, as in `http://h:a/`, `http://h:-1/` or `http://h:٣/`.
    #[error("the port is not a number in the digits 0 to 9")]
    PortNotNumber,
    /// Port over 65535, as in `http://h:65536/`. Also a port with more than 4300 digits, the limit
    /// of Python.
    #[error("the port is over 65535")]
    PortOutOfRange,
    /// Character whose normal form contains a delimiter: in `http://a℀b/`, U+2100 becomes `a/c`.
    #[error(
        "the authority has a character whose compatibility form (NFKC) holds a delimiter, one of \
         `/ ? # @ : \\`"
    )]
    HiddenDelimiter,
}

//! Reasons why a URL has no fingerprint.

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

//! Why a URL has no fingerprint.

/// What is wrong with a URL that Scrapy and w3lib refuse.
///
/// One variant for each place at which the Python code raises; what it raises there is a
/// `ValueError` of some kind, never a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalizeError {
    /// Scrapy's own test, made on the URL after it was made safe.
    #[error(
        "the URL is not absolute: it has no `://` and begins with neither `about:` nor `data:`; \
         give it its scheme, as in https://example.com/"
    )]
    NotAbsolute,
    /// `http://[::1/` or `http://::1]/`.
    #[error("the host has one of `[` and `]` without the other")]
    UnpairedBracket,
    /// `http://a[::1]/`.
    #[error("there is text before the `[` of the host; brackets hold a whole IPv6 address")]
    TextBeforeBracket,
    /// `http://[::1]a/`.
    #[error("only `:` and a port may follow the `]` of the host")]
    TextAfterBracket,
    /// `http://[::g]/`, and brackets in the user info before an ordinary host.
    #[error("the authority has brackets, but its host is not an IPv6 address")]
    NotIpv6,
    /// `http://[1.2.3.4]/`.
    #[error("an IPv4 address cannot stand in brackets")]
    BracketedIpv4,
    /// `http://[v1]/`, `http://[V1.a]/`.
    #[error(
        "a host in brackets that begins with `v` must go on with hex digits, a dot and an \
         address, and its `v` must be lower case"
    )]
    IpvFuture,
    /// `http://[fe80::1%é]/`.
    #[error("the host in brackets is not all ASCII")]
    NonAsciiInBrackets,
    /// `http://h:a/`, `http://h:-1/`, `http://h:٣/`.
    #[error("the port is not a number in the digits 0 to 9")]
    PortNotNumber,
    /// `http://h:65536/`, or more than 4300 digits, where Python stops reading.
    #[error("the port is over 65535")]
    PortOutOfRange,
    /// `http://a℀b/`: U+2100 normalises to `a/c`.
    #[error(
        "the authority has a character whose compatibility form (NFKC) holds a delimiter, one of \
         `/ ? # @ : \\`"
    )]
    HiddenDelimiter,
}

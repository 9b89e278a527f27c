//! Refusals with their reasons. The vectors in `tests/vectors` have the canonical forms of
//! thousands of URLs, and the refused ones without reasons.

use super::*;

/// Returns the canonical form of the URL of a request.
fn request_url(url: &str) -> Result<String, CanonicalizeError> {
    let mut canonical = String::new();
    push_request_url(url, CanonicalSpec::default(), &mut Buffers::default(), &mut canonical)?;
    Ok(canonical)
}

#[test]
fn a_url_is_refused_with_the_reason() {
    use CanonicalizeError as E;
    let port = format!("http://h:{}1", "0".repeat(4300));
    for (refusal, urls) in [
        (E::NotAbsolute, &["", "/x", "mailto:a@b", "//h/x", "http:h", "http%3A//h"][..]),
        (E::NotAbsolute, &["\u{a0}about:blank", "\u{feff}about:blank"]),
        (E::PortOutOfRange, &["http://h:65536", "http://h:4294967376", &port]),
        (E::PortNotNumber, &["http://h:+1", "http://h: 1", "http://h:٣", "http://h:80:80"]),
        (E::HiddenDelimiter, &["http://a℀b/", "http://a＠b/", r"foo://ﬁ\/"]),
        // The first pass removes the outer brackets, so the second pass finds an unpaired one.
        (E::UnpairedBracket, &["http://[::1/", "http://[v1.[]/"]),
        (E::TextBeforeBracket, &["http://a[::1]/"]),
        (E::TextAfterBracket, &["http://[::1]a/"]),
        (E::BracketedIpv4, &["http://[1.2.3.4]/"]),
        (E::IpvFuture, &["http://[V1.a]/", "http://[v1.]/"]),
        (E::NonAsciiInBrackets, &["http://[fe80::1%é]/"]),
        (E::NotIpv6, &["http://[]/", "http://[1::2::3]/", "http://[::1.2.3.04]/", "http://[:::]/"]),
    ] {
        for url in urls {
            assert_eq!(request_url(url), Err(refusal), "{url:?}");
        }
    }
}

/// The one-pass code for plain origins gives the same result as the two passes.
#[test]
fn the_fast_path_gives_the_results_of_the_two_passes() {
    for origin in ["http://h", "HTTPS://Example.COM", "http://a_b-c.:8080", "https://1.2.3.4:65535"]
    {
        assert!(split_plain(origin).is_some());
        for tail in
            ["", "/", "?b&a", "#f", "/a;p/b;q?c#d", "/%2e/../x y'[|]é%zz?é=%zz'&a+b=[", "/.;."]
        {
            let url = format!("{origin}{tail}");
            assert_eq!(request_url(&url), trace(&url, CanonicalSpec::default()).outcome);
        }
    }
    for url in
        ["http://u@h", "http://h:080", "http://h:", "http://", "http://h%", "ftp://h", r"http://h\"]
    {
        assert!(split_plain(url).is_none(), "{url}");
    }
}

//! URLs that other reimplementations of w3lib convert wrongly, grouped by the reason. The vectors
//! in `tests/vectors` cover thousands more URLs, without reasons.

use super::*;

/// Returns the canonical form of the URL of a request.
fn request_url(url: &str) -> Result<String, CanonicalizeError> {
    let mut canonical = String::new();
    push_request_url(url, Fragments::Drop, &mut Buffers::default(), &mut canonical)?;
    Ok(canonical)
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (url, canonical) in cases {
        assert_eq!(request_url(url).as_deref(), Ok(*canonical), "{url:?}");
    }
}

#[track_caller]
fn check_refused(cases: &[(&str, CanonicalizeError)]) {
    for (url, refusal) in cases {
        assert_eq!(request_url(url), Err(*refusal), "{url:?}");
    }
}

#[test]
fn accepts_urls_that_look_absolute_once_they_are_safe() {
    check(&[
        ("javascript:alert('http://x')", "javascript:alert('http://x')"),
        ("foo:a#://", "foo:a"),
        ("1http://h/", "1http://h/"),
        ("http:/h/x", "http:///h/x"),
        ("about:", "about:/"),
        ("ABOUT:blank", "about:blank"),
        ("data:,a?z=1&b", "data:,a?b=&z=1"),
        ("//h?u=://", "//h/?u=%3A%2F%2F"),
    ]);
    for url in ["", "/x", "mailto:a@b", "//h/x", "http:h", "foo:///a", "http%3A//h"] {
        assert_eq!(request_url(url), Err(CanonicalizeError::NotAbsolute), "{url:?}");
    }
}

#[test]
fn removes_characters_that_browsers_ignore() {
    check(&[
        ("\u{0}\u{1f} http://h/a \n", "http://h/a"),
        ("ht\ttp:/\n/h\r/a\tb", "http://h/ab"),
        ("http://h/\u{a0}", "http://h/%C2%A0"),
        // The first pass removes the colon, so the host ends with a space. The second pass removes
        // this space.
        ("http://h :?", "http://h/"),
    ]);
    check_refused(&[
        ("\u{a0}about:blank", CanonicalizeError::NotAbsolute),
        ("\u{feff}about:blank", CanonicalizeError::NotAbsolute),
    ]);
}

#[test]
fn reads_backslashes_as_slashes_in_special_schemes() {
    check(&[
        (r"http:\\h\a\..\b?c\d#e\f", "http://h/b?c%5Cd="),
        (r"http://h\@g/", "http://h/@g/"),
        (r"foo://h\a/b\c", r"foo://h\a/b%5Cc"),
    ]);
}

#[test]
fn changes_only_the_case_of_hosts() {
    check(&[
        ("HTTP://EXAMPLE.Com.", "http://example.com./"),
        ("http://H%2F/", "http://h%2f/"),
        ("http://a b_\"'\u{7f}/", "http://a b_\"'\u{7f}/"),
        ("http:///a", "http:///a"),
    ]);
}

#[test]
fn reads_ports_as_numbers() {
    check(&[
        ("http://h:80/", "http://h:80/"),
        ("http://h:", "http://h/"),
        ("http://h:0080/", "http://h:80/"),
        ("http://h:0", "http://h:0/"),
        ("http://h:65535", "http://h:65535/"),
        ("http://:80", "http://:80/"),
    ]);
    let long = format!("http://h:{}1", "0".repeat(4300));
    check(&[(&long.replacen('0', "", 1), "http://h:1/")]);
    check_refused(&[
        ("http://h:65536", CanonicalizeError::PortOutOfRange),
        ("http://h:4294967376", CanonicalizeError::PortOutOfRange),
        (&long, CanonicalizeError::PortOutOfRange),
        ("http://h:+1", CanonicalizeError::PortNotNumber),
        ("http://h: 1", CanonicalizeError::PortNotNumber),
        ("http://h:٣", CanonicalizeError::PortNotNumber),
        ("http://h:80:80", CanonicalizeError::PortNotNumber),
    ]);
}

#[test]
fn encodes_international_hosts() {
    check(&[
        ("http://BÜCHER.de", "http://xn--bcher-kva.de/"),
        ("http://faß.de", "http://fass.de/"),
        // IDNA refuses these hosts, so they are only converted to lower case.
        ("http://.É", "http://.é/"),
        ("http://ΑΣ..", "http://ας../"),
        ("http://aא/", "http://aא/"),
    ]);
    check_refused(&[
        ("http://a℀b/", CanonicalizeError::HiddenDelimiter),
        ("http://a＠b/", CanonicalizeError::HiddenDelimiter),
        (r"foo://ﬁ\/", CanonicalizeError::HiddenDelimiter),
    ]);
}

#[test]
fn decodes_and_escapes_user_info() {
    check(&[
        ("http://%41:%zz@H/", "http://A:%25zz@h/"),
        ("http://a@b@h/", "http://a%40b@h/"),
        ("http://a:b:c=d;|@h/", "http://a:b%3Ac%3Dd%3B%7C@h/"),
        ("http://@h/", "http://@h/"),
        ("http://:@h/", "http://:@h/"),
        ("http://é@h/", "http://%C3%A9@h/"),
    ]);
}

#[test]
fn shortens_ipv6_addresses() {
    check(&[
        ("http://[::0:1]/", "http://[::1]/"),
        ("http://[::ffff:1.2.3.4]:80/", "http://[::ffff:102:304]:80/"),
        ("http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"),
        ("http://[1:0:2:3:4:5:6:7]/", "http://[1:0:2:3:4:5:6:7]/"),
        ("http://[1:2:3:4:5:6:7::]/", "http://[1:2:3:4:5:6:7:0]/"),
        ("http://[FE80::1%25ETH0]/", "http://[fe80::1%25eth0]/"),
        ("http://[v1.A]/", "http://v1.a/"),
        ("http://[v1.A:]/", "http://[v1.a:]/"),
        ("http://[v1.\u{212a}:]/", "http://[v1.k:]/"),
        ("http://[]@v1.a/", "http://%5B%5D@/"),
    ]);
    check_refused(&[
        ("http://[::1/", CanonicalizeError::UnpairedBracket),
        ("http://a[::1]/", CanonicalizeError::TextBeforeBracket),
        ("http://[::1]a/", CanonicalizeError::TextAfterBracket),
        ("http://[1.2.3.4]/", CanonicalizeError::BracketedIpv4),
        ("http://[V1.a]/", CanonicalizeError::IpvFuture),
        ("http://[v1.]/", CanonicalizeError::IpvFuture),
        ("http://[fe80::1%é]/", CanonicalizeError::NonAsciiInBrackets),
        // The first pass removes the outer brackets, so the second pass finds an unpaired one.
        ("http://[v1.[]/", CanonicalizeError::UnpairedBracket),
    ]);
    for address in [
        "",
        ":",
        "1::2::3",
        "::g",
        "1:2:3:4:5:6:7:8:9",
        "::12345",
        "::1.2.3.04",
        "::1%",
        "::1%a%b",
        ":1::2",
        "1::2:",
        "1.2.3.4::",
        "1:2:3:4:5:6:7",
        "1::2:3:4:5:6:7:8",
        ":::",
    ] {
        assert_eq!(
            request_url(&format!("http://[{address}]/")),
            Err(CanonicalizeError::NotIpv6),
            "{address}"
        );
    }
}

#[test]
fn decodes_paths_once() {
    check(&[
        ("http://h/%25%2f%3b%3F", "http://h/%25%2F%3B%3F"),
        ("http://h/%5B[%7C|", "http://h/[[||"),
        ("http://h/^\"{}é", "http://h/%5E%22%7B%7D%C3%A9"),
        ("http://h/%2B%7e%41%23", "http://h/+~A%23"),
        ("http://h/%%zz%2", "http://h/%%zz%2"),
        ("http://h/%2%35", "http://h/%25"),
        ("http://h/%%41", "http://h/%A"),
        ("http://h/%E9%C3%A9", "http://h/%E9%C3%A9"),
    ]);
}

#[test]
fn resolves_dot_segments_after_decoding() {
    check(&[
        ("http://h/a/../b/./c", "http://h/b/c"),
        ("http://h/a//../b", "http://h/a/b"),
        ("http://h/../../a/..", "http://h/"),
        ("http://h/a/%2e%2E", "http://h/"),
        ("http://h/a/.", "http://h/a/"),
        ("http://h/..%2Fb", "http://h/..%2Fb"),
        ("http://h/.../.a/..a", "http://h/.../.a/..a"),
        ("foo:a/../b://", "foo:a/../b://"),
        ("foo:/.//x://", "foo:////x://"),
    ]);
}

#[test]
fn keeps_parameters_of_the_last_segment_apart() {
    check(&[
        ("http://h/a;", "http://h/a"),
        ("http://h/a/..;p", "http://h/;p"),
        ("http://h/a;%41/b;%41|", "http://h/a;A/b;%41%7C"),
        ("foo://h/a;%41", "foo://h/a;A"),
        ("tel:;%41?://", "tel:/;%41?%3A%2F%2F="),
    ]);
}

#[test]
fn sorts_queries_by_decoded_bytes() {
    check(&[
        ("http://h?b=2&a=2&a=1&a=1", "http://h/?a=1&a=1&a=2&b=2"),
        ("http://h?&a&&=", "http://h/?=&a="),
        ("http://h?&", "http://h/"),
        ("http://h?a-&a%21&a", "http://h/?a=&a%21=&a-="),
        ("http://h?a=%zz&a=/ +%2b", "http://h/?a=%25zz&a=%2F++%2B"),
        ("http://h?a=1;b=2=3", "http://h/?a=1%3Bb%3D2%3D3"),
        ("http://h?%E9&%C3%A9&é&e", "http://h/?e=&%C3%A9=&%C3%A9=&%E9="),
        ("http://h?a+&a%00&a%1f&a", "http://h/?a=&a%00=&a%1F=&a+="),
    ]);
}

#[test]
fn drops_or_keeps_fragments() {
    check(&[("http://h/#!a", "http://h/"), ("data:,a#b", "data:,a")]);
    for (url, canonical) in [
        ("http://h#!a#é", "http://h/#!a%23%C3%A9"),
        ("http://h?#", "http://h/"),
        ("foo://U@h?b&a#[x]", "foo://U@h/?a=&b=#%5Bx%5D"),
    ] {
        let mut kept = String::new();
        push_request_url(url, Fragments::Keep, &mut Buffers::default(), &mut kept).unwrap();
        assert_eq!(kept, canonical);
    }
}

#[test]
fn makes_urls_safe() {
    for (url, safe) in [
        (
            "http://é/[é]|?'[é]|#[é]|",
            "http://xn--9ca/%5B%C3%A9%5D%7C?%27%5B%C3%A9%5D%7C#%5B%C3%A9%5D%7C",
        ),
        ("foo:a?'", "foo:a?'"),
        ("http://h?b&a", "http://h/?b&a"),
        ("http://h#b", "http://h#b"),
        ("HTTP:", "http://"),
    ] {
        let mut out = String::new();
        push_safe_url(url, &mut Buffers::default(), &mut out).unwrap();
        assert_eq!(out, safe);
    }
}

/// The one-pass code for plain origins gives the same result as the two passes.
#[test]
fn the_fast_path_gives_the_results_of_the_two_passes() {
    let mut buffers = Buffers::default();
    for origin in ["http://h", "HTTPS://Example.COM", "http://a_b-c.:8080", "https://1.2.3.4:65535"]
    {
        assert!(origin::split_plain(origin).is_some());
        for tail in
            ["", "/", "?b&a", "#f", "/a;p/b;q?c#d", "/%2e/../x y'[|]é%zz?é=%zz'&a+b=[", "/.;."]
        {
            let (mut safe, mut twice) = (String::new(), String::new());
            push_safe_url(&format!("{origin}{tail}"), &mut buffers, &mut safe).unwrap();
            push_canonical_url(&safe, Fragments::Drop, &mut buffers, &mut twice).unwrap();
            assert_eq!(request_url(&format!("{origin}{tail}")), Ok(twice));
        }
    }
    for url in
        ["http://u@h", "http://h:080", "http://h:", "http://", "http://h%", "ftp://h", r"http://h\"]
    {
        assert!(origin::split_plain(url).is_none(), "{url}");
    }
}

/// Appends the safe form of a URL: w3lib's `safe_url_string`.
///
/// # Errors
/// Returns an error if w3lib refuses the URL. The content of `out` is then meaningless.
pub(super) fn push_safe_url(
    url: &str,
    buffers: &mut Buffers,
    out: &mut String,
) -> Result<(), CanonicalizeError> {
    push_safe(&split::split(split::cleaned(url, &mut buffers.cleaned))?, out)
}

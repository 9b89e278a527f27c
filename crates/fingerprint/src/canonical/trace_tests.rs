//! Tests that the traced steps lead from a URL to its canonical form.

use proptest::prelude::*;

use super::*;

/// Returns the two canonical forms that the fast code computes for a URL: as the URL of a request,
/// and as a verbatim URL.
fn fast(url: &str, spec: CanonicalSpec) -> [Result<String, CanonicalizeError>; 2] {
    let (mut request, mut canonical) = (String::new(), String::new());
    let buffers = &mut Buffers::default();
    [
        push_request_url(url, spec, buffers, &mut request).map(|()| request),
        push_canonical_url(url, spec, buffers, &mut canonical, &mut ()).map(|()| canonical),
    ]
}

/// Checks that both traces end with the result of the fast code and begin with the URL as given.
/// Each step must begin with the result of the step before.
#[track_caller]
fn check(url: &str) {
    let forms = [CanonicalForm::W3lib25, CanonicalForm::W3lib24];
    let both = |form| [true, false].map(|keep_fragments| CanonicalSpec { form, keep_fragments });
    for spec in forms.into_iter().flat_map(both) {
        let traces = [trace(url, spec), trace_verbatim(url, spec)];
        for (Trace { steps, outcome }, fast) in traces.into_iter().zip(fast(url, spec)) {
            assert_eq!(outcome, fast, "{url:?}: {steps:#?}");
            let mut at = url.to_owned();
            for step in &steps {
                assert_eq!(step.before, at, "{url:?}: {steps:#?}");
                assert_ne!(step.before, step.after);
                at.clone_from(&step.after);
            }
            if let Ok(canonical) = outcome {
                assert_eq!(at, canonical, "{url:?}: {steps:#?}");
            }
        }
    }
}

fn rules(url: &str) -> Vec<&'static str> {
    trace(url, CanonicalSpec::default()).steps.iter().map(|step| step.rule.name()).collect()
}

#[test]
fn each_rule_is_named_when_it_changes_something() {
    for (url, expected) in [
        ("http://h/", &[][..]),
        (" http://h/", &["edges"]),
        ("http://h/\ta", &["tabs and line ends"]),
        (r"http://h\a", &["backslashes"]),
        ("HTTP://h/", &["scheme in lower case"]),
        ("http://%41@h/", &["user info"]),
        ("http://H/", &["host in lower case"]),
        ("http://BÜ.de/", &["host in lower case", "international host"]),
        ("http://[v1.a]/", &["brackets of the host"]),
        ("http://[@v1.]0/", &["user info", "brackets of the host"]),
        ("http://[::0:1]/", &["IPv6 address"]),
        ("http://[::ffff:102:304]/", &["IPv6 address"]),
        ("http://[::ffff:1.2.3.4]/", &[]),
        ("http://h:/", &["empty port"]),
        ("http://h:080/", &["port"]),
        ("http://h/é", &["path escaped"]),
        ("http://h/|", &["path escaped", "path decoded"]),
        ("http://h/%41", &["path decoded"]),
        ("http://h", &["empty path"]),
        ("http://h?a=", &["empty path"]),
        ("http://h/a/./b/..", &["dot segments"]),
        ("http:/h/x", &["slashes"]),
        ("http://h/a;", &["empty parameters"]),
        ("http://h/a;|", &["path escaped"]),
        ("http://h/?", &["empty query"]),
        ("http://h/?'=", &["query escaped"]),
        ("http://h/?&a=", &["empty fields"]),
        ("http://h/?a", &["blank values"]),
        ("http://h/?a=/", &["query decoded"]),
        ("http://h/?b=1&a=2", &["query sorted"]),
        ("http://h/#", &["empty fragment"]),
        ("http://h/#a", &["fragment dropped"]),
        ("http://h/#é", &["fragment escaped", "fragment dropped"]),
    ] {
        assert_eq!(rules(url), expected, "{url}");
        check(url);
    }
    let named = trace_verbatim("http://h/a;|", CanonicalSpec::default()).steps;
    assert_eq!(named.iter().map(|step| step.rule.name()).collect::<Vec<_>>(), ["parameters"]);
    let old = CanonicalSpec { form: CanonicalForm::W3lib24, ..CanonicalSpec::default() };
    let named = trace("http://h/?a=1;b=2", old).steps;
    assert_eq!(named.iter().map(|step| step.rule.name()).collect::<Vec<_>>(), ["semicolons"]);
    assert_eq!(Rule::ALL.len(), 28);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn traces_of_any_url_agree_with_the_fast_code(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..14),
        any in prop::option::of(any::<char>()),
        prefix in prop::sample::select(&["http://", "https://h", "foo:", "ftp://", "", "//"][..]),
    ) {
        let mut url = prefix.to_owned();
        url.extend(pieces);
        url.extend(any);
        check(&url);
    }
}

/// Parts of URLs that the rules change.
const PIECES: &[&str] = &[
    "a", "B", "h.de", "://", "//", "/", ":", ":80", ":007", "@", "?", "&", "=", "#", ";", ".",
    "..", "/../", "/./", "%41", "%2f", "%", "%zz", "%25", "%2e", "+", " ", "\t", "\n", "\\", "[",
    "]", "[::0:1]", "[v1.a]", "é", "ß", "İ", "\u{212a}", "|", "'", "\"", "~", "_", "1", "%E9",
    "\u{0}",
];

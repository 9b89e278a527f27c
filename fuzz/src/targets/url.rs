//! URLs. The input is a byte of options and a URL.

use std::sync::LazyLock;

use urlseen_fingerprint::Request;
use urlseen_fingerprint::canonical::{CanonicalForm, CanonicalizeError, trace, trace_verbatim};
use urlseen_fingerprint::same::SameRules;
use urlseen_fingerprint::{Algorithm, FingerprintSpec, Fingerprinter};

/// Rules by which URLs are the same.
static RULES: LazyLock<[SameRules; 4]> = LazyLock::new(|| {
    [
        "[]",
        r#"[{"drop_params":["utm_*","sid"],"fold":["scheme","www"]}]"#,
        r#"[{"keep_params":["a*"],"fold":["matrix","case","index","trailing-slash"]}]"#,
        r#"[{"path":"/a$","drop_params":["x"]},{"host":"^h$","fold":["trailing-slash","matrix"]},
            {"host":"^www\\.h","fold":["www","encoded-host"]},
            {"extension":"^php$","fold":["index","case"]},
            {"host":"^h$","keep_fragments":true,"ignore_values":["b*"]},
            {"path":"^/","drop_sessions":"2026-12"}]"#,
    ]
    .map(|rules| rules.parse().expect("the rules are valid"))
});

pub fn check(input: &[u8]) {
    let Some((&options, url)) = input.split_first() else { return };
    let Ok(url) = std::str::from_utf8(url) else { return };
    let spec = FingerprintSpec {
        algorithm: Algorithm::all()[usize::from(options >> 4) % 3],
        canonical: if options >> 4 < 9 { CanonicalForm::W3lib25 } else { CanonicalForm::W3lib24 },
        keep_fragments: options & 1 != 0,
        same: RULES[usize::from(options >> 2) % 4].clone(),
        ..FingerprintSpec::default()
    };
    let request = Request { verbatim_url: options & 2 != 0, ..Request::get(url) };
    let mut used = Fingerprinter::new(spec.clone());
    let canonical = used.canonical(&request).map(str::to_owned);
    let is_as_it_is = request.verbatim_url && spec.algorithm == Algorithm::Scrapy;
    if !is_as_it_is {
        check_trace(&request, &spec, canonical.as_deref());
        if let Ok(canonical) = &canonical {
            check_rules(&request, &spec, canonical);
        }
    }
    let fresh = Fingerprinter::new(spec.clone()).fingerprint(&request);
    assert_eq!(used.fingerprint(&request), fresh, "after another request");
    assert_eq!(fresh.err(), canonical.err());
}

/// Checks that the traced steps lead from the URL to its canonical form.
fn check_trace(
    request: &Request<'_>,
    spec: &FingerprintSpec,
    canonical: Result<&str, &CanonicalizeError>,
) {
    let mut canonical_spec = spec.canonical_spec();
    canonical_spec.keep_fragments |= canonical.is_ok_and(|url| url.contains('#'));
    let traced = match request.verbatim_url {
        true if canonical == Err(&CanonicalizeError::NotAbsolute) => return,
        true => trace_verbatim(request.url, canonical_spec),
        false => trace(request.url, canonical_spec),
    };
    assert_eq!(traced.outcome.as_deref(), canonical);
    let mut at = request.url;
    for step in &traced.steps {
        assert_eq!(step.before, at, "each step begins with the result of the one before");
        assert_ne!(step.before, step.after);
        at = &step.after;
    }
    if let Ok(canonical) = canonical {
        assert_eq!(at, canonical);
    }
}

/// Checks that the steps of the rules lead to the hashed URL, and that this URL is canonical.
fn check_rules(request: &Request<'_>, spec: &FingerprintSpec, canonical: &str) {
    let mut fingerprinter = Fingerprinter::new(spec.clone());
    let hashed = fingerprinter.hashed(request).expect("a canonical URL").to_owned();
    let mut at = canonical.to_owned();
    for step in fingerprinter.same_steps(request).expect("a canonical URL") {
        assert_eq!(step.before, at);
        at = step.after;
    }
    assert_eq!(at, hashed);
    // As in w3lib, a few canonical URLs change when they are made canonical again.
    if fingerprinter.canonical(&Request::get(canonical)) == Ok(canonical) {
        assert_eq!(fingerprinter.hashed(&Request::get(&hashed)), Ok(&*hashed));
    }
}

//! Comparison of fingerprints with those of the Python packages.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use urlseen_fingerprint::Request;
use urlseen_fingerprint::canonical::{CanonicalizeError, Fragments, Trace, trace};
use urlseen_fingerprint::{Algorithm, FingerprintSpec, Fingerprinter};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[derive(Deserialize)]
struct Header {
    vectors: usize,
}

/// Request with Python's answers. An answer is `null` if Python raises an error.
#[derive(Deserialize)]
struct Vector {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    body_base64: String,
    #[serde(default)]
    verbatim_url: bool,
    #[serde(default)]
    keep_fragments: bool,
    canonical: Option<String>,
    #[serde(flatten)]
    fingerprints: serde_json::Map<String, Value>,
}

fn get() -> String {
    "GET".to_owned()
}

#[test]
fn each_fingerprint_equals_the_recorded_one_of_python() {
    let path = Path::new(ROOT).join("tests/vectors/fingerprints.jsonl.gz");
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = BufReader::new(GzDecoder::new(file)).lines();
    let header: Header = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let mut checked = 0;
    for line in lines {
        let line = line.unwrap();
        let vector: Vector = serde_json::from_str(&line).unwrap();
        check(&vector, &line);
        checked += 1;
    }
    assert_eq!(checked, header.vectors);
    assert!(checked >= 5000, "only {checked} vectors");
}

fn check(vector: &Vector, line: &str) {
    let body = BASE64_STANDARD.decode(&vector.body_base64).unwrap();
    let request = Request {
        url: &vector.url,
        method: &vector.method,
        body: &body,
        verbatim_url: vector.verbatim_url,
    };
    for &algorithm in Algorithm::all() {
        let mut fingerprinter = Fingerprinter::new(FingerprintSpec {
            algorithm,
            keep_fragments: vector.keep_fragments,
            ..FingerprintSpec::default()
        });
        let expected = vector.fingerprints[algorithm.name()].as_str();
        let computed = fingerprinter.fingerprint(&request).map(|computed| computed.to_string());
        assert_eq!(computed.as_deref().ok(), expected, "{algorithm}: {computed:?} for {line}");
        let as_is = algorithm == Algorithm::Scrapy && vector.verbatim_url && expected.is_some();
        let url = if as_is { Some(&vector.url) } else { vector.canonical.as_ref() };
        let canonical = fingerprinter.canonical(&request);
        assert_eq!(canonical.ok(), url.map(String::as_str), "{algorithm}: {line}");
        if !vector.verbatim_url {
            check_steps(vector, canonical, line);
        }
    }
}

/// Checks that the explained steps lead from the URL to the canonical URL, or stop at the same
/// error as the computation.
fn check_steps(vector: &Vector, canonical: Result<&str, CanonicalizeError>, line: &str) {
    let fragments = if vector.keep_fragments { Fragments::Keep } else { Fragments::Drop };
    let Trace { steps, outcome } = trace(&vector.url, fragments);
    assert_eq!(outcome.as_deref(), canonical.as_ref().map(|url| *url), "{line}");
    let mut at = &vector.url;
    for step in &steps {
        assert_eq!(&step.before, at, "{line}");
        at = &step.after;
    }
    if let Ok(canonical) = canonical {
        assert_eq!(at, canonical, "{line}");
    }
}

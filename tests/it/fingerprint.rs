//! Comparison of fingerprints with those of the Python packages.

use std::collections::BTreeMap;
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
use urlseen_fingerprint::canonical::{CanonicalForm, CanonicalizeError, Trace, trace};
use urlseen_fingerprint::{Algorithm, FingerprintSpec, Fingerprinter};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[derive(Deserialize)]
struct Header {
    vectors: usize,
}

/// Request with Python's answers. An answer is `null` if Python raises an error.
#[derive(Debug, Deserialize)]
struct Vector {
    line: Option<usize>,
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
    let vectors = read("fingerprints.jsonl.gz");
    assert!(vectors.len() >= 5000, "only {} vectors", vectors.len());
    for vector in &vectors {
        check(vector, CanonicalForm::W3lib25);
    }
    // Answers of the older packages, where they are others.
    let others = read("fingerprints-2.4.jsonl.gz");
    assert!(others.len() >= 1000, "only {} vectors", others.len());
    let others: BTreeMap<_, _> = others.iter().map(|vector| (vector.line, vector)).collect();
    for (number, vector) in (1..).zip(&vectors) {
        check(others.get(&Some(number)).unwrap_or(&vector), CanonicalForm::W3lib24);
    }
}

fn read(name: &str) -> Vec<Vector> {
    let path = Path::new(ROOT).join("tests/vectors").join(name);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap);
    let header: Header = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let vectors: Vec<_> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert_eq!(vectors.len(), header.vectors);
    vectors
}

fn check(vector: &Vector, canonical: CanonicalForm) {
    let body = BASE64_STANDARD.decode(&vector.body_base64).unwrap();
    let request = Request {
        url: &vector.url,
        method: &vector.method,
        body: &body,
        verbatim_url: vector.verbatim_url,
    };
    for &algorithm in Algorithm::all() {
        let spec = FingerprintSpec {
            canonical,
            keep_fragments: vector.keep_fragments,
            ..algorithm.into()
        };
        let mut fingerprinter = Fingerprinter::new(spec.clone());
        let expected = vector.fingerprints[algorithm.name()].as_str();
        let computed = fingerprinter.fingerprint(&request).map(|computed| computed.to_string());
        assert_eq!(computed.as_deref().ok(), expected, "{algorithm}: {computed:?} for {vector:?}");
        let as_is = algorithm == Algorithm::Scrapy && vector.verbatim_url && expected.is_some();
        let url = if as_is { Some(&vector.url) } else { vector.canonical.as_ref() };
        let canonical = fingerprinter.canonical(&request);
        assert_eq!(canonical.ok(), url.map(String::as_str), "{algorithm}: {vector:?}");
        if !vector.verbatim_url {
            check_steps(vector, &spec, canonical);
        }
    }
}

/// Checks that the explained steps lead from the URL to the canonical URL, or stop at the same
/// error as the computation.
fn check_steps(
    vector: &Vector,
    spec: &FingerprintSpec,
    canonical: Result<&str, CanonicalizeError>,
) {
    let Trace { steps, outcome } = trace(&vector.url, spec.canonical_spec());
    assert_eq!(outcome.as_deref(), canonical.as_ref().map(|url| *url), "{vector:?}");
    let mut at = &vector.url;
    for step in &steps {
        assert_eq!(&step.before, at, "{vector:?}");
        at = &step.after;
    }
    if let Ok(canonical) = canonical {
        assert_eq!(at, canonical, "{vector:?}");
    }
}

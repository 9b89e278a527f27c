//! Comparison of fingerprints with those of the Python packages.

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use urlseen_core::fingerprint::canonical::{CanonicalizeError, Fragments, Trace, trace};
use urlseen_core::fingerprint::request::Request;
use urlseen_core::fingerprint::{Algorithm, FingerprintSpec, Fingerprinter};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const URLSEEN: &str = env!("CARGO_BIN_EXE_urlseen");

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

/// Uses the same requests each time, unless `FUZZ_SEED` is set. For longer runs, use
/// `scripts/fuzz fingerprints`.
#[test]
fn random_requests_have_the_same_fingerprints_as_in_python() {
    let python = Path::new(ROOT).join(".venv/bin/python");
    assert!(
        python.exists(),
        "the Python packages to compare with are missing: run scripts/setup first"
    );
    let seed = env::var("FUZZ_SEED").unwrap_or_else(|_| "1".to_owned());
    let output = Command::new(python)
        .arg(Path::new(ROOT).join("scripts/data/compare-fingerprints"))
        .args(["--seed", &seed, "--count", "50000", "--program", URLSEEN])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "seed {seed}:\n{}", String::from_utf8_lossy(&said));
}

/// Runs `urlseen fingerprint` on `input`.
fn fingerprint(arguments: &[&str], input: &[u8]) -> Output {
    let mut process = Command::new(URLSEEN)
        .arg("fingerprint")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    process.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn command_answers_each_line() {
    let input = concat!(
        "https://example.com/?b=2&a=1\r\n",
        r#"{"url": "https://EXAMPLE.com/?a=1&b=2#f", "method": "get", "meta": {"depth": 1}}"#,
        "\n",
        r#"{"url": "https://example.com/", "method": "POST", "body_base64": "YT0x"}"#,
        "\n",
        r#"{"fingerprint": "00112233445566778899AABBCCDDEEFF00112233"}"#,
        "\n",
        r#"{"url": "http://a/\n", "meta": {"verbatim_url": true}}"#,
    );
    let output = fingerprint(&["--canonical"], input.as_bytes());
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stdout),
        "a6ab45564523e37c0ded48d60b091ec021ca7a0f\thttps://example.com/?a=1&b=2\n\
         a6ab45564523e37c0ded48d60b091ec021ca7a0f\thttps://example.com/?a=1&b=2\n\
         d858e977a5230ec08824b0fd1e49c384575ddcd3\thttps://example.com/\n\
         00112233445566778899aabbccddeeff00112233\t-\n\
         904b3c6dbe4881b893abe1e45789274a450d6841\thttp://a/\\n\n"
    );
}

#[test]
fn command_names_each_bad_line_and_continues() {
    let input = b"mailto:a@b\nhttps://example.com/\n\xff\n{\"url\": 1}\n{\n\nhttp://[::1/\n";
    let output = fingerprint(&[], input);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stdout),
        "-\n171afe4caf5b4c369b01c8fc038a75adfb7fe965\n-\n-\n-\n-\n-\n"
    );
    let reasons: Vec<&str> = text(&output.stderr).lines().collect();
    let expected = [
        "urlseen: standard input, line 1: the URL is not absolute",
        "urlseen: standard input, line 3: the URL is not UTF-8: byte 0 begins no character",
        "urlseen: standard input, line 4: `url` is a number; it must be text",
        "urlseen: standard input, line 5: not a JSON object",
        "urlseen: standard input, line 6: the URL is not absolute",
        "urlseen: standard input, line 7: the host has one of `[` and `]`",
    ];
    assert_eq!(reasons.len(), expected.len(), "{reasons:#?}");
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.starts_with(expected), "{reason:?} for {expected:?}");
    }
}

#[test]
fn command_reads_files_and_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.txt");
    std::fs::write(&links, "https://example.com/\nx").unwrap();
    let links = links.to_str().unwrap();
    let output = fingerprint(&[links, "-", links], b"http://h/");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout).lines().count(), 5);
    assert!(text(&output.stderr).contains(&format!("{links}, line 2: ")));

    let missing = fingerprint(&["no/such/file"], b"");
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("cannot open no/such/file"));
}

#[test]
fn command_refuses_wrong_use() {
    let output = fingerprint(&["--algorithm", "md5"], b"");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(Algorithm::all().iter().all(|known| said.contains(known.name())), "{said}");
}

/// The command writes more than a pipe holds, and no program reads it.
#[test]
fn command_ends_quietly_without_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.txt");
    std::fs::write(&links, "https://example.com/\n".repeat(100_000)).unwrap();
    let mut process = Command::new(URLSEEN)
        .arg("fingerprint")
        .arg(links)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(process.stdout.take());
    let output = process.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

//! Measures the time to compute the fingerprint of a URL, and the time that rules add to it.
//!
//! ```text
//! fingerprint fingerprint FILE    fingerprints and canonical forms of the URLs in a file
//! fingerprint rules FILE          readings of the URLs as items, with rules
//! ```
//!
//! One thread with warm buffers does all work. Prints lines of JSON: `{"case", "value"}`, with
//! nanoseconds for a URL.

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;
use url::Url;
use urlseen_cli::config::{Config, ItemForm, Sources};
use urlseen_engine::item::{Options, Reader};
use urlseen_fingerprint::Request;
use urlseen_fingerprint::{Algorithm, Fingerprinter};

/// Number of times that a case goes through all URLs. The fastest pass counts, because other work
/// of the machine only adds time.
const PASSES: usize = 20;

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [what, file] = &words[..] else { panic!("fingerprint fingerprint|rules FILE") };
    let file = std::fs::read_to_string(file).expect("a file of URLs");
    let links: Vec<&str> = file.lines().collect();
    match what.as_str() {
        "fingerprint" => fingerprints(&links),
        "rules" => rules(&links),
        _ => panic!("{what}: fingerprint or rules is expected"),
    }
}

/// Measures `work` for each URL, and prints the result.
fn measure(case: &str, links: &[&str], mut work: impl FnMut(&str)) {
    let mut pass = || {
        let begun = Instant::now();
        for link in links {
            work(black_box(link));
        }
        begun.elapsed().as_secs_f64() * 1e9 / links.len() as f64
    };
    let fastest = (0..PASSES).map(|_| pass()).fold(f64::INFINITY, f64::min);
    println!("{}", json!({ "case": case, "value": fastest }));
}

fn fingerprints(links: &[&str]) {
    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    measure("urlseen, fingerprint", links, |link| {
        let _ = black_box(fingerprinter.fingerprint(&Request::get(link)));
    });
    measure("urlseen, canonical URL", links, |link| {
        let _ = black_box(fingerprinter.canonical(&Request::get(link)));
    });
    measure("the crate url, parsing only", links, |link| {
        let _ = black_box(Url::parse(link));
    });
}

/// Measures readings with ten rules of each kind whose hosts are none of the links, with the list
/// of tracking parameters, and with ten rules for all links.
fn rules(links: &[&str]) {
    let rules = |kind: &str, host: &str, rest: &str| -> String {
        let rule = |number| format!("[[{kind}]]\nhost = '{host}{number}'\n{rest}\n");
        (0..10).map(rule).collect()
    };
    let fold = "fold = ['www', 'trailing-slash', 'index']\ndrop_params = ['sid', 'ref_*']";
    let other = r"^(www\.)?other\.example";
    for (case, file) in [
        ("urlseen, no rule", String::new()),
        ("urlseen, 10 rules [[same]] of other hosts", rules("same", other, fold)),
        ("urlseen, 10 rules [[drop]] of other hosts", rules("drop", other, "")),
        ("urlseen, 10 rules [[same]] of all hosts", rules("same", "[a-z]|", fold)),
        (
            "urlseen, list of tracking parameters",
            "fingerprint.drop_tracking = '2026-11'".to_owned(),
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("config.toml");
        std::fs::write(&path, file).expect("the file can be written");
        let sources = Sources { file: Some(path), ..Sources::default() };
        let config = Config::load(sources).expect("the rules are valid");
        let options = Options::new(ItemForm::Url.into(), config.fingerprint_spec());
        let mut reader = Reader::new(Options { drop: config.rules.drop, ..options });
        measure(case, links, |link| {
            let _ = black_box(reader.read(link.as_bytes()));
        });
    }
}

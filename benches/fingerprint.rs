//! Measures the time to compute the canonical form and the fingerprint of a URL. For comparison, it
//! measures the time in which the `url` crate only parses the URL. It also measures the time to
//! read an item of each form. One thread with warm buffers does all work.
//!
//! `--rounds N` sets the number of rounds, 25 by default. `--rules` measures only the time that
//! rules add.

use std::hint::black_box;
use std::time::Instant;

use url::Url;
use urlseen_core::fingerprint::request::Request;
use urlseen_core::fingerprint::{Algorithm, Fingerprinter};
use urlseen_engine::config::{Config, ItemForm, Sources};
use urlseen_engine::item::{Options, Reader};

#[path = "links/mod.rs"]
mod links;
#[path = "rounds/mod.rs"]
mod rounds;

use rounds::Rounds;

/// Number of times that a case goes through all its texts in a round. The fastest pass counts,
/// because other work of the machine only adds time.
const PASSES: usize = 20;

/// Returns the nanoseconds that `work` takes for a text.
fn per_text<T: AsRef<[u8]>>(texts: &[T], mut work: impl FnMut(&T)) -> f64 {
    let pass = |()| {
        let begun = Instant::now();
        for text in texts {
            work(black_box(text));
        }
        begun.elapsed().as_secs_f64() * 1e9 / texts.len() as f64
    };
    std::iter::repeat_n((), PASSES).map(pass).fold(f64::INFINITY, f64::min)
}

/// Measures the canonical forms and fingerprints of `links`.
fn urls(group: &str, links: &[String], rounds: usize) {
    let mut cases = Rounds::new(group, "ns/link");
    for algorithm in Algorithm::all() {
        let mut fingerprinter = Fingerprinter::new(*algorithm);
        cases.case(format!("fingerprint, {algorithm}"), move || {
            per_text(links, |link| {
                let _ = black_box(fingerprinter.fingerprint(&Request::get(link)));
            })
        });
    }
    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    cases.case("canonical URL", move || {
        per_text(links, |link| {
            let _ = black_box(fingerprinter.canonical(&Request::get(link)));
        })
    });
    cases.case("url crate, parsing only", move || {
        per_text(links, |link| {
            let _ = black_box(Url::parse(link));
        })
    });
    cases.run(rounds);
}

/// Measures the time to read an item, for each form of items. The items are made from the links, or
/// from their fingerprints.
fn items(links: &[String], rounds: usize) {
    let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
    let fingerprints: Vec<(String, &String)> = links
        .iter()
        .filter_map(|link| Some((fingerprinter.fingerprint(&Request::get(link)).ok()?, link)))
        .map(|(fingerprint, link)| (fingerprint.to_string(), link))
        .collect();
    let tab: Vec<_> = fingerprints.iter().map(|(hex, link)| format!("{hex}\t{link}")).collect();
    let ready: Vec<_> = fingerprints.into_iter().map(|(hex, _)| hex).collect();
    let json: Vec<_> = links
        .iter()
        .map(|link| serde_json::json!({"url": link, "meta": {"depth": 3}}).to_string())
        .collect();

    let pickles: Vec<_> = links.iter().map(|link| links::pickled(link)).collect();
    let pickles = &pickles;
    let mut cases = Rounds::new("items", "ns/item");
    for (name, items) in [("url", links), ("json", &json), ("fingerprint", &ready), ("tab", &tab)] {
        let form = match name {
            "url" => ItemForm::Url,
            "json" => ItemForm::Json,
            "fingerprint" => ItemForm::Fingerprint,
            _ => ItemForm::Tab,
        };
        for (form, how) in [(form, ""), (ItemForm::Auto, ", form detected")] {
            let mut reader = Reader::new(Options::new(form.into(), Algorithm::Scrapy));
            cases.case(format!("read {name} item{how}"), move || {
                per_text(items, |item| {
                    let _ = black_box(reader.read(item.as_bytes()));
                })
            });
        }
    }
    let mut reader = Reader::new(Options::new(ItemForm::Pickle.into(), Algorithm::Scrapy));
    cases.case("read pickle item", move || {
        per_text(pickles, |item| {
            let _ = black_box(reader.read(item));
        })
    });
    cases.run(rounds);
}

/// Measures the time that rules add to the reading of a URL: ten rules of each kind whose hosts are
/// none of the links, the list of tracking parameters, and ten rules for all links.
fn rules(links: &[String], rounds: usize) {
    let rules = |kind: &str, host: &str, rest: &str| -> String {
        let rule = |number| format!("[[{kind}]]\nhost = '{host}{number}'\n{rest}\n");
        (0..10).map(rule).collect()
    };
    let fold = "fold = ['www', 'trailing-slash', 'index']\ndrop_params = ['sid', 'ref_*']";
    let other = r"^(www\.)?other\.example";
    let mut cases = Rounds::new("rules", "ns/item");
    for (name, file) in [
        ("no rule", String::new()),
        ("10 rules [[same]] of other hosts", rules("same", other, fold)),
        ("10 rules [[drop]] of other hosts", rules("drop", other, "")),
        ("list of tracking parameters", "fingerprint.drop_tracking = '2026-11'".to_owned()),
        ("10 rules [[same]] of all hosts", rules("same", "[a-z]|", fold)),
    ] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("config.toml");
        std::fs::write(&path, file).expect("the file can be written");
        let sources = Sources { file: Some(path), ..Sources::default() };
        let config = Config::load(sources).expect("the rules are valid");
        let options = Options::new(ItemForm::Url.into(), config.fingerprint_spec());
        let mut reader = Reader::new(Options { drop: config.drop, ..options });
        cases.case(format!("read url item, {name}"), move || {
            per_text(links, |link| {
                let _ = black_box(reader.read(link.as_bytes()));
            })
        });
    }
    cases.run(rounds);
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--rounds").skip(1);
    let rounds = arguments.next().map_or(25, |number| number.parse().expect("a number of rounds"));
    let real = links::real();
    if std::env::args().any(|argument| argument == "--rules") {
        return rules(&real, rounds);
    }
    urls("real links", &real, rounds);
    urls("busy links", &links::busy(), rounds);
    items(&real, rounds);
}

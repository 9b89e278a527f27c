//! Each place that names the version names the same one.

use std::fs;

use regex::Regex;

use super::report;
use crate::util::sources::{pages, root};

/// Pages and packages name the version, so that readers can copy their commands.
/// `PLACES` of `scripts/release` changes these places.
#[test]
fn every_place_names_the_same_version() {
    let version = env!("CARGO_PKG_VERSION");
    let named = Regex::new(r"\burlseen[_:](\d+\.\d+\.\d+)").unwrap();
    let mut texts: Vec<_> = pages().into_iter().map(|page| (page.path, page.text)).collect();
    let manifest = "packaging/kubernetes.yaml";
    texts.push((manifest.to_owned(), fs::read_to_string(root().join(manifest)).unwrap()));
    let places = texts.iter().flat_map(|(path, text)| {
        named.captures_iter(text).map(move |found| (path.as_str(), found[1].to_owned()))
    });
    let places = places.collect::<Vec<_>>();
    assert!(places.len() > 3, "few places name the version: {places:?}");
    let other = places.iter().filter(|(_, named)| named != version);
    report(other.map(|(path, named)| format!("{path} names {named}, the version is {version}")));
}

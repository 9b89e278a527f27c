//! The bundled links in every form of input, compared with Scrapy's requests.

use std::fs;

use super::{filter, gzip, unreadable, zstandard};
use crate::util::binary::{Output, Run};
use crate::util::links::{discovered, refused, unseen};

/// Checks the printed `lines`, and the `places` of the links that Scrapy refuses.
#[track_caller]
fn check(output: &Output, lines: &str, places: impl Iterator<Item = String>) {
    let expected = lines.lines().zip(1..);
    for (found, (expected, number)) in output.text().lines().zip(expected) {
        assert_eq!(found, expected, "line {number} of the output");
    }
    assert!(output.text() == lines, "{} lines", output.text().lines().count());
    let places: Vec<_> = places.collect();
    assert_eq!(unreadable(&output.stderr), places.len(), "{}", output.stderr);
    let firsts = output.stderr.lines().filter_map(|line| line.strip_prefix("urlseen: "));
    let mut firsts = firsts.filter(|line| !line.contains(" more line")).peekable();
    assert!(firsts.peek().unwrap().starts_with(&format!("{}: ", places[0])), "{}", output.stderr);
    for first in firsts {
        let names = |place: &String| first.starts_with(&format!("{place}: "));
        assert!(places.iter().any(names), "{first:?} names no line that Scrapy refuses");
    }
    assert_eq!(output.code(), Some(1));
}

/// Returns the places of the refused links in an input with this name.
fn places(name: &str) -> impl Iterator<Item = String> {
    refused().into_iter().map(move |(number, _)| format!("{name}, line {number}"))
}

#[test]
fn a_real_crawl_has_the_same_unseen_links_as_with_scrapy() {
    let (links, unseen) = (discovered().into_bytes(), unseen());
    let folder = tempfile::tempdir().unwrap();
    let packed = [("plain", links.clone()), ("gz", gzip(&links)), ("zst", zstandard(&links))];
    for (name, bytes) in packed {
        fs::write(folder.path().join(name), &bytes).unwrap();
        // The command recognises the compression by the first bytes, not by the name of the file.
        let run = |run: Run| run.dir(folder.path()).output();
        check(&run(filter(&[name])), &unseen, places(name));
        check(&run(filter(&[]).stdin(bytes.clone())), &unseen, places("standard input"));
        check(&run(filter(&["-"]).stdin(bytes)), &unseen, places("standard input"));
    }
}

//! The bundled links in every form of input, compared with Scrapy's requests.

use std::collections::HashMap;
use std::fs;

use super::{filter, gzip, joined, unreadable, zstandard};
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

#[test]
fn several_files_are_one_stream() {
    let (stream, unseen) = (discovered(), unseen());
    let lines: Vec<_> = stream.split_inclusive('\n').collect();
    let part = lines.len() / 4;
    let text = |range: std::ops::Range<usize>| lines[range].concat().into_bytes();
    let folder = tempfile::tempdir().unwrap();
    let names = ["a.txt", "b.gz", "standard input", "d.zst"];
    let bounds = [0, part, 2 * part, 3 * part, lines.len()];
    let quarter = |it: usize| text(bounds[it]..bounds[it + 1]);
    let packed = [quarter(0), gzip(&quarter(1)), quarter(2), zstandard(&quarter(3))];
    for (name, bytes) in names.iter().zip(&packed) {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let run = filter(&["a.txt", "b.gz", "-", "d.zst"]).stdin(packed[2].clone());
    let output = run.dir(folder.path()).output();
    let places = refused().into_iter().map(|(number, _)| {
        let file = bounds.iter().rposition(|&before| before < number).unwrap();
        format!("{}, line {}", names[file], number - bounds[file])
    });
    check(&output, &unseen, places);
    // The same links again: none of them is new.
    let twice = filter(&["a.txt", "a.txt", "a.txt"]).dir(folder.path()).output();
    let once = filter(&["a.txt"]).dir(folder.path()).output();
    assert!(twice.stdout == once.stdout);
}

#[test]
fn an_inverted_pipe_prints_seen_lines() {
    let (links, unseen) = (discovered(), unseen());
    let refused: HashMap<_, _> = refused().into_iter().collect();
    let mut rest = unseen.lines().peekable();
    let is_seen = |&(number, line): &(usize, &str)| {
        rest.next_if_eq(&line).is_none() && !refused.contains_key(&number)
    };
    let seen = joined((1..).zip(links.lines()).filter(is_seen).map(|(_, line)| line));
    let output = filter(&["--invert"]).stdin(links.clone()).output();
    check(&output, &seen, places("standard input"));
}

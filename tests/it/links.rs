//! Comparison of the bundled crawl with its README, and of its three files with one another.

use std::collections::HashSet;

use crate::util::links::{discovered, refused, unseen};

#[test]
fn the_stream_has_the_numbers_of_its_readme() {
    let readme = include_str!("../data/README.md");
    let counts = [discovered().lines().count(), unseen().lines().count(), refused().len()];
    for (file, count) in ["links.txt.gz", "unseen.txt.gz", "refused.txt"].iter().zip(counts) {
        let row = readme.lines().find(|line| line.contains(&format!("`python-docs-{file}` |")));
        let said = row.and_then(|row| row.split('|').nth(2)).expect("a row of the table");
        assert_eq!(said.trim().replace(',', ""), count.to_string(), "{file}");
    }
}

#[test]
fn unseen_links_are_first_occurrences_in_the_order_of_the_stream() {
    let (discovered, unseen) = (discovered(), unseen());
    let mut met = HashSet::new();
    let mut first = discovered.lines().filter(|link| met.insert(*link));
    for link in unseen.lines() {
        assert!(first.any(|other| other == link), "{link} is not next in the stream");
    }
}

#[test]
fn refused_links_have_their_line_numbers_and_are_never_unseen() {
    let (discovered, unseen) = (discovered(), unseen());
    let lines = discovered.lines().collect::<Vec<_>>();
    let unseen = unseen.lines().collect::<HashSet<_>>();
    for (number, link) in refused() {
        assert_eq!(lines[number - 1], link);
        assert!(!unseen.contains(link.as_str()), "{link}");
    }
}

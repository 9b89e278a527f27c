//! Outcome of items: real links, items of each form, emitted and rejected items.

use super::{Crawl, SINK};
use crate::util::links::{discovered, refused, unseen};

#[test]
fn a_real_crawl_has_the_same_unseen_links_as_with_scrapy() {
    let crawl = Crawl::new();
    let discovered = discovered();
    let links: Vec<&str> = discovered.lines().collect();
    crawl.push(&links);
    let summary = crawl.drain();
    let expected = unseen();
    let expected: Vec<&str> = expected.lines().collect();
    let unseen = crawl.list(SINK);
    assert_eq!(unseen.len(), expected.len());
    for (number, (found, expected)) in unseen.iter().zip(&expected).enumerate() {
        assert_eq!(String::from_utf8_lossy(found), **expected, "line {number}");
    }
    let refused: Vec<String> = refused().into_iter().map(|(_, link)| link).collect();
    let rejects = crawl.rejects();
    let rejected: Vec<&str> = rejects.iter().map(|json| json["item"].as_str().unwrap()).collect();
    assert_eq!(rejected, refused);
    let others = links.len() - expected.len() - refused.len();
    let counts = (links.len(), [expected.len(), others, 0, refused.len()]);
    assert_eq!((summary.counts(), summary.ending()), (counts, "drained"));
}

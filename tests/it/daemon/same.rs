//! Rules by which different URLs are the same, in whole crawls.

use std::path::PathBuf;

use super::{Crawl, READY};
use crate::util::wait::SOON;

const RULES: &str = r"
[fingerprint]
drop_tracking = '2026-11'

[[same]]
host = '(^|\.)a\.x$'
drop_params = ['sid']
fold = ['scheme', 'www', 'trailing-slash']
";

/// Writes a configuration file with these rules.
fn file(crawl: &Crawl, rules: &str) -> PathBuf {
    let file = crawl.server.folder().join("rules.toml");
    std::fs::write(&file, rules).unwrap();
    file
}

#[test]
fn a_tap_shows_the_url_that_an_item_equals() {
    let crawl = Crawl::new();
    let mut daemon = crawl.run(&["--config"]).arg(file(&crawl, RULES)).start();
    daemon.wait_for_line(READY, SOON);
    crawl.push(&["http://www.a.x/p/?sid=1", "http://a.x/p", "http://b.x/"]);
    let lines = crawl.command("tap", &["--count=3"]).output();
    let lines = lines.text().lines().map(|line| line.split_once("seen ").unwrap().1.trim());
    let mut lines: Vec<_> = lines.collect();
    lines.sort_unstable();
    let same = "http://www.a.x/p/?sid=1   (the same as http://a.x/p)";
    assert_eq!(lines, ["http://a.x/p", "http://b.x/", same]);
}

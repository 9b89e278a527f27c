//! Imports of files and sets that the real packages write.

use std::path::Path;

use super::{Crawl, SET, urls};
use crate::util::binary::Run;
use crate::util::sources::root;

/// Runs a Python program with one argument. The program reads URLs, one a line.
fn python(program: &str, argument: &str, urls: &[String]) {
    let python = root().join(".venv/bin/python");
    assert!(python.exists(), "the Python packages are missing: run scripts/setup first");
    let run = Run::of(&python, ["-c", program, argument]).stdin(urls.join("\n"));
    let output = run.output();
    assert_eq!(output.code(), Some(0), "{output:?}");
}

#[test]
fn a_crawl_continues_from_a_jobdir_of_scrapy() {
    const PROGRAM: &str = "\
import sys
from scrapy import Request
from scrapy.dupefilters import RFPDupeFilter
dupefilter = RFPDupeFilter(sys.argv[1])
for url in sys.stdin.read().split():
    assert not dupefilter.request_seen(Request(url))
dupefilter.close('finished')
";
    let crawl = Crawl::new();
    let jobdir = crawl.path("");
    python(PROGRAM, &jobdir, &urls(0..3000));
    assert!(Path::new(&crawl.path("requests.seen")).exists());
    crawl.import(&["requests.seen"]).check([3000, 3000, 0, 0]);
    assert_eq!(crawl.crawl(&urls(0..3010)), urls(3000..3010));
}

#[test]
fn a_crawl_continues_from_a_set_of_scrapy_redis() {
    const PROGRAM: &str = "\
import sys
import redis
from scrapy import Request
from scrapy_redis.dupefilter import RFPDupeFilter
server = redis.Redis(unix_socket_path=sys.argv[1])
dupefilter = RFPDupeFilter(server, 'demo:dupefilter')
for url in sys.stdin.read().split():
    assert not dupefilter.request_seen(Request(url))
";
    let mut crawl = Crawl::new();
    crawl.settings.push("fingerprint.algorithm=scrapy-redis");
    let socket = crawl.server.folder().join("socket");
    python(PROGRAM, socket.to_str().unwrap(), &urls(0..1000));
    crawl.import(&["--redis-set", SET]).check([1000, 1000, 0, 0]);
    assert_eq!(crawl.crawl(&urls(0..1010)), urls(1000..1010));
}

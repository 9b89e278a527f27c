//! Runs the configurations, commands and settings of `docs/guides/way-back.md`, word for word.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use redis::Commands;
use tempfile::TempDir;

use super::urls;
use crate::util::binary::Run;
use crate::util::redis::RedisServer;
use crate::util::sources::root;

/// Code blocks of a section of the guide, by their kind.
#[derive(Default)]
struct Section {
    config: String,
    commands: String,
    settings: String,
}

impl Section {
    #[track_caller]
    fn of_guide(title: &str) -> Self {
        let page = std::fs::read_to_string(root().join("docs/guides/way-back.md")).unwrap();
        let (_, text) = page.split_once(&format!("\n## {title}\n")).expect("such a section");
        let text = text.split("\n## ").next().unwrap();
        let mut section = Self::default();
        // An empty line between two tables of the configuration does not end a block.
        for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
            let is_setting = line.split(' ').next().is_some_and(|name| name == name.to_uppercase());
            let is_config = line.starts_with('[') || line.contains(" = ");
            let block = match (line.starts_with('['), is_setting, is_config) {
                (false, true, _) => &mut section.settings,
                (_, _, true) => &mut section.config,
                _ => &mut section.commands,
            };
            writeln!(block, "{line}").unwrap();
        }
        section
    }
}

/// Crawl that goes back from urlseen to Scrapy as the guide says. It has its own folder.
struct Leaver {
    server: RedisServer,
    folder: TempDir,
    section: Section,
}

impl Leaver {
    fn new(title: &str) -> Self {
        let (server, folder) = (RedisServer::start(), TempDir::new().unwrap());
        let section = Section::of_guide(title);
        std::fs::write(folder.path().join("config.toml"), &section.config).unwrap();
        Self { server, folder, section }
    }

    /// Runs shell commands in the folder, with `urlseen` as the built program.
    #[track_caller]
    fn shell(&self, commands: &str) {
        let urlseen = Path::new(env!("CARGO_BIN_EXE_urlseen")).parent().unwrap();
        let path = std::env::join_paths(
            std::iter::once(PathBuf::from(urlseen))
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let run = Run::of("/bin/bash", ["-euo", "pipefail", "-c", commands]);
        let run = run.dir(self.folder.path()).env("PATH", path.unwrap());
        let run = run.env("URLSEEN_REDIS__URL", self.server.url());
        // A small filter makes the test fast.
        let output = run.env("URLSEEN_FILTER__CAPACITY", "100_000").output();
        assert_eq!(output.code(), Some(0), "{output:?}");
    }

    /// Runs urlseen on these URLs. All of them must be unseen.
    fn see(&self, urls: &[String]) {
        let () = self.server.connection().rpush("demo:discovered", urls).unwrap();
        self.shell("urlseen run --drain");
        assert_eq!(self.server.connection().llen("demo:unseen"), Ok(urls.len()));
    }

    /// Runs Python in the folder with the settings of the guide. The program gets the socket, 100
    /// seen URLs and 10 unseen URLs.
    #[track_caller]
    fn python(&self, program: &str) {
        let python = root().join(".venv/bin/python");
        assert!(python.exists(), "the Python packages are missing: run scripts/setup first");
        let program = format!("{}\n{program}", self.section.settings);
        let socket = self.server.folder().join("socket");
        let run = Run::of(&python, ["-c", &program, socket.to_str().unwrap()]);
        let output = run.dir(self.folder.path()).stdin(urls(0, 110).join("\n")).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        assert_eq!(output.text().trim(), "100 seen, 10 new");
    }
}

const SCRAPY_REDIS: &str = "\
import sys
import redis
from scrapy import Request
from scrapy.utils.misc import load_object
assert SCHEDULER == 'scrapy_redis.scheduler.Scheduler' and SCHEDULER_PERSIST
server = redis.Redis(unix_socket_path=sys.argv[1])
dupefilter = load_object(DUPEFILTER_CLASS)(server, SCHEDULER_DUPEFILTER_KEY)
seen = [dupefilter.request_seen(Request(url)) for url in sys.stdin.read().split()]
assert all(seen[:100]) and not any(seen[100:])
print(sum(seen), 'seen,', len(seen) - sum(seen), 'new')
";

const SCRAPY: &str = "\
import sys
from scrapy import Request
from scrapy.dupefilters import RFPDupeFilter
dupefilter = RFPDupeFilter(JOBDIR)
seen = [dupefilter.request_seen(Request(url)) for url in sys.stdin.read().split()]
assert all(seen[:100]) and not any(seen[100:])
dupefilter.close('finished')
print(sum(seen), 'seen,', len(seen) - sum(seen), 'new')
";

#[test]
fn scrapy_redis_continues_with_the_set_after_a_change_of_settings() {
    let leaver = Leaver::new("From a filter in Redis to scrapy-redis");
    assert_eq!(leaver.section.commands, "");
    leaver.see(&urls(0, 100));
    leaver.python(SCRAPY_REDIS);
}

#[test]
fn scrapy_redis_continues_with_an_archive() {
    let leaver = Leaver::new("From an archive to scrapy-redis");
    leaver.see(&urls(0, 100));
    leaver.shell(&leaver.section.commands);
    leaver.python(SCRAPY_REDIS);
}

#[test]
fn plain_scrapy_continues_with_an_archive() {
    let leaver = Leaver::new("From an archive to plain Scrapy");
    leaver.see(&urls(0, 100));
    leaver.shell(&leaver.section.commands);
    leaver.python(SCRAPY);
}

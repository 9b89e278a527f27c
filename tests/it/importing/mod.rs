//! `urlseen import`, and crawls that continue after it.

mod broken_off;
mod files;
mod scrapy;
mod sets;

use std::path::Path;

use redis::Commands;
use serde_json::Value;
use tempfile::TempDir;

use crate::util::binary::{Output, Run, urlseen};
use crate::util::redis::RedisServer;

/// Key of scrapy-redis's set of seen requests.
const SET: &str = "demo:dupefilter";

/// Crawl with the default names, and a small filter that makes practically no errors.
struct Crawl {
    server: RedisServer,
    folder: TempDir,
    settings: Vec<&'static str>,
}

impl Crawl {
    fn new() -> Self {
        let settings = vec!["filter.capacity=1_000_000", "filter.error_rate=1e-12"];
        Self { server: RedisServer::start(), folder: TempDir::new().unwrap(), settings }
    }

    /// Prepares a command with the crawl's configuration.
    fn command(&self, command: &str, arguments: &[&str]) -> Run {
        let state = self.state();
        let own = [format!("redis.url={}", self.server.url()), format!("storage.dir={state}")];
        let all = own.iter().map(String::as_str).chain(self.settings.iter().copied());
        let run = all.fold(urlseen([command]), |run, setting| run.arg("--set").arg(setting));
        arguments.iter().fold(run.dir(self.folder.path()), Run::arg)
    }

    fn state(&self) -> String {
        self.path("storage")
    }

    /// Returns the path of a file in the folder of the crawl.
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file in the folder of the crawl.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// Runs an import, and returns its summary.
    #[track_caller]
    fn import(&self, arguments: &[&str]) -> Imported {
        Imported::of(self.command("import", &["--json"]).args(arguments).output())
    }

    /// Adds members to the set.
    fn add(&self, members: &[String]) {
        let mut connection = self.server.connection();
        for members in members.chunks(1000) {
            let () = connection.sadd(SET, members).unwrap();
        }
    }

    /// Pushes URLs to the source and runs the daemon. Returns the URLs in the sink.
    #[track_caller]
    fn crawl(&self, urls: &[String]) -> Vec<String> {
        let mut connection = self.server.connection();
        for urls in urls.chunks(1000) {
            let () = connection.rpush("demo:discovered", urls).unwrap();
        }
        let output = self.command("run", &["--drain"]).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        let unseen = connection.lrange("demo:unseen", 0, -1).unwrap();
        let () = connection.del("demo:unseen").unwrap();
        unseen
    }
}

impl Run {
    /// Adds more arguments to the command.
    fn args(self, arguments: &[&str]) -> Self {
        arguments.iter().fold(self, Self::arg)
    }
}

/// Summary that an import with `--json` printed at its end.
#[derive(Debug)]
struct Imported {
    code: Option<i32>,
    summary: Value,
    stderr: String,
}

impl Imported {
    #[track_caller]
    fn of(output: Output) -> Self {
        let summary = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no summary ({error}): {output:?}"));
        Self { code: output.code(), summary, stderr: output.stderr }
    }

    /// Returns the numbers of read, new, already seen and bad fingerprints.
    fn counts(&self) -> [u64; 4] {
        ["read", "new", "seen", "bad"].map(|name| self.summary[name].as_u64().unwrap())
    }

    /// Checks that the import succeeded without a message.
    #[track_caller]
    fn check(&self, counts: [u64; 4]) {
        assert_eq!((self.counts(), self.stderr.as_str()), (counts, ""));
        assert_eq!(self.code, Some(0));
    }
}

/// Prepares `urlseen import --storage` with this folder.
fn import_to(state: &Path, arguments: &[&str]) -> Run {
    urlseen(["import", "--json", "--storage"]).arg(state).args(arguments)
}

/// Makes different URLs with these numbers.
fn urls(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("http://example.com/{number}")).collect()
}

/// Returns the fingerprints of URLs in hex digits, as computed by urlseen.
fn fingerprints(urls: &[String]) -> Vec<String> {
    let input: String = urls.iter().map(|url| format!("{url}\n")).collect();
    let output = urlseen(["fingerprint"]).stdin(input).output();
    output.text().lines().map(str::to_owned).collect()
}

/// Makes raw fingerprints that no URL of these tests has.
fn raw(numbers: std::ops::Range<u64>) -> impl Iterator<Item = [u8; 20]> {
    numbers.map(|number| {
        let mut bytes = [0; 20];
        fastrand::Rng::with_seed(number).fill(&mut bytes);
        bytes
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a `requests.seen` in the format of Scrapy 2.19.
fn frames(digests: impl Iterator<Item = [u8; 20]>) -> Vec<u8> {
    digests.flat_map(|digest| [0, 20].into_iter().chain(digest)).collect()
}

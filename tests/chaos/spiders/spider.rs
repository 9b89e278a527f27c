//! Spider process, and the requests that Redis holds for it.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use redis::{Commands, Connection};
use regex::bytes::Regex;
use rustix::process::Signal;

use crate::process::{Process, SOON, wait_for};

/// Scrapy process. It prints each page that it has finished.
pub(crate) struct Spider {
    /// Name of its connections and of its consumers.
    pub(crate) name: String,
    process: Process,
    was_killed: bool,
}

impl Spider {
    /// Starts a spider with the Python package in `package`, through the proxy at `port`.
    pub(crate) fn start(
        number: usize,
        package: &Path,
        port: u16,
        url: &str,
        folder: &Path,
    ) -> Result<Self> {
        let name = format!("spider-{number}");
        let settings = serde_json::json!({
            "URLSEEN_URL": format!("redis://127.0.0.1:{port}"),
            "URLSEEN_CONSUMER": name,
        });
        let script = super::root().join("tests/chaos/spiders/spider.py");
        let python_path = format!("PYTHONPATH={}", package.display());
        let python = super::python()?;
        let words = [python_path, "PYTHONDONTWRITEBYTECODE=1".to_owned()]
            .into_iter()
            .chain([python.display(), script.display()].map(|it| it.to_string()));
        let words = words.chain([settings.to_string(), url.to_owned()]);
        Ok(Self {
            name,
            process: Process::start(Path::new("env"), words, folder)?,
            was_killed: false,
        })
    }

    /// Returns true if the spider has read the crawl record. Before, it does not wait for Redis.
    pub(crate) fn has_begun(&self) -> bool {
        self.process.said().lines().any(|line| line == "began")
    }

    /// Returns true if the spider has ended. All other ends than a finished crawl are errors.
    pub(crate) fn has_finished(&mut self) -> Result<bool> {
        let Some(status) = self.process.ended()? else { return Ok(false) };
        let said = self.process.said();
        if !status.success() || !said.contains("Spider closed (finished)") {
            bail!("{} ended with {status}:\n{said}", self.name);
        }
        Ok(true)
    }

    pub(crate) fn kill(&mut self) -> Result<()> {
        self.was_killed = true;
        self.process.kill()
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.was_killed
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Returns the paths of the pages that the spider has finished so far.
    pub(crate) fn finished(&self) -> Vec<String> {
        let said = self.process.said();
        said.lines().filter_map(|it| it.strip_prefix("finished ")).map(str::to_owned).collect()
    }

    /// Returns the lines with errors that the spider has logged.
    pub(crate) fn errors(&self) -> Vec<String> {
        let said = self.process.said();
        said.lines().filter(|it| it.contains("ERROR:")).map(str::to_owned).collect()
    }

    /// Returns the output of the spider.
    pub(crate) fn said(&self) -> String {
        self.process.said()
    }

    /// Waits until Redis has executed everything that a killed spider has sent.
    pub(crate) fn wait_until_gone(&self, redis: &mut Connection) -> Result<()> {
        let name = format!(" name={} ", self.name);
        wait_for("end of a killed spider's connections", SOON, || {
            let clients: String = redis::cmd("CLIENT").arg("LIST").query(redis)?;
            Ok((!clients.contains(&name)).then_some(()))
        })
    }

    /// Returns the paths of the pages that Redis holds for the spider.
    pub(crate) fn held(&self, redis: &mut Connection) -> Result<HashSet<String>> {
        held(redis, &format!("{}#", self.name))
    }
}

/// Returns the paths of the pages that Redis holds for consumers whose name begins with `prefix`.
pub(crate) fn held(redis: &mut Connection, prefix: &str) -> Result<HashSet<String>> {
    // The value of a held request has the pickle of the request, with its URL.
    let path = Regex::new("/(page|again)/[0-9]+")?;
    let keys: Vec<String> = redis
        .scan_match(format!("urlseen:*:held:{prefix}*"))?
        .collect::<redis::RedisResult<_>>()?;
    let mut paths = HashSet::new();
    for key in keys {
        let values: Vec<Vec<u8>> = redis.hvals(key)?;
        for value in values {
            let found = path.find(&value).context("a held request without a page")?;
            paths.insert(String::from_utf8_lossy(found.as_bytes()).into_owned());
        }
    }
    Ok(paths)
}

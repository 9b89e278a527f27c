//! One round: a new server, a new site and a new crawl, faults one after the other, and the verdict
//! of the oracle.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use redis::{Commands, Connection};
use rustix::process::Signal;

use super::oracle::{Died, Verdict};
use super::plan::{Kind, Plan, Strike};
use super::site::Site;
use super::spider::{Spider, held};
use crate::process::{POLL, Process, SOON, wait_for};
use crate::proxy::{Act, Direction, Fault, Proxy};
use crate::server::{Persistence, Server};

/// Longest time without a further page. Spiders take requests of others after `held.timeout`.
const PATIENCE: Duration = Duration::from_mins(1);

/// Number of bytes after which a fault of the network strikes, at most.
const BYTES: u64 = 20_000;

/// Time after which Redis reads the rest of a command.
const LATE: Duration = Duration::from_millis(300);

pub(crate) struct Round {
    plan: Plan,
    program: PathBuf,
    package: PathBuf,
    folder: PathBuf,
    site: Site,
    server: Server,
    proxy: Proxy,
    daemon: Process,
    spiders: Vec<Spider>,
    died: Vec<Died>,
    started: usize,
    random: Rng,
}

impl Round {
    /// Starts all processes of the crawl.
    pub(crate) fn begin(
        plan: &Plan,
        program: &Path,
        package: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let server = Server::start(&folder.join("redis"), Persistence::Always)?;
        let proxy = Proxy::start(server.socket())?;
        let daemon = daemon(plan, program, &server, folder)?;
        let mut round = Self {
            plan: plan.clone(),
            program: program.to_owned(),
            package: package.to_owned(),
            folder: folder.to_owned(),
            site: Site::start()?,
            server,
            proxy,
            daemon,
            spiders: Vec::new(),
            died: Vec::new(),
            started: 0,
            random: Rng::with_seed(!plan.seed),
        };
        for _ in 0..plan.spiders {
            round.start_spider()?;
        }
        Ok(round)
    }

    /// Injects the faults, waits for the end of the crawl, and asks the oracle.
    pub(crate) fn tell(mut self, strikes: &[Strike]) -> Result<Verdict> {
        for strike in strikes {
            if self.wait_for_pages(strike.share)? == Site::paths().len() {
                break;
            }
            sleep(strike.pause);
            self.strike(strike).with_context(|| format!("{strike:?}"))?;
            self.proxy.set_weather(strike.weather);
        }
        self.proxy.relent();
        self.wait_for_the_end()?;
        self.daemon.signal(Signal::TERM)?;
        let status = self.daemon.wait(SOON)?;
        ensure!(status.success(), "urlseen ended with {status}: {}", self.daemon.said());
        let mut redis = self.server.connection()?;
        let left = left(&mut redis)?;
        Ok(Verdict::new(&self.site.hits(), &self.died, &self.spiders, left))
    }

    fn strike(&mut self, strike: &Strike) -> Result<()> {
        match strike.kind {
            Kind::Spider => {
                let victim = self.random.usize(0..self.spiders.len());
                self.kill_spiders(victim..victim + 1)
            }
            Kind::AllSpiders => self.kill_spiders(0..self.spiders.len()),
            Kind::Pause => self.pause_spider(),
            Kind::Daemon => {
                self.daemon.kill()?;
                self.daemon = daemon(&self.plan, &self.program, &self.server, &self.folder)?;
                Ok(())
            }
            Kind::Redis => {
                self.wait_until_all_have_begun()?;
                self.server.crash(&mut self.random)?;
                self.server.revive()
            }
            Kind::Cut => self.prepare(Act::Cut),
            Kind::Late => self.prepare(Act::Late(LATE)),
        }
    }

    /// Kills spiders at the same moment, and starts others in their place.
    fn kill_spiders(&mut self, victims: std::ops::Range<usize>) -> Result<()> {
        let mut victims: Vec<Spider> = self.spiders.drain(victims).collect();
        for victim in &mut victims {
            victim.kill()?;
        }
        let mut redis = self.server.connection()?;
        for spider in victims {
            let mut ever = spider.held(&mut redis)?;
            spider.wait_until_gone(&mut redis)?;
            let held = spider.held(&mut redis)?;
            ever.extend(held.iter().cloned());
            self.died.push(Died { spider, held, ever });
            self.start_spider()?;
        }
        Ok(())
    }

    /// Stops a spider until Redis holds nothing for it, because other spiders have requeued it all.
    fn pause_spider(&mut self) -> Result<()> {
        let victim = self.random.usize(0..self.spiders.len());
        let spider = self.spiders.remove(victim);
        spider.signal(Signal::STOP)?;
        let mut redis = self.server.connection()?;
        let mut ever = HashSet::new();
        wait_for("requeue of a stopped spider's requests", SOON, || {
            self.check()?;
            // Bytes that were on their way can still pop a request.
            let held = spider.held(&mut redis)?;
            ever.extend(held.iter().cloned());
            Ok(held.is_empty().then_some(()))
        })?;
        spider.signal(Signal::CONT)?;
        self.died.push(Died { spider, held: HashSet::new(), ever });
        Ok(())
    }

    /// Lets a fault strike the connection of some spider soon.
    fn prepare(&mut self, act: Act) -> Result<()> {
        self.wait_until_all_have_begun()?;
        let is_question = self.random.bool() || matches!(act, Act::Late(_));
        let direction = if is_question { Direction::ToServer } else { Direction::ToClient };
        self.proxy.prepare(Fault { direction, bytes: self.random.u64(0..BYTES), act });
        Ok(())
    }

    /// Waits until no spider is starting. A starting spider ends if Redis is away. The site answers
    /// no other spider meanwhile, so the crawl does not end before the fault.
    fn wait_until_all_have_begun(&mut self) -> Result<()> {
        self.site.hold(true);
        self.wait_until("start of all spiders", |round, _| {
            for spider in &mut round.spiders {
                if !spider.has_finished()? && !spider.has_begun() {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        self.site.hold(false);
        Ok(())
    }

    fn start_spider(&mut self) -> Result<()> {
        self.proxy.relent();
        self.started += 1;
        let (number, port) = (self.started, self.proxy.address().port());
        let url = self.site.url();
        let spider = Spider::start(number, &self.package, port, &url, &self.folder)?;
        self.spiders.push(spider);
        Ok(())
    }

    /// Waits until this share of the pages is fetched, and returns the number of fetched pages. No
    /// spider may end before all are.
    fn wait_for_pages(&mut self, share: u64) -> Result<usize> {
        let pages = Site::paths().len();
        let wanted = pages * usize::try_from(share)? / 1000;
        self.wait_until("share of the pages", |round, fetched| {
            let mut spiders = round.spiders.iter_mut();
            let ended = spiders
                .try_fold(false, |any, it| Ok::<_, anyhow::Error>(any | it.has_finished()?))?;
            ensure!(!ended || fetched == pages, "a spider ended after {fetched} of {pages} pages");
            Ok(fetched >= wanted)
        })?;
        Ok(self.site.fetched())
    }

    /// Waits until all spiders have ended by themselves.
    fn wait_for_the_end(&mut self) -> Result<()> {
        self.wait_until("end of the crawl", |round, _| {
            let paused = round.died.iter_mut().map(|died| &mut died.spider);
            for spider in round.spiders.iter_mut().chain(paused) {
                if !spider.was_killed() && !spider.has_finished()? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Waits until a condition is true. Fails if the site serves no further page for a long time.
    fn wait_until(
        &mut self,
        what: &str,
        mut is_true: impl FnMut(&mut Self, usize) -> Result<bool>,
    ) -> Result<()> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            self.check()?;
            let fetched = self.site.fetched();
            if is_true(self, fetched)? {
                return Ok(());
            }
            if fetched != last {
                (last, since) = (fetched, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                let said: Vec<_> = self.spiders.iter().map(Spider::said).collect();
                bail!("no {what} after {fetched} pages:\n{}", said.join("\n"));
            }
            sleep(POLL);
        }
    }

    /// Checks that the daemon runs.
    fn check(&mut self) -> Result<()> {
        let status = self.daemon.ended()?;
        ensure!(status.is_none(), "urlseen has ended: {}", self.daemon.said());
        Ok(())
    }
}

/// Starts the daemon. Neither this function nor the spiders wait until the daemon is ready.
fn daemon(plan: &Plan, program: &Path, server: &Server, folder: &Path) -> Result<Process> {
    let settings = [
        format!("redis.url=unix://{}", server.socket().display()),
        format!("storage.dir={}", folder.join("state").display()),
        format!("partitions.count={}", plan.partitions),
        format!("sink.kind={}", plan.sink),
        "held.timeout=3s".to_owned(),
        // There are fewer kills, so no request is delivered too often and rejected.
        "held.deliveries=20".to_owned(),
    ];
    let options = settings.into_iter().flat_map(|it| ["--set".to_owned(), it]);
    Process::start(program, std::iter::once("run".to_owned()).chain(options), folder)
}

/// Returns what the crawl has left in Redis: the lists of its items, and what is held.
fn left(redis: &mut Connection) -> Result<Vec<String>> {
    let mut left: Vec<String> =
        held(redis, "")?.into_iter().map(|it| format!("{it} is held")).collect();
    for pattern in ["demo:*", "urlseen:*:processing", "urlseen:*:requeues"] {
        let keys: Vec<String> = redis.scan_match(pattern)?.collect::<redis::RedisResult<_>>()?;
        left.extend(keys.into_iter().map(|key| format!("{key} is not empty")));
    }
    Ok(left)
}

//! A crawl whose filter is in Redis, from commands that look at it or mend it while it rests.

use std::io::Write;

use crate::admin::printable::{json_text, stdout};
use crate::crawl::protocol::Protocol;
use crate::crawl::upkeep::Upkeep;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use urlseen_core::filter::{Estimate, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::lease::{LeaseHolder, RunId};
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{self, Opened, Wanted};
use urlseen_core::storage::Head;
use urlseen_engine::config::Config;

use super::Outcome;
use super::confirm::confirm;

/// The crawl, and the way to its Redis.
pub(super) struct Crawl {
    runtime: Runtime,
    config: Config,
    wanted: Wanted,
}

impl Crawl {
    /// As configured.
    pub(super) fn new(config: Config) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let wanted = Wanted::new(&config)?;
        Ok(Self { runtime, config, wanted })
    }

    /// How it is configured.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// What the filter says of fingerprints, in their order.
    pub(super) fn verdicts(&self, fingerprints: &[Fingerprint]) -> anyhow::Result<Vec<Verdict>> {
        self.runtime.block_on(async {
            let mut link = self.connect().await?;
            let opened = self.wanted.find(&mut link).await?;
            Ok(opening::verdicts(&mut link, &opened.filter, fingerprints).await?)
        })
    }

    /// The filter as it is there, and what its fill says of it.
    pub(super) fn estimate(&self) -> anyhow::Result<(Opened, Estimate)> {
        self.runtime.block_on(async {
            let mut link = self.connect().await?;
            let opened = self.wanted.find(&mut link).await?;
            let estimate = opening::estimate(&mut link, &opened.filter).await?;
            Ok((opened, estimate))
        })
    }

    /// Prints what Redis holds of the crawl.
    pub(super) fn show(&self, as_json: bool) -> anyhow::Result<Outcome> {
        let CrawlFacts { opened, keys, error_rate, head, holder, lists } =
            self.runtime.block_on(self.look())?;
        let bytes = opened.bytes();
        let filter = &self.config.filter;
        let mut out = stdout();
        if as_json {
            let head = head.map(
                |Head { seq, commit_id }| json!({ "seq": seq, "commit_id": commit_id.to_string() }),
            );
            let [source, processing, sink, rejected] = lists;
            let status = json!({
                "crawl": self.config.crawl.name,
                "redis": self.config.redis.url.to_string(),
                "head": head,
                "holder": holder,
                "lists": {
                    "source": source,
                    "processing": processing,
                    "sink": sink,
                    "rejected": rejected,
                },
                "filter": {
                    "id": opened.id.to_string(), "key": filter.key,
                    "kind": filter.kind.name(), "keys": keys, "capacity": filter.capacity,
                    "error_rate": error_rate, "bytes": bytes,
                },
            });
            writeln!(out, "{}", json_text(&format!("{status:#}")))?;
            return Ok(Outcome::Done);
        }
        let mut row = |name: &str, text: String| writeln!(out, "{name:<12} {text}");
        row("crawl", self.config.crawl.name.clone())?;
        row("redis", self.config.redis.url.to_string())?;
        row("batch", head.map_or_else(|| "none was committed".to_owned(), |it| it.to_string()))?;
        row("run by", holder.map_or_else(|| "nobody".to_owned(), |it| it.to_string()))?;
        let names = ["source", "processing", "sink", "rejects"];
        for (name, length) in names.into_iter().zip(lists) {
            row(name, format!("{:>15}", HumanCount(length).to_string()))?;
        }
        let share = 100.0 * keys as f64 / filter.capacity as f64;
        row(
            "filter",
            format!(
                "{:>15}   fingerprints, {share:.1} % of {}; error rate now {error_rate:.1e}; \
                 {} at {}, up to {}",
                HumanCount(keys).to_string(),
                HumanCount(filter.capacity),
                filter.kind.name(),
                filter.key,
                BinaryBytes(bytes),
            ),
        )?;
        Ok(Outcome::Done)
    }

    /// Ties the crawl to the filter as it is.
    pub(super) fn adopt(&self) -> anyhow::Result<Outcome> {
        self.runtime.block_on(async {
            let mut upkeep = self.take().await?;
            let opened = self.wanted.open(upkeep.link()).await?;
            let head = upkeep.standing().head.unwrap_or(Head::START);
            upkeep.tie(opened.id, head).await?;
            upkeep.end().await?;
            writeln!(stdout(), "the crawl stands at {head} and belongs to {} now", self.name())?;
            Ok(Outcome::Done)
        })
    }

    /// Empties the filter.
    pub(super) fn reset(&self, yes: bool) -> anyhow::Result<Outcome> {
        let question = format!(
            "Empty {}, for all crawls that share it? All that was seen is emitted again.",
            self.name()
        );
        if !yes && !confirm(&question)? {
            writeln!(stdout(), "nothing is changed")?;
            return Ok(Outcome::Done);
        }
        self.runtime.block_on(async {
            let mut upkeep = self.take().await?;
            self.wanted.delete(upkeep.link()).await?;
            let opened = self.wanted.open(upkeep.link()).await?;
            let head = upkeep.standing().head.unwrap_or(Head::START);
            upkeep.tie(opened.id, head).await?;
            upkeep.end().await?;
            writeln!(stdout(), "{} is empty and belongs to {head} now", self.name())?;
            Ok(Outcome::Done)
        })
    }

    /// Deletes the filter, and gives the crawl up.
    pub(super) fn drop(&self, yes: bool) -> anyhow::Result<Outcome> {
        let question = format!(
            "Delete {}, for all crawls that share it, and what Redis knows of where the crawl {:?} \
             stands?",
            self.name(),
            self.config.crawl.name
        );
        if !yes && !confirm(&question)? {
            writeln!(stdout(), "nothing is changed")?;
            return Ok(Outcome::Done);
        }
        self.runtime.block_on(async {
            let mut upkeep = self.take().await?;
            let deleted = self.wanted.delete(upkeep.link()).await?;
            upkeep.forget().await?;
            let given = upkeep.give_back().await?;
            writeln!(
                stdout(),
                "{} is deleted (keys: {deleted}), Redis knows nothing of the crawl, {} items are \
                 back in {}",
                self.name(),
                given.back,
                self.config.source.key
            )?;
            Ok(Outcome::Done)
        })
    }

    /// The filter, for people.
    fn name(&self) -> String {
        format!("the filter {} in {}", self.config.filter.key, self.config.redis.url)
    }

    async fn connect(&self) -> anyhow::Result<Link> {
        Ok(connect(&self.config.redis.url, Timeouts::default()).await?)
    }

    /// Takes the lease, which nobody may hold.
    async fn take(&self) -> anyhow::Result<Upkeep> {
        let holder = LeaseHolder::this(&self.config.crawl.name);
        let address = &self.config.redis.url;
        Ok(Upkeep::begin(address, self.protocol(), &holder, RunId::random(), &[]).await?)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new(&self.config)
    }

    async fn look(&self) -> anyhow::Result<CrawlFacts> {
        let mut link = self.connect().await?;
        let opened = self.wanted.find(&mut link).await?;
        let estimate = opening::estimate(&mut link, &opened.filter).await?;
        let protocol = self.protocol();
        let place = protocol.place(link.call(&protocol.look()).await?)?;
        let mut lists = [0; 4];
        for (length, ask) in lists.iter_mut().zip(protocol.lengths()) {
            *length = protocol.length(link.call(&ask).await?)?;
        }
        let (head, holder) = place;
        let (keys, error_rate) = (estimate.keys, estimate.error_rate);
        Ok(CrawlFacts { opened, keys, error_rate, head, holder, lists })
    }
}

/// What Redis holds of a crawl.
struct CrawlFacts {
    opened: Opened,
    keys: u64,
    error_rate: f64,
    head: Option<Head>,
    holder: Option<LeaseHolder>,
    /// Lengths of source, processing, sink and rejects.
    lists: [u64; 4],
}

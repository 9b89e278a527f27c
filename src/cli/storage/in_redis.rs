//! `urlseen storage` of a crawl whose filter is in Redis.

use std::io::Write;

use crate::admin::printable::{json_text, stdout};
use crate::crawl::protocol::Protocol;
use crate::crawl::upkeep::Upkeep;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::lease::LeaseHolder;
use urlseen_core::redis_filter::opening::{self, Opened, Wanted};
use urlseen_core::storage::Head;

use super::super::Outcome;
use super::super::confirm::confirm;
use super::super::context::Context;

/// A crawl whose filter is in Redis, and the way to it.
pub(in crate::cli) struct CrawlInRedis {
    context: Context,
    wanted: Wanted,
}

impl CrawlInRedis {
    pub(in crate::cli) fn new(context: Context) -> anyhow::Result<Self> {
        let wanted = context.config.redis_filter()?;
        Ok(Self { context, wanted })
    }

    /// Prints what Redis holds of the crawl.
    pub(in crate::cli) fn show(&self, as_json: bool) -> anyhow::Result<Outcome> {
        let CrawlFacts { opened, keys, error_rate, head, holder, lists } =
            self.context.runtime.block_on(self.look())?;
        let bytes = opened.bytes();
        let filter = &self.context.config.filter;
        let mut out = stdout();
        if as_json {
            let head = head.map(
                |Head { seq, commit_id }| json!({ "seq": seq, "commit_id": commit_id.to_string() }),
            );
            let [source, processing, sink, rejected] = lists;
            let status = json!({
                "crawl": self.context.config.crawl.name,
                "redis": self.context.config.redis.url.to_string(),
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
        row("crawl", self.context.config.crawl.name.clone())?;
        row("redis", self.context.config.redis.url.to_string())?;
        row("batch", head.map_or_else(|| "none was committed".to_owned(), |it| it.to_string()))?;
        row("run by", holder.map_or_else(|| "no daemon".to_owned(), |it| it.to_string()))?;
        let names = ["source", "processing", "sink", "rejects"];
        for (name, length) in names.into_iter().zip(lists) {
            row(name, format!("{:>15}", HumanCount(length).to_string()))?;
        }
        let share = 100.0 * keys as f64 / filter.capacity as f64;
        let size = if opened.filter.kind().is_exact() {
            "exact".to_owned()
        } else {
            format!(
                "{share:.1} % of {}; error rate now {error_rate:.1e}; up to {}",
                HumanCount(filter.capacity),
                BinaryBytes(bytes)
            )
        };
        let (keys, kind, key) = (HumanCount(keys).to_string(), filter.kind.name(), &filter.key);
        row("filter", format!("{keys:>15}   fingerprints, {size}; {kind} at {key}"))?;
        Ok(Outcome::Done)
    }

    /// Ties the crawl to the filter as it is.
    pub(in crate::cli) fn adopt(&self) -> anyhow::Result<Outcome> {
        self.context.runtime.block_on(async {
            let mut upkeep = self.take().await?;
            let opened = self.wanted.open(upkeep.link()).await?;
            let head = upkeep.standing().head.unwrap_or(Head::START);
            upkeep.tie(opened.id, head).await?;
            upkeep.end().await?;
            writeln!(stdout(), "the crawl stands at {head} and belongs to {} now", self.name())?;
            Ok(Outcome::Done)
        })
    }

    /// Empties the filter, if the user confirms or `yes` is set.
    pub(in crate::cli) fn reset(&self, yes: bool) -> anyhow::Result<Outcome> {
        let question = format!(
            "Empty {}, for all crawls that share it? All that was seen is emitted again.",
            self.name()
        );
        if !yes && !confirm(&question)? {
            writeln!(stdout(), "nothing is changed")?;
            return Ok(Outcome::Done);
        }
        self.context.runtime.block_on(async {
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
    pub(in crate::cli) fn drop(&self, yes: bool) -> anyhow::Result<Outcome> {
        let question = format!(
            "Delete {}, for all crawls that share it, and what Redis knows of where the crawl {:?} \
             stands?",
            self.name(),
            self.context.config.crawl.name
        );
        if !yes && !confirm(&question)? {
            writeln!(stdout(), "nothing is changed")?;
            return Ok(Outcome::Done);
        }
        self.context.runtime.block_on(async {
            let mut upkeep = self.take().await?;
            let deleted = self.wanted.delete(upkeep.link()).await?;
            upkeep.drop_crawl().await?;
            let given = upkeep.give_back().await?;
            writeln!(
                stdout(),
                "{} is deleted (keys: {deleted}), Redis knows nothing of the crawl, {} items are \
                 back in {}",
                self.name(),
                given.back,
                self.context.config.source.key
            )?;
            Ok(Outcome::Done)
        })
    }

    /// The filter, for people.
    fn name(&self) -> String {
        format!(
            "the filter {} in {}",
            self.context.config.filter.key, self.context.config.redis.url
        )
    }

    /// Takes the lease, which no other process may hold.
    async fn take(&self) -> anyhow::Result<Upkeep> {
        let holder = LeaseHolder::this(&self.context.config.crawl.name);
        let address = &self.context.config.redis.url;
        Ok(Upkeep::begin(address, self.protocol(), &holder, RandomId::random(), &[]).await?)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new(&self.context.config)
    }

    async fn look(&self) -> anyhow::Result<CrawlFacts> {
        let (mut link, opened) = self.context.find(&self.wanted).await?;
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

/// State of a crawl, as Redis has it.
struct CrawlFacts {
    opened: Opened,
    keys: u64,
    error_rate: f64,
    head: Option<Head>,
    holder: Option<LeaseHolder>,
    /// Lengths of source, processing, sink and rejects.
    lists: [u64; 4],
}

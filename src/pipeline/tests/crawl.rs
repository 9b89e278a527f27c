//! Crawls of the simulation. They differ in their sink, their filter and their limit. All daemons
//! of one seed run the same crawl.

use std::collections::HashMap;
use std::sync::Arc;

use super::wire::Word;
use crate::config::{Config, Sources};
use urlseen_engine::item::Options;
use urlseen_filter::choice::Fsync;
use urlseen_filter::{FilterSpec, Seed};
use urlseen_redis::filter::definition::DEFINE;

/// Names of the scripts, by their texts and their hashes.
pub(super) type Scripts = HashMap<Word, &'static str>;

/// Configuration of a crawl and its filter.
#[derive(Clone)]
pub(super) struct Crawl {
    pub(super) config: Config,
    pub(super) filter: FilterSpec,
    pub(super) fsync: Fsync,
    pub(super) scripts: Arc<Scripts>,
    /// True if Redis has the filter.
    pub(super) is_shared: bool,
    /// Maximum number of unseen items that pass, if there is a limit.
    pub(super) limit: Option<usize>,
}

const IN_REDIS: &[&str] = &["filter.kind=scrapy-redis", "filter.place=redis"];

const NATIVE: &[&str] = &["filter.kind=native", "filter.seed=1"];
const TWO_CHOICE: &[&str] = &["filter.kind=two-choice", "filter.seed=1"];

/// Filters and limits of the crawls. One filter has tombstones, one removes keys, and in one they
/// expire.
const FILTERS: [(&[&str], Option<usize>); 6] = [
    (NATIVE, None),
    (TWO_CHOICE, None),
    (&["filter.kind=two-choice", "filter.seed=1", "filter.expire_after=150s"], None),
    (IN_REDIS, None),
    (NATIVE, Some(20)),
    (TWO_CHOICE, Some(30)),
];

impl Crawl {
    /// Configures one crawl for each sink and each filter.
    pub(super) fn all() -> Vec<Self> {
        let sinks = ["list", "zset"].into_iter();
        let crawls = |sink| FILTERS.map(|(filter, limit)| Self::new(sink, filter, limit));
        sinks.flat_map(crawls).collect()
    }

    fn new(sink: &str, filter: &[&str], limit: Option<usize>) -> Self {
        let is_shared = filter == IN_REDIS;
        let common = [
            "crawl.name=sim",
            "source.key=source",
            "sink.key=sink",
            "forget.key=forget",
            "filter.key=filter",
            "filter.capacity=500",
            "filter.recent=40",
        ];
        let sink = format!("sink.kind={sink}");
        let set = common.iter().chain(filter).map(|&set| set.to_owned()).chain([sink]).collect();
        let file = tempfile::NamedTempFile::new().expect("a file can be made");
        if let Some(max) = limit {
            let rule = format!("[[limit]]\nby = 'host'\nmax = {max}\n");
            std::fs::write(&file, rule).expect("the file can be written");
        }
        let sources = Sources { file: Some(file.path().into()), set, ..Sources::default() };
        let config = Config::load(sources);
        let config = config.expect("a configuration");
        let filter = config.filter_spec().expect("a filter");
        let mut scripts = Scripts::from([(DEFINE.as_bytes().into(), "define")]);
        let mut protocol = config.protocol();
        if is_shared {
            let filter = config.redis_filter().and_then(|wanted| wanted.filter(Seed::new(0)));
            protocol = protocol.with_filter(Arc::new(filter.expect("a filter in Redis")));
        }
        for (&name, script) in &protocol.scripts {
            scripts.insert(script.text.to_string().into(), name);
            scripts.insert(script.hash.to_string().into(), name);
        }
        let (fsync, scripts) = (Fsync::Never, Arc::new(scripts));
        Self { config, filter, fsync, scripts, is_shared, limit }
    }

    /// Returns the crawl with the given number of items in a batch, and the given rule for syncing
    /// the log. Its commits wait for `replicas`.
    pub(super) fn with(&self, batch: usize, fsync: Fsync, replicas: u64) -> Self {
        let mut crawl = Self { fsync, ..self.clone() };
        crawl.config.source.batch = batch;
        crawl.config.redis.wait_replicas = replicas;
        crawl
    }

    /// Returns the options for reading items.
    pub(super) fn items(&self) -> Options {
        Options {
            scored: self.config.open_sink().is_scored(),
            limits: self.config.rules.limits.clone(),
            ..Options::new(self.config.source.item.into(), self.config.fingerprint_spec())
        }
    }
}

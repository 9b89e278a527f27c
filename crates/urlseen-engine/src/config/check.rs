//! Takes the values out of the layers, one key after the other, and checks their combinations. All
//! problems are collected and returned together.

use super::layers::{FoundValue, Layers};
use super::partitions::has_tag;
use super::problem::{Problems, ValueOrigin};
use super::raw::ValueError;
use super::rules::FoundRules;
use super::secret::{Secret, masked};
use super::sections::Config;
use super::unknown::removed;
use super::value::{CRAWL, Rule};
use std::collections::{BTreeMap, BTreeSet};
use urlseen_core::filter::Kind;
use urlseen_core::filter::choice::{Emit, End, FilterPlace, ItemForm, SourceKind};
use urlseen_core::fingerprint::PartitionCount;
use urlseen_core::redis::{RedisAddress, RedisAddressError};

/// Origins of the values that were taken, by key. A default value has no origin.
pub(super) type Origins = BTreeMap<&'static str, ValueOrigin>;

/// Source of typed values by key.
pub(super) struct Taker {
    layers: Layers,
    /// Value of `crawl.name`, from which defaults are derived.
    crawl: String,
    /// Origins of the values so far.
    pub(super) origins: Origins,
    /// Keys with a refused value.
    wrong: BTreeSet<&'static str>,
}

impl Taker {
    pub(super) fn new(layers: Layers) -> Self {
        let names = layers.found.get("crawl.name").into_iter().flatten();
        let crawl = names.rev().find_map(|name| CRAWL.read(&name.raw).ok());
        Self {
            layers,
            crawl: crawl.unwrap_or_else(|| "demo".to_owned()),
            origins: BTreeMap::new(),
            wrong: BTreeSet::new(),
        }
    }

    /// Takes the value of a key: the value of the last layer that sets the key, or else the
    /// default. If a value is refused, the returned value only helps to find further problems.
    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        rule: &impl Rule<T>,
        default: impl FnOnce(&str) -> T,
    ) -> T {
        let mut taken = None;
        for FoundValue { raw, origin } in self.layers.found.remove(key).unwrap_or_default() {
            let refusal = match rule.read(&raw) {
                Ok(value) => {
                    taken = Some(value);
                    self.origins.insert(key, origin);
                    continue;
                }
                Err(refusal) => refusal,
            };
            self.wrong.insert(key);
            let (found, kind, allowed) = (rule.shown(&raw), raw.kind(), rule.allowed());
            let fault = match refusal {
                ValueError::Type if found != kind => {
                    format!("{key} is {found}, {kind}; allowed: {allowed}")
                }
                ValueError::Type | ValueError::Value => removed(&format!("{key} = {found}"))
                    .unwrap_or_else(|| format!("{key} is {found}; allowed: {allowed}")),
                ValueError::Because(reason) => format!("{key} is {found}: {reason}"),
                ValueError::NotYet => format!(
                    "{key} is {found}, which is not in this version yet; allowed now: {allowed}"
                ),
            };
            self.layers.refuse(origin, fault);
        }
        taken.unwrap_or_else(|| default(&self.crawl))
    }

    /// Takes the rules of the file out of the layers.
    pub(super) fn take_rules(&mut self) -> FoundRules {
        std::mem::take(&mut self.layers.rules)
    }

    /// Puts the password from its own environment variable into the URL. This password replaces a
    /// password in the URL.
    pub(super) fn log_in(&mut self, url: RedisAddress) -> RedisAddress {
        let password = self.secret("redis").map(|secret| secret.reveal().to_owned());
        let url = url.with_password(password);
        if url.lacks_password() {
            // Masks the user in the URL, too: it may be a password in the wrong place.
            let found = masked(&url.to_string());
            let reason = RedisAddressError::NoPassword;
            self.refuse(&["redis.url"], format!("redis.url is {found:?}: {reason}"));
        }
        url
    }

    /// Takes the password or the token of a server.
    pub(super) fn secret(&mut self, server: &str) -> Option<Secret> {
        self.layers.secrets.remove(server)
    }

    /// Checks the combinations of values in `config`, which this taker returned. If the
    /// configuration exceeds a limit of this process, `machine` holds the key with the faulty value
    /// and the text of the problem. Returns the origins of the values.
    ///
    /// # Errors
    /// At least one value was refused. The error contains all problems.
    pub(super) fn finish(
        mut self,
        config: &Config,
        machine: Option<(&'static str, String)>,
    ) -> Result<Origins, Problems> {
        if !self.layers.incomplete {
            self.check_tls(config);
            self.check_redis_keys(config);
            self.check_partitions(config);
            self.check_emit(config);
            self.check_push_to(config);
            self.check_rejects(config);
            self.check_kind(config);
            self.check_expiry(config);
            self.check_expire_rules(config);
            self.check_serve(config);
            self.check_limits(config);
            if let Some((key, fault)) = machine {
                self.refuse(&[key], fault);
            }
        }
        Problems::check(self.layers.problems)?;
        Ok(self.origins)
    }

    /// Checks the files of encrypted connections to Redis. They have no use without encryption.
    fn check_tls(&mut self, config: &Config) {
        let url = &config.redis.url;
        let files = url.tls();
        if !url.is_tls() {
            for (key, path) in files.set() {
                let fault = format!(
                    "{key} is {path:?}, but redis.url is {:?} ({}), which is not encrypted; write \
                     rediss:// in redis.url, or leave {key} out",
                    url.to_string(),
                    self.origin("redis.url")
                );
                self.refuse(&[key, "redis.url"], fault);
            }
        }
        for problem in files.problems() {
            self.refuse(&[problem.key], problem.to_string());
        }
    }

    /// Checks that each Redis key has only one use.
    fn check_redis_keys(&mut self, config: &Config) {
        let keys = named_keys(config);
        for (index, (key, name)) in keys.iter().enumerate() {
            if is_own(name) {
                let fault = format!(
                    "{key} is {name:?}, which is a key of urlseen's own; allowed: any that is not \
                     urlseen:…:state, :lease, :processing or :spec"
                );
                self.refuse(&[key], fault);
            }
            for (other, other_name) in &keys[..index] {
                if name != other_name {
                    continue;
                }
                // The problem names the key that the user set, not the key with its default.
                let (key, other) =
                    if self.origin(key) < self.origin(other) { (other, key) } else { (key, other) };
                let fault = format!(
                    "{key} is {name:?}, and so is {other} ({}); allowed: a Redis key of its own \
                     for each",
                    self.origin(other)
                );
                self.refuse(&[key, other, "crawl.name"], fault);
            }
        }
    }

    /// Checks that a crawl with several partitions can have them.
    fn check_partitions(&mut self, config: &Config) {
        let (count, run) = (config.partitions.count, &config.partitions.run);
        if run.largest() >= count.get() {
            let fault = format!(
                "partitions.run names {}, and partitions.count is {count} ({}); allowed: the \
                 numbers 0 to {}, and at most {count} processes",
                run.largest(),
                self.origin("partitions.count"),
                count.get() - 1
            );
            self.refuse(&["partitions.run", "partitions.count"], fault);
        }
        if count == PartitionCount::ONE {
            return;
        }
        for (key, name) in named_keys(config) {
            if has_tag(name) {
                let fault = format!(
                    "{key} is {name:?}, and partitions.count is {count} ({}): urlseen adds a text \
                     in braces for each partition; leave out the braces",
                    self.origin("partitions.count")
                );
                self.refuse(&[key, "crawl.name", "partitions.count"], fault);
            }
        }
        if let Some(listen) = &config.serve.listen {
            let fault = format!(
                "serve.listen is {:?}, and partitions.count is {count} ({}): clients would ask for \
                 URLs of all partitions, and each has a filter of its own; leave out one of them",
                listen.to_string(),
                self.origin("partitions.count")
            );
            self.refuse(&["serve.listen", "partitions.count"], fault);
        }
    }

    /// Checks that URLs are emitted only from items that have a URL.
    fn check_emit(&mut self, config: &Config) {
        let without_url = matches!(config.source.item, ItemForm::Fingerprint | ItemForm::Tab);
        if config.sink.emit != Emit::Item && without_url {
            let fault = format!(
                "sink.emit is {:?}, but items have no URL if source.item is {:?} ({}); allowed: \
                 sink.emit = \"item\", or another source.item",
                config.sink.emit.name(),
                config.source.item.name(),
                self.origin("source.item")
            );
            self.refuse(&["sink.emit", "source.item"], fault);
        }
    }

    /// Checks that `push_to` is not set for a sorted set, which has no ends.
    fn check_push_to(&mut self, config: &Config) {
        let push_to = config.sink.push_to;
        let has_ends = !config.open_sink().is_scored();
        // The default, "right", is permitted, because a copy of the documented file contains it.
        if !has_ends && push_to == End::Left {
            let fault = format!(
                "sink.push_to is \"left\", but sink.kind is \"zset\" ({}), which has no ends: \
                 items are sorted by their priority; leave sink.push_to out, or set sink.kind = \
                 \"list\"",
                self.origin("sink.kind")
            );
            self.refuse(&["sink.push_to", "sink.kind"], fault);
        }
    }

    /// Checks that all items of a batch fit into the rejects list, because a batch is committed
    /// completely.
    fn check_rejects(&mut self, config: &Config) {
        let (max_len, batch) = (config.rejects.max_len, config.source.batch);
        let fits = usize::try_from(max_len).map_or(true, |max_len| max_len >= batch);
        if !fits {
            let fault = format!(
                "rejects.max_len is {max_len}, less than source.batch, {batch} ({}); allowed: at \
                 least as many, since all items of a batch may be rejects",
                self.origin("source.batch")
            );
            self.refuse(&["rejects.max_len", "source.batch"], fault);
        }
    }

    /// Checks that the fingerprints of a filter of this kind can expire.
    fn check_expiry(&mut self, config: &Config) {
        let (kind, key) = (config.filter.kind, "filter.expire_after");
        if config.filter.expire_after.is_none() || kind.keys().contains(&key) {
            return;
        }
        let others = Kind::all().filter(|kind| kind.keys().contains(&key));
        let others = others.map(|kind| format!("filter.kind = {:?}", kind.name()));
        let fault = format!(
            "{key} is set, and filter.kind is {:?} ({}), whose fingerprints never expire; leave \
             {key} out, or set {}",
            kind.name(),
            self.origin("filter.kind"),
            others.collect::<Vec<_>>().join(" or "),
        );
        self.refuse(&[key, "filter.kind"], fault);
    }

    /// Checks that the filter can keep the times of the rules.
    fn check_expire_rules(&mut self, config: &Config) {
        for rule in config.expire.iter() {
            if let Some(reason) = rule.problem(config.filter.expire_after) {
                self.layers.refuse_rule("expire", rule.origin.clone(), &reason);
            }
        }
    }

    /// Checks that a filter of this kind can be at this place. Filters of other projects must be at
    /// the place where those projects keep them.
    fn check_kind(&mut self, config: &Config) {
        let (kind, place) = (config.filter.kind, config.filter.place);
        if kind.is_in(place) {
            return;
        }
        let other = match place {
            FilterPlace::Local => FilterPlace::Redis,
            FilterPlace::Redis => FilterPlace::Local,
        };
        let kinds: Vec<_> = Kind::all_in(place).map(|kind| format!("{:?}", kind.name())).collect();
        let fault = format!(
            "filter.kind is {:?}, and filter.place is {:?} ({}), where no filter of that kind can \
             be; allowed: filter.place = {:?}, or filter.kind = {}",
            kind.name(),
            place.name(),
            self.origin("filter.place"),
            other.name(),
            kinds.join(", ")
        );
        self.refuse(&["filter.kind", "filter.place"], fault);
    }

    /// Checks the settings for clients. The server answers clients from the memory of this process.
    /// A client may empty the filter only if the daemon has no source.
    fn check_serve(&mut self, config: &Config) {
        let mut refuse = |key: &str, fault: String| {
            self.refuse(&[key, "source.kind", "serve.listen", "filter.place"], fault);
        };
        let Config { source, serve, filter, .. } = config;
        let is_alone = source.kind == SourceKind::None;
        if is_alone && serve.listen.is_none() {
            let fault = "source.kind is \"none\": without a source there is nothing to do unless \
                         clients may ask; set serve.listen, or source.kind = \"list\"";
            refuse("source.kind", fault.to_owned());
        }
        if let (Some(listen), FilterPlace::Redis) = (&serve.listen, filter.place) {
            let fault = format!(
                "serve.listen is {:?}: the daemon answers clients from its memory, and \
                 filter.place is \"redis\"; ask Redis directly, or set filter.place = \"local\"",
                listen.to_string()
            );
            refuse("serve.listen", fault);
        }
        if serve.allow_delete && !is_alone {
            let fault = "serve.allow_delete is true: a filter between source and sink cannot be \
                         emptied; set source.kind = \"none\", or leave serve.allow_delete out";
            refuse("serve.allow_delete", fault.to_owned());
        }
    }

    fn origin(&self, key: &str) -> ValueOrigin {
        self.origins.get(key).cloned().unwrap_or(ValueOrigin::Default)
    }

    /// Refuses the value of the first key, unless a value of one of the keys was already refused.
    pub(super) fn refuse(&mut self, keys: &[&str], fault: String) {
        if !keys.iter().any(|key| self.wrong.contains(key)) {
            self.layers.refuse(self.origin(keys[0]), fault);
        }
    }
}

impl Config {
    /// Returns the key of the configuration that names this Redis key for the crawl or a partition
    /// of it, or words for a key that urlseen itself makes. The source of the whole crawl does not
    /// count.
    pub fn use_of(&self, redis_key: &str) -> Option<&'static str> {
        let is_source = redis_key == self.source.key;
        let all = std::iter::once(self.clone()).chain(self.all_partitions());
        let named = all.filter_map(|config| {
            named_keys(&config).into_iter().find(|&(_, key)| key == redis_key).map(|(name, _)| name)
        });
        let own = is_own(redis_key).then_some("a name of urlseen's own keys");
        named.chain(own).find(|_| !is_source)
    }
}

/// Returns the Redis keys that the configuration names, each after its own key.
fn named_keys(config: &Config) -> [(&'static str, &String); 5] {
    [
        ("source.key", &config.source.key),
        ("filter.key", &config.filter.key),
        ("sink.key", &config.sink.key),
        ("rejects.key", &config.rejects.key),
        ("forget.key", &config.forget.key),
    ]
}

/// Returns true if urlseen itself uses Redis keys with this name.
fn is_own(name: &str) -> bool {
    let uses = "state lease processing forgetting spec crawl consumers requeues";
    let last = name.rsplit(':').next();
    name.starts_with("urlseen:") && uses.split(' ').any(|each| Some(each) == last)
}

//! Checks of the combinations of values. All problems are collected and returned together.

use super::problem::Problems;
use super::rule_kinds::EffectiveRule;
use super::sections::Config;
use super::taker::{Origins, Taker};
use urlseen_core::filter::Kind;
use urlseen_core::filter::choice::{Emit, End, FilterPlace, ItemForm, SourceKind};
use urlseen_core::filter::expire_after::{ExpireAfter, shown};
use urlseen_core::fingerprint::PartitionCount;
use urlseen_core::redis::hash_tag::hashed;
use urlseen_engine::item::ExpireRule;

impl Taker {
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
        let is_expire = |rule: &&EffectiveRule| rule.kind == "expire";
        let places = self.layers.tables.iter().filter(is_expire).map(|rule| rule.origin.clone());
        let places: Vec<_> = places.collect();
        for (rule, place) in config.expire.iter().zip(places) {
            if let Some(reason) = expire_problem(rule, config.filter.expire_after) {
                self.layers.refuse_rule("expire", place, &reason);
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

    /// Checks that the filter can have limits, if there are any.
    pub(super) fn check_limits(&mut self, config: &Config) {
        if config.limits.is_empty() {
            return;
        }
        let Config { filter, serve, .. } = config;
        if filter.place == FilterPlace::Redis {
            let fault = "filter.place is \"redis\", where other daemons may use the filter, and \
                         [[limit]] needs exact counts; set filter.place = \"local\", or leave \
                         [[limit]] out";
            self.refuse(&["filter.place"], fault.to_owned());
        }
        if let Some(listen) = &serve.listen {
            let fault = format!(
                "serve.listen is {:?}, and [[limit]] applies only to items of the source: clients \
                 would pass it by; leave out one of them",
                listen.to_string()
            );
            self.refuse(&["serve.listen"], fault);
        }
        if let Some(expire_after) = filter.expire_after {
            let fault = format!(
                "filter.expire_after is {:?}, and [[limit]] would count a page that passes again \
                 once more, until no page passes; leave out one of them",
                expire_after.to_string()
            );
            self.refuse(&["filter.expire_after"], fault);
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

/// Returns the reason if a filter with this `expire_after` cannot keep the time of a rule.
fn expire_problem(rule: &ExpireRule, expire_after: Option<ExpireAfter>) -> Option<String> {
    let Some(expire_after) = expire_after else {
        return Some("needs filter.expire_after, which is not set".to_owned());
    };
    let (after, shortest) = (rule.after?, expire_after.step());
    let is_allowed = (shortest..=expire_after.time()).contains(&after);
    (!is_allowed).then(|| {
        format!(
            "has expire_after = {:?}, and filter.expire_after is {:?}; allowed: \"never\", or a \
             fifth of filter.expire_after to all of it, {:?} to {:?}",
            shown(after),
            expire_after.to_string(),
            shown(shortest),
            expire_after.to_string(),
        )
    })
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

/// Returns true if a key already has a hash tag, so that it cannot get the tag of a partition.
fn has_tag(key: &str) -> bool {
    hashed(key).len() < key.len()
}

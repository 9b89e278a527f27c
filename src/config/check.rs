//! Checks of the combinations of values. All problems are collected and returned together.

use super::found::{Layers, Origins};
use super::keys::{Config, KEYS};
use super::problem::Problems;
use super::rule_kinds::EffectiveRule;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use urlseen_filter::Kind;
use urlseen_filter::choice::{Emit, End, FilterPlace, ItemForm, SourceKind};
use urlseen_filter::expire_after::shown;
use urlseen_fingerprint::PartitionCount;
use urlseen_redis::hash_tag::hashed;

/// Check of a configuration.
struct Check<'a> {
    config: &'a Config,
    values: BTreeMap<&'static str, Json>,
    layers: &'a mut Layers,
}

impl Layers {
    /// Checks the combinations of values in `config`, which was taken out of these layers. If the
    /// configuration exceeds a limit of this process, `machine` is the fault, for
    /// [`Check::refuse`]. Returns the origins of the values.
    ///
    /// # Errors
    /// At least one value was refused. The error contains all problems.
    pub(super) fn check(
        mut self,
        config: &Config,
        machine: Option<String>,
    ) -> Result<Origins, Problems> {
        if !self.incomplete {
            let values = config.values().into_iter().collect();
            let mut check = Check { config, values, layers: &mut self };
            check.tls();
            check.redis_keys();
            check.partitions();
            check.kind();
            check.expiry();
            check.expire_rules();
            check.combinations();
            if let Some(fault) = machine {
                check.refuse(&fault);
            }
        }
        self.problems.check()?;
        Ok(self.origins)
    }
}

impl Check<'_> {
    /// Refuses the value of the first key that the fault names, unless a value was already refused
    /// that the fault names. In the fault, a key in braces stands for the key and its value, and a
    /// key after `{=` only for its value. The value of any other key than the first has its origin.
    fn refuse(&mut self, fault: &str) {
        let places = KEYS.iter().filter_map(|key| Some((fault.find(key)?, *key)));
        let named: Vec<_> = places.collect::<BTreeMap<_, _>>().into_values().collect();
        let mut shown = fault.to_owned();
        for (index, key) in named.iter().enumerate() {
            let value = match &self.values[key] {
                Json::String(text) => format!("{text:?}"),
                value => value.to_string(),
            };
            let origin = format!(" ({})", self.layers.origin(key));
            let value = value + if index == 0 { "" } else { &origin };
            shown = shown.replace(&format!("{{{key}}}"), &format!("{key} is {value}"));
            shown = shown.replace(&format!("{{={key}}}"), &value);
        }
        self.layers.refuse_key(&named, shown);
    }

    /// Checks the combinations that are refused with the same words, whatever the values are.
    fn combinations(&mut self) {
        let Config { partitions, source, filter, sink, rejects, serve, rules, .. } = self.config;
        let (serves, is_in_redis) = (serve.listen.is_some(), filter.place == FilterPlace::Redis);
        let (has_source, has_limits) = (source.kind != SourceKind::None, !rules.limits.is_empty());
        let has_urls = !matches!(source.item, ItemForm::Fingerprint | ItemForm::Tab);
        for (is_wrong, fault) in [
            (
                serves && partitions.count != PartitionCount::ONE,
                "{serve.listen}, and {partitions.count}: clients would ask for URLs of all \
                 partitions, and each has a filter of its own; leave out one of them",
            ),
            (
                sink.emit != Emit::Item && !has_urls,
                "{sink.emit}, but items have no URL if {source.item}; allowed: sink.emit = \
                 \"item\", or another source.item",
            ),
            // The default, "right", is permitted: a copy of the documented file contains it.
            (
                self.config.open_sink().is_scored() && sink.push_to == End::Left,
                "{sink.push_to}, but {sink.kind}, which has no ends: items are sorted by their \
                 priority; leave sink.push_to out, or set sink.kind = \"list\"",
            ),
            // A batch is committed completely.
            (
                rejects.max_len < source.batch as u64,
                "{rejects.max_len}, less than source.batch, {=source.batch}; allowed: at least as \
                 many, since all items of a batch may be rejects",
            ),
            (
                !has_source && !serves,
                "{source.kind}: without a source there is nothing to do unless clients may ask; \
                 set serve.listen, or source.kind = \"list\"",
            ),
            // The server answers clients from the memory of this process.
            (
                serves && is_in_redis,
                "{serve.listen}: the daemon answers clients from its memory, and filter.place is \
                 \"redis\"; ask Redis directly, or set filter.place = \"local\"",
            ),
            (
                serve.allow_delete && has_source,
                "{serve.allow_delete}: a filter between source and sink cannot be emptied; set \
                 source.kind = \"none\", or leave serve.allow_delete out",
            ),
            (
                has_limits && is_in_redis,
                "{filter.place}, where other daemons may use the filter, and [[limit]] needs \
                 exact counts; set filter.place = \"local\", or leave [[limit]] out",
            ),
            (
                has_limits && serves,
                "{serve.listen}, and [[limit]] applies only to items of the source: clients would \
                 pass it by; leave out one of them",
            ),
            (
                has_limits && filter.expire_after.is_some(),
                "{filter.expire_after}, and [[limit]] would count a page that passes again once \
                 more, until no page passes; leave out one of them",
            ),
        ] {
            if is_wrong {
                self.refuse(fault);
            }
        }
    }

    /// Checks the files of encrypted connections to Redis. They have no use without encryption.
    fn tls(&mut self) {
        let url = &self.config.redis.url;
        let files = &url.tls;
        for (key, _) in files.set().filter(|_| !url.is_tls()) {
            self.refuse(&format!(
                "{{{key}}}, but {{redis.url}}, which is not encrypted; write rediss:// in \
                 redis.url, or leave {key} out"
            ));
        }
        for problem in files.problems() {
            self.refuse(&problem.to_string());
        }
    }

    /// Checks that each Redis key has only one use.
    fn redis_keys(&mut self) {
        let keys: Vec<_> = named_keys(self.config).collect();
        for (index, (key, name)) in keys.iter().enumerate() {
            if is_own(name) {
                self.refuse(&format!(
                    "{{{key}}}, which is a key of urlseen's own; allowed: any that is not \
                     urlseen:…:state, :lease, :processing or :spec"
                ));
            }
            for (other, _) in keys[..index].iter().filter(|(_, other)| other == name) {
                // The problem names the key that the user set, not the key with its default.
                let is_later = self.layers.origin(key) < self.layers.origin(other);
                let (key, other) = if is_later { (other, key) } else { (key, other) };
                self.refuse(&format!(
                    "{{{key}}}, and so is {other} ({}); allowed: a Redis key of its own for each",
                    self.layers.origin(other)
                ));
            }
        }
    }

    /// Checks that a crawl with several partitions can have them.
    fn partitions(&mut self) {
        let (count, run) = (self.config.partitions.count, &self.config.partitions.run);
        if run.largest() >= count.get() {
            self.refuse(&format!(
                "partitions.run names {}, and {{partitions.count}}; allowed: the numbers 0 to {}, \
                 and at most {count} processes",
                run.largest(),
                count.get() - 1
            ));
        }
        if count == PartitionCount::ONE {
            return;
        }
        for (key, _) in named_keys(self.config).filter(|(_, name)| hashed(name) != name) {
            self.refuse(&format!(
                "{{{key}}}, and {{partitions.count}}: urlseen adds a text in braces for each \
                 partition; leave out the braces"
            ));
        }
    }

    /// Checks that the fingerprints of a filter of this kind can expire.
    fn expiry(&mut self) {
        let (filter, key) = (&self.config.filter, "filter.expire_after");
        if filter.expire_after.is_none() || filter.kind.keys().contains(&key) {
            return;
        }
        let others = Kind::all().filter(|kind| kind.keys().contains(&key));
        let others = others.map(|kind| format!("filter.kind = {:?}", kind.name()));
        self.refuse(&format!(
            "{key} is set, and {{filter.kind}}, whose fingerprints never expire; leave {key} out, \
             or set {}",
            others.collect::<Vec<_>>().join(" or "),
        ));
    }

    /// Checks that the filter can keep the times of the rules.
    fn expire_rules(&mut self) {
        let is_expire = |rule: &&EffectiveRule| rule.kind == "expire";
        let places = self.layers.tables.iter().filter(is_expire).map(|rule| rule.origin.clone());
        let places: Vec<_> = places.collect();
        for (rule, place) in self.config.rules.expire.iter().zip(places) {
            let reason = match (rule.after, self.config.filter.expire_after) {
                (_, None) => "needs filter.expire_after, which is not set".to_owned(),
                (Some(after), Some(longest))
                    if !(longest.step()..=longest.time()).contains(&after) =>
                {
                    format!(
                        "has expire_after = {:?}, and filter.expire_after is \"{longest}\"; \
                         allowed: \"never\", or a fifth of filter.expire_after to all of it, \
                         {:?} to \"{longest}\"",
                        shown(after),
                        shown(longest.step()),
                    )
                }
                _ => continue,
            };
            self.layers.refuse_rule("expire", place, &reason);
        }
    }

    /// Checks that a filter of this kind can be at this place. Filters of other projects must be at
    /// the place where those projects keep them.
    fn kind(&mut self) {
        let (kind, place) = (self.config.filter.kind, self.config.filter.place);
        if kind.is_in(place) {
            return;
        }
        let other = if place == FilterPlace::Local { "redis" } else { "local" };
        let kinds: Vec<_> = Kind::all_in(place).map(|kind| format!("{:?}", kind.name())).collect();
        self.refuse(&format!(
            "{{filter.kind}}, and {{filter.place}}, where no filter of that kind can be; allowed: \
             filter.place = \"{other}\", or filter.kind = {}",
            kinds.join(", ")
        ));
    }
}

impl Config {
    /// If a cluster may have the keys of the crawl in different slots, returns this fault, for
    /// [`Check::refuse`]. A commit changes several keys in one step, and a cluster permits that
    /// only in one slot.
    pub(crate) fn divided(&self) -> Option<String> {
        let config = self.crawls().next()?;
        if !config.redis.url.is_cluster() || config.source.kind == SourceKind::None {
            return None;
        }
        let unused = match config.filter.place {
            FilterPlace::Local => "filter.key",
            FilterPlace::Redis => "forget.key",
        };
        let keys: Vec<_> = named_keys(&config).filter(|(key, _)| *key != unused).collect();
        let slot = hashed(&config.source.key);
        // The names of a filter's keys begin with `filter.key`. So if `filter.key` has no tag,
        // these keys are in different slots.
        let is_elsewhere = |(key, name): &(&str, String)| {
            hashed(name) != slot || *key == "filter.key" && hashed(name) == name
        };
        if !keys.iter().any(is_elsewhere) {
            return None;
        }
        let keys: Vec<_> = keys.iter().map(|(key, name)| format!("{key} = {name:?}")).collect();
        Some(format!(
            "{{redis.url}}, a Redis Cluster, and the keys of the crawl are in different slots \
             there: {}; give all of them the same text in braces, as in \"{{demo}}:discovered\" \
             and \"{{demo}}:unseen\"",
            keys.join(", ")
        ))
    }

    /// Returns the key of the configuration that names this Redis key for the crawl or a partition
    /// of it, or words for a key that urlseen itself makes. The source of the whole crawl does not
    /// count.
    pub(crate) fn use_of(&self, redis_key: &str) -> Option<&'static str> {
        let is_source = redis_key == self.source.key;
        let all = std::iter::once(self.clone()).chain(self.crawls());
        let named = all.flat_map(|config| named_keys(&config).collect::<Vec<_>>());
        let named = named.filter(|(_, key)| key == redis_key).map(|(name, _)| name);
        let own = is_own(redis_key).then_some("a name of urlseen's own keys");
        named.chain(own).find(|_| !is_source)
    }
}

/// Returns the Redis keys that the configuration names, each after its own key.
fn named_keys(config: &Config) -> impl Iterator<Item = (&'static str, String)> {
    let keys = config.values().into_iter().filter(|(key, _)| key.split('.').nth(1) == Some("key"));
    keys.filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
}

/// Returns true if urlseen itself uses Redis keys with this name.
fn is_own(name: &str) -> bool {
    let uses = "state lease processing forgetting spec crawl consumers requeues";
    let last = name.rsplit(':').next();
    name.starts_with("urlseen:") && uses.split(' ').any(|each| Some(each) == last)
}

//! Draft of a configuration for a crawl that was found in Redis.

use crate::config::toml_text;

use crate::analysis::{FoundKey, KeyUse, refusal, shell};
use crate::cli::prelude::*;

/// Configuration for a crawl, with the reasons and the next commands.
pub(super) struct Draft<'a> {
    /// Name of the crawl that the file is for.
    pub(super) name: &'a str,
    /// True if Redis has keys of the crawl.
    pub(super) was_crawled: bool,
    /// Text of the configuration file.
    pub(super) file: String,
    /// Reasons for the values.
    pub(super) reasons: Vec<String>,
    /// Commands that move the crawl to urlseen, in order.
    pub(super) next: Vec<String>,
    /// True for a trial, in which the crawl keeps its own filter and queue.
    is_trial: bool,
}

impl<'a> Draft<'a> {
    /// Returns the configuration for the crawl `name` with these keys. `url` is the address of
    /// Redis if the file should have it. In a trial, the crawl keeps its own filter and queue.
    /// `sample` tells how the set of the crawl has the requests of its queue.
    ///
    /// # Errors
    /// The keys do not determine a configuration.
    pub(super) fn new(
        name: &'a str,
        keys: &[FoundKey],
        url: Option<&str>,
        is_trial: bool,
        sample: Option<&SampleFit>,
    ) -> anyhow::Result<Self> {
        if let Some(reason) = refusal(keys) {
            return Err(usage(format!(
                "the crawl {name} cannot move to urlseen: {reason}, or name another crawl with \
                 --crawl"
            )));
        }
        let is_queue =
            |key: &&FoundKey| matches!(key.used_as, KeyUse::SortedQueue | KeyUse::ListQueue);
        let filters: Vec<_> = keys.iter().filter(|key| !is_queue(key)).collect();
        if let [_, _, ..] = filters[..] {
            let filters: Vec<_> = filters.iter().map(|filter| filter.key.as_str()).collect();
            return Err(usage(format!(
                "the crawl {name} has several filters: {}. Rename those that are out of date \
                 (RENAME), and give the command again",
                filters.join(", ")
            )));
        }
        let filter = filters.first().copied();
        refuse_if!(
            is_trial && filter.is_none_or(|filter| filter.used_as == KeyUse::RedisBloom),
            "a trial uses the filter that the crawl has in Redis, and the crawl {name} has no \
             filter that urlseen can use there: give the command without --trial"
        );
        let (file, reasons, next) = Default::default();
        let was_crawled = !keys.is_empty();
        let mut draft = Self { name, was_crawled, file, reasons, next, is_trial };
        draft.line("# `urlseen config show` prints all keys with their values.");
        draft.line("[crawl]");
        draft.line(&format!("name = {}", text(name)));
        if let Some(url) = url {
            draft.line("\n[redis]");
            draft.line(&format!("url = {}", text(url)));
        }
        if let Some(filter) = filter {
            draft.filter(filter, sample);
        } else {
            let reason = "no filter was found, so the filter begins empty";
            draft.reasons.push(reason.to_owned());
        }
        let queue = keys.iter().find(is_queue);
        if was_crawled {
            draft.queue(queue, url);
        } else {
            draft.new_crawl();
        }
        if is_trial {
            draft.reasons.push(
                "to undo the trial, stop the spiders, wait until `urlseen status` shows 0 for \
                 source, processing and held, stop urlseen, and remove the settings"
                    .to_owned(),
            );
        }
        Ok(draft)
    }

    fn line(&mut self, line: &str) {
        self.file.push_str(line);
        self.file.push('\n');
    }

    /// Adds the sections for a filter.
    fn filter(&mut self, filter: &FoundKey, sample: Option<&SampleFit>) {
        const OPEN: &str = "\"scrapy\"  # or \"scrapy-redis\"";
        const SCRAPY_REDIS: &str = "\"scrapy-redis\"";
        let spec = sample.and_then(SampleFit::best).cloned();
        let spec = spec.unwrap_or_else(|| Algorithm::ScrapyRedis.into());
        let of_set = format!("\"{}\"", spec.algorithm);
        let FoundKey { key, used_as, size, .. } = filter;
        let in_redis = |kind: &str, rest: &str| {
            format!("place = \"redis\"\nkind = \"{kind}\"\nkey = {}{rest}", text(key))
        };
        let (algorithm, section, reasons) = match used_as {
            KeyUse::RedisBloom => {
                self.next.push(format!("urlseen import --redisbloom {}", shell(key)));
                let reason = format!(
                    "{key} is a filter of RedisBloom: urlseen continues it in its own memory. \
                     Redis does not show the algorithm of its fingerprints: set \
                     fingerprint.algorithm"
                );
                (OPEN, "kind = \"redisbloom\"".to_owned(), vec![reason])
            }
            KeyUse::Recorded => {
                let (rest, reasons) = of_redisson(filter);
                (OPEN, in_redis("redisson", &rest), reasons)
            }
            KeyUse::Bits => {
                let bit = (size * 8).max(2).next_power_of_two().trailing_zeros();
                let rest = format!(
                    "\nbit = {bit}         # BLOOMFILTER_BIT\nhash_number = 6  # \
                     BLOOMFILTER_HASH_NUMBER"
                );
                let reasons = vec![
                    format!(
                        "{key} is a string of {size} bytes, so BLOOMFILTER_BIT is {bit}. urlseen \
                         sets the same bits in Redis"
                    ),
                    "Redis does not show BLOOMFILTER_HASH_NUMBER: its default is 6. If the project \
                     sets another number, change filter.hash_number"
                        .to_owned(),
                ];
                (SCRAPY_REDIS, in_redis("scrapy-redis-bloomfilter", &rest), reasons)
            }
            _ if self.is_trial => {
                let reason = format!(
                    "{key} is the set of scrapy-redis: urlseen adds its fingerprints there, as \
                     scrapy-redis does"
                );
                (&*of_set, in_redis("scrapy-redis", ""), vec![reason])
            }
            _ => {
                let (section, reason) = self.import_set(filter, spec.algorithm);
                (&*of_set, section, vec![reason])
            }
        };
        self.line(&format!("\n[fingerprint]\nalgorithm = {algorithm}"));
        if spec.canonical != CanonicalForm::default() {
            self.line(&format!("canonical = \"{}\"", spec.canonical));
        }
        self.line(&format!("\n[filter]\n{section}"));
        self.reasons.extend(sample.map(SampleFit::words).into_iter().chain(reasons));
    }

    /// Adds the command that imports a set with fingerprints of this algorithm. Returns the section
    /// for the filter, and the reason for it.
    fn import_set(&mut self, set: &FoundKey, algorithm: Algorithm) -> (String, String) {
        let FoundKey { key, size, .. } = set;
        // Without the option, the import expects fingerprints of scrapy-redis.
        let option = match algorithm {
            Algorithm::ScrapyRedis => String::new(),
            other => format!(" --algorithm {other}"),
        };
        self.next.push(format!("urlseen import --redis-set {}{option}", shell(key)));
        let default = Config::default().filter.capacity;
        let capacity = default.max((2 * size).next_multiple_of(default));
        let members = HumanCount(*size);
        let section = format!("capacity = {capacity}  # members of {key}: {members}");
        let reason = format!(
            "{key} is the set of scrapy-redis: the import adds its fingerprints to a filter in \
             urlseen's memory, with room for twice as many"
        );
        (section, reason)
    }

    /// Adds the sections for a crawl without keys in Redis.
    fn new_crawl(&mut self) {
        let name = self.name;
        self.line("\n[filter]");
        self.line("# Number of different URLs. `urlseen plan` shows the memory of the filter.");
        self.line(&format!("capacity = {}", Config::default().filter.capacity));
        self.line("\n[sink]");
        self.line("# \"zset\": the highest priority first, \"list\": in the order of discovery.");
        self.line("kind = \"zset\"");
        self.reasons.push(format!(
            "programs push discovered URLs or requests to {name}:discovered, and pop unseen ones \
             from {name}:unseen"
        ));
    }

    /// Adds the section for the sink, and the command that renames the queue. In a trial, the queue
    /// itself is the sink.
    fn queue(&mut self, queue: Option<&FoundKey>, url: Option<&str>) {
        let becomes = if self.is_trial { "is" } else { "becomes" };
        let (kind, what) = match queue {
            Some(FoundKey { used_as: KeyUse::ListQueue, .. }) => ("list", "a list"),
            _ => ("zset", "a sorted set"),
        };
        let reason = queue.map_or_else(
            || format!("no queue was found: the sink is {what}, the default of scrapy-redis"),
            |queue| format!("{} is {what}, which {becomes} the sink", queue.key),
        );
        self.line(&format!("\n[sink]\nkind = \"{kind}\""));
        self.reasons.push(reason);
        if self.is_trial {
            let key = queue.map_or(format!("{}:requests", self.name), |queue| queue.key.clone());
            self.line(&format!("key = {}", text(&key)));
        } else if let Some(queue) = queue {
            let sink = shell(&format!("{}:unseen", self.name));
            self.next.push(format!("{} rename {} {sink}", redis_cli(url), shell(&queue.key)));
        }
    }
}

/// Returns the parameters of a filter of Redisson, and the reasons for them.
fn of_redisson(FoundKey { key, size, error_rate, .. }: &FoundKey) -> (String, Vec<String>) {
    let rate = error_rate.unwrap_or_default();
    let parameters = format!(
        "\ncapacity = {size}  # expectedInsertions\nerror_rate = {rate}  # falseProbability"
    );
    let reason = "The items of the filter must be fingerprints in 40 hex digits. Redis does not \
                  show their algorithm: set fingerprint.algorithm";
    let hash = format!(
        "{key} is a filter of Redisson, with its parameters in a hash. urlseen sets the same bits \
         in Redis"
    );
    (parameters, vec![hash, reason.to_owned()])
}

/// Returns the command `redis-cli` for an address.
fn redis_cli(url: Option<&str>) -> String {
    let Some(url) = url else { return "redis-cli".to_owned() };
    match url.strip_prefix("unix://") {
        Some(socket) => {
            format!("redis-cli -s {}", shell(socket.split('?').next().unwrap_or_default()))
        }
        None => format!("redis-cli -u {}", shell(url)),
    }
}

/// Returns a text in the syntax of TOML.
pub(super) fn text(text: &str) -> String {
    toml_text(&json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str, used_as: KeyUse, size: u64) -> FoundKey {
        FoundKey { key: key.to_owned(), used_as, size, error_rate: None, is_foreign: false }
    }

    #[test]
    fn the_bits_of_a_string_follow_from_its_length() {
        for (size, bit) in [(1, 3), (4096, 15), (4000, 15), (1 << 27, 30), (1 << 29, 32)] {
            let draft =
                Draft::new("a", &[key("a:bloomfilter", KeyUse::Bits, size)], None, false, None)
                    .unwrap();
            assert!(draft.file.contains(&format!("\nbit = {bit} ")), "{size}: {}", draft.file);
        }
    }

    #[test]
    fn words_of_commands_are_quoted_if_the_shell_would_change_them() {
        for (word, quoted) in [("a:b", "a:b"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(shell(word), quoted);
        }
    }

    #[test]
    fn several_filters_and_crawls_of_urlseen_are_refused() {
        let (set, bits) =
            (key("a:dupefilter", KeyUse::Set, 1), key("a:bloomfilter", KeyUse::Bits, 1));
        let error =
            |keys: &[FoundKey]| Draft::new("a", keys, None, false, None).err().unwrap().to_string();
        assert!(
            error(&[set.clone(), bits]).contains("several filters: a:dupefilter, a:bloomfilter")
        );
        assert!(error(&[key("s", KeyUse::Urlseen, 0)]).contains("already runs"));
        assert!(error(&[FoundKey { is_foreign: true, ..set }]).contains("are not fingerprints"));
    }
}

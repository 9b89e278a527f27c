//! Crawls of other projects in a Redis, found by the names and types of their keys.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::{Duration, Instant};

use indicatif::HumanCount;
use redis::{Pipeline, cmd};

use crate::config::{Config, NO_FILE, Sources};
use urlseen_redis::error::LinkError;
use urlseen_redis::link::Link;

/// Number of keys that Redis examines before it serves other clients.
const PAGE: u64 = 1000;
/// Maximum time that the command looks at keys.
const LONGEST: Duration = Duration::from_secs(10);
/// Maximum number of crawls that the command notes.
const MOST_CRAWLS: usize = 1000;
/// Maximum number of possible filters that the command notes.
const MOST_POSSIBLE: usize = 10;
/// Minimum number of bytes of a string that may be a filter.
const LEAST_BYTES: u64 = 1 << 10;
/// Number of members of a set that the command reads.
const MEMBERS: usize = 10;

/// Reply of the command `TYPE` for a key that holds a filter of RedisBloom.
pub(crate) const REDISBLOOM_TYPE: &str = "MBbloom--";

/// Use of a key by a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Set of scrapy-redis with the fingerprints of seen requests.
    Set,
    /// String of scrapy-redis-bloomfilter.
    Bits,
    /// Filter of the module RedisBloom.
    RedisBloom,
    /// Filter with its parameters in a hash.
    Recorded,
    /// Queue of scrapy-redis that is sorted by priority.
    SortedQueue,
    /// Queue of scrapy-redis that is a list.
    ListQueue,
    /// State of a crawl that urlseen runs.
    Urlseen,
}

/// Key of a crawl, with its use and size.
#[derive(Debug, Clone)]
pub(crate) struct FoundKey {
    pub(crate) key: String,
    pub(crate) used_as: KeyUse,
    /// Number of members, items or bytes. For a recorded filter, the number of keys that it is
    /// made for.
    pub(crate) size: u64,
    /// Error rate that a recorded filter is made for.
    pub(crate) error_rate: Option<f64>,
    /// True if the key is a set whose members are not fingerprints.
    pub(crate) is_foreign: bool,
}

/// Everything that was found in a Redis.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Number of keys that the command looked at.
    pub(crate) keys: u64,
    /// True if the command looked at all keys.
    pub(crate) is_complete: bool,
    /// Keys of each crawl, by the name of the crawl.
    pub(crate) crawls: BTreeMap<String, Vec<FoundKey>>,
    /// Strings that may be filters of kinds that Redis does not show.
    pub(crate) possible: Vec<PossibleFilter>,
    /// Keys of crawls for which the command writes no file, each with the reason.
    passed_over: Vec<String>,
}

impl KeyUse {
    /// Finds the use of a key of this type, and the name of its crawl.
    fn of<'a>(key: &'a str, type_name: &str) -> Option<(&'a str, Self)> {
        let (name, role) = key.rsplit_once(':').unwrap_or((key, ""));
        let used_as = match (role, type_name) {
            (_, REDISBLOOM_TYPE) => Self::RedisBloom,
            ("dupefilter", "set") => Self::Set,
            ("dupefilter" | "bloomfilter", "string") => Self::Bits,
            ("requests", "zset") => Self::SortedQueue,
            ("requests", "list") => Self::ListQueue,
            ("config", "hash") => {
                let key = recorded_key(name);
                return Some((key.rsplit_once(':').map_or(key, |(name, _)| name), Self::Recorded));
            }
            ("state", "hash") => {
                let source = name.strip_prefix("urlseen:{")?.strip_suffix('}')?;
                return Some((source.strip_suffix(":discovered").unwrap_or(source), Self::Urlseen));
            }
            _ => return None,
        };
        Some((name, used_as))
    }
}

impl Found {
    /// Looks at the keys of a Redis, and changes nothing. With `crawl`, looks first at the usual
    /// keys of this crawl, and notes only its keys.
    pub(crate) async fn look(link: &mut Link, crawl: Option<&str>) -> Result<Self, LinkError> {
        let (mut found, begun) = (Self::default(), Instant::now());
        if let Some(crawl) = crawl {
            let usual = ["dupefilter", "bloomfilter", "requests"];
            let mut usual: Vec<_> = usual.map(|role| format!("{crawl}:{role}")).into();
            usual.push(format!("urlseen:{{{crawl}:discovered}}:state"));
            found.note(link, &usual, Some(crawl)).await?;
        }
        let mut cursor = 0;
        loop {
            let mut scan = cmd("SCAN");
            let (next, keys): (u64, Vec<Vec<u8>>) =
                link.query(scan.arg(cursor).arg("COUNT").arg(PAGE)).await?;
            found.keys += keys.len() as u64;
            let keys = keys.into_iter().filter_map(|key| String::from_utf8(key).ok());
            found.note(link, &keys.collect::<Vec<_>>(), crawl).await?;
            found.is_complete = next == 0;
            if found.is_complete || begun.elapsed() >= LONGEST {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// Notes the keys that belong to crawls.
    async fn note(
        &mut self,
        link: &mut Link,
        keys: &[String],
        crawl: Option<&str>,
    ) -> Result<(), LinkError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut ask = Pipeline::new();
        for key in keys {
            ask.cmd("TYPE").arg(key);
        }
        let types: Vec<String> = ask.query_async(link).await.map_err(LinkError::from)?;
        for (key, type_name) in keys.iter().zip(types) {
            if type_name == "string" && self.possible.len() < MOST_POSSIBLE {
                self.possible.extend(PossibleFilter::ask(link, key, crawl).await);
            }
            if type_name == "set" && is_of_no_spider(key) {
                let members = HumanCount(link.query(cmd("SCARD").arg(key)).await?);
                let key = shell(key);
                self.pass_over(format!(
                    "{key}: a set of scrapy-redis without the name of a spider, members: \
                     {members}. urlseen import --redis-set {key} adds it to the filter of its crawl"
                ));
            }
            let Some((name, used_as)) = KeyUse::of(key, &type_name) else { continue };
            let is_wanted = crawl.map_or_else(|| is_name(name), |crawl| crawl == name);
            if !is_wanted && crawl.is_none() {
                self.pass_over(format!(
                    "{key}: a folder cannot have the name {name:?}. Write the configuration with \
                     another crawl.name by hand"
                ));
            }
            let is_known =
                self.crawls.get(name).is_some_and(|it| it.iter().any(|it| it.key == *key));
            if is_wanted && !is_known && self.crawls.len() < MOST_CRAWLS {
                let Some(found) = FoundKey::ask(link, key, used_as).await? else { continue };
                let keys = self.crawls.entry(name.to_owned()).or_default();
                // The string of a recorded filter can have the name that another project uses.
                keys.retain(|it| it.key != found.key);
                keys.push(found);
            }
        }
        Ok(())
    }

    /// Notes a key that the file does not use, and the reason. Redis may return a key twice.
    fn pass_over(&mut self, line: String) {
        if self.passed_over.len() < MOST_POSSIBLE && !self.passed_over.contains(&line) {
            self.passed_over.push(line);
        }
    }

    /// Returns the names of the crawls for which the command can write a file.
    pub(crate) fn usable(&self) -> Vec<&String> {
        self.crawls.iter().filter(|(_, keys)| refusal(keys).is_none()).map(|it| it.0).collect()
    }

    /// Returns the keys and the crawls for which the command writes no file, each with the reason.
    pub(crate) fn passed_over(&self) -> impl Iterator<Item = String> {
        let crawls = self.crawls.iter().filter(|_| self.crawls.len() > 1);
        let refused = crawls.filter_map(|(name, keys)| Some(format!("{name}: {}", refusal(keys)?)));
        self.passed_over.iter().cloned().chain(refused)
    }
}

/// Returns the reason why a crawl with these keys cannot move to urlseen, and the remedy.
pub(crate) fn refusal(keys: &[FoundKey]) -> Option<&'static str> {
    if keys.iter().any(|key| key.used_as == KeyUse::Urlseen) {
        Some("urlseen already runs this crawl: use its configuration")
    } else if keys.iter().any(|key| key.is_foreign) {
        Some(
            "the members of its set are not fingerprints in 40 hex digits, so it is not the set of \
             a dupefilter of scrapy-redis: rename the set",
        )
    } else {
        None
    }
}

/// Returns true for the key of a set that scrapy-redis names by the time, outside of its scheduler.
fn is_of_no_spider(key: &str) -> bool {
    let number = key.strip_prefix("dupefilter:");
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

impl FoundKey {
    /// Asks for the size of a key. Returns `None` if the key is a hash of another program.
    async fn ask(link: &mut Link, key: &str, used_as: KeyUse) -> Result<Option<Self>, LinkError> {
        let (mut key, mut error_rate, mut is_foreign) = (key.to_owned(), None, false);
        let size = match used_as {
            KeyUse::Set => {
                let members: Vec<Vec<u8>> =
                    link.query(cmd("SRANDMEMBER").arg(&key).arg(MEMBERS)).await?;
                // A fingerprint has 40 hex digits.
                let is_hex = |it: &Vec<u8>| it.len() == 40 && it.iter().all(u8::is_ascii_hexdigit);
                is_foreign = !members.iter().all(is_hex);
                link.query(cmd("SCARD").arg(&key)).await?
            }
            KeyUse::Bits => link.query(cmd("STRLEN").arg(&key)).await?,
            KeyUse::SortedQueue => link.query(cmd("ZCARD").arg(&key)).await?,
            KeyUse::ListQueue => link.query(cmd("LLEN").arg(&key)).await?,
            KeyUse::Recorded => {
                let fields = ["expectedInsertions", "falseProbability", "size", "hashIterations"];
                let values = link.query(cmd("HMGET").arg(&key).arg(&fields)).await?;
                let [Some(capacity), Some(rate), Some(_), Some(_)]: [Option<Vec<u8>>; 4] = values
                else {
                    return Ok(None);
                };
                error_rate = number(&rate);
                let Some(size) = number(&capacity).filter(|_| error_rate.is_some()) else {
                    return Ok(None);
                };
                key = recorded_key(key.strip_suffix(":config").unwrap_or(&key)).to_owned();
                size
            }
            KeyUse::RedisBloom | KeyUse::Urlseen => 0,
        };
        Ok(Some(Self { key, used_as, size, error_rate, is_foreign }))
    }
}

/// String that may be a filter. Redis has neither its kind nor its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PossibleFilter {
    /// Value for `filter.key`.
    pub(crate) key: String,
    /// Key of its first string.
    pub(crate) string: String,
    /// Size of the string in bytes.
    pub(crate) bytes: u64,
    /// Words for `filter.kind` that the name of the string permits.
    pub(crate) kinds: &'static [&'static str],
}

/// Ends of names that show a possible filter: the end of the key, the end of its first string, and
/// the kinds.
const ENDS: [(&str, &str, &[&str]); 3] = [
    (".0", ".0", &["pyrebloom", "luw2007-bloomfilter"]),
    ("_0", "_0", &["imooc"]),
    (":count", ":1", &["redis-lua-scaling"]),
];

impl PossibleFilter {
    /// Asks for the size of a string with such a name. Small strings are no filters.
    async fn ask(link: &mut Link, key: &str, crawl: Option<&str>) -> Option<Self> {
        let of_end = |(end, string, kinds)| Some((key.strip_suffix(end)?, string, kinds));
        let (base, end, kinds) = ENDS.into_iter().find_map(of_end)?;
        let name = base.rsplit_once(':').map_or(base, |(name, _)| name);
        if crawl.is_some_and(|crawl| crawl != name) {
            return None;
        }
        let string = format!("{base}{end}");
        // A key of another type has no length.
        let bytes = link.query(cmd("STRLEN").arg(&string)).await.ok()?;
        (bytes >= LEAST_BYTES).then(|| Self { key: base.to_owned(), string, bytes, kinds })
    }
}

/// Returns a word of a command for a shell.
pub(crate) fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns the key of a filter of Redisson. `name` is the key of its hash without the end.
fn recorded_key(name: &str) -> &str {
    name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name)
}

/// Reads a number in text.
fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Returns true if a crawl can have this name.
fn is_name(name: &str) -> bool {
    let (file, set) = (Some(NO_FILE.into()), vec![format!("crawl.name={name}")]);
    Config::load(Sources { file, set, ..Sources::default() }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_show_their_use_by_name_and_type() {
        for (key, type_name, expected) in [
            ("a:b:dupefilter", "set", Some(("a:b", KeyUse::Set))),
            ("a:dupefilter", "string", Some(("a", KeyUse::Bits))),
            ("a:bloomfilter", "string", Some(("a", KeyUse::Bits))),
            ("a:requests", "zset", Some(("a", KeyUse::SortedQueue))),
            ("a:requests", "list", Some(("a", KeyUse::ListQueue))),
            ("{a:seen}:config", "hash", Some(("a", KeyUse::Recorded))),
            ("a{b}:seen:config", "hash", Some(("a{b}", KeyUse::Recorded))),
            ("{seen}:config", "hash", Some(("seen", KeyUse::Recorded))),
            ("a:seen", "MBbloom--", Some(("a", KeyUse::RedisBloom))),
            ("seen", "MBbloom--", Some(("seen", KeyUse::RedisBloom))),
            ("urlseen:{a:discovered}:state", "hash", Some(("a", KeyUse::Urlseen))),
            ("a:bloomfilter", "set", None),
            ("a:requests", "set", None),
            ("a:state", "hash", None),
            ("dupefilter", "set", None),
        ] {
            assert_eq!(KeyUse::of(key, type_name), expected, "{key} {type_name}");
        }
    }
}

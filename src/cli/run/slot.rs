//! Checks that all keys of a crawl are in one slot of a Redis Cluster.

use urlseen_core::redis::hash_tag::hashed;
use urlseen_engine::config::{Config, FilterPlace, SourceKind};

/// If a cluster may have the keys of the crawl in different slots, returns the key to report, with
/// the message. A commit changes several keys in one step, and a cluster permits that only in one
/// slot.
pub(super) fn divided(config: &Config) -> Option<(&'static str, String)> {
    if !config.redis.url.is_cluster() || config.source.kind == SourceKind::None {
        return None;
    }
    let mut keys = vec![
        ("source.key", &config.source.key),
        ("sink.key", &config.sink.key),
        ("rejects.key", &config.rejects.key),
    ];
    match config.filter.place {
        FilterPlace::Local => keys.push(("forget.key", &config.forget.key)),
        FilterPlace::Redis => keys.push(("filter.key", &config.filter.key)),
    }
    let slot = hashed(&config.source.key);
    // The names of a filter's keys begin with `filter.key`. So if `filter.key` has no tag, these
    // keys are in different slots.
    let is_elsewhere = |&(name, key): &(&str, &String)| {
        hashed(key) != slot || name == "filter.key" && hashed(key) == key
    };
    if !keys.iter().any(is_elsewhere) {
        return None;
    }
    let keys: Vec<_> = keys.iter().map(|(name, key)| format!("{name} = {key:?}")).collect();
    let fault = format!(
        "redis.url is {:?}, a Redis Cluster, and the keys of the crawl are in different slots \
         there: {}; give all of them the same text in braces, as in \"{{demo}}:discovered\" and \
         \"{{demo}}:unseen\"",
        config.redis.url.to_string(),
        keys.join(", ")
    );
    Some(("redis.url", fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_engine::config::Sources;

    fn is_divided(settings: &[&str]) -> bool {
        let set = settings.iter().map(|&setting| setting.to_owned()).collect();
        divided(&Config::load(Sources { set, ..Sources::default() }).unwrap()).is_some()
    }

    #[test]
    fn only_a_cluster_needs_all_keys_of_the_crawl_in_one_slot() {
        let tagged = [
            "redis.url=redis+cluster://a,b",
            "source.key={demo}:discovered",
            "sink.key={demo}:unseen",
            "rejects.key={demo}:rejected",
            "forget.key={demo}:forget",
        ];
        assert!(!is_divided(&[]));
        assert!(!is_divided(&["redis.url=redis+sentinel://a,b/main"]));
        assert!(is_divided(&tagged[..1]));
        assert!(!is_divided(&tagged));
        for number in 1..tagged.len() {
            let without = [&tagged[..number], &tagged[number + 1..]].concat();
            assert!(is_divided(&without), "{without:?}");
        }
    }

    #[test]
    fn a_filter_in_redis_needs_a_tag_of_its_own() {
        let common = [
            "redis.url=redis+cluster://a,b",
            "filter.place=redis",
            "source.key={demo}:discovered",
            "sink.key={demo}:unseen",
            "rejects.key={demo}:rejected",
        ];
        for (filter, expected) in
            [("demo:filter", true), ("demo", true), ("{other}:f", true), ("{demo}:f", false)]
        {
            let filter = format!("filter.key={filter}");
            assert_eq!(is_divided(&[&common[..], &[&filter]].concat()), expected, "{filter}");
        }
    }
}

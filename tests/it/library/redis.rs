//! `RedisFilter`: filters in Redis for programs with threads.

use redis::Commands;
use urlseen::{
    Algorithm, ErrorKind, Filter, FilterExt, FilterSpec, Kind, LocalFilter, RedisFilter,
};

use super::cutting::Cutting;
use super::{digests, impatient, kinds, native};
use crate::util::redis::RedisServer;

#[test]
fn all_methods_work_with_every_kind() {
    let server = RedisServer::start();
    for (spec, _) in kinds() {
        let filter = RedisFilter::open(&server.url(), "f", &spec).unwrap();
        let keys = digests(0..1000);
        let twice = keys.iter().chain(&keys).map(String::as_str);
        let is_new = filter.extend(twice).unwrap();
        assert_eq!((is_new.len(), is_new.iter().filter(|new| **new).count()), (2000, 1000));
        assert!(is_new[..1000].iter().all(|is_new| *is_new), "{spec:?}");
        assert!(!filter.add(keys[5].as_str()).unwrap(), "{spec:?}");
        let more = digests(900..1100);
        let seen = filter.contains_all(more.iter().map(String::as_str)).unwrap();
        assert_eq!(seen, [[true; 100], [false; 100]].concat(), "{spec:?}");
        assert!(!filter.contains(more[150].as_str()).unwrap(), "a question adds nothing");

        let mut connection = server.connection();
        let are_there: Vec<String> = connection.keys("f*").unwrap();
        let named = filter.keys();
        assert!(are_there.iter().all(|key| named.contains(key)), "{spec:?}: {are_there:?}");
        assert_eq!(filter.bits() == 0, spec.kind() == Kind::SCRAPY_REDIS);
        assert_eq!(filter.hashes() == 0, spec.kind() == Kind::SCRAPY_REDIS);
        filter.delete().unwrap();
        assert!(!filter.contains(keys[5].as_str()).unwrap(), "{spec:?}");
        assert!(filter.add(keys[5].as_str()).unwrap(), "the filter can still be used");
        filter.delete().unwrap();
        assert!(!connection.exists::<_, bool>(&named).unwrap(), "{spec:?}");
    }
}

#[test]
fn bits_and_hashes_are_those_of_the_kind() {
    let server = RedisServer::start();
    let open = |key, spec: &FilterSpec| RedisFilter::open(&server.url(), key, spec).unwrap();
    let pyre = open("p", &FilterSpec::new(Kind::PYREBLOOM).capacity(10_000).error_rate(0.01));
    // These are the values of `bits` and `hashes` in pyreBloom 1.0.
    assert_eq!((pyre.bits(), pyre.hashes()), (95_850, 7));
    assert_eq!(pyre.keys(), ["p.0"]);
    let local = LocalFilter::new(&native()).unwrap();
    let in_redis = open("n", &native());
    assert_eq!((in_redis.bits(), in_redis.hashes()), (local.bits(), local.hashes()));
    assert_eq!((in_redis.keys().len(), local.keys().len()), (256, 0));
}

#[test]
fn keys_may_be_any_text_if_the_kind_permits_it() {
    let server = RedisServer::start();
    for (spec, _) in kinds() {
        let filter = RedisFilter::open(&server.url(), &format!("{spec:?}"), &spec).unwrap();
        let added = filter.add("hello");
        if spec.kind() == Kind::BLOCK_CLUSTER {
            assert_eq!(added.unwrap_err().kind(), ErrorKind::Placement);
            let asked = filter.contains("hello");
            assert_eq!(asked.unwrap_err().kind(), ErrorKind::Placement);
        } else {
            assert!(added.unwrap() && filter.contains("hello").unwrap(), "{spec:?}");
        }
    }
}

#[test]
fn a_new_key_is_reported_as_new_even_if_answers_are_lost() {
    let server = RedisServer::start();
    let proxy = Cutting::before(&server);
    for (spec, _) in kinds() {
        let filter = RedisFilter::open(&proxy.url(), &format!("{spec:?}"), &spec).unwrap();
        let keys = digests(0..3);
        // At the first key, the server does not know the script yet.
        for (key, lost) in keys.iter().zip([0, 1, 3]) {
            proxy.lose_next(lost);
            assert!(filter.add(key.as_str()).unwrap(), "{spec:?}: {lost} answers were lost");
            assert_eq!(proxy.to_lose(), 0, "too few answers were lost");
            assert!(!filter.add(key.as_str()).unwrap(), "{spec:?}");
        }
    }
}

#[test]
fn a_call_finally_fails_and_succeeds_when_redis_is_back() {
    let mut server = RedisServer::start();
    let filter = RedisFilter::open_with(&server.url(), "f", &native(), impatient()).unwrap();
    assert!(filter.add("a").unwrap());
    server.kill();
    let error = filter.add("b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Redis);
    assert!(error.to_string().contains("tried 2 times"), "{error}");
    // The server comes back without the filter, the script and the added keys.
    server.restart();
    assert_eq!(filter.extend(["a", "b", "a"]).unwrap(), [true, true, false]);
    let other = RedisFilter::open(&server.url(), "f", &native()).unwrap();
    assert_eq!(other.contains_all(["a", "b", "c"]).unwrap(), [true, true, false]);
}

#[test]
fn another_filter_is_refused() {
    let server = RedisServer::start();
    let filter = RedisFilter::open(&server.url(), "f", &native()).unwrap();
    assert!(filter.add("a").unwrap());
    for (other, part) in [
        (FilterSpec::new(Kind::SCRAPY_REDIS), "filter.kind"),
        (native().capacity(20_000), "filter.capacity"),
        (native().fingerprint(Algorithm::ScrapyRedis), "algorithm"),
    ] {
        let refused = RedisFilter::open(&server.url(), "f", &other);
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains(part), "{error}");
    }
    // Another program deletes the filter and makes a new one, whose bits have another meaning.
    filter.delete().unwrap();
    let other = RedisFilter::open(&server.url(), "f", &native()).unwrap();
    assert!(other.add("b").unwrap());
    for refused in [filter.add("c"), filter.contains("b")] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    }
    assert!(!other.contains("c").unwrap());
}

#[test]
fn no_error_has_the_password() {
    let server = RedisServer::start();
    for url in ["redis://:geheim@127.0.0.1:1/", "redis://:geheim@[/", "nonsense://:geheim@h/"] {
        let error = RedisFilter::open_with(url, "f", &native(), impatient()).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains("geheim"), "{said}");
    }
    let filter = RedisFilter::open(&server.url_as("default", "geheim"), "f", &native());
    assert!(!format!("{filter:?}").contains("geheim"));
}

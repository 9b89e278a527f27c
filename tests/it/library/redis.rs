//! Filters in Redis, for threads.

use redis::Commands;
use urlseen::{
    ErrorKind, Filter, FilterKind, Fingerprints, LocalFilter, RedisFilter, RedisOptions,
};

use super::cutting::Cutting;
use super::{LAYOUTS, NATIVE, digests, impatient};
use crate::util::redis::RedisServer;

#[test]
fn the_verbs_do_the_same_in_every_layout() {
    let server = RedisServer::start();
    for (kind, _) in LAYOUTS {
        let filter = RedisFilter::open(&server.url(), "f", kind).unwrap();
        let keys = digests(0..1000);
        let twice = keys.iter().chain(&keys).map(String::as_str);
        let is_new = filter.extend(twice).unwrap();
        assert_eq!((is_new.len(), is_new.iter().filter(|new| **new).count()), (2000, 1000));
        assert!(is_new[..1000].iter().all(|is_new| *is_new), "{kind:?}");
        assert!(!filter.add(keys[5].as_str()).unwrap(), "{kind:?}");
        let more = digests(900..1100);
        let seen = filter.contains_all(more.iter().map(String::as_str)).unwrap();
        assert_eq!(seen, [[true; 100], [false; 100]].concat(), "{kind:?}");
        assert!(!filter.contains(more[150].as_str()).unwrap(), "a question adds nothing");

        let mut connection = server.connection();
        let are_there: Vec<String> = connection.keys("f*").unwrap();
        let named = filter.keys();
        assert!(are_there.iter().all(|key| named.contains(key)), "{kind:?}: {are_there:?}");
        assert_eq!(filter.bits() == 0, kind == FilterKind::ScrapyRedis);
        assert_eq!(filter.hashes() == 0, kind == FilterKind::ScrapyRedis);
        filter.delete().unwrap();
        assert!(!filter.contains(keys[5].as_str()).unwrap(), "{kind:?}");
        assert!(filter.add(keys[5].as_str()).unwrap(), "the filter can still be used");
        filter.delete().unwrap();
        assert!(!connection.exists::<_, bool>(&named).unwrap(), "{kind:?}");
    }
}

#[test]
fn bits_and_hashes_are_those_of_the_layouts() {
    let server = RedisServer::start();
    let open = |key, kind| RedisFilter::open(&server.url(), key, kind).unwrap();
    let pyre = open("p", FilterKind::PyreBloom { capacity: 10_000, error_rate: 0.01 });
    // These are the values of pyreBloom 1.0's own `bits` and `hashes`.
    assert_eq!((pyre.bits(), pyre.hashes()), (95_850, 7));
    assert_eq!(pyre.keys(), ["p.0"]);
    let local = LocalFilter::new(10_000, 1e-9).unwrap();
    let native = open("n", NATIVE);
    assert_eq!((native.bits(), native.hashes()), (local.bits(), local.hashes()));
    assert_eq!((native.keys().len(), local.keys().len()), (256, 0));
}

#[test]
fn keys_may_be_any_text_if_the_layout_takes_it() {
    let server = RedisServer::start();
    for (kind, _) in LAYOUTS {
        let filter = RedisFilter::open(&server.url(), &format!("{kind:?}"), kind).unwrap();
        let added = filter.add("hello");
        if matches!(kind, FilterKind::BlockCluster { .. }) {
            assert_eq!(added.unwrap_err().kind(), ErrorKind::Placement);
            let asked = filter.contains("hello");
            assert_eq!(asked.unwrap_err().kind(), ErrorKind::Placement);
        } else {
            assert!(added.unwrap() && filter.contains("hello").unwrap(), "{kind:?}");
        }
    }
}

#[test]
fn a_key_with_a_lost_answer_is_still_new() {
    let server = RedisServer::start();
    let proxy = Cutting::before(&server);
    for (kind, _) in LAYOUTS {
        let filter = RedisFilter::open(&proxy.url(), &format!("{kind:?}"), kind).unwrap();
        let keys = digests(0..3);
        // Before the script is known to the server, and after.
        for (key, lost) in keys.iter().zip([0, 1, 3]) {
            proxy.lose_next(lost);
            assert!(filter.add(key.as_str()).unwrap(), "{kind:?}: {lost} answers were lost");
            assert_eq!(proxy.to_lose(), 0, "not all that were to be lost were");
            assert!(!filter.add(key.as_str()).unwrap(), "{kind:?}");
        }
    }
}

#[test]
fn it_gives_up_at_last_and_goes_on_when_redis_is_back() {
    let mut server = RedisServer::start();
    let filter = RedisFilter::open_with(&server.url(), "f", NATIVE, impatient()).unwrap();
    assert!(filter.add("a").unwrap());
    server.kill();
    let error = filter.add("b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Redis);
    assert!(error.to_string().contains("tried 2 times"), "{error}");
    // It comes back empty: without the filter, the script, or the added keys.
    server.restart();
    assert_eq!(filter.extend(["a", "b", "a"]).unwrap(), [true, true, false]);
    let other = RedisFilter::open(&server.url(), "f", NATIVE).unwrap();
    assert_eq!(other.contains_all(["a", "b", "c"]).unwrap(), [true, true, false]);
}

#[test]
fn a_key_added_at_once_by_several_is_new_to_one() {
    let server = RedisServer::start();
    let add = || {
        let filter = RedisFilter::open(&server.url(), "f", NATIVE).unwrap();
        let keys = digests(0..2000);
        let parts = keys.chunks(7).map(|part| part.iter().map(String::as_str));
        let is_new = parts.flat_map(|part| filter.extend(part).unwrap());
        is_new.filter(|is_new| *is_new).count()
    };
    let new: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(new, 2000);
}

#[test]
fn another_filter_is_refused() {
    let server = RedisServer::start();
    let filter = RedisFilter::open(&server.url(), "f", NATIVE).unwrap();
    assert!(filter.add("a").unwrap());
    let fragments = Fingerprints { keep_fragments: true, ..Fingerprints::default() };
    let options = RedisOptions { fingerprints: fragments, ..RedisOptions::default() };
    for (refused, part) in [
        (RedisFilter::open(&server.url(), "f", FilterKind::ScrapyRedis), "filter.kind"),
        (RedisFilter::open_with(&server.url(), "f", NATIVE, options), "keep_fragments"),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains(part), "{error}");
    }
    // After another program deletes it and makes it anew, its bits would mean something else.
    filter.delete().unwrap();
    let other = RedisFilter::open(&server.url(), "f", NATIVE).unwrap();
    assert!(other.add("b").unwrap());
    for refused in [filter.add("c"), filter.contains("b")] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
    }
    assert!(!other.contains("c").unwrap());
}

#[test]
fn a_password_is_in_no_error() {
    let server = RedisServer::start();
    for url in ["redis://:geheim@127.0.0.1:1/", "redis://:geheim@[/", "nonsense://:geheim@h/"] {
        let error = RedisFilter::open_with(url, "f", NATIVE, impatient()).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains("geheim"), "{said}");
    }
    let filter = RedisFilter::open(&server.url_as("default", "geheim"), "f", NATIVE);
    assert!(!format!("{filter:?}").contains("geheim"));
}

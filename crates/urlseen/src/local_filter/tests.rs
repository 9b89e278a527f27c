use std::collections::HashSet;

use super::*;
use crate::{ErrorKind, FilterExt, Kind};
use urlseen_filter::choice::FilterPlace;
use urlseen_filter::redisbloom;
use urlseen_filter::{Parameters, ShardId};

/// Returns a small filter of every kind in memory.
pub(super) fn specs() -> impl Iterator<Item = FilterSpec> {
    let set = |spec: FilterSpec, name: &&str| match *name {
        "filter.capacity" => spec.capacity(1000),
        "filter.error_rate" => spec.error_rate(1e-12),
        "filter.expansion" => spec.expansion(2),
        "filter.grow_to" => spec.grow_to(1_000_000),
        _ => spec,
    };
    let spec = move |kind: Kind| kind.keys().iter().fold(FilterSpec::new(kind), set);
    Kind::all_in(FilterPlace::Local).map(spec)
}

fn native(capacity: u64, error_rate: f64) -> LocalFilter {
    LocalFilter::new(&FilterSpec::native(capacity, error_rate)).unwrap()
}

#[test]
fn filters_of_every_kind_add_test_and_delete_alike() {
    for spec in specs() {
        let filter = LocalFilter::new(&spec).unwrap();
        assert_eq!(filter.extend(["a", "b", "a"]).unwrap(), [true, true, false], "{spec:?}");
        assert_eq!(filter.extend(["c", "b"]).unwrap(), [true, false], "{spec:?}");
        assert_eq!(filter.contains_all(["a", "d"]).unwrap(), [true, false], "{spec:?}");
        assert_eq!(filter.len(), 3, "{spec:?}");
        filter.delete().unwrap();
        assert!(filter.is_empty() && filter.add("a").unwrap(), "{spec:?}");
    }
}

/// The bits and hashes of an imported filter are those of its layers, not of its parameters.
#[test]
fn an_imported_filter_has_the_bits_of_its_layers() {
    let reservation = redisbloom::Reservation {
        capacity: "100".parse().unwrap(),
        error_rate: "0.01".parse().unwrap(),
        expansion: 2,
    };
    let mut imported = redisbloom::Filter::reserve(reservation, u64::MAX).unwrap();
    for key in 0..150_u32 {
        imported.add(&key.to_le_bytes()).unwrap();
    }
    let mut dump = Vec::new();
    redisbloom::dump::write(&imported, &mut dump).unwrap();
    let filter = LocalFilter {
        filter: SharedFilter::new(Parameters::imported()).unwrap(),
        #[cfg(feature = "storage")]
        kept: None,
    };
    let (keys, len) = (imported.size(), dump.len() as u64);
    filter.filter.lock().filter.kind().load(ShardId::WHOLE, keys, len, &mut &dump[..]).unwrap();
    assert_eq!(filter.bits(), 8 * imported.bytes());
    assert_eq!(filter.hashes(), 9);
}

#[test]
fn a_key_that_several_threads_add_at_once_is_new_to_exactly_one() {
    let filter = native(100_000, 1e-12);
    let add = || {
        let keys = (0..10_000).map(|number: u32| number.to_string());
        keys.filter(|key| filter.add(key.as_str()).unwrap()).count()
    };
    let new: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((new, filter.len()), (10_000, 10_000));
}

#[test]
fn invalid_specs_are_refused() {
    for (spec, kind) in [
        (FilterSpec::native(0, 1e-6), ErrorKind::Spec),
        (FilterSpec::native(1000, 0.0), ErrorKind::Spec),
        (FilterSpec::native(1000, 1e-6).bit(30), ErrorKind::Spec),
        (FilterSpec::new(Kind::NATIVE).capacity(1000), ErrorKind::Spec),
        (FilterSpec::new(Kind::SCRAPY_REDIS), ErrorKind::Spec),
        (FilterSpec::native(1_000_000_000_000, 1e-12), ErrorKind::Memory),
    ] {
        let error = LocalFilter::new(&spec).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

/// Returns the spec of a filter that grows from a thousand keys to a hundred thousand.
pub(super) fn growing(error_rate: f64) -> FilterSpec {
    let spec = FilterSpec::new(Kind::TWO_CHOICE).capacity(1000).grow_to(100_000);
    spec.error_rate(error_rate).seed(7)
}

pub(super) fn numbers(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| number.to_string())
}

#[test]
fn a_forgotten_key_of_any_kind_is_unseen_until_it_is_added_again() {
    for spec in specs() {
        let filter = LocalFilter::new(&spec).unwrap();
        filter.extend(["a", "b"]).unwrap();
        let forgotten = filter.forget_all(["a", "c", "a"]).unwrap();
        assert_eq!(forgotten, [true, false, false], "{spec:?}");
        assert_eq!(filter.contains_all(["a", "b", "c"]).unwrap(), [false, true, false], "{spec:?}");
        let stores_keys = filter.key_hashes().is_some();
        assert_eq!(filter.len(), if stores_keys { 1 } else { 2 }, "{spec:?}");
        assert!(!filter.forget("a").unwrap() && filter.add("a").unwrap(), "{spec:?}");
        assert!(filter.contains("a").unwrap() && !filter.add("a").unwrap(), "{spec:?}");
        assert!(filter.forget("a").unwrap(), "{spec:?}");
        filter.delete().unwrap();
        assert!(!filter.forget("b").unwrap() && filter.add("a").unwrap(), "{spec:?}");
    }
}

#[test]
fn the_key_hashes_are_those_of_the_stored_keys() {
    for spec in specs() {
        let filter = LocalFilter::new(&spec).unwrap();
        filter.extend(numbers(0..5000)).unwrap();
        filter.forget_all(numbers(0..1000)).unwrap();
        let Some(hashes) = filter.key_hashes() else {
            assert!(![Kind::EXACT, Kind::TWO_CHOICE].contains(&spec.kind()), "{spec:?}");
            continue;
        };
        let hashes: Vec<u128> = hashes.collect();
        let expected: HashSet<u128> = numbers(1000..5000).map(|key| filter.key_hash(key)).collect();
        assert_eq!((hashes.len(), expected.len()), (4000, 4000), "{spec:?}");
        assert_eq!(hashes.into_iter().collect::<HashSet<_>>(), expected, "{spec:?}");
        filter.delete().unwrap();
        assert_eq!(filter.key_hashes().unwrap().next(), None, "{spec:?}");
    }
}

#[test]
fn the_key_hashes_of_a_changing_filter_have_each_remaining_key_once() {
    let filter = LocalFilter::new(&growing(1e-9)).unwrap();
    filter.extend(numbers(0..5000)).unwrap();
    let mut hashes = filter.key_hashes().unwrap();
    let mut all: Vec<u128> = hashes.by_ref().take(1000).collect();
    filter.extend(numbers(5000..50_000)).unwrap();
    filter.forget_all(numbers(0..2000)).unwrap();
    all.extend(hashes);
    let unique: HashSet<u128> = all.iter().copied().collect();
    assert_eq!(all.len(), unique.len());
    assert!(numbers(2000..5000).all(|key| unique.contains(&filter.key_hash(key))));
    assert!(all.len() > 20_000, "later parts have the added keys: {}", all.len());
}

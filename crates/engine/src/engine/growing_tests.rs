//! Compares an engine that has a RedisBloom filter with a RedisBloom filter that is used directly.

use std::collections::{HashSet, VecDeque};

use super::*;
use crate::item::batch::{Batch, Judged};
use crate::item::{Items, Options};
use urlseen_filter::choice::ItemForm;
use urlseen_filter::redisbloom::{Filter, Reservation, dump};
use urlseen_filter::{Parameters, ShardId, Verdict};
use urlseen_fingerprint::{Algorithm, Fingerprint};
use urlseen_storage::{Copied, LiveFilter as _, Position};

const LIMIT: u64 = 1 << 20;

fn reservation(capacity: &str, error_rate: &str, expansion: u32) -> Reservation {
    Reservation {
        capacity: capacity.parse().unwrap(),
        error_rate: error_rate.parse().unwrap(),
        expansion,
    }
}

fn engine(threads: usize, reservation: Reservation, limit: u64) -> Engine {
    let items = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    let parts = Parts {
        build: Arc::new(move || Ok(Box::new(Filter::reserve(reservation, limit)?) as _)),
        ..Parts::local(Parameters::reserved(reservation), items, Threads::start(threads).unwrap())
    };
    Engine::start(&parts).unwrap()
}

/// Returns the written form of the filter, its number of keys, and its position.
fn copied(engine: &Engine) -> (Vec<u8>, u64, Position) {
    let Copied { blob, at, .. } = engine.handle.copy(ShardId::WHOLE, Vec::new()).unwrap();
    let mut bytes = Vec::new();
    blob.write(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, blob.len());
    (bytes, blob.keys(), at)
}

fn digests(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("{:040x}", u64::from(number) << 20)).collect()
}

fn batch(items: &[String]) -> Batch<Claimed> {
    Batch::new(items.iter().map(String::as_bytes).collect::<Items>())
}

fn onward(batch: &Batch<Judged>) -> Vec<String> {
    batch.onward().map(|item| String::from_utf8(item.to_vec()).unwrap()).collect()
}

fn add_all(filter: &mut Filter, items: &[String]) {
    for item in items {
        filter.add(item.as_bytes()).unwrap();
    }
}

fn dump(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    dump::write(filter, &mut bytes).unwrap();
    bytes
}

/// Compares the engine with a filter that is used directly, for several numbers of threads. The
/// filter grows and has a high error rate. The answers and the bits must be equal, also while
/// batches are in flight.
#[tokio::test]
async fn the_engine_judges_and_grows_like_the_filter_alone() {
    for threads in [1, 2, 5] {
        let reserved = reservation("50", "0.1", 2);
        let mut engine = engine(threads, reserved, LIMIT);
        let mut model = Filter::reserve(reserved, LIMIT).unwrap();
        let mut flying = VecDeque::new();
        let mut state = 1_u32;
        let mut wrong = 0;
        let mut emitted = HashSet::new();
        for round in 0..120 {
            let items = digests((0..round * 5).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 18
            }));
            engine.submit(batch(&items));
            let judged = engine.judged().await.unwrap();
            // The expected unseen items are neither in the model nor in flight, and each of them
            // counts once.
            let mut in_flight: HashSet<String> = flying.iter().flatten().cloned().collect();
            let expected: Vec<_> = items
                .iter()
                .filter(|item| !model.contains(item.as_bytes()))
                .filter(|&item| in_flight.insert(item.clone()))
                .cloned()
                .collect();
            wrong += items.iter().filter(|item| !emitted.contains(*item)).count() - expected.len();
            emitted.extend(expected.clone());
            assert_eq!(onward(&judged), expected, "round {round}");
            flying.push_back(expected);
            if flying.len() == 3 {
                engine.settle(Logged::START);
                let committed: Vec<String> = flying.pop_front().unwrap();
                add_all(&mut model, &committed);
            }
        }
        for committed in flying {
            engine.settle(Logged::START);
            add_all(&mut model, &committed);
        }
        engine.caught_up().await.unwrap();
        assert!(wrong > 50 && model.layers() > 4, "{wrong}");
        assert!(copied(&engine).0 == dump(&model));
        let fill = engine.handle.gauge.fill();
        assert_eq!((fill.keys, fill.capacity), (model.size(), model.capacity()));
        assert_eq!((fill.layers, fill.bytes), (model.layers(), model.bytes()));
        assert!((engine.handle.gauge.error_rate() - model.error_rate_now()).abs() < f64::EPSILON);
        let asked: Vec<_> =
            digests(0..3000).iter().map(|it| Fingerprint::from_text(it.as_bytes())).collect();
        let told = engine.handle.test(&asked).unwrap();
        let due = asked.iter().map(|it| Verdict::of(model.contains(it.to_string().as_bytes())));
        assert_eq!(told, due.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_batch_that_has_no_room_is_not_handed_on() {
    let mut engine = engine(2, reservation("100", "1e-9", 0), LIMIT);
    engine.submit(batch(&digests(0..60)));
    engine.judged().await.unwrap();
    // The second batch has 40 new keys and 20 keys in flight. The fourth batch has one key more
    // than the filter has room for, and no batch is committed before that.
    engine.submit(batch(&digests(40..100)));
    assert_eq!(engine.judged().await.unwrap().findings.onward.len(), 40);
    engine.submit(batch(&digests(0..100)));
    assert_eq!(engine.judged().await.unwrap().findings.onward.len(), 0);
    engine.submit(batch(&digests(100..101)));
    let full = engine.judged().await.unwrap_err();
    assert!(matches!(full, EngineError::Full(_)), "{full}");
    assert!(full.to_string().contains("holds the 100 items"), "{full}");
    assert!(full.to_string().contains("NONSCALING"), "{full}");
    // Batches that were passed on are committed without errors.
    for _ in 0..3 {
        engine.settle(Logged::START);
    }
    assert_eq!(copied(&engine).1, 100);
}

//! Tests of fingerprints that expire.

use super::tests::{batch, engine_for, onward, urls};
use super::*;
use urlseen_filter::{Kind, Parameters};

pub(super) fn expiring_parameters() -> Parameters {
    let value = |name| match name {
        "filter.capacity" | "filter.grow_to" => Some("100000".to_owned()),
        "filter.error_rate" => Some("1e-9".to_owned()),
        "filter.expire_after" => Some("30d".to_owned()),
        "filter.seed" => Some("1".to_owned()),
        _ => None,
    };
    Kind::TWO_CHOICE.read(&value).unwrap()
}

fn expiring() -> Engine {
    engine_for(expiring_parameters(), 2)
}

/// Returns the items that pass in a generation, in which they are committed.
async fn passed(engine: &mut Engine, now: u32, items: &[String]) -> Vec<String> {
    let generation = Generation::new(now);
    engine.begin_generation(generation);
    engine.submit(batch(items));
    let passed = onward(&engine.judged().await.unwrap());
    engine.settle(Logged { generation, ..Logged::START });
    passed
}

fn item(number: u32, rest: &str) -> String {
    format!(r#"{{"url": "http://example.com/{number}"{rest}}}"#)
}

/// Rule G7: a `ttl` only shortens the time, in generations.
#[tokio::test]
async fn a_fingerprint_expires_after_its_own_time() {
    let mut engine = expiring();
    let ttls = [r#", "ttl": "6d""#, r#", "meta": {"ttl": 1036800}"#, r#", "ttl": "1y""#, ""];
    let items: Vec<_> = (0..).zip(ttls).map(|(number, ttl)| item(number, ttl)).collect();
    assert_eq!(passed(&mut engine, 100, &items).await, items);
    let again = [&[][..], &items[..1], &items[1..2], &items[..1], &[]];
    for (now, expected) in (101..).zip(again) {
        assert_eq!(passed(&mut engine, now, &items).await, expected, "{now}");
    }
    assert_eq!(passed(&mut engine, 106, &items[2..]).await, items[2..]);
}

#[tokio::test]
async fn an_item_with_a_wrong_time_is_a_reject() {
    let mut engine = expiring();
    engine.submit(batch(&[item(1, r#", "ttl": "soon""#)]));
    let judged = engine.judged().await.unwrap();
    let reasons: Vec<_> = judged.rejects().map(|(_, reason)| reason.to_string()).collect();
    assert!(reasons.len() == 1 && reasons[0].starts_with("`ttl` is neither"), "{reasons:?}");
}

/// Rule G6: the generation of a batch is that of its record, although a later one has begun before
/// the commit.
#[tokio::test]
async fn a_batch_is_set_in_the_generation_in_which_it_was_logged() {
    let mut engine = expiring();
    let (items, later) = (urls(0..10), urls(10..20));
    engine.begin_generation(Generation::new(100));
    for (items, logged_in) in [(&items, 100), (&later, 101)] {
        engine.submit(batch(items));
        assert_eq!(onward(&engine.judged().await.unwrap()), *items);
        engine.begin_generation(Generation::new(101));
        let generation = Generation::new(logged_in);
        engine.settle(Logged { generation, ..Logged::START });
    }
    for (now, unseen) in [(105, &[][..]), (106, &items), (107, &later)] {
        let all = [items.clone(), later.clone()].concat();
        assert_eq!(passed(&mut engine, now, &all).await, unseen, "{now}");
    }
}

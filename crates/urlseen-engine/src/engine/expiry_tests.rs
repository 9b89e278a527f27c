//! Tests of fingerprints that expire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::tests::{batch, engine_for, onward, urls};
use super::*;
use urlseen_core::filter::Kind;
use urlseen_core::filter::calendar::Calendar;

/// Time of day at which generation 100 begins.
const BEGAN: Duration = Duration::from_hours(498_240);

const DAY: Duration = Duration::from_hours(24);

fn expiring() -> Engine {
    let value = |name| match name {
        "filter.capacity" | "filter.grow_to" => Some("1000".to_owned()),
        "filter.error_rate" => Some("1e-9".to_owned()),
        "filter.expire_after" => Some("30d".to_owned()),
        "filter.seed" => Some("1".to_owned()),
        _ => None,
    };
    engine_for(Kind::TWO_CHOICE.read(&value).unwrap(), 2)
}

/// Returns the date of an item that is so many days after the start of generation 100.
fn day(days: i32) -> u64 {
    let time = UNIX_EPOCH + BEGAN + 1000 * DAY;
    let date = time - DAY * u32::try_from(1000 - days).unwrap();
    date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// Returns the items that pass in a generation, in which they are committed.
async fn passed(engine: &mut Engine, now: u32, items: &[String]) -> Vec<String> {
    let generation = Generation::new(now);
    let began = UNIX_EPOCH + BEGAN + 6 * DAY * (now - 100);
    let calendar = Calendar::new("30d".parse().unwrap(), generation, began);
    engine.begin_generation(generation, Some(calendar));
    engine.submit(batch(items));
    let passed = onward(&engine.judged().await.unwrap());
    engine.committed(Logged { generation, ..Logged::START });
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

/// Rule G7: a page does not pass for a date before the generation of that date.
#[tokio::test]
async fn a_page_that_has_changed_passes_once() {
    let mut engine = expiring();
    for ttl in ["", r#", "ttl": "6d""#] {
        let number = u32::from(!ttl.is_empty());
        let changed = |days| item(number, &format!(r#", "lastmod": {}{ttl}"#, day(days)));
        let is_passed = [
            // At first, the date does not matter.
            (100, changed(-50), true),
            (100, changed(-50), false),
            // In the generation in which the page was let through, a change cannot be told.
            (100, changed(5), false),
            (101, changed(5), false),
            (101, changed(6), true),
            (101, changed(6), false),
            (101, changed(13), false),
            (101, changed(900), false),
            (102, changed(900), false),
            (102, changed(13), true),
            (102, changed(13), false),
            (103, changed(13), false),
        ];
        for (now, item, passes) in is_passed {
            let items = [item];
            let expected = if passes { &items[..] } else { &[] };
            assert_eq!(passed(&mut engine, now, &items).await, expected, "{now} {items:?}");
        }
        engine = expiring();
    }
}

#[tokio::test]
async fn a_change_is_passed_once_within_and_across_batches_in_flight() {
    let mut engine = expiring();
    passed(&mut engine, 100, &urls([1])).await;
    passed(&mut engine, 101, &[]).await;
    let changed = [item(1, &format!(r#", "lastmod": {}"#, day(7)))];
    engine.submit(batch(&[&changed[..], &changed].concat()));
    engine.submit(batch(&changed));
    assert_eq!(onward(&engine.judged().await.unwrap()), changed);
    assert_eq!(onward(&engine.judged().await.unwrap()), [""; 0]);
    // The page was not let through after all.
    engine.abort();
    assert_eq!(passed(&mut engine, 101, &changed).await, changed);
    assert_eq!(passed(&mut engine, 101, &changed).await, [""; 0]);
}

#[tokio::test]
async fn items_with_wrong_times_are_rejects() {
    let mut engine = expiring();
    passed(&mut engine, 100, &[]).await;
    let items = [item(1, r#", "ttl": "soon""#), item(2, r#", "lastmod": "yesterday""#)];
    engine.submit(batch(&items));
    let judged = engine.judged().await.unwrap();
    let reasons: Vec<_> = judged.rejects().map(|(_, reason)| reason.to_string()).collect();
    assert!(reasons[0].starts_with("`ttl` is neither"), "{reasons:?}");
    assert!(reasons[1].starts_with("`lastmod` is neither"), "{reasons:?}");
    assert_eq!(reasons.len(), 2);
}

/// Rule G6: the generation of a batch is that of its record, although a later one has begun before
/// the commit.
#[tokio::test]
async fn a_batch_is_set_in_the_generation_in_which_it_was_logged() {
    let mut engine = expiring();
    let (items, later) = (urls(0..10), urls(10..20));
    engine.begin_generation(Generation::new(100), None);
    for (items, logged_in) in [(&items, 100), (&later, 101)] {
        engine.submit(batch(items));
        assert_eq!(onward(&engine.judged().await.unwrap()), *items);
        engine.begin_generation(Generation::new(101), None);
        let generation = Generation::new(logged_in);
        engine.committed(Logged { generation, ..Logged::START });
    }
    for (now, unseen) in [(105, &[][..]), (106, &items), (107, &later)] {
        let all = [items.clone(), later.clone()].concat();
        assert_eq!(passed(&mut engine, now, &all).await, unseen, "{now}");
    }
}

//! Tests of the machines and programs that crawls need.

use urlseen_core::filter::{Capacity, ErrorRate};
use urlseen_core::fingerprint::PartitionCount;

use super::super::amount::Amount;
use super::super::crawl::TrafficItem;
use super::super::resource::Owner;
use super::*;

fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

/// Crawl for 10 billion URLs at error rate 1e-8. Its filters take 51 GiB.
fn crawl(rate: &str) -> PlannedCrawl {
    let traffic = Traffic {
        rate: amount(rate),
        item: TrafficItem::Url,
        item_bytes: amount("100"),
        unseen: "0.1".parse().unwrap(),
        routed: "0".parse().unwrap(),
        waiting: amount("10M"),
    };
    let machine =
        Machine { cores: amount("32"), memory_gib: amount("256"), network_gbit: amount("10") };
    PlannedCrawl {
        capacity: Capacity::new(10_000_000_000).unwrap(),
        error_rate: ErrorRate::new(1e-8).unwrap(),
        traffic,
        machine,
        partitions: None,
    }
}

fn layout(needs: &Needs) -> [u64; 5] {
    let Layout { machines, partitions, primaries, processes, routers } = needs.layout;
    [machines, partitions, primaries, processes, routers]
}

fn first(needs: &Needs) -> (Owner, &'static str) {
    let first = needs.resources.iter().find(|each| each.first).unwrap();
    (first.owner, first.name)
}

#[test]
fn one_partition_suffices_for_a_small_crawl() {
    let needs = Needs::of(&crawl("1M")).unwrap();
    assert_eq!(layout(&needs), [1, 1, 1, 1, 0]);
    assert!(needs.suffices);
    assert_eq!(first(&needs), (Owner::Primary, "its thread"));
}

#[test]
fn memory_decides_the_number_of_machines() {
    let mut crawl = crawl("1k");
    crawl.machine.memory_gib = amount("16");
    let needs = Needs::of(&crawl).unwrap();
    assert_eq!(layout(&needs), [4, 4, 4, 4, 0]);
    assert_eq!(first(&needs), (Owner::Machine, "memory"));
}

#[test]
fn the_thread_of_redis_decides_the_number_of_primaries() {
    let needs = Needs::of(&crawl("4M")).unwrap();
    // 4 million items a second take 2.5 threads of Redis. Four partitions on three primaries leave
    // two partitions on one of them.
    assert_eq!(layout(&needs), [1, 4, 4, 1, 0]);
}

#[test]
fn routed_items_need_routers() {
    let mut crawl = crawl("4M");
    crawl.machine.network_gbit = amount("100");
    crawl.traffic.routed = "1".parse().unwrap();
    let needs = Needs::of(&crawl).unwrap();
    // The lists alone take 4.8 threads of Redis, and the routers 2.4 threads of their own.
    assert!(needs.suffices && needs.layout.machines == 1, "{:?}", needs.layout);
    assert!((5..=16).contains(&needs.layout.routers), "{:?}", needs.layout);
    assert_eq!(needs.layout.routers, needs.layout.primaries);
    // One partition has one source, so that nothing is routed.
    crawl.partitions = PartitionCount::new(1);
    assert_eq!(Needs::of(&crawl).unwrap().layout.routers, 0);
}

/// The list of a router is on one primary, so more primaries alone do not divide its work.
#[test]
fn the_lists_of_routers_are_divided_before_machines_are_added() {
    let mut crawl = crawl("10M");
    crawl.machine.network_gbit = amount("100");
    crawl.traffic.routed = "1".parse().unwrap();
    let needs = Needs::of(&crawl).unwrap();
    assert!(needs.suffices && needs.layout.machines <= 2, "{:?}", needs.layout);
    let one = &needs.carried[0];
    assert!(one.layout.machines == 1 && one.items_per_second > 9e6, "{}", one.items_per_second);
}

#[test]
fn a_given_number_of_partitions_may_be_too_small() {
    let mut crawl = crawl("4M");
    crawl.partitions = PartitionCount::new(1);
    let needs = Needs::of(&crawl).unwrap();
    assert_eq!((needs.suffices, needs.partitions_that_suffice), (false, Some(4)));
    assert_eq!(layout(&needs), [1, 1, 1, 1, 0]);
}

#[test]
fn there_are_at_most_256_partitions() {
    let needs = Needs::of(&crawl("10G")).unwrap();
    assert_eq!((needs.suffices, needs.partitions_that_suffice), (false, None));
    assert_eq!(layout(&needs)[..4], [256; 4]);
}

#[test]
fn more_machines_carry_more_items_and_urls() {
    let needs = Needs::of(&crawl("1M")).unwrap();
    let machines: Vec<_> = needs.carried.iter().map(|each| each.layout.machines).collect();
    assert_eq!(machines, [1, 4, 16, 64]);
    let grows = |of: fn(&Carried) -> f64| needs.carried.is_sorted_by(|a, b| of(a) < of(b));
    assert!(grows(|it| it.items_per_second) && grows(|it| it.urls));
}

#[test]
fn a_crawl_without_unseen_items_writes_nothing() {
    let mut crawl = crawl("1M");
    crawl.traffic.unseen = "0".parse().unwrap();
    let needs = Needs::of(&crawl).unwrap();
    assert!(needs.full_after_seconds.is_infinite() && needs.written_bytes_per_second == 0.0);
}

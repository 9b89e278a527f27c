//! Lists as source and sink: the daemon takes from either end, and pushes to either end.

use super::{Bytes, Crawl, SINK, urls};

/// Returns the items, each followed by a duplicate.
fn doubled(items: &[String]) -> Vec<String> {
    items.iter().flat_map(|item| [item.clone(), item.clone()]).collect()
}

#[test]
fn items_keep_their_order_for_each_pair_of_ends() {
    let items = urls(0, 100);
    for (take_from, push_to, is_reversed) in [
        ("left", "right", false),
        ("left", "left", true),
        ("right", "right", true),
        ("right", "left", false),
    ] {
        let crawl = Crawl::new()
            .set("source.batch=7")
            .set(&format!("source.take_from={take_from}"))
            .set(&format!("sink.push_to={push_to}"));
        crawl.push(&doubled(&items));
        crawl.drain();
        let mut expected: Vec<Bytes> = items.iter().map(|item| item.clone().into()).collect();
        if is_reversed {
            expected.reverse();
        }
        assert_eq!(crawl.list(SINK), expected, "{take_from} to {push_to}");
    }
}

#[test]
fn rejects_have_the_order_in_which_items_are_taken() {
    for (take_from, expected) in [("left", ["{1", "{2", "{3"]), ("right", ["{3", "{2", "{1"])] {
        let crawl = Crawl::new().set(&format!("source.take_from={take_from}"));
        crawl.push(&["{1", "{2", "{3"]);
        crawl.drain();
        let rejects = crawl.rejects();
        let items: Vec<&str> = rejects.iter().map(|json| json["item"].as_str().unwrap()).collect();
        assert_eq!(items, expected);
    }
}

//! Items that are too large to be written into their rejects. The list `oversize` has each such
//! item beside its reject.

use std::time::SystemTime;

use serde_json::Value;
use urlseen_core::redis::reject::write;
use urlseen_engine::item::Unreadable;

use super::{EMPTY, Lists, NO_TAB, REJECTED, SOURCE};

const OVERSIZE: &str = "urlseen:{demo:discovered}:oversize";

/// Adds rejects in the form that the daemon writes, as if all items were oversize.
fn reject(lists: &mut Lists, items: &[(&[u8], Unreadable)]) {
    for (item, reason) in items {
        let written = write(item, reason, SystemTime::UNIX_EPOCH, 0);
        assert!(written.is_oversize);
        lists.push(OVERSIZE, [written.json.as_slice(), item]);
    }
}

#[test]
fn oversize_rejects_are_listed_last_with_length_and_hash() {
    let mut lists = Lists::new();
    lists.reject_numbers(0..2);
    reject(&mut lists, &[(b"abc", Unreadable::NoTab), (b"\xff", Unreadable::Empty)]);
    let output = lists.run(&["list"]).output();
    let last = output.text().lines().nth(2).unwrap();
    assert!(
        last.ends_with("(3 bytes, SHA-1 a9993e364706816aba3e25717850c26c9cd0d89d) abc…"),
        "{last}"
    );
    assert_eq!(output.text().lines().count(), 4, "{output:?}");
    let output = lists.run(&["list", "--json", "--reason", NO_TAB]).output();
    let rows: Vec<Value> =
        output.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[1]["bytes"], &rows[1]["begins"]), (&Value::from(3), &Value::from("abc")));
    let output = lists.run(&["list", "--limit", "1"]).output();
    assert_eq!(output.text().lines().count(), 1);
    assert_eq!(output.stderr, "3 older rejects are not shown; --limit 0 shows all\n");
}

#[test]
fn oversize_items_are_requeued_completely() {
    for (end, far) in [("left", -1), ("right", 0)] {
        let large = vec![1; 3_000_000];
        let mut lists = Lists::new();
        lists.push(SOURCE, [&b"waits"[..]]);
        lists.reject_numbers(0..2);
        let items =
            [(&large[..], Unreadable::NoTab), (b"b", Unreadable::Empty), (b"c", Unreadable::NoTab)];
        reject(&mut lists, &items);
        let take_from = format!("source.take_from={end}");
        let requeue = lists.run(&["requeue", "--reason", NO_TAB, "--set", &take_from]).output();
        assert_eq!(requeue.code(), Some(0), "{requeue:?}");
        assert_eq!(requeue.text(), "3 put back to demo:discovered, 2 stay\n");
        let mut source = lists.list(SOURCE);
        if far == 0 {
            source.reverse();
        }
        assert!(source == [&b"waits"[..], b"0", &large, b"c"]);
        assert_eq!((lists.len(REJECTED), lists.len(OVERSIZE)), (1, 2));
        assert_eq!(lists.list(OVERSIZE)[1], b"b");
    }
}

#[test]
fn oversize_rejects_are_dropped_with_their_items() {
    let mut lists = Lists::new();
    lists.reject_numbers(0..2);
    reject(&mut lists, &[(b"a", Unreadable::NoTab), (b"b", Unreadable::Empty)]);
    let output = lists.run(&["drop", "--yes", "--reason", EMPTY]).output();
    assert_eq!(output.text(), "2 dropped, 2 stay\n", "{output:?}");
    assert_eq!(lists.list(OVERSIZE)[1..], [b"a"]);
    let output = lists.run(&["drop", "--yes"]).output();
    assert_eq!(output.text(), "2 dropped, 0 stay\n", "{output:?}");
    assert_eq!((lists.len(REJECTED), lists.len(OVERSIZE)), (0, 0));
}

#[test]
fn an_oversize_reject_without_its_item_is_kept() {
    let mut lists = Lists::new();
    let written = write(b"a", &Unreadable::Empty, SystemTime::UNIX_EPOCH, 0);
    lists.push(REJECTED, [written.json.as_slice()]);
    lists.push(OVERSIZE, [&b"not of urlseen"[..], b"item"]);
    let output = lists.run(&["requeue"]).output();
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert_eq!(output.text(), "0 put back to demo:discovered, 2 stay\n");
    assert_eq!((lists.len(REJECTED), lists.len(OVERSIZE), lists.len(SOURCE)), (1, 2, 0));
}

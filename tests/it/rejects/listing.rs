//! `urlseen rejects list`.

use redis::Commands;
use serde_json::{Value, json};
use urlseen_engine::item::Unreadable;

use super::{ASIDE, Lists, NO_TAB, REJECTED, numbers};
use crate::util::binary::Output;

/// Returns the third column of each row, which has the item.
fn items(output: &Output) -> Vec<&str> {
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().lines().map(|line| line.split('\t').nth(2).unwrap()).collect()
}

#[test]
fn the_newest_rejects_are_last_and_the_others_are_counted() {
    let mut lists = Lists::new();
    let output = lists.run(&["list"]).output();
    assert_eq!((output.code(), output.text(), output.stderr.as_str()), (Some(0), "", ""));
    lists.reject_numbers(0..2500);
    let output = lists.run(&["list"]).output();
    assert_eq!(items(&output), numbers(2480..2500));
    assert_eq!(output.stderr, "2,480 older rejects are not shown; --limit 0 shows all\n");
    let row = "1970-01-01T00:41:39.000Z\tthe item is empty\t2499\n";
    assert!(output.text().ends_with(row), "{}", output.text());
    let output = lists.run(&["list", "--limit", "2400"]).output();
    assert_eq!(items(&output), numbers(100..2500));
    for limit in ["0", "2500", "3000"] {
        let output = lists.run(&["list", "--limit", limit]).output();
        assert_eq!(items(&output), numbers(0..2500), "{limit}");
        assert_eq!(output.stderr, "");
    }
}

#[test]
fn a_reason_selects_rejects() {
    let mut lists = Lists::new();
    lists.reject_numbers(0..2500);
    let output = lists.run(&["list", "--reason", NO_TAB]).output();
    assert_eq!(items(&output), numbers((2460..2500).step_by(2)));
    assert_eq!(output.stderr, "1,230 older rejects are not shown; --limit 0 shows all\n");
    let output = lists.run(&["list", "--reason", NO_TAB, "--limit", "0"]).output();
    assert_eq!(items(&output), numbers((0..2500).step_by(2)));
    assert_eq!(items(&lists.run(&["list", "--reason", "other"]).output()), [""; 0]);
}

#[test]
fn foreign_rejects_are_escaped_for_a_terminal() {
    let mut lists = Lists::new();
    let odd = "a\u{1b}[2J\u{9b}\u{202e}\t\n\u{7f}".as_bytes();
    lists.reject(&[(odd, Unreadable::Empty), (b"\xff\x00\x1b", Unreadable::NoTab)]);
    let foreign = [&b"\x1b]0;title\x07"[..], b"\xfe", br#"{"item":"no reason"}"#];
    lists.push(REJECTED, foreign);
    let output = lists.run(&["list"]).output();
    let expected = [
        r"a\u{1b}[2J\u{9b}\u{202e}\t\n\u{7f}",
        r"\xff\0\u{1b}",
        r"\u{1b}]0;title\u{7}",
        r"\xfe",
        r#"{"item":"no reason"}"#,
    ];
    assert_eq!(items(&output), expected);
    let output = lists.run(&["list", "--json"]).output();
    let plain = |c: char| c == '\n' || c.is_ascii_graphic() || c == ' ';
    assert!(output.text().chars().all(plain), "{}", output.text());
    let rows = output.text().lines().map(|line| serde_json::from_str(line).unwrap());
    let (first, second) = ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.000Z");
    let no_tab = Unreadable::NoTab.to_string();
    let odd = std::str::from_utf8(odd).unwrap();
    let expected = [
        json!({"reason": "the item is empty", "time": first, "item": odd}),
        json!({"reason": no_tab, "time": second, "item_base64": "/wAb"}),
        json!({"raw": "\u{1b}]0;title\u{7}"}),
        json!({"raw_base64": "/g=="}),
        json!({"raw": r#"{"item":"no reason"}"#}),
    ];
    assert_eq!(rows.collect::<Vec<Value>>(), expected);
}

#[test]
fn json_has_all_rejects_unless_a_limit_is_set() {
    let mut lists = Lists::new();
    lists.reject_numbers(0..100);
    lists.reject(&[("x".repeat(3_000_000).as_bytes(), Unreadable::NoTab)]);
    let rows = |arguments: &[&str]| {
        let output = lists.run(arguments).output();
        let rows = output.text().lines().map(|line| serde_json::from_str(line).unwrap());
        rows.collect::<Vec<Value>>()
    };
    let all = rows(&["list", "--json"]);
    assert_eq!(all.len(), 101);
    assert_eq!(all[100]["item"].as_str().unwrap().len(), 3_000_000);
    assert_eq!(rows(&["list", "--json", "--limit", "7"]), all[94..]);
    assert_eq!(rows(&["list", "--json", "--limit", "3", "--reason", "empty"]).len(), 3);
}

#[test]
fn rejects_of_an_interrupted_command_are_first() {
    let mut lists = Lists::new();
    lists.reject_numbers(0..1500);
    let () = lists.connection.rename(REJECTED, ASIDE).unwrap();
    lists.reject_numbers(1500..1510);
    let output = lists.run(&["list", "--limit", "0"]).output();
    assert_eq!(items(&output), numbers(0..1510));
    assert_eq!(items(&lists.run(&["list", "--limit", "30"]).output()), numbers(1480..1510));
}

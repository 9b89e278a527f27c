//! `urlseen rejects requeue` and `urlseen rejects drop`.

use redis::Commands;
use urlseen_core::redis::reject::shortened;
use urlseen_engine::item::Unreadable;

use super::{ASIDE, EMPTY, Lists, NO_TAB, REJECTED, SOURCE, numbers};
use crate::util::binary::{Output, urlseen};

#[track_caller]
fn assert_says(output: &Output, code: i32, stdout: &str, stderr: &str) {
    assert_eq!((output.code(), output.text()), (Some(code), stdout), "{output:?}");
    assert_eq!(output.stderr, stderr);
}

#[test]
fn requeued_items_are_unchanged_and_follow_waiting_ones() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let large = vec![0xc3; 3_000_000];
    let items = [&b"\0"[..], b"", &every_byte, &large, "\u{feff}ü".as_bytes(), b"{\"a\": \"\\n\"}"];
    for end in ["left", "right"] {
        let mut lists = Lists::new();
        lists.push(SOURCE, [&b"waits"[..], b"waits too"]);
        lists.reject(&items.map(|item| (item, Unreadable::Empty)));
        let take_from = format!("source.take_from={end}");
        let output = lists.run(&["requeue", "--set", &take_from]).output();
        assert_says(&output, 0, "6 put back to demo:discovered, 0 stay\n", "");
        let mut source = lists.list(SOURCE);
        let mut expected: Vec<&[u8]> = vec![b"waits", b"waits too"];
        if end == "right" {
            source.reverse();
            expected.reverse();
        }
        expected.extend(items);
        assert!(source == expected, "{end}");
        assert_eq!((lists.len(REJECTED), lists.len(ASIDE)), (0, 0));
    }
}

#[test]
fn requeued_items_pass_if_the_configured_form_now_reads_them() {
    let mut lists = Lists::new();
    let bad = [&b"0123456789abcdef0123456789abcdef01234567"[..], b"\x80\x04\xff", b"", b"/path"];
    let good = b"https://example.com/";
    lists.push(SOURCE, bad.into_iter().chain([&good[..]]));
    let drain = |form: &str| {
        let output = urlseen(["run", "--drain", "--set", "filter.capacity=1000", "--set"])
            .arg(format!("source.item={form}"))
            .env("URLSEEN_REDIS__URL", lists.server.url())
            .env("URLSEEN_STORAGE__DIR", lists.server.folder().join("storage"))
            .output();
        assert_eq!(output.code(), Some(0), "{output:?}");
    };
    drain("url");
    let output = lists.run(&["requeue"]).output();
    assert_says(&output, 0, "4 put back to demo:discovered, 0 stay\n", "");
    assert_eq!(lists.connection.lrange::<_, Vec<Vec<u8>>>(SOURCE, 0, -1).unwrap(), bad);
    drain("fingerprint");
    let unseen: Vec<Vec<u8>> = lists.connection.lrange("demo:unseen", 0, -1).unwrap();
    // All items except the empty one can be read as fingerprints.
    assert_eq!(unseen, [&good[..], bad[0], bad[1], bad[3]]);
    assert_eq!(lists.len(REJECTED), 1);
}

#[test]
fn a_reason_selects_rejects_and_the_others_keep_their_order() {
    let mut lists = Lists::new();
    lists.reject_numbers(0..5001);
    let output = lists.run(&["requeue", "--reason", NO_TAB]).output();
    assert_says(&output, 0, "2,501 put back to demo:discovered, 2,500 stay\n", "");
    assert_eq!(lists.source_items(), numbers((0..5001).step_by(2)));
    assert_eq!(lists.rejected_items(), numbers((1..5001).step_by(2)));
    assert_eq!(lists.len(ASIDE), 0);
    let output = lists.run(&["drop", "--yes", "--reason", EMPTY]).output();
    assert_says(&output, 0, "2,500 dropped, 0 stay\n", "");
    assert_eq!((lists.len(REJECTED), lists.len(SOURCE)), (0, 2501));
}

#[test]
fn foreign_rejects_are_kept_and_reported() {
    let mut lists = Lists::new();
    lists.push(REJECTED, [&b"{\"url\": 1}\x1b"[..]]);
    lists.reject_numbers(0..10);
    lists.push(REJECTED, [&b"\xff"[..]]);
    let named = "\
urlseen: stays on the list, because it has no whole item: {\"url\": 1}\\u{1b}
urlseen: stays on the list, because it has no whole item: \\xff
";
    let output = lists.run(&["requeue", "--reason", NO_TAB]).output();
    assert_says(&output, 1, "5 put back to demo:discovered, 7 stay\n", named);
    let output = lists.run(&["requeue"]).output();
    assert_says(&output, 1, "5 put back to demo:discovered, 2 stay\n", named);
    assert_eq!(lists.list(REJECTED), [&b"{\"url\": 1}\x1b"[..], b"\xff"]);
    let many = (0..100).map(|number| number.to_string()).collect::<Vec<_>>();
    lists.push(REJECTED, many.iter().map(String::as_bytes));
    let output = lists.run(&["requeue"]).output();
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert_eq!(output.stderr.lines().count(), 21);
    assert!(output.stderr.ends_with("urlseen: … and 82 more of these\n"), "{}", output.stderr);
    let output = lists.run(&["drop", "--yes"]).output();
    assert_says(&output, 0, "102 dropped, 0 stay\n", "");
    assert_eq!(lists.len(REJECTED), 0);
}

#[test]
fn a_shortened_reject_cannot_be_requeued() {
    let mut lists = Lists::new();
    let time = std::time::SystemTime::UNIX_EPOCH;
    let json = shortened(b"abc", &Unreadable::NoTab, time);
    lists.push(REJECTED, [&json[..]]);
    lists.reject_numbers(0..2);
    let output = lists.run(&["list"]).output();
    let shown = "(3 bytes, SHA-1 a9993e364706816aba3e25717850c26c9cd0d89d) abc…";
    assert!(output.text().lines().next().unwrap().ends_with(shown), "{output:?}");
    let output = lists.run(&["requeue"]).output();
    assert_eq!(
        (output.code(), output.text()),
        (Some(1), "2 put back to demo:discovered, 1 stay\n")
    );
    assert!(output.stderr.contains("it has no whole item: {\"reason\""), "{}", output.stderr);
    let output = lists.run(&["drop", "--yes", "--reason", NO_TAB]).output();
    assert_says(&output, 0, "1 dropped, 0 stay\n", "");
}

#[test]
fn rejects_are_dropped_only_after_a_confirmation() {
    let mut lists = Lists::new();
    let output = lists.run(&["drop"]).output();
    assert_says(&output, 0, "there are no rejects on demo:rejected\n", "");
    lists.reject_numbers(0..3);
    for (arguments, question) in [
        (&["drop"][..], "Drop 3 rejects on demo:rejected for good?"),
        (
            &["drop", "--reason", NO_TAB],
            "Drop the rejects whose reason contains \"no tab\" for good? There are 3 rejects on \
             demo:rejected.",
        ),
    ] {
        let output = lists.run(arguments).stdin("y\n").output();
        let said = format!("error: {question} There is no terminal for an answer: give --yes\n");
        assert_says(&output, 2, "", &said);
    }
    assert_eq!(lists.rejected_items(), numbers(0..3));
    let output = lists.run(&["drop", "--yes"]).output();
    assert_says(&output, 0, "3 dropped, 0 stay\n", "");
    assert_eq!((lists.len(REJECTED), lists.len(SOURCE)), (0, 0));
}

#[test]
fn rejects_of_an_interrupted_command_are_requeued_and_dropped() {
    let mut lists = Lists::new();
    let leave_aside = |lists: &mut Lists| {
        lists.reject_numbers(0..25_000);
        let () = lists.connection.rename(REJECTED, ASIDE).unwrap();
        lists.reject_numbers(25_000..25_010);
    };
    leave_aside(&mut lists);
    let output = lists.run(&["requeue"]).output();
    assert_says(&output, 0, "25,010 put back to demo:discovered, 0 stay\n", "");
    assert_eq!(lists.source_items(), numbers(0..25_010));
    leave_aside(&mut lists);
    let output = lists.run(&["drop", "--yes", "--reason", NO_TAB]).output();
    assert_says(&output, 0, "12,505 dropped, 12,505 stay\n", "");
    assert_eq!(lists.rejected_items(), numbers((1..25_010).step_by(2)));
    let () = lists.connection.rename(REJECTED, ASIDE).unwrap();
    lists.reject_numbers(0..10);
    let output = lists.run(&["drop", "--yes"]).output();
    assert_says(&output, 0, "12,515 dropped, 0 stay\n", "");
    assert_eq!((lists.len(REJECTED), lists.len(ASIDE)), (0, 0));
}

//! `urlseen rejects requeue` and `urlseen rejects drop`.

use redis::Commands;
use urlseen_engine::item::Unreadable;

use super::{ASIDE, Lists, REJECTED, SOURCE};
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

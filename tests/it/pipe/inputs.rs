//! Ends of lines, unreadable lines, and unreadable files.

use std::fs;

use super::{check, filter, filtered, gzip, urls, zstandard};
use crate::util::binary::urlseen;

#[test]
fn a_last_line_needs_no_line_feed() {
    check(&filtered(&[], "http://a/\nhttp://b/"), 0, "http://a/\nhttp://b/\n", "");
    check(&filtered(&[], "http://a/\nhttp://a/"), 0, "http://a/\n", "");
    check(&filtered(&[], ""), 0, "", "");
    let folder = tempfile::tempdir().unwrap();
    for name in ["1", "2"] {
        fs::write(folder.path().join(name), format!("http://{name}/")).unwrap();
    }
    let output = filter(&["1", "2"]).dir(folder.path()).output();
    check(&output, 0, "http://1/\nhttp://2/\n", "");
}

#[test]
fn lines_are_printed_as_received() {
    // A carriage return is part of the line, and counts as white space around a URL.
    let input = "http://a/?y&x\r\nhttp://A:/?x=&y=#top\n  http://b/ \nhttp://a/?x&y=\r\n";
    check(&filtered(&[], input), 0, "http://a/?y&x\r\n  http://b/ \n", "");
    let seen = "http://A:/?x=&y=#top\nhttp://a/?x&y=\r\n";
    check(&filtered(&["--invert"], input), 0, seen, "");
}

#[test]
fn an_unreadable_line_is_reported_and_no_other_line_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "\nhttp://a/\n\n/b\nhttp://a/\n").unwrap();
    fs::write(folder.path().join("b"), b"http://b/\n\xff\n{\"url\": 1}\nhttp://c/").unwrap();
    let starts = [
        "urlseen: a, line 1: the item is empty",
        "urlseen: a, line 4: the URL is not absolute",
        "urlseen: b, line 2: the URL is not UTF-8: ",
        "urlseen: b, line 3: `url` is a number; it must be text: {\"url\": 1}",
        "urlseen: 1 more line: the item is empty",
    ];
    for (arguments, printed) in [
        (&["a", "b"][..], "http://a/\nhttp://b/\nhttp://c/\n"),
        (&["--invert", "a", "b"], "http://a/\n"),
    ] {
        let output = filter(arguments).dir(folder.path()).output();
        assert_eq!((output.text(), output.code()), (printed, Some(1)), "{output:?}");
        assert_eq!(output.stderr.lines().count(), starts.len(), "{}", output.stderr);
        for (line, start) in output.stderr.lines().zip(starts) {
            assert!(line.starts_with(start), "{line:?} does not begin with {start:?}");
        }
    }
}

#[test]
fn lines_before_a_failing_file_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good"), "http://a/\nhttp://b/\n").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    for (name, said) in [
        ("absent", "urlseen: cannot open absent: No such file or directory (os error 2)\n"),
        ("folder", "urlseen: cannot open folder: Is a directory (os error 21)\n"),
    ] {
        let output = filter(&["good", name, "good"]).dir(folder.path()).output();
        check(&output, 3, "http://a/\nhttp://b/\n", said);
    }
}

#[test]
fn the_readable_part_of_a_cut_file_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    // The file has more than one block, so a part is decompressed before the command notices the
    // missing end.
    let links = urls(100_000);
    for (name, whole) in
        [("cut.gz", gzip(links.as_bytes())), ("cut.zst", zstandard(links.as_bytes()))]
    {
        fs::write(folder.path().join(name), &whole[..whole.len() / 2]).unwrap();
        for command in ["filter", "fingerprint"] {
            let output = urlseen([command, name]).dir(folder.path()).output();
            assert_eq!(output.code(), Some(3), "{output:?}");
            let printed = output.text().lines().count();
            assert!((10_000..90_000).contains(&printed), "{command}: {printed} lines of {name}");
            let said = format!("urlseen: cannot read {name} after line {printed}: ");
            assert!(output.stderr.starts_with(&said), "{} is not {said}", output.stderr);
            if command == "filter" {
                assert!(links.starts_with(output.text()), "{}", output.text());
            }
        }
    }
}

#[test]
fn an_incomplete_last_line_is_not_printed_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    // Without its last 8 bytes, the file has the whole text, but no checksum.
    let whole = gzip(b"http://a/\nhttp://a/long");
    fs::write(folder.path().join("cut.gz"), &whole[..whole.len() - 8]).unwrap();
    let output = filter(&["cut.gz"]).dir(folder.path()).output();
    assert_eq!((output.code(), output.text()), (Some(3), "http://a/\n"), "{output:?}");
    assert!(output.stderr.starts_with("urlseen: cannot read cut.gz after line 1: "));
}

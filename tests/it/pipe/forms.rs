//! Forms of lines, their fingerprints, and the printed counts.

use super::{check, filtered, joined};

const SHA1: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn a_line_cannot_be_a_pickle() {
    let output = filtered(&["--item", "pickle"], "");
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("a pickle can contain line feeds"), "{}", output.stderr);
}

#[test]
fn each_form_is_read_as_configured() {
    let cases: &[(&str, &[&str], &[&str], &str)] = &[
        // Each case has a form, unseen lines of this form, lines that are seen after these, and a
        // line of another form.
        ("url", &["http://a/?b&a", "http://a/"], &["HTTP://A/?a&b#c"], SHA1),
        (
            "json",
            &[r#"{"url": "http://a/"}"#, r#"{"url": "http://a/", "method": "POST"}"#],
            &[r#"{"method": "get", "url": "http://a/#b"}"#],
            "http://a/",
        ),
        ("fingerprint", &[SHA1, "http://a/?b&a", "http://a/?a&b"], &[SHA1], "a\tb"),
        ("tab", &["a\tb", "b\tb", "\t"], &["a\tc\td"], SHA1),
        (
            "auto",
            &["http://a/", SHA1, "00112233445566778899aabbccddeeff\tx"],
            &[
                r#"{"url": "http://a/"}"#,
                "0123456789ABCDEF0123456789ABCDEF01234567\tpayload",
                "00112233445566778899aabbccddeeff",
            ],
            "\t",
        ),
    ];
    for &(form, unseen, seen, other) in cases {
        let input = [unseen, &[other], seen].concat().join("\n");
        let (unseen, seen) = (joined(unseen.iter().copied()), joined(seen.iter().copied()));
        let output = filtered(&["--item", form], input.clone());
        assert_eq!((output.text(), output.code()), (&*unseen, Some(1)), "{form}: {output:?}");
        let bad = format!("standard input, line {}: ", unseen.lines().count() + 1);
        assert!(output.stderr.contains(&bad), "{form}: {}", output.stderr);
        let output = filtered(&["--item", form, "--invert"], input);
        assert_eq!((output.text(), output.code()), (&*seen, Some(1)), "{form}: {output:?}");
    }
}

#[test]
fn unfiltered_lines_are_printed_every_time() {
    let unfiltered = r#"{"url": "http://a/", "dont_filter": true}"#;
    let input = format!("{unfiltered}\nhttp://a/\n{unfiltered}\nhttp://a/\n");
    check(&filtered(&[], &*input), 0, &format!("{unfiltered}\nhttp://a/\n{unfiltered}\n"), "");
    check(&filtered(&["--invert"], &*input), 0, "http://a/\n", "");
}

#[test]
fn fingerprints_are_computed_as_configured() {
    // Scrapy does not change a verbatim URL. scrapy-redis canonicalizes it nevertheless.
    let verbatim = r#"{"url": "http://a/?b&a", "meta": {"verbatim_url": true}}"#;
    let input = format!("http://a/?b&a\n{verbatim}\n");
    check(&filtered(&[], &*input), 0, &input, "");
    check(&filtered(&["--algorithm", "scrapy-redis"], &*input), 0, "http://a/?b&a\n", "");

    let input = "http://a/#b\nhttp://a/#c\nhttp://a/#b\n";
    check(&filtered(&[], input), 0, "http://a/#b\n", "");
    check(&filtered(&["--keep-fragments"], input), 0, "http://a/#b\nhttp://a/#c\n", "");
}

#[test]
fn statistics_are_printed_when_asked_for() {
    let output = filtered(&["--stats"], "http://a/\n\nhttp://b/\nhttp://a/\nhttp://a/#b\n");
    assert_eq!((output.text(), output.code()), ("http://a/\nhttp://b/\n", Some(1)));
    let [bad, counts] = output.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", output.stderr)
    };
    assert_eq!(bad, "urlseen: standard input, line 2: the item is empty");
    let seconds = counts.strip_prefix("5 lines, 2 unseen, 1 not readable, ").expect(counts);
    let seconds = seconds.strip_suffix(" s").expect(seconds).parse::<f64>().expect(seconds);
    assert!((0.0..60.0).contains(&seconds));
}

//! Tests of reading requests from pickles. tests/it/pickles.rs reads pickles that Python made.

use proptest::prelude::*;

use super::*;

fn read(pickle: &[u8]) -> Result<ItemRequest<'_>, String> {
    Pickles::default().read(pickle).map_err(|error| error.to_string())
}

/// Makes a pickle of protocol 2 with a dict of these keys, each with the opcodes of its value.
fn dict(pairs: &[(&str, &[u8])]) -> Vec<u8> {
    let mut pickle = b"\x80\x02}(".to_vec();
    for (key, value) in pairs {
        pickle.extend(text(key));
        pickle.extend(*value);
    }
    [&pickle[..], b"u."].concat()
}

fn text(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    [b"X", &length.to_le_bytes()[..], text.as_bytes()].concat()
}

fn with(field: &str, value: &[u8]) -> Vec<u8> {
    dict(&[("url", &text("http://h/")), (field, value)])
}

#[track_caller]
fn refused(pickle: &[u8]) -> String {
    read(pickle).unwrap_err()
}

#[test]
fn bytes_are_read_as_each_protocol_writes_them() {
    let latin1: &[u8] = b"c_codecs\nencode\nX\x03\0\0\0a\xc3\xbfX\x06\0\0\0latin1\x86R";
    for (body, expected) in [
        (&b"C\x02a\xff"[..], &b"a\xff"[..]),
        (b"B\x02\0\0\0a\xff", b"a\xff"),
        (b"\x8e\x02\0\0\0\0\0\0\0a\xff", b"a\xff"),
        (latin1, b"a\xff"),
        (b"c__builtin__\nbytes\n)R", b""),
        (b"N", b""),
        (b"X\x02\0\0\0\xc3\xa9", "é".as_bytes()),
    ] {
        assert_eq!(&*read(&with("body", body)).unwrap().body, expected);
    }
    let other: &[u8] = b"c_codecs\nencode\nX\x01\0\0\0aX\x06\0\0\0utf-16\x86R";
    let message = "`body` of the pickled request is an object; it must be bytes";
    assert_eq!(refused(&with("body", other)), message);
    // U+0100 does not fit into a byte.
    let wide: &[u8] = b"c_codecs\nencode\nX\x02\0\0\0\xc4\x80X\x06\0\0\0latin1\x86R";
    assert_eq!(refused(&with("body", wide)), message);
}

#[test]
fn text_in_another_encoding_than_utf_8_is_refused() {
    let pickle = |encoding| {
        dict(&[("url", &text("u")), ("body", &text("é")), ("encoding", &text(encoding))])
    };
    assert_eq!(&*read(&pickle("UTF-8")).unwrap().body, "é".as_bytes());
    assert!(refused(&pickle("cp1252")).contains("encoding other than UTF-8"));
}

#[test]
fn a_given_fingerprint_may_be_digits_or_a_digest() {
    let hex = "0f".repeat(20);
    let digest = [b"C\x14", &[15; 20][..]].concat();
    for value in [&text(&hex)[..], &digest, &[b"C\x28", hex.as_bytes()].concat()] {
        let pickle = dict(&[("fingerprint", value)]);
        assert_eq!(read(&pickle).unwrap().fingerprint, Some(Fingerprint::Raw20([15; 20])));
    }
    let key = dict(&[("fingerprint", b"C\x01k")]);
    assert_eq!(read(&key).unwrap().fingerprint, Some(Fingerprint::Text(b"k"[..].into())));
    assert!(refused(&with("fingerprint", b"C\0")).contains("empty"));
    assert!(refused(&with("fingerprint", b"X\0\0\0\0")).contains("empty"));
    let message = "`fingerprint` of the pickled request is an int; it must be a str or bytes";
    assert_eq!(refused(&with("fingerprint", b"K\x01")), message);
    assert!(refused(&dict(&[("url", b"N")])).contains("neither"));
}

#[test]
fn truth_is_the_same_as_in_python() {
    let latin1: &[u8] = b"c_codecs\nencode\nX\x01\0\0\0aX\x06\0\0\0latin1\x86R";
    for (value, truth) in [
        (&b"\x88"[..], true),
        (b"\x89", false),
        (b"N", false),
        (b"K\0", false),
        (b"J\xff\xff\xff\xff", true),
        (b"\x8a\x00", false),
        (b"\x8a\x09\0\0\0\0\0\0\0\0\x01", true),
        (b"G\0\0\0\0\0\0\0\0", false),
        (b"]", false),
        (b"]Na", true),
        (b")", false),
        (b"}", false),
        (b"X\0\0\0\0", false),
        (latin1, true),
        (b"I01\n", true),
        (b"I00\n", false),
        (b"L5L\n", true),
    ] {
        assert_eq!(read(&with("dont_filter", value)).unwrap().dont_filter, truth, "{value:?}");
        let meta = [b"}X\x0c\0\0\0verbatim_url", value, b"s"].concat();
        assert_eq!(read(&with("meta", &meta)).unwrap().verbatim_url, truth, "{value:?}");
    }
}

#[test]
fn priorities_are_numbers() {
    for (value, priority) in [
        (&b"K\x05"[..], Priority::Number(5.0)),
        (b"J\xfe\xff\xff\xff", Priority::Number(-2.0)),
        (b"\x8a\x02\x00\xff", Priority::Number(-256.0)),
        (b"G\x3f\xf8\0\0\0\0\0\0", Priority::Number(1.5)),
        (b"F1.5\n", Priority::Number(1.5)),
        (b"\x88", Priority::Number(1.0)),
        (b"X\x01\0\0\x001", Priority::Wrong("a str")),
        (b"L99999999999999999999L\n", Priority::Wrong("an int of more than 64 bits")),
    ] {
        assert_eq!(read(&with("priority", value)).unwrap().priority, priority, "{value:?}");
    }
}

#[test]
fn the_last_of_equal_keys_counts() {
    let pickle = dict(&[("url", b"N"), ("url", &text("a")), ("url", &text("b"))]);
    assert_eq!(read(&pickle).unwrap().url.as_deref(), Some("b"));
}

#[test]
fn pickles_without_a_request_are_refused() {
    for (pickle, message) in [
        (&b"}."[..], "does not begin with byte 0x80"),
        (b"\x80\x06}.", "a pickle of protocol 6"),
        (b"\x80\x02", "cut short"),
        (b"\x80\x02}", "cut short"),
        (b"\x80\x02X\xff\0\0\0a", "cut short"),
        (b"\x80\x04\x95\xff\0\0\0\0\0\0\0}.", "cut short"),
        (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "cut short"),
        (b"\x80\x02\xff.", "byte 2 (0xff) is not an opcode"),
        (b"\x80\x02.", "the opcode at byte 2 cannot be run"),
        (b"\x80\x02R.", "the opcode at byte 2 cannot be run"),
        (b"\x80\x02(\x85.", "the opcode at byte 3 cannot be run"),
        (b"\x80\x02h\0.", "the opcode at byte 2 cannot be run"),
        (b"\x80\x02Nr\xff\xff\xff\xff.", "the opcode at byte 3 cannot be run"),
        (b"\x80\x02}(Nu.", "the opcode at byte 5 cannot be run"),
        (b"\x80\x02(Nd.", "the opcode at byte 4 cannot be run"),
        (b"\x80\x02}Na.", "the opcode at byte 4 cannot be run"),
        (b"\x80\x02}}b.", "the opcode at byte 4 cannot be run"),
        (b"\x80\x02].", "holds a list, not a request as a dict"),
        (b"\x80\x02K\x01.", "holds an int, not"),
        (b"\x80\x02}.", "neither `url` nor `fingerprint`"),
    ] {
        let found = refused(pickle);
        assert!(found.contains(message), "{found:?} for {pickle:?}");
    }
    assert!(refused(&dict(&[("url", b"X\x01\0\0\0\xff")])).contains("`url`"));
    assert!(refused(&with("meta", b"]")).contains("`meta` of the pickled request is a list"));
}

/// Covers nested pickles, endless pickles, and pickles whose size would double with each step if
/// values were copied.
#[test]
fn no_pickle_takes_much_time_or_memory() {
    let mut pickles = Pickles::default();
    for step in [&b"2\x86"[..], b"\x94h\0h\0\x86", b"]", b"(", b"N(", b"\x85", b"N", b"N0"] {
        let repeated = [b"\x80\x04)", &step.repeat(100_000)[..]].concat();
        for end in [&b"."[..], b"u.", b""] {
            assert!(pickles.read(&[&repeated[..], end].concat()).is_err());
        }
    }
    let long = [b"\x80\x04", &b"N0".repeat(1 << 20)[..]].concat();
    assert!(refused(&long).contains("more than 1048576 opcodes"));
    // This container holds itself.
    let cyclic = b"}q\x07X\x01\0\0\0ah\x07s";
    assert!(pickles.read(&with("meta", cyclic)).is_ok());
}

#[test]
fn nothing_of_one_pickle_is_left_in_the_reader_for_the_next() {
    let mut pickles = Pickles::default();
    assert!(pickles.read(&with("method", b"X\x01\0\0\0A\x94")).is_ok());
    let no_memo = dict(&[("url", b"h\0")]);
    assert!(pickles.read(&no_memo).is_err());
    assert!(pickles.read(b"\x80\x02((N").is_err());
    assert!(pickles.read(&with("method", b"N")).is_ok());
}

/// Generates opcodes, most of them known ones, each with a few bytes of arguments.
fn opcodes() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<u8> = (0..=0x98).filter(|byte| !matches!(byte, 0..0x28)).collect();
    let step = (prop::sample::select(known), prop::collection::vec(0..4_u8, 0..9));
    prop::collection::vec(step, 0..200).prop_map(|steps| {
        let steps = steps.into_iter().flat_map(|(opcode, rest)| [vec![opcode], rest].concat());
        [0x80, 4].into_iter().chain(steps).chain([b'.']).collect()
    })
}

proptest! {
    #[test]
    fn no_opcodes_make_the_reader_panic(pickle in opcodes()) {
        let _ = read(&pickle);
    }
}

#[test]
fn a_time_is_read_from_the_meta() {
    for (value, ttl) in [
        (&b"K\x3c"[..], Ttl::Number(60.0)),
        (&text("5s"), Ttl::Text("5s".into())),
        (b"]", Ttl::Wrong),
        (b"N", Ttl::Nothing),
    ] {
        let meta = [b"}(", &text("ttl")[..], value, b"u"].concat();
        assert_eq!(read(&with("meta", &meta)).unwrap().ttl, ttl);
    }
}

/// Python raises an error for each of them.
#[test]
fn pickles_that_python_always_refuses_are_refused() {
    for value in [
        &b"S'a\n"[..], // text without its second quote
        b"Pid\n",      // persistent ids
        b"NQ",
        b"\x82\x01", // an extension code
        b"\x97",     // an out-of-band buffer
        b"}(]Nu",    // keys that cannot be hashed
        b"(}Nd",
    ] {
        let pickle = with("other", value);
        assert!(read(&pickle).is_err(), "{value:x?}");
    }
    assert!(read(&with("other", b"S'a'\n")).is_ok());
}

//! Tests of the explanations of items.

use super::*;
use urlseen_engine::config::ItemForm;

fn options() -> Options {
    Options::new(ItemForm::Auto.into(), Algorithm::Scrapy)
}

fn of(item: &str) -> Explained {
    explain(item.as_bytes(), options())
}

/// Returns the fingerprint of an item, as the reader computes it.
fn judged(item: &str) -> Fingerprint {
    let mut reader = Reader::new(options());
    match reader.read(item.as_bytes()).unwrap().identity {
        Identity::Fingerprint(fingerprint) => fingerprint,
        Identity::Unfiltered | Identity::Dropped(_) => panic!("{item} has no key"),
    }
}

#[test]
fn listed_spellings_have_equal_or_other_fingerprints_as_stated() {
    for item in [
        "https://example.com/",
        "https://u@example.com:8443/a/b?x=&b=1&a=2;#f",
        r#"{"url":"http://h/a","method":"post","body":"x=1","headers":{"a":"b"}}"#,
        r#"{"url":"http://h/a","body_base64":"/w=="}"#,
        "data:,a",
        "0123456789abcdef0123456789abcdef01234567",
        "0123456789ABCDEF0123456789abcdef01234567\tpayload",
    ] {
        let explained = of(item);
        assert!(explained.same.len() >= 2, "{item}: {:?}", explained.same);
        for Spelling { item: other, differs } in &explained.same {
            assert_eq!(judged(other), judged(item), "{item}: {other}: {differs}");
            assert_ne!(other, item);
        }
        for Spelling { item: other, differs } in &explained.others {
            assert_ne!(judged(other), judged(item), "{item}: {other}: {differs}");
        }
    }
    let differs: Vec<_> = of("https://example.com/a").others.iter().map(|it| it.differs).collect();
    assert_eq!(
        differs,
        [
            "the default port, written out",
            "the scheme",
            "www.",
            "a slash at the end of the path",
            "case of the path",
            "the method"
        ]
    );
}
